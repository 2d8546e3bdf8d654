"""One side laid out for counting: each distinct row once, and rows of which the same is asked next to each other.

A *threshold* is the interval of scores that a level of true scores spans; it belongs to a row as a query, and the
candidates above and inside it are to be counted. Queries with identical rows share thresholds. This module is not about
the counting itself (`tiles`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from bridgehead.evaluate.ranks.cosine_rows import CosineRows, Float32Array, pair_cosines
from bridgehead.evaluate.ranks.levels import TIE, Bounds, Truth, level_bounds
from bridgehead.evaluate.ties import Float64Array
from bridgehead.vectors import IntArray

MANY = 64
"""Rows with more thresholds than this have their scores sorted instead of compared with each threshold."""


class DistinctRows:
    """The distinct rows of one side: `first` (m,) their first row, `copies` (m,) how often each occurs.

    `code` (n,) says which of them each row is.
    """

    def __init__(self, rows: CosineRows) -> None:
        self.rows = rows
        self.first, self.code = rows.distinct()
        self.copies = np.bincount(self.code, minlength=len(self.first)).astype(np.int64)

    def __len__(self) -> int:
        return len(self.first)


def true_levels(queries: DistinctRows, candidates: DistinctRows, truth: Truth) -> Bounds:
    """Score every true candidate in float64 (identical ones once) and group the scores into levels."""
    entries, true = np.unique(truth.query * len(candidates) + candidates.code[truth.candidate], return_counts=True)
    query, candidate = entries // len(candidates), entries % len(candidates)
    # Identical queries ask for the same pairs again and again: each pair of distinct rows is scored once.
    pairs, again = np.unique(queries.code[truth.rows[query]] * len(candidates) + candidate, return_inverse=True)
    left, right = queries.first[pairs // len(candidates)], candidates.first[pairs % len(candidates)]
    scores = pair_cosines(queries.rows, candidates.rows, left, right)[again]
    return level_bounds(query, scores, true, candidates.copies[candidate], len(truth.rows))


@dataclass(frozen=True)
class Span:
    """Consecutive rows of a layout that are alike: `repeated`, with several copies each, or not; `asked`: whether a row
    has no threshold (0), some (1) or more than `MANY` (2)."""

    start: int
    stop: int
    repeated: bool
    asked: int


class Layout:
    """The distinct rows of one side in the order of counting, with their thresholds.

    By place: `first` the row it stands for, `copies`, `unit32` (m, d), and thresholds edges[i] .. edges[i + 1] - 1 of
    the (T,) arrays `high`, `low` (float64; equal scores are at most `TIE` outside) and `high32`, `low32`, beyond which
    a float32 product settles it. `of_level` (L,) is the threshold of each level of `bounds`. `spans` cover the rows in
    order; in a span the number of thresholds does not fall.
    """

    def __init__(self, distinct: DistinctRows, truth: Truth, bounds: Bounds, error: float) -> None:
        self.rows = distinct.rows
        code, self.high, self.low, self.of_level = _shared(distinct.code[truth.rows[bounds.query]], bounds)
        asked = np.bincount(code, minlength=len(distinct))
        kinds = 3 * (distinct.copies > 1) + (asked > 0) + (asked > MANY)
        order = np.lexsort((asked, kinds))
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        self.first, self.copies = distinct.first[order], distinct.copies[order]
        self.edges = np.append(0, np.cumsum(asked[order])).astype(np.int64)
        moved = np.argsort(place[code], kind="stable")
        self.high, self.low = self.high[moved], self.low[moved]
        back = np.empty_like(moved)
        back[moved] = np.arange(len(moved))
        self.of_level = back[self.of_level]
        self.high32 = (self.high + (error + TIE)).astype(np.float32)
        self.low32 = (self.low - (error + TIE)).astype(np.float32)
        self.spans = _spans(kinds[order])
        self.unit32: Float32Array = self.rows.unit32_at(self.first)

    def passes(self, start: int, stop: int) -> Iterator[tuple[int, IntArray]]:
        """Yield (skipped, thresholds): the p-th threshold of each of the rows start + skipped .. stop - 1 of one span,
        for p = 0, 1, ...; the rows before these have none left."""
        first = self.edges[start:stop]
        counts = self.edges[start + 1 : stop + 1] - first
        for p in range(int(counts[-1])):
            skipped = int(np.searchsorted(counts, p, side="right"))
            yield skipped, first[skipped:] + p


def _shared(code: IntArray, bounds: Bounds) -> tuple[IntArray, Float64Array, Float64Array, IntArray]:
    """Return the distinct (code, high, low) of the levels, ascending by code, and which of them each level has."""
    order = np.lexsort((bounds.low, -bounds.high, code))
    columns = (code[order], bounds.high[order], bounds.low[order])
    changes = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    new = np.append(True, changes)[: len(order)]
    of_level = np.empty(len(order), dtype=np.int64)
    of_level[order] = np.cumsum(new) - 1
    return columns[0][new], columns[1][new], columns[2][new], of_level


def _spans(kinds: IntArray) -> list[Span]:
    edges = np.flatnonzero(np.append(True, kinds[1:] != kinds[:-1])[: len(kinds)]).tolist() + [len(kinds)]
    return [
        Span(start, stop, repeated=bool(kinds[start] >= 3), asked=int(kinds[start] % 3))
        for start, stop in pairwise(edges)
    ]
