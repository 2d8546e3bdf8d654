"""When to answer "none of these": accuracy against coverage, and a threshold chosen on validation scores.

A score is anything that is higher where an answer is surer: the cosine of the nearest class, or its share. This module
is not about calibration of shares (`calibration`).
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.evaluate.arguments import whole_number
from bridgehead.evaluate.ties import Float64Array
from bridgehead.evaluate.zero_shot.calibration import fractions


@dataclass(frozen=True)
class CoveragePoint:
    """Answering where the score is at least `threshold`: the share of items answered, and of those the share right."""

    threshold: float
    coverage: float
    accuracy: float
    n_answered: int


@dataclass(frozen=True)
class AbstentionRule:
    """A threshold chosen on `n` validation items: answer where the score is at least `threshold`.

    `accuracy` and `coverage` are those of the very items it was chosen on, and so a little too good; `asked` says what
    it was chosen for.
    """

    threshold: float
    coverage: float
    accuracy: float
    n_answered: int
    n: int
    asked: str

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-safe entries."""
        return asdict(self)


def coverage_curve(scores: Any, correct: Any, n_points: int = 100) -> tuple[CoveragePoint, ...]:
    """Return accuracy against coverage when the least sure items are left unanswered, from the surest ones to all.

    `scores` (n,) are finite, `correct` (n,) in [0, 1] or booleans; an item whose answer is none of the classes is not
    correct. Items of equal score are answered together, so the curve does not depend on their order. At most `n_points`
    points, evenly along the distinct scores, the last one always that of all items. A curve that does not fall with
    coverage says that the score does not know when it is wrong.

    Raises `ShapeError`, `NonFiniteRowsError`, `ArgumentError` (no items, n_points under 1).
    """
    if isinstance(n_points, bool) or not isinstance(n_points, int | np.integer) or n_points < 1:
        raise ArgumentError(f"n_points = {n_points!r}; expected a whole number of at least 1")
    points = _points(*_checked(scores, correct))
    n = len(points[0])
    shown = np.unique(np.round(np.linspace(n - 1, 0, min(int(n_points), n))).astype(np.int64))
    return tuple(_point(points, index) for index in shown.tolist())


def calibrate_abstention(
    scores: Any, correct: Any, *, accuracy: float | None = None, coverage: float | None = None, least: int = 20
) -> AbstentionRule:
    """Return the threshold for a wanted `accuracy` of what is answered, or a wanted `coverage`; give one of the two.

    For an accuracy: the lowest threshold, and so the most answers, at which the answered validation items are right at
    least so often, with at least `least` items answered (a threshold that three lucky items chose means nothing). For a
    coverage: the highest threshold at which at least that share is answered. `scores` and `correct` as in
    `coverage_curve`. Take items that are not those the accuracy is then reported on.

    Raises `ArgumentError` for none or both, numbers outside (0, 1], fewer than `least` items, and an accuracy that no
    threshold reaches, saying what the best one gives.

    >>> rule = calibrate_abstention([0.9, 0.8, 0.7, 0.2], [1, 1, 1, 0], accuracy=0.95, least=2)
    >>> rule.threshold, rule.coverage
    (0.7, 0.75)
    """
    if (accuracy is None) == (coverage is None):
        raise ArgumentError("give either accuracy= or coverage=, what the threshold is chosen for")
    name, wanted = ("accuracy", accuracy) if coverage is None else ("coverage", coverage)
    number = isinstance(wanted, int | float | np.number) and not isinstance(wanted, bool)
    if wanted is None or not number or not 0 < wanted <= 1:
        raise ArgumentError(f"{name} = {wanted!r}; expected a share over 0, at most 1")
    least = whole_number(least, "least", 1)
    points = _points(*_checked(scores, correct))
    thresholds, answered, accuracies = points
    n = int(answered[-1])
    if n < least:
        raise ArgumentError(f"{n} items to choose a threshold on; expected at least {least}")
    enough = answered >= least
    fits = enough & (accuracies >= wanted - 1e-12) if coverage is None else answered >= wanted * n - 1e-9
    if not fits.any():
        best = int(np.flatnonzero(enough)[np.argmax(accuracies[enough])])
        raise ArgumentError(
            f"no threshold reaches an accuracy of {wanted:g} with at least {least} of {n} items answered; the best is "
            f"{accuracies[best]:.3f} with {answered[best]:.0f} answered, at {thresholds[best]:.4g}"
        )
    index = int(np.flatnonzero(fits)[-1 if coverage is None else 0])
    point = _point(points, index)
    return AbstentionRule(
        point.threshold, point.coverage, point.accuracy, point.n_answered, n, f"{name} of at least {wanted:g}"
    )


def _checked(scores: Any, correct: Any) -> tuple[Float64Array, Float64Array]:
    score, right = fractions(scores, "scores", -np.inf, np.inf), fractions(correct, "correct")
    if len(score) != len(right):
        raise ShapeError(f"scores has {len(score)} entries and correct {len(right)}; expected one each")
    if len(score) == 0:
        raise ArgumentError("scores is empty; expected at least one item")
    return score, right


def _points(score: Float64Array, right: Float64Array) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return (threshold, items answered, accuracy of these) for each distinct score, the highest first."""
    values, code, count = np.unique(-score, return_inverse=True, return_counts=True)
    sums = np.bincount(code.reshape(-1), right, len(values))
    answered = np.cumsum(count).astype(np.float64)
    return -values, answered, np.cumsum(sums) / answered


def _point(points: tuple[Float64Array, Float64Array, Float64Array], index: int) -> CoveragePoint:
    thresholds, answered, accuracies = points
    return CoveragePoint(
        float(thresholds[index]),
        float(answered[index] / answered[-1]),
        float(min(1.0, accuracies[index])),
        int(answered[index]),
    )
