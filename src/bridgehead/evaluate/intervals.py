"""Percentile bootstrap intervals of mean and median metrics, resampling entities rather than queries.

Several queries may be views of one entity (five captions, ten spectra), and resampling them one by one would count the
same evidence several times. This module is not about chance (`chance`).
"""

from collections.abc import Iterator

import numpy as np

from bridgehead.evaluate.ties import Float64Array
from bridgehead.vectors import IntArray

_DRAWS_AT_ONCE = 1 << 20
_BUCKET = 512


def bootstrap_intervals(
    metrics: dict[str, Float64Array], entities: IntArray, n_resamples: int, seed: int
) -> dict[str, tuple[float, float]]:
    """Return the 95 % percentile interval of the mean of each metric over resamples of entities.

    `metrics` are name -> (n,) values a query; `entities` (n,) are numbers 0 .. E - 1. Each resample draws E entities
    with replacement and takes the mean over all their queries; the interval runs from the 2.5th to the 97.5th
    percentile. `rank`, where given, makes two, `mean_rank` and `median_rank`. It is empty for `n_resamples` 0 and for
    fewer than two entities, where resampling says nothing. The order of the queries does not matter.
    """
    n_entities = int(entities.max(initial=-1)) + 1
    if n_resamples == 0 or n_entities < 2:
        return {}
    entities = _canonical(metrics, entities, n_entities)
    values = np.stack([np.ones(len(entities)), *metrics.values()], axis=1)
    sums = np.zeros((n_entities, values.shape[1]))
    np.add.at(sums, entities, values)
    ranks = metrics.get("rank")
    medians = None if ranks is None else _Medians(ranks, entities)
    means, middles = [], []
    for weights in _draws(n_entities, n_resamples, seed):
        totals = weights @ sums
        means.append(totals[:, 1:] / totals[:, :1])
        if medians is not None:
            middles.append(medians.of(weights))
    found = dict(zip(metrics, np.concatenate(means).T, strict=True))
    if medians is not None:
        found["mean_rank"] = found.pop("rank")
        found["median_rank"] = np.concatenate(middles)
    low_high = np.percentile(np.stack(list(found.values())), [2.5, 97.5], axis=1).tolist()
    return {name: (low, high) for name, low, high in zip(found, *low_high, strict=True)}


def _canonical(metrics: dict[str, Float64Array], entities: IntArray, n_entities: int) -> IntArray:
    """Renumber entities by what they hold, so that the draws do not depend on the order of rows or labels.

    They are in the order of their ranks first, which the medians make use of, then of a mixture of all metrics with
    irrational weights: two entities with the same mixture hold the same.
    """
    mixture = np.bincount(entities, minlength=n_entities).astype(np.float64)
    for weight, values in zip(np.sqrt(np.arange(2, len(metrics) + 2)), metrics.values(), strict=True):
        mixture += weight * np.bincount(entities, values, n_entities)
    keys = [np.round(mixture, 9)]
    if "rank" in metrics:
        keys.append(np.round(np.bincount(entities, metrics["rank"], n_entities), 9))
    number = np.empty(n_entities, dtype=np.int64)
    number[np.lexsort(keys)] = np.arange(n_entities)
    return number[entities]


def _draws(n_entities: int, n_resamples: int, seed: int) -> Iterator[Float64Array]:
    """Yield how often each entity is drawn, in blocks of resamples, (len, E)."""
    rng = np.random.default_rng(seed)
    step = max(1, _DRAWS_AT_ONCE // n_entities)
    for start in range(0, n_resamples, step):
        n = min(step, n_resamples - start)
        drawn = rng.integers(0, n_entities, size=(n, n_entities), dtype=np.int64)
        drawn += np.arange(n)[:, None] * n_entities
        yield np.bincount(drawn.ravel(), minlength=n * n_entities).reshape(n, n_entities).astype(np.float64)


class _Medians:
    """Medians of ranks over resamples: ranks are sorted once, and a resample only says how often each is taken."""

    def __init__(self, ranks: Float64Array, entities: IntArray) -> None:
        order = np.lexsort((entities, ranks))
        self._ranks = ranks[order]
        self._entities = entities[order]
        self._is_sorted = bool(np.array_equal(self._entities, np.arange(len(entities))))
        self._starts = np.arange(0, len(ranks), _BUCKET)

    def of(self, weights: Float64Array) -> Float64Array:
        """Return the median of the ranks, those of entity e taken `weights[r, e]` times, for each resample r."""
        taken = weights if self._is_sorted else np.take(weights, self._entities, axis=1)
        # First the bucket of ranks that holds the middle, then the place in it: no long running sums.
        until = np.cumsum(np.add.reduceat(taken, self._starts, axis=1), axis=1)
        n = until[:, -1]
        return np.asarray((self._at(taken, until, (n + 1) // 2) + self._at(taken, until, n // 2 + 1)) / 2)

    def _at(self, taken: Float64Array, until: Float64Array, place: Float64Array) -> Float64Array:
        """Return the rank at a place (1 is the lowest) of each resample."""
        found = np.empty(len(taken))
        for r, bucket in enumerate(np.argmax(until >= place[:, None], axis=1).tolist()):
            start = bucket * _BUCKET
            before = until[r, bucket - 1] if bucket else 0.0
            inside = np.cumsum(taken[r, start : start + _BUCKET])
            found[r] = self._ranks[start + int(np.searchsorted(inside, place[r] - before))]
        return found
