"""What controls that train again share: the metrics they look at, the level of chance, and several trainings as one.

A control is handed a `fit` function by `runs`, which trains at the budget of the evaluated model and evaluates on its
test part. This module trains nothing and judges nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from bridgehead.audits.given import check_kind
from bridgehead.errors import ArgumentError
from bridgehead.evaluate import RetrievalReport
from bridgehead.evaluate.arguments import checked_seed

ENOUGH, CLEARLY = 5, 3.0
"""Runs that a mean needs before a small excess over chance counts, and how many times the half-width of chance's
interval is no small excess: models trained on wrong links vary more than random rankings do."""


@dataclass(frozen=True)
class Levels:
    """A metric of several runs on one test set: the value of each run, chance, and the upper end of its interval."""

    values: tuple[float, ...]
    chance: float
    bound: float

    @property
    def mean(self) -> float:
        """Mean over the runs."""
        return float(np.mean(self.values))

    @property
    def doubtful(self) -> bool:
        """Whether the mean is above the bound by so little that so few runs prove nothing."""
        return len(self.values) < ENOUGH and self.mean - self.chance <= CLEARLY * (self.bound - self.chance)


def usual_metrics(report: RetrievalReport) -> list[str]:
    """Return the keys that controls look at where none are named: recall at the largest k, and mrr, both directions."""
    names = [f"recall@{max(report.a_to_b.ks)}", "mrr"]
    return [f"{side}.{name}" for side in ("a_to_b", "b_to_a") for name in names]


def levels_of(reports: Sequence[RetrievalReport], metrics: Sequence[str] | None = None) -> dict[str, Levels]:
    """Return the levels of each metric over `reports`, which must be of one test set.

    `metrics` are keys such as `b_to_a.recall@10` for which chance has an interval and higher is better (default:
    `usual_metrics`). Raises `ArgumentError` for no reports, an unknown metric, a rank, or reports at different levels
    of chance.
    """
    if len(reports) == 0:
        raise ArgumentError("there are no runs to look at; expected at least one seed to train with")
    for report in reports:
        check_kind(RetrievalReport, **{"what fit returned": report})
    found = {}
    for key in listed_metrics(metrics, reports[0]):
        check_higher_is_better(key)
        direction, name = reports[0].direction(key)
        chance = direction.chance[name]
        if any(report.direction(key)[0].chance[name] != chance for report in reports):
            raise ArgumentError(f"the runs evaluate {key} at different levels of chance; expected one test set for all")
        values = tuple(report.value(key) for report in reports)
        found[key] = Levels(values, chance, direction.chance_interval(name)[1])
    return found


def listed_metrics(metrics: Any, report: RetrievalReport) -> list[str]:
    """Return the names in `metrics`, or the usual ones of a report for None or none; raises `ArgumentError`."""
    if metrics is not None and not isinstance(metrics, list | tuple):
        raise ArgumentError(f"metrics = {metrics!r:.80}; expected a list of names, such as ['a_to_b.mrr']")
    return list(metrics or usual_metrics(report))


def check_higher_is_better(key: str) -> None:
    """Raise `ArgumentError` for a metric that is a rank, or no name of one."""
    if not isinstance(key, str):
        raise ArgumentError(f"metrics hold {key!r:.80}; expected names such as 'a_to_b.mrr'")
    if key.endswith("_rank"):
        raise ArgumentError(f"metric {key!r} is a rank, where lower is better; expected recall, ndcg or mrr")


def check_seeds(seeds: Sequence[int]) -> None:
    """Raise `ArgumentError` when there is no seed, one twice, or one that is no whole number of 0 or more."""
    if not isinstance(seeds, list | tuple | range):
        raise ArgumentError(f"seeds is a {type(seeds).__name__}; expected a list of whole numbers, such as (0, 1, 2)")
    if len(seeds) == 0:
        raise ArgumentError("seeds is empty; expected at least one seed to train with")
    if len({checked_seed(seed) for seed in seeds}) < len(seeds):
        raise ArgumentError(f"seeds = {list(seeds)}; expected each once, as equal seeds give equal models")


def mean_and_sd(differences: Sequence[float]) -> tuple[float, float | None]:
    """Return mean and sample standard deviation of paired differences; None for the deviation of a single one."""
    sd = float(np.std(differences, ddof=1)) if len(differences) > 1 else None
    return float(np.mean(differences)), sd


def lowest_mean(differences: Sequence[float]) -> float:
    """Return the lower end of the 95 % interval of the mean of at least two differences, by Student's t."""
    mean, sd = mean_and_sd(differences)
    if sd is None:
        raise ArgumentError("one difference has no interval; expected two or more")
    n = len(differences)
    return mean - float(stdtrit(n - 1, 0.975)) * sd / float(np.sqrt(n))
