"""Exact expectations of ranking metrics over the random orders of tied candidates.

A query's ranking is described by its *tie levels*: for each distinct score that some true candidate has, how many
candidates are strictly above it, how many share it, and how many of those are true. Every metric follows from these
numbers alone, in closed form (McSherry & Najork, "Computing information retrieval performance measures efficiently in
the presence of tied scores", ECIR 2008). This module is not about where scores come from (`levels`, `exact`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bridgehead.vectors import IntArray

Float64Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TieLevels:
    """Tie levels of `n_queries` queries that each rank `n_candidates` candidates.

    `query`, `above`, `tied` and `true` are int64 (L,), one entry a level, ascending by query and within it by `above`:
    the query's number, the candidates strictly above the level, the candidates in it (t >= 1), the true ones among
    them (1 <= p <= t). Every query has at least one level, and levels of one query do not overlap.
    """

    query: IntArray
    above: IntArray
    tied: IntArray
    true: IntArray
    n_queries: int
    n_candidates: int

    @cached_property
    def first(self) -> IntArray:
        """The position of each query's first (best) level, (n_queries,)."""
        return np.searchsorted(self.query, np.arange(self.n_queries)).astype(np.int64)

    @cached_property
    def n_true(self) -> IntArray:
        """The number of true candidates of each query, (n_queries,)."""
        return np.add.reduceat(self.true, self.first) if self.n_queries else self.true

    @cached_property
    def undecided(self) -> npt.NDArray[np.bool_]:
        """Whether a true candidate of the query is tied with one that is not true, (n_queries,)."""
        mixed = (self.tied > self.true).astype(np.int64)
        return np.add.reduceat(mixed, self.first) > 0 if self.n_queries else mixed > 0

    @classmethod
    def constant(cls, n_true: IntArray, n_candidates: int) -> "TieLevels":
        """Return the levels of a scorer that gives every candidate the same score: its metrics are chance."""
        n = len(n_true)
        zeros = np.zeros(n, dtype=np.int64)
        return cls(np.arange(n, dtype=np.int64), zeros, zeros + n_candidates, n_true, n, n_candidates)


def expected_metrics(levels: TieLevels, ks: Sequence[int]) -> dict[str, Float64Array]:
    """Return each metric's expectation for each query: name -> (n_queries,).

    Names are `recall@k`, `recall_all@k` and `ndcg@k` for each k of `ks`, then `mrr`, `map` and `rank` (the expected
    rank of the best true candidate). k above the number of candidates counts as that number.
    """
    metrics: dict[str, Float64Array] = {}
    for k in ks:
        metrics[f"recall@{k}"] = expected_recall(levels, k)
        metrics[f"recall_all@{k}"] = expected_recall_all(levels, k)
        metrics[f"ndcg@{k}"] = expected_ndcg(levels, k)
    metrics["mrr"] = expected_reciprocal_rank(levels)
    metrics["map"] = expected_average_precision(levels)
    metrics["rank"] = expected_best_rank(levels)
    return metrics


def expected_recall(levels: TieLevels, k: int) -> Float64Array:
    """Return the probability that a true candidate is among the first k, (n_queries,).

    With g above, t tied and p true in the best level and m = clip(k - g, 0, t) places left for it, this is
    1 - C(t - p, m) / C(t, m).
    """
    above, tied, true = (column[levels.first] for column in (levels.above, levels.tied, levels.true))
    places = np.clip(k - above, 0, tied)
    result = (places > 0).astype(np.float64)
    open_rows = np.flatnonzero((places > 0) & (places < tied) & (true < tied))
    tied, true, places = tied[open_rows], true[open_rows], places[open_rows]
    missed = np.ones(len(open_rows))
    # C(t - p, m) / C(t, m) is symmetric in p and m, so the product runs over the smaller of the two.
    fewer, more = np.minimum(true, places), np.maximum(true, places)
    for step in range(int(fewer.max(initial=0))):
        factor = np.maximum(tied - more - step, 0) / np.maximum(tied - step, 1)
        missed *= np.where(step < fewer, factor, 1.0)
    result[open_rows] = 1.0 - missed
    return result


def expected_recall_all(levels: TieLevels, k: int) -> Float64Array:
    """Return the expected share of a query's true candidates among the first k, (n_queries,)."""
    places = np.clip(k - levels.above, 0, levels.tied)
    return _sum_by_query(levels, levels.true * places / levels.tied) / levels.n_true


