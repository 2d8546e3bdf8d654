"""What a zero-shot evaluation found: figures, a table by class, confusion, calibration, abstention; JSON and lines.

This module computes nothing from rows (`report`).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from scipy import sparse

from bridgehead.evaluate.zero_shot.abstention import CoveragePoint
from bridgehead.evaluate.zero_shot.calibration import Calibration

NONE_LABEL = "none of these"
_FULL_CONFUSION = 50
_CONFUSED = 20


@dataclass(frozen=True)
class ClassFigures:
    """One class: `n_true` items are of it, `n_answered` were answered with it, `n_right` of these rightly.

    Numbers answered are expectations where the first place is tied. `precision` = n_right / n_answered and `recall` =
    n_right / n_true are None where there is nothing to divide by.
    """

    label: str
    n_true: int
    n_answered: float
    n_right: float

    @property
    def precision(self) -> float | None:
        """The share of items answered with the class that are of it, in [0, 1]."""
        return self.n_right / self.n_answered if self.n_answered > 0 else None

    @property
    def recall(self) -> float | None:
        """The share of the class's items that are answered with it, in [0, 1]."""
        return self.n_right / self.n_true if self.n_true else None


@dataclass(frozen=True)
class Abstained:
    """What came of answering "none of these" where the nearest class has a cosine under `threshold`.

    `coverage` is the share of all items that were answered with a class, `accuracy` the share of those that is right
    (None where none is answered). `n_none` items are of no class; `none_refused` is the share of them that was not
    answered (None without such items), `known_refused` that of the items that have a class.
    """

    threshold: float
    coverage: float
    accuracy: float | None
    n_none: int
    none_refused: float | None
    known_refused: float


@dataclass(frozen=True, eq=False)
class ZeroShotReport:
    """Zero-shot classification of `n_items` items among `n_classes` classes.

    `accuracy` maps k to the share of the `n_with_class` items whose class is among the first k, in expectation over
    tied classes; `chance` is k / C, `interval` a 95 % bootstrap by entity (empty where none was asked for). `majority`
    is the share of the most frequent class, which who always answers it reaches. `balanced_accuracy` is the mean recall
    of the classes that occur. `n_ties` items have a tie at their true class. `confusion` (C + 1, C + 1) holds expected
    numbers of items by true class and answer; the last row is of items of no class, the last column of the answer "none
    of these". `calibration` is of the first class's share against its being right, over items with a class. `coverage`
    are curves over all items, by "score" (the cosine) and by "share_among_candidates". `none_auroc` is the probability
    that an item with a class has a higher first cosine than one of no class (None without such items).
    """

    labels: tuple[str, ...]
    n_items: int
    n_with_class: int
    accuracy: dict[int, float]
    chance: dict[int, float]
    interval: dict[int, tuple[float, float]]
    majority: float
    balanced_accuracy: float
    n_ties: int
    per_class: tuple[ClassFigures, ...]
    confusion: sparse.csr_array
    calibration: Calibration
    coverage: dict[str, tuple[CoveragePoint, ...]]
    abstention: Abstained | None
    none_auroc: float | None
    logit_scale: float

    @property
    def n_classes(self) -> int:
        """The number of classes that were candidates."""
        return len(self.labels)

    def most_confused(self, n: int = _CONFUSED) -> list[tuple[str, str, float]]:
        """Return (true class, answer, items) of the `n` most frequent wrong answers, abstentions left out."""
        entries = self.confusion.tocoo()
        wrong = [
            (-float(value), int(i), int(j))
            for i, j, value in zip(entries.row, entries.col, entries.data, strict=True)
            if i != j and j < self.n_classes and value > 0
        ]
        names = (*self.labels, NONE_LABEL)
        return [(names[i], names[j], -value) for value, i, j in sorted(wrong)[:n]]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-safe entries; the confusion in full for up to 50 classes, else its most frequent mistakes."""
        found: dict[str, Any] = {
            name: getattr(self, name)
            for name in (
                "n_items",
                "n_with_class",
                "n_classes",
                "majority",
                "balanced_accuracy",
                "n_ties",
                "none_auroc",
            )
        }
        for k, value in self.accuracy.items():
            found[f"accuracy@{k}"], found[f"chance_accuracy@{k}"] = value, self.chance[k]
            if k in self.interval:
                found[f"accuracy@{k}.low"], found[f"accuracy@{k}.high"] = self.interval[k]
        found["per_class"] = [
            {**asdict(one), "precision": one.precision, "recall": one.recall} for one in self.per_class
        ]
        found["most_confused"] = [list(entry) for entry in self.most_confused()]
        found["confusion"] = self.confusion.toarray().tolist() if self.n_classes <= _FULL_CONFUSION else None
        found["calibration"] = self.calibration.to_dict()
        found["coverage"] = {name: [asdict(point) for point in curve] for name, curve in self.coverage.items()}
        found["abstention"] = None if self.abstention is None else asdict(self.abstention)
        return found | {"labels": list(self.labels), "logit_scale": self.logit_scale}

    def lines(self) -> list[str]:
        """Return what was found, as lines to print."""
        head = f"zero-shot classification: {self.n_with_class:,} items among {self.n_classes:,} classes"
        others = self.n_items - self.n_with_class
        rows = [("class", "items", "answered", "precision", "recall")]
        rows += [
            (one.label, f"{one.n_true:,}", f"{one.n_answered:,.4g}", _shown(one.precision), _shown(one.recall))
            for one in self.per_class[:_CONFUSED]
        ]
        more = len(self.per_class) - _CONFUSED
        return [
            f"{head}, and {others:,} items of no class" if others else head,
            *(self._accuracy_line(k) for k in self.accuracy),
            f"  always the most frequent class: {self.majority:.3f}; mean recall of a class: "
            f"{self.balanced_accuracy:.3f}",
            *(
                [f"  {self.n_ties:,} items with a tie at their class, counted as its expectation"]
                if self.n_ties
                else []
            ),
            f"  calibration error {self.calibration.error:.3f} (equal numbers: {self.calibration.adaptive_error:.3f}): "
            f"mean share {self.calibration.mean_share:.3f}, right {self.calibration.accuracy:.3f}",
            "  shares are conditional on this candidate set; for another they are others",
            *self._abstention_lines(),
            *_table(rows),
            *([f"  and {more:,} more classes"] if more > 0 else []),
        ]

    def _accuracy_line(self, k: int) -> str:
        between = " ({:.3f} to {:.3f})".format(*self.interval[k]) if k in self.interval else ""
        return f"  accuracy@{k} {self.accuracy[k]:.3f}{between}, chance {self.chance[k]:.3f}"

    def _abstention_lines(self) -> list[str]:
        found = self.abstention
        if found is None:
            return []
        refused = "" if found.none_refused is None else f", {found.none_refused:.1%} of items of no class refused"
        return [
            f"  none of these under a cosine of {found.threshold:.3f}: {found.coverage:.1%} answered, of these "
            f"{_shown(found.accuracy)} right{refused}, {found.known_refused:.1%} of the others refused"
        ]


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  "
        + "  ".join(cell.rjust(w) if i else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True)))
        for row in rows
    ]
