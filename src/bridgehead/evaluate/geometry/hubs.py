"""Hubness: candidates that are among the nearest of far more queries than their share, and those of none.

Source: Radovanovic, Nanopoulos and Ivanovic, "Hubs in space", JMLR 11 (2010). This module is not about whether the
answers are right (`bridgehead.evaluate.report`).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bridgehead.evaluate.arguments import whole_number
from bridgehead.evaluate.geometry.sides import BLOCK_BYTES, cosines_of, slices_of, two_sides
from bridgehead.evaluate.ranks.cosine_rows import CosineRows, screening_error
from bridgehead.evaluate.ranks.levels import TIE
from bridgehead.evaluate.ties import Float64Array
from bridgehead.vectors import IntArray, block_rows

_LISTED = 10
_CROWDED = 1 / 64


@dataclass(frozen=True)
class Hubness:
    """How often candidates are among the first `k` of `n_queries` queries.

    `skewness` is the third standardised moment of the candidates' expected numbers of times; 0 where all are alike,
    `chance_skewness` what random ranking gives, (1 - 2p) / sqrt(Q p (1 - p)) with p = k / N. `never` is the share in
    [0, 1] of candidates that come among the first k of no query, `chance_never` = (1 - p)^Q. `top_rows` are the row
    numbers of the ten that come most often, `top_times` how often; the first is the largest hub.
    """

    k: int
    n_queries: int
    n_candidates: int
    skewness: float
    chance_skewness: float
    never: float
    chance_never: float
    top_rows: tuple[int, ...]
    top_times: tuple[float, ...]

    @property
    def largest_share(self) -> float:
        """The share of queries that have the largest hub among their first k, in [0, 1]."""
        return self.top_times[0] / self.n_queries


def hubness(z_a: Any, z_b: Any, k: int = 10, block: int | None = None) -> tuple[Hubness, Hubness]:
    """Return the hubness of both directions: rows of a as queries of b, then rows of b as queries of a.

    `z_a` (n_a, d) and `z_b` (n_b, d) are rows of any length; nearness is the cosine. The lists are exact: float32
    products screen, float64 decides near the k-th place, and cosines that differ by at most 1e-12 are tied. Of t tied
    candidates for the last m places each is in the list with the probability m / t; numbers of times are expectations,
    and `never` the expected share. k over N counts as N: then everything is in every list. `block`: queries at once;
    the result does not depend on it. Time as two products of all rows, memory O(block x N).

    Raises `ShapeError`, `NonFiniteRowsError`, and `ArgumentError` for a k or block under 1.
    """
    rows_a, rows_b = two_sides(z_a, z_b)
    return _hubness(rows_a, rows_b, k, block), _hubness(rows_b, rows_a, k, block)


def k_occurrence(z_queries: Any, z_candidates: Any, k: int = 10, block: int | None = None) -> Float64Array:
    """Return how often each candidate is among the first k of a query, (N,); expectations where places are tied.

    Their sum is k times the number of queries. Arguments and errors as in `hubness`.

    >>> import numpy as np
    >>> k_occurrence(np.array([[1.0, 0.1], [1.0, 0.2]]), np.eye(2), k=1).tolist()
    [2.0, 0.0]
    """
    queries, candidates = two_sides(z_queries, z_candidates, ("z_queries", "z_candidates"))
    return _occurrence(queries, candidates, whole_number(k, "k", 1), block)[0]


def _hubness(queries: CosineRows, candidates: CosineRows, k: int, block: int | None) -> Hubness:
    k = whole_number(k, "k", 1)
    times, missed = _occurrence(queries, candidates, k, block)
    n_queries, n = len(queries), len(candidates)
    share = min(k, n) / n
    top = np.lexsort((np.arange(n), -np.round(times, 9)))[:_LISTED]
    open_variance = n_queries * share * (1 - share)
    return Hubness(
        k=k,
        n_queries=n_queries,
        n_candidates=n,
        skewness=_skewness(times),
        chance_skewness=(1 - 2 * share) / float(np.sqrt(open_variance)) if open_variance > 0 else 0.0,
        never=float(missed.mean()),
        chance_never=float((1 - share) ** n_queries),
        top_rows=tuple(top.tolist()),
        top_times=tuple(times[top].tolist()),
    )


def _skewness(values: Float64Array) -> float:
    centred = values - values.mean()
    variance = float((centred**2).mean())
    # Equal shares that were added in different orders differ by rounding alone.
    if variance <= 1e-18 * max(1.0, float(values.max())) ** 2:
        return 0.0
    return float((centred**3).mean() / variance**1.5)


def _occurrence(
    queries: CosineRows, candidates: CosineRows, k: int, block: int | None
) -> tuple[Float64Array, Float64Array]:
    """Return the expected times that each candidate is in a list, and the probability that it is in none, (N,) each."""
    n = len(candidates)
    if k >= n:
        return np.full(n, float(len(queries))), np.zeros(n)
    times, log_missed = np.zeros(n), np.zeros(n)
    step = block_rows(n, 4, BLOCK_BYTES) if block is None else whole_number(block, "block", 1)
    for start in range(0, len(queries), step):
        rows = np.arange(start, min(start + step, len(queries)))
        index, share = _lists(queries, candidates, rows, k)
        times += np.bincount(index, share, n)
        with np.errstate(divide="ignore"):
            log_missed += np.bincount(index, np.maximum(np.log1p(-share), -1e9), n)
    return times, np.exp(log_missed)


def _lists(queries: CosineRows, candidates: CosineRows, rows: IntArray, k: int) -> tuple[IntArray, Float64Array]:
    """Return the candidates in the lists of these queries, one entry each time, with their share of a place (0, 1]."""
    scores = queries.unit32[rows] @ candidates.unit32.T
    margin = np.float32(2 * screening_error(queries.n_columns) + TIE)
    last = np.partition(scores, len(candidates) - k, axis=1)[:, len(candidates) - k, None]
    line, index = np.nonzero(scores >= last - margin)
    sure = scores[line, index] > (last + margin)[line, 0]
    places = k - np.bincount(line[sure], minlength=len(rows))
    # Where as many are left as there are places, rounding cannot matter.
    open_line = np.bincount(line[~sure], minlength=len(rows)) > places
    share = np.ones(len(line))
    unsure = np.flatnonzero(~sure & open_line[line])
    if len(unsure):
        exact = _exact(queries, candidates, rows, line[unsure], index[unsure], scores.size)
        share[unsure] = _shares(line[unsure], exact, places)
    return index, share


def _exact(
    queries: CosineRows, candidates: CosineRows, rows: IntArray, line: IntArray, index: IntArray, size: int
) -> Float64Array:
    """Return float64 cosines of entries: one by one, or all of their queries' where most are asked for."""
    if len(line) <= _CROWDED * size:
        return cosines_of(queries, candidates, np.stack([rows[line], index], axis=1))
    found = np.empty(len(line))
    left = queries.unit64(rows)
    for part in slices_of(len(candidates), max(candidates.n_columns, len(rows))):
        inside = (index >= part.start) & (index < part.stop)
        found[inside] = (left @ candidates.unit64(part).T)[line[inside], index[inside] - part.start]
    return found


def _shares(line: IntArray, scores: Float64Array, places: IntArray) -> Float64Array:
    """Return each entry's probability of a place: `places[q]` for the entries of query q, the best first."""
    order = np.lexsort((-scores, line))
    sorted_line = line[order]
    lines, first = np.unique(sorted_line, return_index=True)
    threshold = np.zeros(len(places))
    threshold[lines] = scores[order][first + places[lines] - 1]
    above = scores > threshold[line] + TIE
    tied = ~above & (scores >= threshold[line] - TIE)
    left = places - np.bincount(line[above], minlength=len(places))
    n_tied = np.bincount(line[tied], minlength=len(places))
    share = above.astype(np.float64)
    share[tied] = (left / np.maximum(n_tied, 1))[line[tied]]
    return share
