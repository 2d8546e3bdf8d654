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
    them (1 <= p <= t). Every query has at least one level, and levels of one query do not overlap. `n_candidates` is
    one number, or int64 (n_queries,) where each query has a list of its own.

    A true item that the query's list lacks is out of reach. It stands in a last level of its own that begins where
    the list ends, `above` = N and `tied` = `true` = how many there are: no place of the list is left for it, so it
    adds nothing to any metric, while it counts among the true ones that a metric is divided by.
    """

    query: IntArray
    above: IntArray
    tied: IntArray
    true: IntArray
    n_queries: int
    n_candidates: int | IntArray

    @cached_property
    def first(self) -> IntArray:
        """The position of each query's first (best) level, (n_queries,)."""
        return np.searchsorted(self.query, np.arange(self.n_queries)).astype(np.int64)

    @cached_property
    def n_true(self) -> IntArray:
        """The number of true candidates of each query, (n_queries,)."""
        return np.add.reduceat(self.true, self.first) if self.n_queries else self.true

    @cached_property
    def pool(self) -> IntArray:
        """The number of candidates that each query ranks, (n_queries,)."""
        return np.zeros(self.n_queries, dtype=np.int64) + self.n_candidates

    @cached_property
    def ends(self) -> IntArray:
        """The number of candidates of each level's query, (L,)."""
        return self.pool[self.query]

    @cached_property
    def n_missing(self) -> IntArray:
        """The number of true items of each query that are not among its candidates, (n_queries,)."""
        missing = np.where(self.above >= self.ends, self.true, 0)
        return np.add.reduceat(missing, self.first) if self.n_queries else missing

    @cached_property
    def undecided(self) -> npt.NDArray[np.bool_]:
        """Whether a true candidate of the query is tied with one that is not true, (n_queries,)."""
        mixed = (self.tied > self.true).astype(np.int64)
        return np.add.reduceat(mixed, self.first) > 0 if self.n_queries else mixed > 0

    def subset(self, mask: npt.NDArray[np.bool_]) -> "TieLevels":
        """Return the levels of the queries that `mask` (n_queries,) holds, numbered anew in the same order."""
        kept = mask[self.query]
        number = np.cumsum(mask) - 1
        pool = self.n_candidates if isinstance(self.n_candidates, int) else self.n_candidates[mask]
        query, n = number[self.query[kept]], int(mask.sum())
        return TieLevels(query, self.above[kept], self.tied[kept], self.true[kept], n, pool)

    @classmethod
    def constant(cls, n_true: IntArray, n_candidates: int | IntArray, n_missing: IntArray | None = None) -> "TieLevels":
        """Return the levels of a scorer that gives every candidate the same score: its metrics are chance.

        `n_missing` (n,) of the `n_true` (n,) true items are not among the candidates.
        """
        pool = np.broadcast_to(np.asarray(n_candidates, dtype=np.int64), n_true.shape)
        missing = np.zeros_like(n_true) if n_missing is None else n_missing
        query = np.flatnonzero(n_true > missing)
        reached = (n_true - missing)[query]
        return cls.with_missing(query, np.zeros_like(query), pool[query], reached, missing, n_candidates)

    @classmethod
    def with_missing(
        cls,
        query: IntArray,
        above: IntArray,
        tied: IntArray,
        true: IntArray,
        n_missing: IntArray,
        n_candidates: int | IntArray,
    ) -> "TieLevels":
        """Return the given levels and, for the `n_missing` (n_queries,) true items out of reach, their last ones.

        Here a query may come without a level, if all its true items are missing.
        """
        late = np.flatnonzero(n_missing > 0)
        if len(late):
            pool, missing = np.broadcast_to(np.asarray(n_candidates), n_missing.shape)[late], n_missing[late]
            columns = [
                np.concatenate(pair)
                for pair in ((query, late), (above, pool), (tied, missing), (true, missing))
            ]  # fmt: skip
            order = np.argsort(columns[0], kind="stable")
            query, above, tied, true = (column[order] for column in columns)
        return cls(query, above, tied, true, len(n_missing), n_candidates)


def expected_metrics(levels: TieLevels, ks: Sequence[int]) -> dict[str, Float64Array]:
    """Return each metric's expectation for each query: name -> (n_queries,).

    Names are `recall@k`, `recall_all@k` and `ndcg@k` for each k of `ks`, then `mrr`, `map`, `r_precision` and `rank`
    (the expected rank of the best true candidate). k above the number of candidates counts as that number.
    """
    metrics: dict[str, Float64Array] = {}
    for k in ks:
        metrics[f"recall@{k}"] = expected_recall(levels, k)
        metrics[f"recall_all@{k}"] = expected_recall_all(levels, k)
        metrics[f"ndcg@{k}"] = expected_ndcg(levels, k)
    metrics["mrr"] = expected_reciprocal_rank(levels)
    metrics["map"] = expected_average_precision(levels)
    metrics["r_precision"] = expected_r_precision(levels)
    metrics["rank"] = expected_best_rank(levels)
    return metrics


