"""Recall as a function of the pool's size, in closed form from the ranks: no candidate is scored again.

A figure over 300 candidates and one over 100,000 cannot be compared; the curve of one evaluation over pool sizes can
be, at the sizes that both have. This module is not about chosen lists of candidates (`candidate_lists`), whose members
are harder than random ones.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridgehead.errors import ArgumentError
from bridgehead.evaluate.arguments import whole_number
from bridgehead.evaluate.intervals import bootstrap_intervals
from bridgehead.evaluate.ties import Float64Array, TieLevels, distinct_cases, expected_recall, first_place_odds
from bridgehead.vectors import IntArray

SIZES = (100, 1_000, 10_000, None)
"""The sizes at which recall is given unless others are asked for; None is the whole pool."""
_CASES_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class PoolPoint:
    """`recall` at k in a random pool of `size` candidates, what random ranking gives there, and the 95 % interval.

    The interval is by entity and tells of the queries, not of the draw of the pool, over which `recall` is an
    expectation; None where there are no resamples. `n_queries` queries could be asked. `whole` marks the pool as it
    was; where queries have lists of their own, `size` is then the median list.
    """

    size: int
    k: int
    recall: float
    chance: float
    interval: tuple[float, float] | None
    n_queries: int
    whole: bool

    @property
    def corrected(self) -> float:
        """(recall - chance) / (1 - chance); 0 where chance is 1 (k reaches the pool's end)."""
        return (self.recall - self.chance) / (1 - self.chance) if 1 - self.chance > 1e-12 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-safe entries; the interval as `low` and `high`, None where there is none."""
        low, high = self.interval or (None, None)
        names = ("size", "k", "recall", "chance", "corrected", "n_queries", "whole")
        return {name: getattr(self, name) for name in names} | {"low": low, "high": high}


def recall_by_pool(
    levels: TieLevels,
    k: int,
    sizes: Sequence[int | None] = SIZES,
    entities: IntArray | None = None,
    n_resamples: int = 0,
    seed: int = 0,
) -> list[PoolPoint]:
    """Return recall@`k` in pools of these sizes, ascending (see `expected_recall_in_pool`); None is the whole pool.

    A size that some query cannot have (it has fewer candidates, or more true ones) is over the others, and left out
    where no query has it; so is one that equals the whole pool, when that is asked for. `entities` (n_queries,)
    numbers 0 .. E - 1 and `n_resamples` make the intervals. Raises `ArgumentError` for a k or a size under 1.

    >>> import numpy as np
    >>> levels = TieLevels.constant(np.array([1, 1]), 1000)
    >>> [(point.size, round(point.recall, 12)) for point in recall_by_pool(levels, 10, (100, 5000, None))]
    [(100, 0.1), (1000, 0.01)]
    """
    if not isinstance(sizes, list | tuple):
        raise ArgumentError(f"sizes = {sizes!r:.80}; expected a list of whole numbers, None for the whole pool")
    wanted = dict.fromkeys(None if size is None else whole_number(size, "sizes", 1) for size in sizes)
    k = whole_number(k, "k", 1)
    curves = {
        size: expected_recall(levels, k) if size is None else expected_recall_in_pool(levels, k, size)
        for size in wanted
    }
    curves = {size: values for size, values in curves.items() if np.isfinite(values).any()}
    intervals = {} if entities is None else _intervals(curves, entities, n_resamples, seed)
    found = [_point(levels, k, size, values, intervals.get(size)) for size, values in curves.items()]
    whole = {point.size for point in found if point.whole and not np.ptp(levels.pool)}
    return sorted((p for p in found if p.whole or p.size not in whole), key=lambda p: (p.whole, p.size))


def expected_recall_in_pool(levels: TieLevels, k: int, size: int) -> Float64Array:
    """Return each query's probability of a true candidate among the first k of a random pool, (n_queries,).

    The pool holds all P true candidates that the query ranked (not those that its list lacked) and `size` - P of its
    N - P others, each set of that many equally likely. In a random order of tied candidates, G others stand before the
    first true one: those above its level, and Z of its level with P(Z = j - 1) = C(t - j, p - 1) / C(t, p). A random
    pool keeps X of these G, which is hypergeometric, and

        recall = sum_z P(Z = z) P(X <= k - 1),   P(X = x) = C(G, x) C(N - P - G, size - P - x) / C(N - P, size - P).

    With `size` = N it is `expected_recall`. It is NaN for a query with fewer than `size` candidates or with more than
    `size` true ones, and 0 for one whose true items are all out of reach. Raises `ArgumentError` for a k or a size
    under 1.
    """
    k, size = whole_number(k, "k", 1), whole_number(size, "size", 1)
    first = levels.first
    reached = levels.n_true - levels.n_missing
    result = np.where(reached > 0, np.nan, 0.0)
    result[(levels.pool < size) | (reached > size)] = np.nan
    able = np.flatnonzero((levels.pool >= size) & (reached > 0) & (reached <= size))
    columns = (levels.above[first], levels.tied[first], levels.true[first], reached, levels.pool)
    occurs, which = distinct_cases(*(column[able] for column in columns))
    cases = np.stack([column[able][occurs] for column in columns], axis=1)
    factorials = _log_factorials(int(levels.pool.max(initial=0)))
    values = [_hits(part, k, size, factorials) for part in _parts(cases)]
    if len(able):
        result[able] = np.concatenate(values)[which]
    return result


def _intervals(
    curves: dict[int | None, Float64Array], entities: IntArray, n_resamples: int, seed: int
) -> dict[int | None, tuple[float, float]]:
    """Return the interval at each size; sizes that all queries can have share their resamples."""
    able = {size: np.isfinite(values) for size, values in curves.items()}
    shared = {str(size): values for size, values in curves.items() if able[size].all()}
    spans = bootstrap_intervals(shared, entities, n_resamples, seed) if shared else {}
    found = {size: spans[str(size)] for size in curves if str(size) in spans}
    for size in [size for size in curves if str(size) not in shared]:
        kept = able[size]
        numbers = np.unique(entities[kept], return_inverse=True)[1].reshape(-1).astype(np.int64)
        alone = bootstrap_intervals({"recall": curves[size][kept]}, numbers, n_resamples, seed)
        if alone:
            found[size] = alone["recall"]
    return found


def _point(
    levels: TieLevels, k: int, size: int | None, values: Float64Array, interval: tuple[float, float] | None
) -> PoolPoint:
    able = np.isfinite(values)
    pool = levels.pool[able] if size is None else np.full(int(able.sum()), size)
    constant = TieLevels.constant(levels.n_true[able], pool, levels.n_missing[able])
    return PoolPoint(
        size=int(np.median(levels.pool)) if size is None else int(size),
        k=int(k),
        recall=float(values[able].mean()),
        chance=float(expected_recall(constant, k).mean()),
        interval=interval,
        n_queries=int(able.sum()),
        whole=size is None,
    )


def _parts(cases: IntArray) -> Iterator[IntArray]:
    """Yield the cases in blocks whose ties have about a million places in all, or of one case."""
    places = np.cumsum(cases[:, 1] - cases[:, 2] + 1)
    start = 0
    while start < len(cases):
        before = int(places[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(places, before + _CASES_AT_ONCE, side="right")))
        yield cases[start:stop]
        start = stop


def _hits(cases: IntArray, k: int, size: int, factorials: Any) -> Float64Array:
    """Return the expected recall of cases (m, 5): above, tied, true in the best level, true in all, candidates."""
    places = cases[:, 1] - cases[:, 2] + 1
    case = np.repeat(np.arange(len(cases)), places)
    case_ends = np.cumsum(places)
    steps = np.arange(len(case)) - np.repeat(case_ends - places, places)
    # With one true candidate of the tied ones all places are alike, and with all of them true there is one place.
    odds = np.where(cases[case, 2] == cases[case, 1], 1.0, 1.0 / cases[case, 1])
    for i in np.flatnonzero((cases[:, 2] > 1) & (cases[:, 2] < cases[:, 1])).tolist():
        odds[case_ends[i] - places[i] : case_ends[i]] = first_place_odds(*cases[i, 1:3].tolist())
    true, candidates = cases[case, 3], cases[case, 4]
    kept = _at_most(k - 1, cases[case, 0] + steps, candidates - true, size - true, factorials)
    return np.bincount(case, odds * kept, len(cases)).astype(np.float64)


def _at_most(most: int, marked: IntArray, n: IntArray, drawn: IntArray, factorials: Any) -> Float64Array:
    """Return P(X <= most), X being how many of `marked` out of `n` are among `drawn` at random; all arrays (m,)."""
    if most >= int(drawn.max(initial=0)):
        return np.ones(len(marked))
    result = np.zeros(len(marked))
    left = n - marked
    for x in range(most + 1):
        able = np.flatnonzero((x <= marked) & (x <= drawn) & (drawn - x <= left))
        g, rest, s, total = marked[able], left[able], drawn[able], n[able]
        log_odds = (
            (factorials[g] - factorials[x] - factorials[g - x])
            + (factorials[rest] - factorials[s - x] - factorials[rest - s + x])
            - (factorials[total] - factorials[s] - factorials[total - s])
        )
        result[able] += np.exp(log_odds.astype(np.float64))
    return np.minimum(result, 1.0)


def _log_factorials(n: int) -> Any:
    """Return log 0!, .., log n!, in extended precision where the platform has it: their differences are small."""
    return np.concatenate(
        [np.zeros(1, dtype=np.longdouble), np.cumsum(np.log(np.arange(1, n + 1, dtype=np.longdouble)))]
    )
