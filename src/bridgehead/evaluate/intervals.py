"""Percentile bootstrap intervals of mean and median metrics, resampling entities rather than queries.

Several queries may be views of one entity (five captions, ten spectra), and resampling them one by one would count the
same evidence several times. This module is not about chance (`chance`).
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from bridgehead.evaluate.ties import Float64Array
from bridgehead.vectors import IntArray

_DRAWS_AT_ONCE = 1 << 21


def bootstrap_intervals(
    metrics: dict[str, Float64Array], entities: IntArray, n_resamples: int, seed: int
) -> dict[str, tuple[float, float]]:
    """Return the 95 % percentile interval of the mean of each metric over resamples of entities.

    `metrics` are name -> (n,) values a query; `entities` (n,) are numbers 0 .. E - 1. Each resample draws E entities
    with replacement and takes the mean over all their queries; the interval runs from the 2.5th to the 97.5th
    percentile. `rank` gives two intervals, `mean_rank` and `median_rank`. It is empty for `n_resamples` 0 and for
    fewer than two entities, where resampling says nothing. The order of the queries does not matter.
    """
    n_entities = int(entities.max(initial=-1)) + 1
    if n_resamples == 0 or n_entities < 2:
        return {}
    entities = _canonical(metrics, entities, n_entities)
    values = np.stack([np.ones(len(entities)), *metrics.values()], axis=1)
    sums = np.zeros((n_entities, values.shape[1]))
    np.add.at(sums, entities, values)
    order = np.argsort(metrics["rank"], kind="stable")
    means, medians = [], []
    for weights in _draws(n_entities, n_resamples, seed):
        totals = weights @ sums
        means.append(totals[:, 1:] / totals[:, :1])
        medians.append(_weighted_median(metrics["rank"][order], weights[:, entities[order]]))
    found = dict(zip(metrics, np.concatenate(means).T, strict=True))
    found["mean_rank"] = found.pop("rank")
    found["median_rank"] = np.concatenate(medians)
    low_high = np.percentile(np.stack(list(found.values())), [2.5, 97.5], axis=1).tolist()
    return {name: (low, high) for name, low, high in zip(found, *low_high, strict=True)}


def _canonical(metrics: dict[str, Float64Array], entities: IntArray, n_entities: int) -> IntArray:
    """Renumber entities by what they hold, so that the draws do not depend on the order of rows or labels."""
    keys = [np.bincount(entities, minlength=n_entities).astype(np.float64)]
    keys += [np.round(np.bincount(entities, values, n_entities), 9) for values in metrics.values()]
    rank = np.empty(n_entities, dtype=np.int64)
    rank[np.lexsort(keys)] = np.arange(n_entities)
    return rank[entities]


def _draws(n_entities: int, n_resamples: int, seed: int) -> Iterator[Float64Array]:
    """Yield how often each entity is drawn, in blocks of resamples, (len, E)."""
    rng = np.random.default_rng(seed)
    step = max(1, _DRAWS_AT_ONCE // n_entities)
    for start in range(0, n_resamples, step):
        n = min(step, n_resamples - start)
        drawn = rng.integers(0, n_entities, size=(n, n_entities), dtype=np.int64)
        drawn += np.arange(n)[:, None] * n_entities
        yield np.bincount(drawn.ravel(), minlength=n * n_entities).reshape(n, n_entities).astype(np.float64)


def _weighted_median(ordered: Float64Array, weights: npt.NDArray[np.float64]) -> Float64Array:
    """Return the median of `ordered` (n,), each value taken `weights[r]` times, for each resample r."""
    totals = np.cumsum(weights, axis=1)
    n = totals[:, -1]
    middle = [ordered[np.argmax(totals >= np.floor(place)[:, None], axis=1)] for place in ((n + 1) / 2, n / 2 + 1)]
    return np.asarray((middle[0] + middle[1]) / 2, dtype=np.float64)
