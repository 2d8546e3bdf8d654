"""What a retrieval evaluation found: the records, as numbers, as flat JSON and as a table to read.

This module computes no metric (`ties`) and ranks nothing (`exact`, `scored`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.evaluate.arguments import checked_names, whole_number
from bridgehead.evaluate.chance import Problems, chance_interval, chance_values
from bridgehead.evaluate.intervals import bootstrap_intervals
from bridgehead.evaluate.pool_size import SIZES, PoolPoint, recall_by_pool
from bridgehead.evaluate.table import NO_SPREAD, table_lines
from bridgehead.evaluate.ties import Float64Array, TieLevels, expected_metrics
from bridgehead.vectors import IntArray, to_numpy

_COUNTS = ("n_queries", "n_entities", "n_candidates", "n_without_truth", "n_ties", "n_true_missing", "n_out_of_reach")
_NO_ROOM = 1e-12


@dataclass(frozen=True, eq=False)
class DirectionReport:
    """Retrieval in one direction: `n_queries` queries that rank candidates of the other side, `n_candidates` in all.

    `values` and `chance` map a metric's name (`recall@k`, `recall_all@k`, `ndcg@k`, `mrr`, `map`, `r_precision`,
    `mean_rank`, `median_rank`) to its mean over queries and to what random ranking would give; `interval` maps it to a
    95 % bootstrap interval by entity, and is empty where none was asked for or there is one entity only. Each metric is
    its expectation over the random orders of tied candidates. `mean_rank` and `median_rank` are those of the expected
    rank of a query's best true candidate (1 is first). `n_without_truth` queries had no true candidate and are left
    out. `n_ties` queries have a true candidate tied with one that is not true.

    Per query, not in `to_dict`, all (n_queries,): `queries` (row numbers), `ranks` (expected rank of the best true
    candidate), `true_scores` (score of the best true candidate), `n_true`, `entities` (numbers 0 .. E - 1), and
    `per_query`, which maps `recall@k`, `recall_all@k`, `ndcg@k`, `mrr`, `map`, `r_precision` and `rank` to float64.

    `pool` is the number of candidates that each query ranked, and `n_missing` how many of its true items its list of
    candidates lacks; both matter only where queries have lists of their own. A missing item is not retrieved: it is
    among the true items that metrics are divided by, and no place is its. A query whose list lacks all of them has
    recall and reciprocal rank 0, the rank N + 1, one behind the end of its list, and NaN as true score. `levels` are
    the tie levels that everything was computed from; `n_resamples` and `seed` those of the intervals.
    """

    ks: tuple[int, ...]
    values: dict[str, float]
    chance: dict[str, float]
    interval: dict[str, tuple[float, float]]
    n_candidates: int
    n_without_truth: int
    n_ties: int
    queries: IntArray
    ranks: Float64Array
    true_scores: Float64Array
    n_true: IntArray
    entities: IntArray
    per_query: dict[str, Float64Array]
    pool: IntArray
    n_missing: IntArray
    levels: TieLevels
    n_resamples: int
    seed: int

    @classmethod
    def from_levels(
        cls,
        levels: TieLevels,
        ks: tuple[int, ...],
        n_candidates: int,
        queries: IntArray,
        true_scores: Float64Array,
        entities: IntArray,
        n_without_truth: int = 0,
        n_resamples: int = 0,
        seed: int = 0,
    ) -> "DirectionReport":
        """Return the report of queries with these tie levels; all other arguments are its fields."""
        metrics = expected_metrics(levels, ks)
        problems = Problems.of(levels.n_true, levels.pool, levels.n_missing)
        return cls(
            ks=ks,
            values=_means(metrics),
            chance=_means(chance_values(problems, ks)),
            interval=bootstrap_intervals(metrics, entities, n_resamples, seed),
            n_candidates=n_candidates,
            n_without_truth=n_without_truth,
            n_ties=int(levels.undecided.sum()),
            queries=queries,
            ranks=metrics["rank"],
            true_scores=true_scores,
            n_true=levels.n_true,
            entities=entities,
            per_query=metrics,
            pool=levels.pool,
            n_missing=levels.n_missing,
            levels=levels,
            n_resamples=n_resamples,
            seed=seed,
        )

    def subset(self, mask: Any, n_resamples: int | None = None) -> "DirectionReport":
        """Return the report of the queries that `mask`, boolean (n_queries,), holds; each ranked what it ranked before.

        Means, chance and intervals are those of these queries alone, the intervals by `n_resamples` (default: as
        here). None of them is without truth. Raises `ShapeError` for another mask and `ArgumentError` for an empty one.
        """
        chosen = to_numpy(mask)
        if chosen.dtype != np.bool_ or chosen.shape != (self.n_queries,):
            raise ShapeError(
                f"mask is {chosen.dtype} of shape {chosen.shape}; expected booleans ({self.n_queries},), one a query "
                "of this report: for a mask over rows take mask[report.queries]"
            )
        if not chosen.any():
            raise ArgumentError("the mask holds no query; expected at least one: an empty set has no metrics")
        return DirectionReport.from_levels(
            self.levels.subset(chosen),
            self.ks,
            self.n_candidates,
            self.queries[chosen],
            self.true_scores[chosen],
            np.unique(self.entities[chosen], return_inverse=True)[1].reshape(-1).astype(np.int64),
            n_resamples=self.n_resamples if n_resamples is None else whole_number(n_resamples, "n_resamples", 0),
            seed=self.seed,
        )

    @property
    def n_queries(self) -> int:
        """The number of queries that the means are over."""
        return len(self.queries)

    @property
    def n_entities(self) -> int:
        """The number of entities that the queries belong to, the unit of the intervals."""
        return int(self.entities.max()) + 1

    @property
    def recall(self) -> dict[int, float]:
        """k -> share of queries with at least one true candidate among the first k."""
        return {k: self.values[f"recall@{k}"] for k in self.ks}

    @property
    def recall_all(self) -> dict[int, float]:
        """k -> mean share of a query's true candidates that are among the first k."""
        return {k: self.values[f"recall_all@{k}"] for k in self.ks}

    @property
    def ndcg(self) -> dict[int, float]:
        """k -> mean normalised discounted cumulative gain of the first k."""
        return {k: self.values[f"ndcg@{k}"] for k in self.ks}

    @property
    def chance_recall(self) -> dict[int, float]:
        """k -> recall@k of random ranking: 1 - C(N - P, k) / C(N, k), mean over the queries' numbers P of true ones."""
        return {k: self.chance[f"recall@{k}"] for k in self.ks}

    @property
    def corrected(self) -> dict[str, float]:
        """`recall@k` -> (value - chance) / (1 - chance): 0 is random ranking and 1 is perfect.

        Negative where ranking is worse than random, and 0 where random ranking is perfect too (k reaches the pool's
        end), since nothing can be shown there.
        """
        return {name: self._corrected(name, self.values[name]) for name in self._recalls}

    @property
    def corrected_interval(self) -> dict[str, tuple[float, float]]:
        """`recall@k` -> the interval on the scale of `corrected`, chance being taken as known."""
        ends = {name: self.interval[name] for name in self._recalls if name in self.interval}
        return {name: (self._corrected(name, low), self._corrected(name, high)) for name, (low, high) in ends.items()}

    @property
    def _recalls(self) -> list[str]:
        return [f"recall@{k}" for k in self.ks]

    def _corrected(self, name: str, value: float) -> float:
        room = 1 - self.chance[name]
        return (value - self.chance[name]) / room if room > _NO_ROOM else 0.0

    @property
    def n_true_missing(self) -> int:
        """The number of true items, over all queries, that the query's list of candidates lacks."""
        return int(self.n_missing.sum())

    @property
    def n_out_of_reach(self) -> int:
        """The number of queries whose list of candidates lacks every true item."""
        return int((self.n_missing == self.n_true).sum())

    @property
    def mrr(self) -> float:
        """Mean reciprocal rank of the best true candidate."""
        return self.values["mrr"]

    @property
    def map(self) -> float:
        """Mean average precision."""
        return self.values["map"]

    @property
    def r_precision(self) -> float:
        """Mean share of a query's P true candidates that are among the first P."""
        return self.values["r_precision"]

    @property
    def mean_rank(self) -> float:
        """Mean expected rank of the best true candidate."""
        return self.values["mean_rank"]

    @property
    def median_rank(self) -> float:
        """Median expected rank of the best true candidate."""
        return self.values["median_rank"]

    @property
    def chance_mrr(self) -> float:
        """Mean reciprocal rank of random ranking."""
        return self.chance["mrr"]

    def recall_by_pool(self, k: int, sizes: Sequence[int | None] = SIZES) -> list[PoolPoint]:
        """Return recall@`k`, any k, in random pools of these sizes (None: the whole), in closed form (see `pool_size`).

        Each has its chance and, where this report has intervals, its own. Raises `ArgumentError` for a k or a size
        under 1.
        """
        return recall_by_pool(self.levels, k, sizes, self.entities, self.n_resamples, self.seed)

    def chance_interval(self, metric: str) -> tuple[float, float]:
        """Return the 95 % interval of the mean `metric` under random ranking of these queries (see `chance`).

        For recall@k, recall_all@k, ndcg@k (any k), mrr, r_precision and mean_rank of this report; else `ArgumentError`.
        """
        if not isinstance(metric, str) or metric not in self.chance:
            raise ArgumentError(f"this report has no metric {metric!r}; it has {', '.join(self.chance)}")
        return chance_interval(metric, self.chance[metric], self.n_true, self.pool, self.entities, self.n_missing)

    def to_dict(self) -> dict[str, float | int]:
        """Return flat, JSON-safe entries: `recall@10`, `recall@10.low`, `chance_recall@10.high`, `n_queries`, ..."""
        flat: dict[str, float | int] = {}
        for name, value in self.values.items():
            flat[name] = value
            if name in self.interval:
                flat[f"{name}.low"], flat[f"{name}.high"] = self.interval[name]
            flat[f"chance_{name}"] = self.chance[name]
            if name not in NO_SPREAD:
                flat[f"chance_{name}.low"], flat[f"chance_{name}.high"] = self.chance_interval(name)
        for name, value in self.corrected.items():
            flat[f"corrected_{name}"] = value
            if name in self.interval:
                flat[f"corrected_{name}.low"], flat[f"corrected_{name}.high"] = self.corrected_interval[name]
        for name in _COUNTS:
            flat[name] = getattr(self, name)
        flat["least_pool"], flat["most_pool"] = int(self.pool.min()), int(self.pool.max())
        flat["median_pool"] = float(np.median(self.pool))
        return flat

    def lines(self, query: str, candidate: str) -> list[str]:
        """Return a table to read (pool size, intervals, chance), for queries and candidates of these shown names."""
        return table_lines(self, query, candidate)


