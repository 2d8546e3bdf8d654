"""One row for each class: the mean of its prompts' unit rows. This module is not about texts (`prompts`)."""

from typing import Any

import numpy as np

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.evaluate.arguments import whole_number
from bridgehead.evaluate.ties import Float64Array
from bridgehead.vectors import IntArray, to_numpy, unit_rows

_MOST = 2**31 - 1


def class_prototypes(rows: Any, class_of: Any, n_classes: int | None = None) -> Float64Array:
    """Return a unit row for each class, (C, d): the mean of the unit rows of its prompts, made a unit row again.

    `rows` (m, d) are the rows of prompts (names and synonyms in templates), `class_of` (m,) the class of each, whole
    numbers 0 .. C - 1; `n_classes` is C where the last classes may have no prompt. A zero row says nothing and is left
    out of the mean; a class with no other row, or whose rows cancel, has a zero prototype, whose cosine is 0 with
    everything: who takes it as a candidate should know (`np.flatnonzero(~prototypes.any(axis=1))`). Averaging the
    prompts' rows rather than their scores is the ensemble of Radford et al. 2021 (arXiv:2103.00020), section 3.1.4.

    Raises `ShapeError` and `ArgumentError` for a `class_of` that does not fit, `NonFiniteRowsError`.

    >>> import numpy as np
    >>> class_prototypes(np.array([[2.0, 0], [0, 1], [0, 3]]), [0, 0, 1]).round(3).tolist()
    [[0.707, 0.707], [0.0, 1.0]]
    """
    units = unit_rows(rows, "rows of prompts", dtype=np.float64)
    numbers = class_numbers(class_of, len(units), "class_of")
    least = int(numbers.max(initial=-1)) + 1
    size = least if n_classes is None else whole_number(n_classes, "n_classes", 1)
    if size < max(1, least):
        raise ArgumentError(
            f"n_classes = {n_classes!r} and class_of goes to {least - 1}; expected at least {max(1, least)}"
        )
    sums = np.zeros((int(size), units.shape[1]))
    np.add.at(sums, numbers, units)
    # What is left where rows cancel is rounding, and would be a direction of chance.
    counts = np.maximum(np.bincount(numbers, minlength=int(size)), 1)[:, None]
    sums[(np.abs(sums) <= 1e-12 * counts).all(axis=1)] = 0
    return np.asarray(unit_rows(sums, "prototypes", dtype=np.float64), dtype=np.float64)


def class_numbers(values: Any, n: int, name: str, least: int = 0, most: int | None = None) -> IntArray:
    """Return `values` as int64 (n,), each from `least` to `most`; raises `ShapeError` and `ArgumentError` otherwise."""
    numbers = to_numpy(values)
    if numbers.shape != (n,):
        raise ShapeError(f"{name} has shape {numbers.shape}; expected ({n},): the number of a class for each row")
    if numbers.size and numbers.dtype.kind not in "iu":
        raise ArgumentError(f"{name} has dtype {numbers.dtype}; expected whole numbers, the classes'")
    outside = np.flatnonzero((numbers < least) | (numbers > (_MOST if most is None else most)))
    if len(outside):
        upper = f" to {_MOST if most is None else most}"
        raise ArgumentError(f"{name}[{outside[0]}] = {numbers[outside[0]]}; expected numbers from {least}{upper}")
    return np.asarray(numbers, dtype=np.int64)
