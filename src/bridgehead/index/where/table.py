"""The values of all items as one sorted table in the item file, and how it is kept in step with the items.

`fields` is ordered by field, value, number, so that equality and ranges are stretches of it. An item's records follow
from its payload alone: removing them takes the payload that was written. Each item has one record more under a field
without a name, so that "all items of a side" is a stretch too. Nothing here reads any other table.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from bridgehead.index.where.values import Stored, payload_values, stored_forms

FIELDS_SCHEMA = """
CREATE TABLE field_names (field INTEGER PRIMARY KEY, side INTEGER NOT NULL, name TEXT NOT NULL,
    n_items INTEGER NOT NULL DEFAULT 0, n_numbers INTEGER NOT NULL DEFAULT 0, n_truths INTEGER NOT NULL DEFAULT 0,
    UNIQUE (side, name));
CREATE TABLE fields (field INTEGER NOT NULL, value NOT NULL, number INTEGER NOT NULL,
    PRIMARY KEY (field, value, number)) WITHOUT ROWID;
"""
"""`n_items`, `n_numbers` and `n_truths`: how many items have a value, a number and a truth value of a field."""

_BLOCK = 20_000
_COUNT = """UPDATE field_names SET n_items = n_items + ?, n_numbers = n_numbers + ?, n_truths = n_truths + ?
    WHERE field = ?"""

Payloads = Iterable[tuple[int, Mapping[str, Any]]]
_Record = tuple[str, Stored, int]


def item_field(side: int) -> int:
    """Return the field without a name that all items of side 0 or 1 have; others count from 1."""
    return -1 - side


def field_records(number: int, payload: Mapping[str, Any]) -> Iterator[tuple[str, Stored, int]]:
    """Yield (field's name, stored value, number), each once. Raises `DataError` where the payload has NaN."""
    found: dict[tuple[str, Stored], None] = {}
    for name, given in payload_values(payload):
        for value in stored_forms(given):
            found[name, value] = None
    for name, value in found:
        yield name, value, number


def write_fields(connection: sqlite3.Connection, side: int, items: Payloads) -> None:
    """Write the values of `items`, (number, payload) with numbers that are not there yet, of side 0 or 1.

    The caller holds the transaction. Memory does not grow with the number of items. Raises `DataError` where a payload
    has NaN or infinity.
    """
    for block in _blocks(items):
        ids = _field_ids(connection, side, block)
        records = [(ids[name], value, number) for _, found in block for name, value, number in found]
        records += [(item_field(side), 0, number) for number, _ in block]
        # In the order of the table, so that its pages are visited one after the other.
        records.sort(key=_order)
        connection.executemany("INSERT INTO fields VALUES (?, ?, ?)", records)
        connection.executemany(_COUNT, _counts(ids, block, 1))


def remove_fields(connection: sqlite3.Connection, side: int, items: Payloads) -> None:
    """Remove the values of `items`, (number, payload as it was written), of side 0 or 1, within a transaction."""
    for block in _blocks(items):
        ids = _field_ids(connection, side, block)
        records = [(ids[name], value, number) for _, found in block for name, value, number in found]
        records += [(item_field(side), 0, number) for number, _ in block]
        connection.executemany("DELETE FROM fields WHERE field = ? AND value = ? AND number = ?", records)
        connection.executemany(_COUNT, _counts(ids, block, -1))


def _blocks(items: Payloads) -> Iterator[list[tuple[int, list[_Record]]]]:
    left = iter(items)
    while block := [(number, list(field_records(number, payload))) for number, payload in islice(left, _BLOCK)]:
        yield block


def _field_ids(connection: sqlite3.Connection, side: int, block: Sequence[tuple[int, list[_Record]]]) -> dict[str, int]:
    """Return the id of each field of the block by name; new names get the next ids."""
    names = dict.fromkeys(name for _, records in block for name, _, _ in records)
    connection.executemany("INSERT OR IGNORE INTO field_names (side, name) VALUES (?, ?)", ((side, n) for n in names))
    find = "SELECT field FROM field_names WHERE side = ? AND name = ?"
    return {name: int(connection.execute(find, (side, name)).fetchone()[0]) for name in names}


def _order(record: tuple[int, Stored, int]) -> tuple[int, int, Stored, int]:
    field, value, number = record
    kind = 1 if isinstance(value, str) else 2 if isinstance(value, bytes) else 0
    return field, kind, value, number


def _counts(
    ids: Mapping[str, int], block: Sequence[tuple[int, list[_Record]]], sign: int
) -> list[tuple[int, int, int, int]]:
    items: Counter[str] = Counter()
    numbers: Counter[str] = Counter()
    truths: Counter[str] = Counter()
    for _, records in block:
        items.update({name for name, _, _ in records})
        numbers.update({name for name, value, _ in records if isinstance(value, int | float)})
        truths.update({name for name, value, _ in records if isinstance(value, bytes)})
    return [(sign * items[name], sign * numbers[name], sign * truths[name], field) for name, field in ids.items()]
