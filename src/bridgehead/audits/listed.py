"""The cases behind a finding, worst first, and what an item is called in them.

This module is not about verdicts (`finding`).
"""

from collections.abc import Callable, Sequence
from typing import Any

from bridgehead.audits.finding import Listing
from bridgehead.audits.given import check_entries

MOST_LISTED = 20
"""Cases that a finding lists: enough to see what they have in common, few enough to be read."""

_LONGEST_CELL = 120


def worst(columns: Sequence[str], rows: Sequence[Sequence[Any]], note: str = "") -> Listing | None:
    """Return the first `MOST_LISTED` of `rows`, which come worst first, or None where there are none.

    Long texts are cut to 120 characters, so that a raw item in a cell does not drown the others.
    """
    if not rows:
        return None
    shown = [[_short(cell) for cell in row] for row in rows[:MOST_LISTED]]
    return Listing(columns, shown, len(rows), note)


def namer(ids: Sequence[Any] | None, n: int, what: str) -> Callable[[int], str]:
    """Return what item `i` of `n` is called: its id, or its number where there are no ids.

    Raises `ShapeError` when there are not `n` ids; `what` names the argument.
    """
    if ids is None:
        return str
    check_entries(ids, n, what)
    return lambda i: str(ids[i])


def _short(cell: Any) -> Any:
    if isinstance(cell, str) and len(cell) > _LONGEST_CELL:
        return cell[: _LONGEST_CELL - 1] + "…"
    return cell
