"""The study's main table: true pairs against one derangement, five seeds, both directions, beside what was published.

Both conditions of a seed share first weights and batch order; both keep the epoch whose loss on the true validation
pairs is lowest; the held-out part is looked at once, after that. This module is not about the draws (`runs.two_view`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from bridgehead.align.model import TwoHeads
from bridgehead.runs.study.published import CONDITIONS, DIFFERENCE, PUBLISHED, SPLITS, TOLERANCE
from bridgehead.runs.study.spread import ARROWS, METRICS, Measured, Spread, measure
from bridgehead.runs.two_view import PairedRows, TwoViews, study_config, study_course, study_members
from bridgehead.train.ensemble.fit import fit_ensemble
from bridgehead.train.ensemble.members import Member

EpochCallback = Callable[[int, int, list[dict[str, Any]]], None]

_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Row:
    """One line of the table: where, what was measured (None for `chance` of a difference), what was published."""

    split: str
    condition: str
    metric: str
    measured: Spread
    published: tuple[float, float]
    chance: float | None

    @property
    def key(self) -> str:
        """`split.condition.metric`."""
        return f"{self.split}.{self.condition}.{self.metric}"

    @property
    def difference(self) -> float:
        """Measured mean minus published mean."""
        return self.measured.mean - self.published[0]

    @property
    def within(self) -> bool:
        """Whether the means are no further apart than `TOLERANCE`."""
        return abs(self.difference) <= TOLERANCE + _ROUNDING

    def cells(self) -> tuple[str, ...]:
        """Return the line as text, a cell for each entry of `COLUMNS`."""
        side, metric = self.metric.split(".")
        mean, sd = self.published
        return (
            self.split.replace("_", "-"), self.condition.replace("_", " "), f"{ARROWS[side]} {metric}",
            str(self.measured), f"{mean:.4f} ({sd:.4f})", signed(self.difference), "yes" if self.within else "NO",
            "-" if self.chance is None else f"{self.chance:.4f}",
        )  # fmt: skip


COLUMNS = ("split", "pairs", "metric", "measured (SD)", "published (SD)", "apart", f"within {TOLERANCE}", "chance")


@dataclass(frozen=True, eq=False)
class MainTable:
    """The models by condition, in the order of the seeds; what they reach by split and condition; and the table."""

    models: dict[str, list[TwoHeads]]
    found: dict[str, dict[str, Measured]]

    @property
    def rows(self) -> list[Row]:
        """A line for each published figure, in the order published."""
        return [self._row(key, published) for key, published in PUBLISHED.items()]

    def _row(self, key: str, published: tuple[float, float]) -> Row:
        split, condition, metric = key.split(".", 2)
        found = self.found[split]
        if condition == DIFFERENCE:
            spread = found["paired"].values[metric].minus(found["shuffled"].values[metric])
            return Row(split, condition, metric, spread, published, None)
        return Row(
            split, condition, metric, found[condition].values[metric], published, found[condition].chance[metric]
        )

    @property
    def within(self) -> bool:
        """Whether every mean is within `TOLERANCE` of the published one."""
        return all(row.within for row in self.rows)

    @property
    def told(self) -> str:
        """What the table comes to."""
        rows = self.rows
        apart, met = max(abs(row.difference) for row in rows), sum(row.within for row in rows)
        return (
            f"{met} of {len(rows)} means are within {TOLERANCE} of the published ones; the furthest is {apart:.4f} off"
        )

    def lines(self) -> list[str]:
        """Return the table and what it comes to, as lines to print."""
        return [*aligned([COLUMNS, *(row.cells() for row in self.rows)]), self.told]

    def to_dict(self) -> dict[str, Any]:
        """Return `measured` and `published` by `split.condition.metric`, and what they come to; JSON-safe."""
        rows = self.rows
        return {
            "measured": {row.key: row.measured.to_dict() for row in rows},
            "published": {row.key: dict(zip(("mean", "sd"), row.published, strict=True)) for row in rows},
            "difference": {row.key: row.difference for row in rows},
            "within_tolerance": {row.key: row.within for row in rows},
            "tolerance": TOLERANCE,
            "all_within": self.within,
            "chance": {f"{split}.{m}": self.found[split]["paired"].chance[m] for split in SPLITS for m in METRICS},
            "by_seed": {row.key: list(row.measured.values) for row in rows},
        }


def main_table(data: TwoViews, epochs: int = 160, progress: EpochCallback | None = None) -> MainTable:
    """Train the ten models of the study, all at once, and measure them; the protocol has 160 epochs.

    `progress(epoch, epochs, lines)` is that of `fit_ensemble`. Raises `ArgumentError` for fewer than 5 epochs, as the
    first validation is after the fifth.
    """
    models = trained(data, study_members(epochs), epochs, progress)
    by_condition = {condition: models[at :: len(CONDITIONS)] for at, condition in enumerate(CONDITIONS)}
    parts = dict(zip(SPLITS, (data.valid, data.held_out), strict=True))
    found = {split: {c: measure(by_condition[c], *sides(part)) for c in CONDITIONS} for split, part in parts.items()}
    return MainTable(by_condition, found)


def trained(
    data: TwoViews, members: list[Member], epochs: int = 160, progress: EpochCallback | None = None
) -> list[TwoHeads]:
    """Return these members' models, trained on the fit part and chosen on the validation part as the study does."""
    before = torch.get_num_threads()
    # Matrices of this size are slower on several threads, and many times so where other work wants the cores too.
    torch.set_num_threads(1)
    try:
        found = fit_ensemble(
            *sides(data.fit), None, study_config(epochs), members,
            valid=(*sides(data.valid), None), course=study_course(), progress=progress,
        )  # fmt: skip
    finally:
        torch.set_num_threads(before)
    return [fit.model for fit in found]


def sides(part: PairedRows) -> tuple[Any, Any]:
    """Return the rows of both views."""
    return part.a, part.b


def signed(value: float) -> str:
    """Return a difference with its sign and four decimals; what rounds to nothing is 0.0000 without one."""
    shown = f"{value:+.4f}"
    return shown[1:] if float(shown) == 0 else shown


def aligned(rows: list[tuple[str, ...]]) -> list[str]:
    """Return rows of cells as lines with their columns one below another."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]  # fmt: skip
