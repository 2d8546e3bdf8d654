"""From the scores of true candidates to tie levels: which of them tie, and where a level's bounds lie.

Two scores within `TIE` of each other (float64) are the same score. The counting of candidates above and inside a level
is left to a source of scores (`exact` for rows, `scored` for functions). This module is not about metrics (`ties`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bridgehead.evaluate.ties import Float64Array, TieLevels
from bridgehead.vectors import IntArray

TIE = 1e-12
"""Float64 scores that differ by no more than this are tied."""

# Rows longer than this are counted fastest one by one: a call for each is then a small part of it.
_LONG = 4096


@dataclass(frozen=True, eq=False)
class Truth:
    """The true candidates of the queries that have any, as (query, candidate) entries ascending by query.

    `rows` (n,) are the queries' row numbers, `query` (m,) numbers 0 .. n - 1 into them, `candidate` (m,) rows of the
    other side; `n_without` queries had no true candidate and are left out.
    """

    rows: IntArray
    query: IntArray
    candidate: IntArray
    n_without: int


@dataclass(frozen=True, eq=False)
class Bounds:
    """The distinct true scores of each query: (L,) arrays ascending by query, then descending by score.

    A level spans the scores `low` to `high` (equal but for rounding); `true` of its `copies` known members are true.
    `entries` is the number of distinct candidates behind them. `best` (n_queries,) is each query's best true score.
    """

    query: IntArray
    high: Float64Array
    low: Float64Array
    true: IntArray
    copies: IntArray
    entries: IntArray
    best: Float64Array

    @cached_property
    def _order(self) -> tuple[IntArray, IntArray]:
        place = np.arange(len(self.query)) - np.searchsorted(self.query, self.query)
        order = np.argsort(place, kind="stable")
        return order, np.searchsorted(place[order], np.arange(int(place.max(initial=-1)) + 2)).astype(np.int64)

    def passes(self, start: int, stop: int) -> Iterator[IntArray]:
        """Yield the levels of the queries start .. stop - 1 so that each array has at most one level of a query."""
        order, edges = self._order
        for left, right in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            levels = order[left:right]
            found = levels[slice(*np.searchsorted(self.query[levels], [start, stop]).tolist())]
            if len(found) == 0:
                # Places are filled from the first on, so a query without a second level has no third.
                return
            yield found

    def levels(self, above: IntArray, tied: IntArray, n_candidates: int) -> TieLevels:
        """Return the tie levels, given the counts of candidates above and inside each level."""
        n = len(self.best)
        following = np.append(above[1:], 0)
        last = np.append(self.query[1:] != self.query[:-1], True)
        # A candidate within TIE of two levels belongs to the lower one, so that levels never overlap.
        tied = np.where(last, tied, np.minimum(tied, following - above))
        return TieLevels(self.query, above, tied, self.true, n, n_candidates)


def level_bounds(query: IntArray, scores: Float64Array, true: IntArray, copies: IntArray, n_queries: int) -> Bounds:
    """Group the true scores of each query into levels; entries (m,) may come in any order.

    `true` and `copies` say how many true candidates, and how many candidates in all, an entry stands for.
    """
    order = np.lexsort((-scores, query))
    query, scores = query[order], scores[order]
    starts_query = np.append(True, query[1:] != query[:-1])[: len(query)]
    starts = starts_query | np.append(True, scores[:-1] - scores[1:] > TIE)[: len(query)]
    first = np.flatnonzero(starts)
    last = np.append(first[1:], len(query))[: len(first)] - 1
    return Bounds(
        query=query[first],
        high=scores[first],
        low=scores[last],
        true=np.add.reduceat(true[order], first),
        copies=np.add.reduceat(copies[order], first),
        entries=last - first + 1,
        best=scores[starts_query],
    )


def count_rows(mask: npt.NDArray[np.bool_]) -> IntArray:
    """Return the number of true entries in each row of a boolean (n, N) array of contiguous rows, (n,)."""
    if mask.shape[1] > _LONG:
        return np.fromiter((np.count_nonzero(row) for row in mask), dtype=np.int64, count=len(mask))
    whole = mask.shape[1] // 8 * 8
    counts: IntArray = mask[:, whole:].sum(axis=1, dtype=np.int64)
    # Eight entries are added at a time, as one number; no byte of a sum of 255 reaches 256 and carries into the next.
    for start in range(0, whole, 8 * 255):
        lanes = mask[:, start : min(start + 8 * 255, whole)].view(np.uint64).sum(axis=1)
        counts += lanes.view(np.uint8).reshape(-1, 8).sum(axis=1, dtype=np.int64)
    return counts
