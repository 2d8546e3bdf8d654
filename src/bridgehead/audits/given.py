"""Checks of what audits are given: of which class it is, and whether a list has an entry for each item.

This module is not about numbers (`evaluate.arguments`) or about rows (`vectors`).
"""

from typing import Any

from bridgehead.errors import ArgumentError, ShapeError


def check_kind(kind: type, **given: Any) -> None:
    """Raise `ArgumentError`, naming the argument, unless all that is given is of this class."""
    for name, value in given.items():
        if not isinstance(value, kind):
            hint = ": Links(pairs, n_a, n_b)" if kind.__name__ == "Links" else ""
            raise ArgumentError(f"{name} is a {type(value).__name__}; expected {kind.__name__}{hint}")


def check_called(**given: Any) -> None:
    """Raise `ArgumentError`, naming the argument, unless all that is given can be called."""
    for name, value in given.items():
        if not callable(value):
            raise ArgumentError(f"{name} is a {type(value).__name__}; expected a function")


def check_entries(values: Any, n: int | None, name: str, what: str = "one for each item") -> None:
    """Raise `ShapeError` unless `values` is a list, or an array, of `n` entries (any number for None), and no text."""
    is_list = hasattr(values, "__len__") and hasattr(values, "__getitem__") and not isinstance(values, str | bytes)
    if not is_list or getattr(values, "shape", None) == () or hasattr(values, "tocsr"):
        expected = "a list" if n is None else f"a list of {n} entries"
        raise ShapeError(f"{name} is a {type(values).__name__}; expected {expected}, {what}")
    if n is not None and len(values) != n:
        raise ShapeError(f"{name} has {len(values)} entries; expected {n}, {what}")


def check_texts(texts: Any, n: int | None, name: str) -> None:
    """Raise as `check_entries`, and `ArgumentError` naming the first entry that is no text."""
    check_entries(texts, n, name)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise ArgumentError(f"{name}[{i}] is a {type(text).__name__}; expected a text")
