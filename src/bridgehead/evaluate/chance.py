"""What random ranking would give: the level and the spread of mean metrics when every query orders its list at random.

The level of chance is the metric of a constant scorer (`ties.TieLevels.constant`). Queries may rank pools of different
sizes and have true items that their pool lacks. This module is not about the uncertainty of a measured value
(`intervals`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bridgehead.errors import ArgumentError
from bridgehead.evaluate.ties import (
    Float64Array,
    TieLevels,
    distinct_cases,
    expected_metrics,
    expected_recall,
    first_place_odds,
)
from bridgehead.vectors import IntArray

_TWO_SIDED_95 = 1.959963984540054


@dataclass(frozen=True, eq=False)
class Problems:
    """The distinct problems that queries pose: true items, those of them out of reach, and candidates, (m,) each.

    `which` (n,) is each query's problem. Chance depends on nothing else, and most queries share a problem.
    """

    n_true: IntArray
    n_missing: IntArray
    pool: IntArray
    which: IntArray

    @classmethod
    def of(cls, n_true: IntArray, n_candidates: int | IntArray, n_missing: IntArray | None = None) -> "Problems":
        """Return the problems of queries with `n_true` (n,) true items, `n_missing` (n,) of them not in the pool."""
        pool = np.broadcast_to(np.asarray(n_candidates, dtype=np.int64), n_true.shape)
        missing = np.zeros_like(n_true) if n_missing is None else n_missing
        first, which = distinct_cases(n_true, missing, pool)
        return cls(n_true[first], missing[first], pool[first], which)

    @property
    def reached(self) -> IntArray:
        """The number of true items among the candidates, (m,)."""
        return self.n_true - self.n_missing

    @property
    def levels(self) -> TieLevels:
        """The tie levels of a constant scorer, one query a problem."""
        return TieLevels.constant(self.n_true, self.pool, self.n_missing)


def chance_values(problems: Problems, ks: Sequence[int]) -> dict[str, Float64Array]:
    """Return the expectation of each metric for each query under a random order (see `expected_metrics`)."""
    return {name: values[problems.which] for name, values in expected_metrics(problems.levels, ks).items()}


def chance_variance(
    metric: str, n_true: IntArray, n_candidates: int | IntArray, n_missing: IntArray | None = None
) -> Float64Array:
    """Return the variance of one query's metric under a uniformly random order of its candidates, (n,).

    Exact, for P true ones of N candidates: `recall@k` is Bernoulli, `recall_all@k` and `r_precision` are
    hypergeometric, `ndcg@k` is a sum without replacement, `mrr` and `mean_rank` follow from the least of P ranks out of
    N. `n_candidates` is one number or one a query, (n,); `n_missing` (n,) of the true items are not among them. Raises
    `ArgumentError` for other names.
    """
    problems = Problems.of(n_true, n_candidates, n_missing)
    name, _, k = metric.partition("@")
    if name in ("recall", "recall_all", "ndcg") and k.isdigit():
        values = _at_k(name, problems, int(k))
    elif metric == "r_precision":
        values = _share_variance(problems, problems.n_true)
    elif metric == "mrr":
        cases = zip(problems.reached.tolist(), problems.pool.tolist(), strict=True)
        values = np.array([_reciprocal_variance(p, n) for p, n in cases])
    elif metric == "mean_rank":
        n, p = problems.pool, problems.reached.astype(np.float64)
        # A query whose true items are all out of reach has the rank N + 1, whatever the order.
        values = p * (n + 1.0) * (n - p) / ((p + 1) ** 2 * (p + 2))
    else:
        raise ArgumentError(
            f"no chance interval for the metric {metric!r}; there is one for recall@k, recall_all@k, ndcg@k, mrr, "
            "r_precision and mean_rank"
        )
    return np.asarray(values[problems.which], dtype=np.float64)


def chance_interval(
    metric: str,
    mean: float,
    n_true: IntArray,
    n_candidates: int | IntArray,
    entities: IntArray,
    n_missing: IntArray | None = None,
) -> tuple[float, float]:
    """Return the interval that the mean metric of a random ranking lies in with a probability of 95 %.

    Normal approximation around the exact mean with the exact variance. Queries of one entity (numbers 0 .. E - 1) are
    taken as fully correlated, the widest they can be; different entities as independent. The interval is cut to what
    the metric can be. `n_candidates` and `n_missing` are as in `chance_variance`.
    """
    deviation = np.sqrt(chance_variance(metric, n_true, n_candidates, n_missing))
    together = np.bincount(entities, deviation)
    half = _TWO_SIDED_95 * float(np.sqrt((together**2).sum())) / len(n_true)
    lowest, highest = (1.0, _worst_mean_rank(n_candidates, n_missing)) if metric == "mean_rank" else (0.0, 1.0)
    return max(lowest, mean - half), min(highest, mean + half)


def _worst_mean_rank(n_candidates: int | IntArray, n_missing: IntArray | None) -> float:
    return float(np.mean(n_candidates)) + (0.0 if n_missing is None else float((n_missing > 0).mean()))


def _at_k(name: str, problems: Problems, k: int) -> Float64Array:
    if name == "recall":
        hit = expected_recall(problems.levels, k)
        return hit * (1 - hit)
    if name == "recall_all":
        return _share_variance(problems, np.full(len(problems.pool), k))
    most = min(k, int(max(problems.pool.max(initial=0), problems.n_true.max(initial=0))))
    discounts = np.concatenate([[0.0], 1 / np.log2(np.arange(2, most + 2))])
    last, (share, others) = np.minimum(most, problems.pool), _share_and_others(problems)
    squares, total = np.cumsum(discounts**2)[last], np.cumsum(discounts)[last]
    ideal = np.cumsum(discounts)[np.minimum(problems.n_true, most)]
    spread = share * (1 - share) * (squares - (total**2 - squares) / others) / ideal**2
    return np.asarray(np.maximum(spread, 0.0))


def _share_variance(problems: Problems, k: IntArray) -> Float64Array:
    """Return the variance of (true ones among the first k) / (true ones): hypergeometric."""
    k = np.minimum(k, problems.pool)
    share, others = _share_and_others(problems)
    return np.asarray(k * share * (1 - share) * (problems.pool - k) / others / problems.n_true**2)


def _share_and_others(problems: Problems) -> tuple[Float64Array, IntArray]:
    # With one candidate nothing is random; the finite-population factors would divide by zero, as would no candidate.
    return problems.reached / np.maximum(problems.pool, 1), np.maximum(problems.pool - 1, 1)


def _reciprocal_variance(n_true: int, n: int) -> float:
    if n_true == 0:
        return 0.0
    odds = first_place_odds(n, n_true)
    inverse = 1.0 / np.arange(1, len(odds) + 1)
    mean, mean_square = float(odds @ inverse), float(odds @ inverse**2)
    return max(0.0, mean_square - mean**2)
