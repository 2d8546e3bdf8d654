"""Reading numbers out of a history, whichever of the two trainings wrote it.

This module is not about what the numbers mean.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bridgehead.audits.data.linear_map import Float64Array
from bridgehead.errors import ArgumentError

History = Sequence[Mapping[str, Any]]


def check_history(history: Any) -> None:
    """Raise `ArgumentError` unless `history` is a sequence of at least one mapping."""
    if isinstance(history, str | bytes | Mapping) or not isinstance(history, Sequence):
        raise ArgumentError(f"history is a {type(history).__name__}; expected a list of dicts, one an epoch")
    if len(history) == 0:
        raise ArgumentError("history is empty; expected a line for each epoch that was trained")
    for number, line in enumerate(history):
        if not isinstance(line, Mapping):
            raise ArgumentError(f"line {number} of the history is {line!r:.80}; expected a dict")


def series(history: History, *names: str) -> Float64Array | None:
    """Return the mean of the named entries of each epoch, (epochs,), or None where one is missing in any epoch.

    Raises `ArgumentError` for an entry that is no number.
    """
    if not all(name in line and line[name] is not None for line in history for name in names):
        return None
    for number, line in enumerate(history):
        for name in names:
            if isinstance(line[name], bool) or not isinstance(line[name], int | float | np.number):
                raise ArgumentError(f"line {number} of the history has {name} = {line[name]!r:.80}; expected a number")
    return np.asarray(np.mean([[float(line[name]) for name in names] for line in history], axis=1))


def first_series(history: History, *choices: tuple[str, ...]) -> tuple[str, Float64Array] | None:
    """Return the first of the choices that every epoch has, as (what it is called, its values), or None."""
    for names in choices:
        found = series(history, *names)
        if found is not None:
            return names[0].removesuffix("_a2b"), found
    return None


def scales(history: History) -> Float64Array | None:
    """Return s = 1 / temperature of each epoch, or None where the history has neither."""
    found = series(history, "logit_scale")
    if found is None:
        temperature = series(history, "temperature")
        found = None if temperature is None or (temperature <= 0).any() else 1 / temperature
    return found
