"""What fields the items of a side have, for people who write filters and for a page that offers them."""

import sqlite3
from dataclasses import dataclass

from bridgehead.index.where.sql import KIND_ENDS, KIND_STARTS
from bridgehead.index.where.values import LONGEST_STORED, Scalar, Stored

_MOST_FIELDS = 200
_COMMON = 10
_FEW = 100
_LARGEST = 1.7976931348623157e308
# Integers beyond doubles count as infinite, which is nothing to show.
_START = KIND_STARTS | {"number": f"value >= {-_LARGEST}"}
_END = KIND_ENDS | {"number": f"value <= {_LARGEST}"}


@dataclass(frozen=True)
class FieldFacts:
    """One field of a side.

    `kind`: "number" or "boolean" where every item that has the field has such a value, "mixed" where only some have a
    number, else "text". `n_items`: how many items have a value. `least`, `most`: of its numbers, or of its texts (their
    first 100 characters) where it has no number; None where there is no order. `common`: the most common values with
    the number of items that have each, most first, ties by value; texts of over 100 characters are left out, and so are
    numbers where there are more than 100 different ones.
    """

    name: str
    kind: str
    n_items: int
    least: int | float | str | None
    most: int | float | str | None
    common: tuple[tuple[Scalar, int], ...]


def field_facts(connection: sqlite3.Connection, side: int, limit: int = _MOST_FIELDS) -> list[FieldFacts]:
    """Return the facts of the fields that items of side 0 or 1 have: the `limit` most frequent ones, by name.

    Counts are exact. Fields of many different texts take a pass over their values, about 0.2 s for a million, so keep
    the result until the items change.
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
    ordered = "number" if n_numbers else "text"
    ends = [None, None] if kind == "boolean" else [
        connection.execute(
            f"SELECT value FROM fields WHERE field = ? AND {_START[ordered]} AND {_END[ordered]} "
            f"ORDER BY value {direction} LIMIT 1",
            (field,),
        ).fetchone()
        for direction in ("ASC", "DESC")
    ]  # fmt: skip
    least, most = (_cut(end[0]) if end else None for end in ends)
    common = [
        (value == b"\x01" if isinstance(value, bytes) else value, n) for value, n in _common(connection, field, shown)
    ]
    return FieldFacts(name, kind, n_items, least, most, tuple(common))


def _common(connection: sqlite3.Connection, field: int, kind: str) -> list[tuple[Stored, int]]:
    """Return the most common values of a kind with their counts."""
    few = _few_values(connection, field, kind)
    if few is not None:
        count = "SELECT count(*) FROM fields WHERE field = ? AND value = ?"
        counts = [(value, int(connection.execute(count, (field, value)).fetchone()[0])) for value in few]
        return sorted(counts, key=lambda pair: -pair[1])[:_COMMON]
    if kind == "number":
        return []
    return connection.execute(
        f"SELECT value, count(*) FROM fields WHERE field = ? AND {_START[kind]} AND {_END[kind]} "
        "AND length(value) <= ? GROUP BY value ORDER BY 2 DESC, 1 LIMIT ?",
        (field, LONGEST_STORED, _COMMON),
    ).fetchall()


def _few_values(connection: sqlite3.Connection, field: int, kind: str) -> list[Stored] | None:
    """Return all values of a kind, ascending, without those that are cut off; None where they are many.

    Going from each to the next takes as many steps as there are values, not as there are records.
    """
    found: list[Stored] = []
    start: tuple[Stored, ...] = ()
    while len(found) <= _FEW:
        # One condition for the lower end: it is where SQLite starts.
        begin = "value > ?" if start else _START[kind]
        row = connection.execute(
            f"SELECT value FROM fields WHERE field = ? AND {begin} AND {_END[kind]} ORDER BY value LIMIT 1",
            (field, *start),
        ).fetchone()
        if row is None:
            return [value for value in found if not isinstance(value, str) or len(value) <= LONGEST_STORED]
        found.append(row[0])
        start = row
    return None


def _cut(value: Stored) -> int | float | str | None:
    return None if isinstance(value, bytes) else value[:LONGEST_STORED] if isinstance(value, str) else value
