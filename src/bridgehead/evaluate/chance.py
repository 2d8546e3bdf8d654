"""What random ranking would give: the spread of mean metrics when every query orders its candidates at random.

The level of chance itself is the metric of a constant scorer (`ties.TieLevels.constant`). This module is not about the
uncertainty of a measured value (`intervals`).
"""

import numpy as np

from bridgehead.errors import ArgumentError
from bridgehead.evaluate.ties import Float64Array, TieLevels, expected_recall, first_place_odds
from bridgehead.vectors import IntArray

_TWO_SIDED_95 = 1.959963984540054


def chance_variance(metric: str, n_true: IntArray, n_candidates: int) -> Float64Array:
    """Return the variance of one query's metric under a uniformly random order of its candidates, (n,).

    Exact, for P true ones of N candidates: `recall@k` is Bernoulli, `recall_all@k` hypergeometric, `ndcg@k` a sum
    without replacement, `mrr` and `mean_rank` follow from the least of P ranks out of N. Raises `ArgumentError` for
    other names.
    """
    counts, which = np.unique(n_true, return_inverse=True)
    name, _, k = metric.partition("@")
    if name in ("recall", "recall_all", "ndcg") and k.isdigit():
        values = _at_k(name, counts, n_candidates, min(int(k), n_candidates))
    elif metric == "mrr":
        values = np.array([_reciprocal_variance(p, n_candidates) for p in counts.tolist()])
    elif metric == "mean_rank":
        n, p = n_candidates, counts.astype(np.float64)
        values = p * (n + 1.0) * (n - p) / ((p + 1) ** 2 * (p + 2))
    else:
        raise ArgumentError(
            f"no chance interval for the metric {metric!r}; there is one for recall@k, recall_all@k, ndcg@k, mrr and "
            "mean_rank"
        )
    return np.asarray(values[which.reshape(-1)], dtype=np.float64)


def chance_interval(
    metric: str, mean: float, n_true: IntArray, n_candidates: int, entities: IntArray
) -> tuple[float, float]:
    """Return the interval that the mean metric of a random ranking lies in with a probability of 95 %.

    Normal approximation around the exact mean with the exact variance. Queries of one entity (numbers 0 .. E - 1) are
    taken as fully correlated, the widest they can be; different entities as independent. The interval is cut to what
    the metric can be.
    """
    deviation = np.sqrt(chance_variance(metric, n_true, n_candidates))
    together = np.bincount(entities, deviation)
    half = _TWO_SIDED_95 * float(np.sqrt((together**2).sum())) / len(n_true)
    lowest, highest = (1.0, float(n_candidates)) if metric == "mean_rank" else (0.0, 1.0)
    return max(lowest, mean - half), min(highest, mean + half)


def _at_k(name: str, counts: IntArray, n: int, k: int) -> Float64Array:
    share = counts / n
    # With one candidate nothing is random; the finite-population factors below would divide by zero.
    others = max(1, n - 1)
    if name == "recall":
        hit = expected_recall(TieLevels.constant(counts, n), k)
        return hit * (1 - hit)
    if name == "recall_all":
        return k * share * (1 - share) * (n - k) / others / counts**2
    discounts = 1 / np.log2(np.arange(2, k + 2))
    squares, total = float((discounts**2).sum()), float(discounts.sum())
    ideal = np.cumsum(discounts)[np.minimum(counts, k) - 1]
    spread = share * (1 - share) * (squares - (total**2 - squares) / others) / ideal**2
    return np.asarray(np.maximum(spread, 0.0))


def _reciprocal_variance(n_true: int, n: int) -> float:
    odds = first_place_odds(n, n_true)
    inverse = 1.0 / np.arange(1, len(odds) + 1)
    mean, mean_square = float(odds @ inverse), float(odds @ inverse**2)
    return max(0.0, mean_square - mean**2)
