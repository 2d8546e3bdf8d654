"""What fields the items of a side have, for people who write filters and for a page that offers them."""

import sqlite3
from dataclasses import dataclass

from bridgehead.index.where.sql import STRETCHES
from bridgehead.index.where.values import LONGEST_STORED, Scalar, Stored

_MOST_FIELDS = 200
_COMMON = 10
_FINITE = "value BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308"


@dataclass(frozen=True)
class FieldFacts:
    """One field of a side.

    `kind`: "number" or "boolean" where every item that has the field has such a value, "mixed" where only some have a
    number, else "text". `n_items`: how many items have a value. `least`, `most`: of its numbers, or of its texts (their
    first 100 characters) where it has no number; None where there is no order. `common`: the most common values with
    the number of items that have each, most first, ties by value; texts of over 100 characters are left out.
    """

    name: str
    kind: str
    n_items: int
    least: int | float | str | None
    most: int | float | str | None
    common: tuple[tuple[Scalar, int], ...]


def field_facts(connection: sqlite3.Connection, side: int, limit: int = _MOST_FIELDS) -> list[FieldFacts]:
    """Return the facts of the fields that items of side 0 or 1 have: the `limit` most frequent ones, by name.

    Counts are exact. Takes one pass over the values (about 0.1 s for a million of them), so keep the result until the
    items change.
    """
    fields = connection.execute(
        "SELECT name, field, n_items, n_numbers, n_truths FROM field_names WHERE side = ? AND n_items > 0 "
        "ORDER BY n_items DESC, name LIMIT ?",
        (side, limit),
    ).fetchall()
    return [_facts(connection, *record) for record in sorted(fields)]


def _facts(
    connection: sqlite3.Connection, name: str, field: int, n_items: int, n_numbers: int, n_truths: int
) -> FieldFacts:
    if n_numbers == n_items:
        kind, shown = "number", "number"
    elif n_truths == n_items:
        kind, shown = "boolean", "truth value"
    else:
        kind, shown = "mixed" if n_numbers else "text", "text"
    ordered = _FINITE if n_numbers else STRETCHES["text"]
    ends = [None, None] if kind == "boolean" else [
        connection.execute(
            f"SELECT value FROM fields WHERE field = ? AND {ordered} ORDER BY value {direction} LIMIT 1", (field,)
        ).fetchone()
        for direction in ("ASC", "DESC")
    ]  # fmt: skip
    least, most = (_cut(end[0]) if end else None for end in ends)
    return FieldFacts(name, kind, n_items, least, most, _common(connection, field, _FINITE if shown == "number" else
                                                                 STRETCHES[shown]))  # fmt: skip


def _common(connection: sqlite3.Connection, field: int, within: str) -> tuple[tuple[Scalar, int], ...]:
    found = connection.execute(
        f"SELECT value, count(*) FROM fields WHERE field = ? AND {within} AND length(value) <= {LONGEST_STORED} "
        "GROUP BY value ORDER BY 2 DESC, 1 LIMIT ?",
        (field, _COMMON),
    )
    return tuple((value == b"\x01" if isinstance(value, bytes) else value, count) for value, count in found)


def _cut(value: Stored) -> int | float | str | None:
    return None if isinstance(value, bytes) else value[:LONGEST_STORED] if isinstance(value, str) else value
