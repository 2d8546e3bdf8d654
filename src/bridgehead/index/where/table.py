"""The values of all items as one sorted table in the item file, and how it is kept in step with the items.

`fields` is ordered by field, value, number, so that equality and ranges are stretches of it. An item's records follow
from its payload alone: removing them takes the payload that was written. Nothing here reads the `items` table.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bridgehead.index.where.values import Stored, payload_values, stored_forms

FIELDS_SCHEMA = """
CREATE TABLE field_names (field INTEGER PRIMARY KEY, side INTEGER NOT NULL, name TEXT NOT NULL,
    n_items INTEGER NOT NULL DEFAULT 0, UNIQUE (side, name));
CREATE TABLE fields (field INTEGER NOT NULL, value NOT NULL, number INTEGER NOT NULL,
    PRIMARY KEY (field, value, number)) WITHOUT ROWID;
"""
_BLOCK = 10_000


def field_records(number: int, payload: Mapping[str, Any]) -> Iterator[tuple[str, Stored, int]]:
    """Yield (field's name, stored value, number), each once. Raises `DataError` where the payload has NaN."""
    for name, value in dict.fromkeys(
        (name, value) for name, given in payload_values(payload) for value in stored_forms(given)
    ):
        yield name, value, number


def write_fields(connection: sqlite3.Connection, side: int, items: Iterable[tuple[int, Mapping[str, Any]]]) -> None:
    """Write the values of `items` ((number, payload), numbers not there yet) of side 0 or 1; within a transaction."""
    ids = _known_fields(connection, side)
    for number, payload in items:
        records = list(field_records(number, payload))
        for name in dict.fromkeys(record[0] for record in records):
            if name not in ids:
                cursor = connection.execute("INSERT INTO field_names (side, name) VALUES (?, ?)", (side, name))
                ids[name] = int(cursor.lastrowid or 0)
            connection.execute("UPDATE field_names SET n_items = n_items + 1 WHERE field = ?", (ids[name],))
        connection.executemany(
            "INSERT INTO fields VALUES (?, ?, ?)", ((ids[name], value, number) for name, value, _ in records)
        )


def remove_fields(connection: sqlite3.Connection, side: int, items: Iterable[tuple[int, Mapping[str, Any]]]) -> None:
    """Remove the values of `items` ((number, payload as it was written) of side 0 or 1); within a transaction."""
    ids = _known_fields(connection, side)
    for number, payload in items:
        records = [(ids[name], value, number) for name, value, _ in field_records(number, payload)]
        connection.executemany("DELETE FROM fields WHERE field = ? AND value = ? AND number = ?", records)
        connection.executemany(
            "UPDATE field_names SET n_items = n_items - 1 WHERE field = ?", [(f,) for f in {r[0] for r in records}]
        )


def _known_fields(connection: sqlite3.Connection, side: int) -> dict[str, int]:
    return dict(connection.execute("SELECT name, field FROM field_names WHERE side = ?", (side,)))