def expected_recall(levels: TieLevels, k: int) -> Float64Array:
    """Return the probability that a true candidate is among the first k, (n_queries,).

    With g above, t tied and p true in the best level and m = clip(k - g, 0, t) places left for it, this is
    1 - C(t - p, m) / C(t, m).
    """
    above, tied, true = _best(levels)
    places = np.clip(np.minimum(k, levels.pool) - above, 0, tied)
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
    return _share_of_true(levels, np.minimum(k, levels.ends))


def expected_r_precision(levels: TieLevels) -> Float64Array:
    """Return the expected share of true candidates among the first P, P being the query's number of them, (n_queries,).

    Precision and recall are equal there, so that with one true candidate this is recall@1 (Manning, Raghavan &
    Schuetze, Introduction to Information Retrieval, section 8.4). A list of under P candidates is read to its end.
    """
    return _share_of_true(levels, np.minimum(levels.n_true[levels.query], levels.ends))


def _share_of_true(levels: TieLevels, last: IntArray) -> Float64Array:
    """Return the expected share of each query's true candidates up to the place `last` (L,), given for its levels."""
    places = np.clip(last - levels.above, 0, levels.tied)
    return _sum_by_query(levels, levels.true * places / levels.tied) / levels.n_true


def expected_reciprocal_rank(levels: TieLevels) -> Float64Array:
    """Return the expected reciprocal rank of the best true candidate, (n_queries,).

    Within the best level it is sum_j P(first true one at j) / (g + j), with P = C(t - j, p - 1) / C(t, p). It is 0
    where every true item is out of reach.
    """
    above, tied, true = _best(levels)
    result = 1.0 / (above + np.ones(len(above)))
    single = (true == 1) & (tied > 1)
    result[single] = (_harmonic_span(levels, above, tied) / tied)[single]
    rest = np.flatnonzero((true > 1) & (true < tied))
    first, which = distinct_cases(above[rest], tied[rest], true[rest])
    cases = zip(*(column[rest][first].tolist() for column in (above, tied, true)), strict=True)
    values = np.array([np.sum(first_place_odds(t, p) / np.arange(g + 1, g + t - p + 2)) for g, t, p in cases])
    if len(rest):
        result[rest] = values[which]
    return np.where(above < levels.pool, result, 0.0)


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
    gain = np.where(above < levels.ends, gain, 0)
    return _sum_by_query(levels, gain.astype(np.float64)) / levels.n_true


def expected_ndcg(levels: TieLevels, k: int) -> Float64Array:
    """Return the expected normalised discounted cumulative gain at k, (n_queries,).

    Gains are 0 or 1, the discount at rank r is 1 / log2(r + 1), the ideal puts all true candidates first; a tied
    candidate has the mean discount of its level's places (McSherry & Najork 2008).
    """
    most = min(k, int(max(levels.pool.max(initial=0), levels.n_true.max(initial=0))))
    total = np.concatenate([[0.0], np.cumsum(1.0 / np.log2(np.arange(2, most + 2)))])
    last = np.minimum(most, levels.ends)
    span = total[np.minimum(levels.above + levels.tied, last)] - total[np.minimum(levels.above, last)]
    ideal: Float64Array = total[np.minimum(levels.n_true, most)]
    return _sum_by_query(levels, levels.true / levels.tied * span) / ideal


def expected_best_rank(levels: TieLevels) -> Float64Array:
    """Return the expected rank of the best true candidate, g + (t + 1) / (p + 1), (n_queries,).

    It is N + 1 for a query whose list of N candidates lacks every true item.
    """
    above, tied, true = _best(levels)
    return np.asarray(above + (tied + 1.0) / (true + 1.0), dtype=np.float64)


def distinct_cases(*columns: IntArray) -> tuple[IntArray, IntArray]:
    """Return (first, which): where each distinct combination of the columns (n,) occurs first, and each entry's number.

    Column by column, which is many times as fast as finding distinct rows.
    """
    which = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        values, place = np.unique(column, return_inverse=True)
        _, which = np.unique(which * max(1, len(values)) + place.reshape(-1), return_inverse=True)
    _, first = np.unique(which, return_index=True)
    return first.astype(np.int64), which.reshape(-1).astype(np.int64)


def _best(levels: TieLevels) -> tuple[IntArray, IntArray, IntArray]:
    """Return `above`, `tied` and `true` of each query's best level, (n_queries,) each."""
    return levels.above[levels.first], levels.tied[levels.first], levels.true[levels.first]


def _harmonic_span(levels: TieLevels, above: IntArray, tied: IntArray) -> npt.NDArray[np.longdouble]:
    """Return H_{g+t} - H_g for each entry, in extended precision where the platform has it."""
    inverse = 1 / np.arange(1, int((levels.above + levels.tied).max(initial=0)) + 1, dtype=np.longdouble)
    harmonic = np.concatenate([np.zeros(1, dtype=np.longdouble), np.cumsum(inverse)])
    return np.asarray(harmonic[above + tied] - harmonic[above])


def _sum_by_query(levels: TieLevels, values: Float64Array) -> Float64Array:
    return np.asarray(np.add.reduceat(values, levels.first) if levels.n_queries else values, dtype=np.float64)