def _means(metrics: dict[str, Float64Array]) -> dict[str, float]:
    means = {name: float(values.mean()) for name, values in metrics.items() if name != "rank"}
    return means | {"mean_rank": float(metrics["rank"].mean()), "median_rank": float(np.median(metrics["rank"]))}


@dataclass(frozen=True, eq=False)
class RetrievalReport:
    """Retrieval in both directions; `names` are the shown names of side a and side b."""

    a_to_b: DirectionReport
    b_to_a: DirectionReport
    names: tuple[str, str] = ("a", "b")

    def to_dict(self) -> dict[str, float | int]:
        """Return flat, JSON-safe entries with keys like `a_to_b.recall@10` and `b_to_a.n_queries`."""
        directions = {"a_to_b": self.a_to_b, "b_to_a": self.b_to_a}
        return {
            f"{side}.{key}": value for side, report in directions.items() for key, value in report.to_dict().items()
        }

    def direction(self, key: str) -> tuple[DirectionReport, str]:
        """Split a key like `a_to_b.recall@10` into the direction's report and the metric's name.

        Raises `ArgumentError` for a key that this report does not have.
        """
        side, _, metric = str(key).partition(".")
        report = {"a_to_b": self.a_to_b, "b_to_a": self.b_to_a}.get(side)
        if report is None or metric not in report.values:
            known = ", ".join(f"{side}.{name}" for side in ("a_to_b", "b_to_a") for name in self.a_to_b.values)
            raise ArgumentError(f"this report has no metric {key!r}; it has {known}")
        return report, metric

    def value(self, key: str) -> float:
        """Return the value of a metric by its key, such as `a_to_b.recall@10`."""
        report, metric = self.direction(key)
        return report.values[metric]

    def lines(self, names: tuple[str, str] | None = None) -> list[str]:
        """Return both tables and how to read them, as lines to print."""
        a, b = self.names if names is None else checked_names(names)
        return [
            *self.a_to_b.lines(a, b),
            "",
            *self.b_to_a.lines(b, a),
            "",
            "recall@k: share of queries with a true candidate among the first k; recall_all@k: mean share of a query's",
            "true candidates there; mrr: mean of 1 / rank of the best true candidate; r_precision: recall_all@P with P",
            "the query's number of true candidates; ranks start at 1, low is better. Values over pools of different",
            "sizes cannot be compared. 'chance bound': random ranking is on its better side once in 40 times.",
            "'corrected': (value - chance) / (1 - chance), so that 0 is random ranking and 1 is perfect.",
        ]
