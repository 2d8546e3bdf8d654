"""What the models of several seeds reach, as a value per seed: recall in both directions, mean, SD, differences.

An SD over seeds tells how far the outcome moves with first weights and batch order, on this one set of data; it is no
interval for other data. This module is not about which models are measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from bridgehead.align.model import TwoHeads
from bridgehead.errors import ArgumentError
from bridgehead.evaluate import retrieval_report
from bridgehead.links import Links
from bridgehead.vectors import FloatArray

NAMES = ("image", "text")
DIRECTIONS = ("a_to_b", "b_to_a")
METRICS = tuple(f"{side}.recall@{k}" for k in (1, 5) for side in DIRECTIONS)
ARROWS = {"a_to_b": "image -> text", "b_to_a": "text -> image"}
SPOKEN = {"a_to_b": "image to text", "b_to_a": "text to image"}


@dataclass(frozen=True)
class Spread:
    """One figure as every seed has it; at least one value, finite."""

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.values or not np.isfinite(self.values).all():
            raise ArgumentError(f"values = {self.values!r:.80}; expected a finite number for at least one seed")

    @property
    def mean(self) -> float:
        """The mean over seeds."""
        return float(np.mean(self.values))

    @property
    def sd(self) -> float:
        """The sample standard deviation over seeds (by n - 1); 0 for one seed."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else 0.0

    def minus(self, other: "Spread") -> "Spread":
        """Return the differences within seeds, so that `sd` is the paired one. `ArgumentError` for other numbers."""
        if len(self.values) != len(other.values):
            raise ArgumentError(f"{len(self.values)} and {len(other.values)} seeds; expected the same ones, in order")
        return Spread(tuple(float(x - y) for x, y in zip(self.values, other.values, strict=True)))

    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval of the mean over seeds: mean -+ t(0.975, n - 1) sd / sqrt(n), Student's t.

        One seed says nothing about its spread: the interval is then everything, (-inf, inf).
        """
        n = len(self.values)
        half = float(stdtrit(n - 1, 0.975)) * self.sd / n**0.5 if n > 1 else float("inf")
        return self.mean - half, self.mean + half

    def to_dict(self) -> dict[str, float]:
        """Return `mean` and `sd`."""
        return {"mean": self.mean, "sd": self.sd}

    def __str__(self) -> str:
        return f"{self.mean:.4f} ({self.sd:.4f})"


@dataclass(frozen=True)
class Measured:
    """Recall of several seeds' models on the same rows: a spread, and what random order would give, by metric."""

    values: dict[str, Spread]
    chance: dict[str, float]

    def minus(self, other: "Measured") -> dict[str, Spread]:
        """Return the paired differences by metric."""
        return {metric: spread.minus(other.values[metric]) for metric, spread in self.values.items()}


def measure(
    models: Sequence[TwoHeads], rows_a: FloatArray, rows_b: FloatArray, links: Links | None = None, queries: Any = None
) -> Measured:
    """Return what each model retrieves among all these rows, in both directions, by our own exact ranks.

    `links` None: row i belongs to row i. `queries`: a boolean mask of the rows of either side that ask; all rows stay
    candidates. Raises as `retrieval_report`.
    """
    reports = [
        retrieval_report(
            model.project_a(rows_a), model.project_b(rows_b), links, ks=(1, 5), names=NAMES, n_resamples=0,
            queries_a=queries, queries_b=queries,
        )
        for model in models
    ]  # fmt: skip
    values = {metric: Spread(tuple(report.value(metric) for report in reports)) for metric in METRICS}
    found = {metric: reports[0].direction(metric) for metric in METRICS}
    return Measured(values, {metric: float(report.chance[name]) for metric, (report, name) in found.items()})
