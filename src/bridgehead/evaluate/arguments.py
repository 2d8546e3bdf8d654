"""Checks of what many functions take: counts, seeds, rows at once, finite numbers, the ks, shown names, labels.

This module is not about rows (`vectors`) or about what is asked of a retrieval evaluation (`asked`).
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from bridgehead.errors import ArgumentError
from bridgehead.vectors import IntArray, to_numpy

_MOST = 2**63 - 1


def whole_number(value: Any, name: str, least: int) -> int:
    """Return `value` as an int; raises `ArgumentError` for what is no whole number of at least `least`.

    True and False are no numbers here, and neither is what 64 bits cannot hold.
    """
    if not _is_whole(value) or not least <= value <= _MOST:
        beyond = ", under 2**63" if _is_whole(value) and value > _MOST else ""
        raise ArgumentError(f"{name} = {_shown(value)}; expected a whole number of at least {least}{beyond}")
    return int(value)


def checked_seed(seed: Any) -> int:
    """Return `seed` as an int of 0 or more; raises `ArgumentError`, for None too: equal calls give equal results."""
    if not _is_whole(seed) or seed < 0:
        raise ArgumentError(
            f"seed = {_shown(seed)}; expected a whole number of at least 0: it fixes everything that is random"
        )
    return int(seed)


def rows_at_once(block: Any) -> int | None:
    """Return `block` as an int of at least 1, or None, which leaves it to the function; raises `ArgumentError`."""
    if block is not None and (not _is_whole(block) or block < 1):
        raise ArgumentError(f"block = {_shown(block)}; expected at least 1 row, a whole number")
    return None if block is None else int(block)


def finite_number(
    value: Any,
    name: str,
    what: str = "a finite number",
    least: float = -math.inf,
    above: float | None = None,
) -> float:
    """Return `value` as a float; raises `ArgumentError`, saying `what` was expected, for what is none or out of range.

    It is at least `least` and more than `above`.
    """
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    try:
        number = float(value) if is_number else math.nan
    except OverflowError:  # an integer beyond 1.8e308
        number = math.nan
    if not math.isfinite(number) or number < least or (above is not None and number <= above):
        raise ArgumentError(f"{name} = {_shown(value)}; expected {what}")
    return number


def checked_ks(ks: Any) -> tuple[int, ...]:
    """Return the distinct k of recall@k in the order given; raises `ArgumentError` unless all are whole and over 0."""
    try:
        wanted = tuple(dict.fromkeys(ks)) if isinstance(ks, Iterable) else ()
    except TypeError:  # arrays of no or two dimensions, lists in a list
        wanted = ()
    if not wanted or not all(_is_whole(k) and 1 <= k <= _MOST for k in wanted):
        raise ArgumentError(
            f"ks = {_shown(ks)}; expected one or more whole numbers, each at least 1, such as (1, 5, 10)"
        )
    return tuple(int(k) for k in wanted)


def checked_names(names: Any) -> tuple[str, str]:
    """Return the shown names of both sides; raises `ArgumentError` for what is not two texts."""
    if not isinstance(names, tuple | list) or len(names) != 2 or not all(isinstance(name, str) for name in names):
        raise ArgumentError(f"names = {_shown(names)}; expected two, of a and of b, such as ('molecule', 'text')")
    return names[0], names[1]


def checked_labels(labels: Any, name: str) -> IntArray:
    """Return labels (n,) as numbers 0 .. E - 1; raises `ArgumentError` for NaN and for labels that have no order."""
    array = to_numpy(labels)
    try:
        # Only NaN differs from itself. All of them would be one entity, and are most likely none.
        if (array != array).any():
            raise ArgumentError(
                f"{name} holds NaN; expected texts or numbers, with a label of its own for each row without an entity"
            )
        return np.unique(array, return_inverse=True)[1].reshape(-1).astype(np.int64)
    except TypeError as error:
        raise ArgumentError(
            f"{name} holds labels of several types ({error}); expected texts or numbers, with a label of its own for "
            "each row without an entity"
        ) from error


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."
