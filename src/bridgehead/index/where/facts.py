"""What fields the items of a side have, for people who write filters and for a page that offers them."""

import sqlite3
from dataclasses import dataclass

from bridgehead.index.where.values import LONGEST_STORED, Scalar, Stored

_COMMON = 10


@dataclass(frozen=True)
class FieldFacts:
    """One field of a side.

    `kind`: "number", "boolean", "text", or "mixed" where only some items have a number. `n_items`: how many items have
    a value. `least`, `most`: of its numbers, or of its texts where it has none; None where there is no order. `common`:
    the most common values with the number of items that have each, most first.
    """

    name: str
    kind: str
    n_items: int
    least: int | float | str | None
    most: int | float | str | None
    common: tuple[tuple[Scalar, int], ...]


def field_facts(connection: sqlite3.Connection, side: int) -> list[FieldFacts]:
    """Return the facts of all fields that an item of side 0 or 1 has, by name."""
    fields = connection.execute(
        "SELECT field, name, n_items FROM field_names WHERE side = ? AND n_items > 0 ORDER BY name", (side,)
    ).fetchall()
    return [_facts(connection, *field) for field in fields]


def _facts(connection: sqlite3.Connection, field: int, name: str, n_items: int) -> FieldFacts:
    counts = {
        kind: connection.execute(
            f"SELECT count(DISTINCT number) FROM fields WHERE field = ? AND {within}", (field,)
        ).fetchone()[0]
        for kind, within in _STRETCH.items()
    }
    kind = next((k for k in ("number", "boolean") if counts[k] == n_items), "mixed" if counts["number"] else "text")
    ordered = _STRETCH["number" if counts["number"] else "text"]
    least, most = connection.execute(
        f"SELECT min(value), max(value) FROM fields WHERE field = ? AND {ordered}", (field,)
    ).fetchone()
    shown = _STRETCH["text" if kind == "mixed" else kind]
    common = connection.execute(
        f"SELECT value, count(*) FROM fields WHERE field = ? AND {shown} GROUP BY value ORDER BY 2 DESC, 1 LIMIT ?",
        (field, _COMMON),
    ).fetchall()
    return FieldFacts(name, kind, n_items, _shown(least), _shown(most), tuple(
        (_scalar(value), count) for value, count in common if not _is_cut(value)))  # fmt: skip


_STRETCH = {"number": "value < ''", "text": "value >= '' AND value < x''", "boolean": "value >= x''"}


def _is_cut(value: Stored) -> bool:
    return isinstance(value, str) and len(value) > LONGEST_STORED


def _shown(value: Stored | None) -> int | float | str | None:
    return None if isinstance(value, bytes) else value[:LONGEST_STORED] if isinstance(value, str) else value


def _scalar(value: Stored) -> Scalar:
    return value == b"\x01" if isinstance(value, bytes) else value