def expected_reciprocal_rank(levels: TieLevels) -> Float64Array:
    """Return the expected reciprocal rank of the best true candidate, (n_queries,).

    Within the best level it is sum_j P(first true one at j) / (g + j), with P = C(t - j, p - 1) / C(t, p).
    """
    above, tied, true = (column[levels.first] for column in (levels.above, levels.tied, levels.true))
    result = 1.0 / (above + np.ones(len(above)))
    single = (true == 1) & (tied > 1)
    result[single] = (_harmonic_span(levels, above, tied) / tied)[single]
    rest = np.flatnonzero((true > 1) & (true < tied))
    cases, which = np.unique(np.stack([above, tied, true], axis=1)[rest], axis=0, return_inverse=True)
    values = np.array([np.sum(first_place_odds(t, p) / np.arange(g + 1, g + t - p + 2)) for g, t, p in cases.tolist()])
    if len(rest):
        result[rest] = values[which.reshape(-1)]
    return result


def first_place_odds(tied: int, true: int) -> Float64Array:
    """Return P(first true candidate at place j) for j = 1 .. t - p + 1 when p of t are true, in random order."""
    j = np.arange(1, tied - true + 1, dtype=np.float64)
    ratios = (tied - j - true + 1) / (tied - j)
    return np.asarray((true / tied) * np.concatenate([np.ones(1), np.cumprod(ratios)]), dtype=np.float64)


def expected_average_precision(levels: TieLevels) -> Float64Array:
    """Return the expected average precision, (n_queries,).

    A level with g candidates and R true ones above it adds (p / t) sum_j (R + 1 + (j - 1)(p - 1) / (t - 1)) / (g + j),
    divided by the number of true candidates.
    """
    true, tied, above = levels.true, levels.tied, levels.above
    before = np.cumsum(true) - true
    before -= np.repeat(before[levels.first], np.diff(np.append(levels.first, len(true))))
    harmonic = _harmonic_span(levels, above, tied)
    # sum_j (j - 1) / (g + j) = t - (g + 1) (H_{g+t} - H_g), which loses digits unless H is held to more than float64.
    slope = tied - (above + 1) * harmonic
    gain = (true / tied) * ((before + 1) * harmonic + (true - 1) / np.maximum(tied - 1, 1) * slope)
    return _sum_by_query(levels, gain.astype(np.float64)) / levels.n_true


def expected_ndcg(levels: TieLevels, k: int) -> Float64Array:
    """Return the expected normalised discounted cumulative gain at k, (n_queries,).

    Gains are 0 or 1, the discount at rank r is 1 / log2(r + 1), the ideal puts all true candidates first; a tied
    candidate has the mean discount of its level's places (McSherry & Najork 2008).
    """
    last = min(k, levels.n_candidates)
    total = np.concatenate([[0.0], np.cumsum(1.0 / np.log2(np.arange(2, last + 2)))])
    span = total[np.minimum(levels.above + levels.tied, last)] - total[np.minimum(levels.above, last)]
    ideal: Float64Array = total[np.minimum(levels.n_true, last)]
    return _sum_by_query(levels, levels.true / levels.tied * span) / ideal


def expected_best_rank(levels: TieLevels) -> Float64Array:
    """Return the expected rank of the best true candidate, g + (t + 1) / (p + 1), (n_queries,)."""
    above, tied, true = (column[levels.first] for column in (levels.above, levels.tied, levels.true))
    return np.asarray(above + (tied + 1.0) / (true + 1.0), dtype=np.float64)


def _harmonic_span(levels: TieLevels, above: IntArray, tied: IntArray) -> npt.NDArray[np.longdouble]:
    """Return H_{g+t} - H_g for each entry, in extended precision where the platform has it."""
    inverse = 1 / np.arange(1, levels.n_candidates + 1, dtype=np.longdouble)
    harmonic = np.concatenate([np.zeros(1, dtype=np.longdouble), np.cumsum(inverse)])
    return np.asarray(harmonic[above + tied] - harmonic[above])


def _sum_by_query(levels: TieLevels, values: Float64Array) -> Float64Array:
    return np.asarray(np.add.reduceat(values, levels.first) if levels.n_queries else values, dtype=np.float64)
