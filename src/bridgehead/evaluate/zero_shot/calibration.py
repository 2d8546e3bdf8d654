"""Whether shares mean what they say: calibration error of the first answer's share against how often it is right.

A share is conditional on the candidates, and so is its calibration: for another set of classes it is another. This
module is not about leaving items unanswered (`abstention`).
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bridgehead.errors import ArgumentError, NonFiniteRowsError, ShapeError
from bridgehead.evaluate.arguments import whole_number
from bridgehead.evaluate.ties import Float64Array
from bridgehead.vectors import IntArray, to_numpy

_MOST_BINS = 100_000


@dataclass(frozen=True)
class CalibrationBin:
    """`n` items with shares from `low` to `high`: their mean `share`, and the share of them that are right."""

    low: float
    high: float
    n: int
    share: float
    accuracy: float


@dataclass(frozen=True)
class Calibration:
    """The calibration of `n` answers.

    `error` is the expected calibration error, sum over bins of n_b / n |accuracy_b - share_b|, with bins of equal width
    (Guo et al. 2017, arXiv:1706.04599); `adaptive_error` the same with bins of equal numbers of items (Nguyen and
    O'Connor 2015), which a crowd of shares near 1 does not blur. Both are in [0, 1], 0 is calibrated; with few items
    they are over 0 by chance alone. `mean_share` above `accuracy` is overconfidence. `bins` are those of equal width
    that hold anything, `adaptive_bins` the others.
    """

    error: float
    adaptive_error: float
    n: int
    n_bins: int
    mean_share: float
    accuracy: float
    bins: tuple[CalibrationBin, ...]
    adaptive_bins: tuple[CalibrationBin, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-safe entries."""
        return asdict(self)


def calibration_error(shares: Any, correct: Any, n_bins: int = 15) -> Calibration:
    """Return the calibration of answers with these `shares` (n,) in [0, 1], `correct` (n,) in [0, 1] or booleans.

    `correct` may be the expectation over tied answers. `n_bins` of equal width: (0, 1/B], ..., the first with 0 as
    well; and as many of equal numbers, where equal shares stay together and so may leave bins empty.

    Raises `ShapeError`, `NonFiniteRowsError`, and `ArgumentError` for no answers, numbers outside [0, 1], and n_bins
    under 1.

    >>> calibration_error([0.9, 0.9, 0.6, 0.6], [True, True, True, False], n_bins=10).error
    0.1
    """
    share, right = fractions(shares, "shares"), fractions(correct, "correct")
    if len(share) != len(right):
        raise ShapeError(f"shares has {len(share)} entries and correct {len(right)}; expected one each")
    if len(share) == 0:
        raise ArgumentError("shares is empty; expected at least one answer")
    n_bins = whole_number(n_bins, "n_bins", 1)
    if n_bins > _MOST_BINS:
        raise ArgumentError(f"n_bins = {n_bins}; expected at most {_MOST_BINS:,}: more bins than answers tell nothing")
    equal = np.clip(np.ceil(np.round(share * n_bins, 9)).astype(np.int64) - 1, 0, n_bins - 1)
    # The middle of the places that equal shares take, so that they stay together whatever the order of items.
    _, code, count = np.unique(share, return_inverse=True, return_counts=True)
    middle = np.cumsum(count) - count / 2
    adaptive = np.minimum((middle[code.reshape(-1)] * n_bins / len(share)).astype(np.int64), n_bins - 1)
    bounds = np.arange(n_bins + 1) / n_bins
    bins = _bins(share, right, equal, [(bounds[i], bounds[i + 1]) for i in range(n_bins)])
    others = _bins(share, right, adaptive, None)
    return Calibration(
        error=_error(bins, len(share)),
        adaptive_error=_error(others, len(share)),
        n=len(share),
        n_bins=n_bins,
        mean_share=float(share.mean()),
        accuracy=float(right.mean()),
        bins=bins,
        adaptive_bins=others,
    )


def fractions(values: Any, name: str, low: float = 0.0, high: float = 1.0) -> Float64Array:
    """Return `values` as float64 (n,) after checking that all are finite and from `low` to `high`."""
    array = to_numpy(values)
    if array.ndim != 1:
        raise ShapeError(f"{name} has shape {array.shape}; expected one dimension, a number for each item")
    if array.size and array.dtype.kind not in "fiub":
        raise ArgumentError(f"{name} has dtype {array.dtype}; expected numbers")
    numbers = array.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(numbers))
    if len(bad):
        raise NonFiniteRowsError(f"{name} holds NaN or infinity at {len(bad)} places (first: {bad[0]})")
    # A sum of shares may be over 1 by rounding.
    outside = np.flatnonzero((numbers < low - 1e-9) | (numbers > high + 1e-9))
    if len(outside):
        raise ArgumentError(f"{name}[{outside[0]}] = {numbers[outside[0]]}; expected numbers from {low:g} to {high:g}")
    return np.asarray(np.clip(numbers, low, high))


def _bins(
    share: Float64Array, right: Float64Array, bin_of: IntArray, bounds: list[tuple[float, float]] | None
) -> tuple[CalibrationBin, ...]:
    found = []
    for number in np.unique(bin_of).tolist():
        inside = bin_of == number
        own = share[inside]
        low, high = (own.min(), own.max()) if bounds is None else bounds[number]
        found.append(CalibrationBin(float(low), float(high), len(own), float(own.mean()), float(right[inside].mean())))
    return tuple(found)


def _error(bins: tuple[CalibrationBin, ...], n: int) -> float:
    return round(sum(part.n / n * abs(part.accuracy - part.share) for part in bins), 15)
