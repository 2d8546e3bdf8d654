"""What a retrieval evaluation found: the records, as numbers, as flat JSON and as a table to read.

This module computes no metric (`ties`) and ranks nothing (`exact`, `scored`).
"""

from dataclasses import dataclass

from bridgehead.errors import ArgumentError
from bridgehead.evaluate.chance import chance_interval
from bridgehead.evaluate.ties import Float64Array
from bridgehead.vectors import IntArray

_RANKS = ("mean_rank", "median_rank")
_NO_SPREAD = ("map", "median_rank")


@dataclass(frozen=True, eq=False)
class DirectionReport:
    """Retrieval in one direction: `n_queries` queries, each ranking the same `n_candidates` candidates.

    `values` and `chance` map a metric's name (`recall@k`, `recall_all@k`, `ndcg@k`, `mrr`, `map`, `mean_rank`,
    `median_rank`) to its mean over queries and to what random ranking would give; `interval` maps it to a 95 %
    bootstrap interval by entity, and is empty where none was asked for or there is one entity only. Each metric is its
    expectation over the random orders of tied candidates. `mean_rank` and `median_rank` are those of the expected rank
    of a query's best true candidate (1 is first). `n_without_truth` queries had no true candidate and are left out.
    `n_ties` queries have a true candidate tied with one that is not true.

    Per query, not in `to_dict`: `queries` (row numbers), `ranks` (expected rank of the best true candidate),
    `true_scores` (score of the best true candidate), `n_true` and `entities` (numbers 0 .. E - 1), all (n_queries,).
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
    def mrr(self) -> float:
        """Mean reciprocal rank of the best true candidate."""
        return self.values["mrr"]

    @property
    def map(self) -> float:
        """Mean average precision."""
        return self.values["map"]

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

    def chance_interval(self, metric: str) -> tuple[float, float]:
        """Return the 95 % interval of the mean `metric` under random ranking of these queries (see `chance`).

        For recall@k, recall_all@k, ndcg@k (any k), mrr and mean_rank of this report; else `ArgumentError`.
        """
        if metric not in self.chance:
            raise ArgumentError(f"this report has no metric {metric!r}; it has {', '.join(self.chance)}")
        return chance_interval(metric, self.chance[metric], self.n_true, self.n_candidates, self.entities)

    def to_dict(self) -> dict[str, float | int]:
        """Return flat, JSON-safe entries: `recall@10`, `recall@10.low`, `chance_recall@10.high`, `n_queries`, ..."""
        flat: dict[str, float | int] = {}
        for name, value in self.values.items():
            flat[name] = value
            if name in self.interval:
                flat[f"{name}.low"], flat[f"{name}.high"] = self.interval[name]
            flat[f"chance_{name}"] = self.chance[name]
            if name not in _NO_SPREAD:
                flat[f"chance_{name}.low"], flat[f"chance_{name}.high"] = self.chance_interval(name)
        for name in ("n_queries", "n_entities", "n_candidates", "n_without_truth", "n_ties"):
            flat[name] = getattr(self, name)
        return flat

    def lines(self, query: str, candidate: str) -> list[str]:
        """Return a table to read (pool size, intervals, chance), for queries and candidates of these shown names."""
        head = f"{query} -> {candidate}: {self.n_queries:,} queries, each ranks {self.n_candidates:,} candidates"
        notes = []
        if self.n_without_truth:
            notes.append(f"{self.n_without_truth:,} queries without a true candidate left out")
        if self.n_ties:
            notes.append(f"{self.n_ties:,} queries with a tie at a true candidate, counted as its expectation")
        if self.interval and self.n_entities != self.n_queries:
            notes.append(f"intervals over {self.n_entities:,} entities")
        rows = [("metric", "value", "95 % interval", "chance", "chance bound")]
        rows += [self._row(name) for name in self.values]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        table = [
            "  "
            + "  ".join(
                cell.rjust(w) if i else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        ]
        return [head, *(f"  ({note})" for note in notes), *table]

    def _row(self, name: str) -> tuple[str, str, str, str, str]:
        def show(value: float, digits: int = 3) -> str:
            return f"{value:.1f}" if name in _RANKS else f"{value:.{digits}f}"

        interval = "{} to {}".format(*map(show, self.interval[name])) if name in self.interval else "-"
        # For a rank, lower is better: the bound that a real result must pass is the lower one.
        better = 0 if name in _RANKS else 1
        bound = "-" if name in _NO_SPREAD else show(self.chance_interval(name)[better], 4)
        return name, show(self.values[name]), interval, show(self.chance[name], 4), bound


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
        side, _, metric = key.partition(".")
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
        a, b = names or self.names
        return [
            *self.a_to_b.lines(a, b),
            "",
            *self.b_to_a.lines(b, a),
            "",
            "recall@k: share of queries with a true candidate among the first k; recall_all@k: mean share of a query's",
            "true candidates there; mrr: mean of 1 / rank of the best true candidate; ranks start at 1, low is better.",
            "Values over pools of different sizes cannot be compared. 'chance bound': random ranking is on its better",
            "side once in 40 times.",
        ]
