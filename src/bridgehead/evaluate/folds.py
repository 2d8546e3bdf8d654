"""Several trainings over folds: what varies with the seed, what with the fold, and a test that knows their overlap.

This module is not about which items lie in which fold (`pairs.folds`), about training them (`runs.folds`)
or about a paired test on one set of queries (`paired`).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from bridgehead.errors import ArgumentError, NonFiniteRowsError, ShapeError
from bridgehead.evaluate.arguments import finite_number
from bridgehead.evaluate.ties import Float64Array
from bridgehead.vectors import to_numpy


@dataclass(frozen=True)
class FoldSpread:
    """How much a metric varies over the trainings of a cross-validation, in two parts that mean different things.

    `sd_seeds`: over trainings of one fold that differ in their seed alone, pooled over folds: what another training
    would change. `sd_folds`: over folds, of the mean over seeds: what other data would change, pools of other sizes
    included. Either is None where there is one seed, or one fold.
    """

    mean: float
    sd_seeds: float | None
    sd_folds: float | None
    n_folds: int
    n_seeds: int


def fold_spread(values: Any) -> FoldSpread:
    """Return the spread of a metric's `values` (n_folds, n_seeds), one a training; repeats are further folds.

    sd_seeds = sqrt(mean over folds of the sample variance over seeds), sd_folds = sample SD over folds of the means
    over seeds. Raises `ShapeError` for another shape and `NonFiniteRowsError` for NaN or infinity.

    >>> round(fold_spread([[0.2, 0.4], [0.6, 0.8]]).sd_seeds, 4)
    0.1414
    """
    table = _finite(values, "values")
    if table.ndim != 2 or 0 in table.shape:
        raise ShapeError(f"values has shape {table.shape}; expected (n_folds, n_seeds), one or more of each")
    n_folds, n_seeds = table.shape
    return FoldSpread(
        mean=float(table.mean()),
        sd_seeds=float(np.sqrt(table.var(axis=1, ddof=1).mean())) if n_seeds > 1 else None,
        sd_folds=float(table.mean(axis=1).std(ddof=1)) if n_folds > 1 else None,
        n_folds=n_folds,
        n_seeds=n_seeds,
    )


@dataclass(frozen=True)
class CorrectedDifference:
    """The difference of two settings over the same folds, by the corrected resampled t test.

    `value` is the mean over the folds, `sd` the standard deviation over them, `ratio` the size of a test part over
    that of its training part. `interval` (95 %) and `p_value` are None for one fold.
    """

    value: float
    sd: float | None
    interval: tuple[float, float] | None
    p_value: float | None
    n_folds: int
    ratio: float

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-safe entries; the interval as `low` and `high`, None where there is none."""
        low, high = self.interval or (None, None)
        names = ("value", "sd", "p_value", "n_folds", "ratio")
        return {name: getattr(self, name) for name in names} | {"low": low, "high": high}


def corrected_difference(differences: Any, ratio: float) -> CorrectedDifference:
    """Return the mean of `differences` (J,), one a fold, with the corrected interval and two-sided p value.

    t = mean / sqrt((1 / J + ratio) * var), var the sample variance over the J folds (of all repeats), J - 1 degrees of
    freedom, `ratio` = n_test / n_train, 1 / (K - 1) for K folds. The plain test, 1 / J alone, takes folds for
    independent; but any two of them share most of their training data, and it finds differences that are none several
    times too often. Folds that all differ by the same amount have p = 0, or 1 where that amount is 0.

    Raises `ShapeError` for anything but one dimension, `ArgumentError` for no folds or a ratio that is not positive,
    and `NonFiniteRowsError` for NaN or infinity. Sources: Nadeau and Bengio, "Inference for the generalization error"
    (2003); for repeated folds Bouckaert and Frank (2004).

    >>> found = corrected_difference([0.1, 0.2, 0.15, 0.15, 0.15], 1 / 4)
    >>> round(found.value, 3), round(found.p_value, 4)
    (0.15, 0.0032)
    """
    folds = _finite(differences, "differences")
    if folds.ndim != 1:
        raise ShapeError(f"differences has shape {folds.shape}; expected (n_folds,), one a fold")
    if len(folds) == 0:
        raise ArgumentError("differences is of no folds; expected at least one")
    ratio = finite_number(ratio, "ratio", "the size of a test part over that of its training part", above=0)
    n, value = len(folds), float(folds.mean())
    if n < 2:
        return CorrectedDifference(value, None, None, None, n, ratio)
    sd = float(folds.std(ddof=1))
    error = sd * math.sqrt(1 / n + ratio)
    half = float(special.stdtrit(n - 1, 0.975)) * error
    # Where folds differ by the same amount their SD is what rounding left.
    if sd <= 1e-12 * max(1.0, abs(value)):
        p_value = 1.0 if abs(value) <= 1e-12 else 0.0
    else:
        p_value = float(2 * special.stdtr(n - 1, -abs(value) / error))
    return CorrectedDifference(value, sd, (value - half, value + half), p_value, n, ratio)


def _finite(values: Any, name: str) -> Float64Array:
    array = to_numpy(values)
    if array.dtype.kind not in "fiub":
        raise ArgumentError(f"{name} has dtype {array.dtype}; expected numbers")
    if hasattr(array, "tocsr"):
        raise ArgumentError(f"{name} is a sparse matrix; expected a dense array: pass .toarray()")
    if not np.isfinite(array).all():
        bad = np.argwhere(~np.isfinite(np.atleast_1d(array)))
        raise NonFiniteRowsError(f"{name} holds NaN or infinity (fold {bad[0][0]})")
    return np.asarray(array, dtype=np.float64)
