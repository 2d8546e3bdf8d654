"""Looking items up in an item file: by number, id, name, key and words.

Works through a connection within somebody else's transaction, so all answers are of one state. Vectors are not here.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from bridgehead.errors import ArgumentError, RunStateError
from bridgehead.index.items.records import (
    DAMAGE,
    ITEM_COLUMNS,
    SIDES,
    Item,
    WordHit,
    item_of,
    name_hash,
    storable,
    unpack,
)
from bridgehead.index.structures.bits import BYTES
from bridgehead.index.vectors import check_page
from bridgehead.index.words import match_expression
from bridgehead.texts import normalise
from bridgehead.vectors import IntArray

Found = TypeVar("Found")

_MOST_MARKS = 500
_MOST_HITS = 2**62


class ItemLookup:
    """Items of the item file `path` as `connection` sees them; for one thread at a time."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.connection = connection
        self.path = path

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return what a statement gives. Raises `RunStateError` for a damaged file."""
        return self.reading(lambda: self.connection.execute(statement, values).fetchall())

    def reading(self, read: Callable[[], Found]) -> Found:
        """Return `read()`. Raises `RunStateError` for a damaged file."""
        try:
            return read()
        except (sqlite3.DatabaseError, TypeError, AttributeError) as error:
            # A value of another kind than was written is damage too.
            raise self.damaged(error) from error

    def damaged(self, why: object) -> RunStateError:
        """Return the error that says that the file does not hold what was written."""
        return RunStateError(f"{self.path} is damaged ({why}); build the index again")

    def meta(self) -> dict[str, Any]:
        """Return the state of the file: see `schema`."""
        return dict(self.rows("SELECT name, value FROM meta"))

    def added_structures(self, side: str) -> tuple[IntArray, npt.NDArray[np.uint8]]:
        """Return numbers (m,) and structure bits (m, 512) of the items that were added to `side`."""
        found = self.rows("SELECT number, structure FROM added WHERE side = ? ORDER BY number", (SIDES.index(side),))
        return self._checked(_numbers_and_bits, found)

    def items(self, side: str, numbers: Iterable[int]) -> list[Item]:
        """Return the items of `numbers` in that order. Raises `ArgumentError` for a number that the side lacks."""
        wanted = [int(number) for number in numbers]
        found: dict[int, Item] = {}
        for statement, values in _of_numbers(ITEM_COLUMNS, side, wanted):
            found.update((item.number, item) for item in self._items(statement, values))
        return _in_order(found, wanted, side)

    def texts(self, side: str, numbers: Iterable[int]) -> list[str]:
        """Return the raw items of `numbers` in that order, without the rest of them; raises as `items` does."""
        wanted = [int(number) for number in numbers]
        found: dict[int, str] = {}
        for statement, values in _of_numbers("number, item", side, wanted):
            found.update(self.rows(statement, values))
        if wrong := [number for number, text in found.items() if not isinstance(text, str)]:
            raise self.damaged(f"item {wrong[0]} is no text")
        return _in_order(found, wanted, side)

    def by_id(self, identifier: str) -> list[Item]:
        """Return the items (at most one a side) whose user's id is exactly `identifier`, a first."""
        statement = f"SELECT {ITEM_COLUMNS} FROM items WHERE id = ? ORDER BY side"
        return self._items(statement, (storable(identifier),))

    def by_key(self, key: str) -> list[Item]:
        """Return the items whose exact key (InChIKey) is `key`, in the order of their numbers."""
        statement = f"SELECT {ITEM_COLUMNS} FROM items WHERE key = ? ORDER BY number"
        return self._items(statement, (storable(key),))

    def by_name(self, name: str) -> list[Item]:
        """Return the items that carry `name` (normalised): those whose main name it is first, then by number."""
        form = normalise(name)
        if not form:
            return []
        statement = (
            f"SELECT {ITEM_COLUMNS}, position FROM names JOIN items USING (number) WHERE names.hash = ? "
            "ORDER BY position > 0, number"
        )
        records = self.rows(statement, (name_hash(form),))
        found = [self._checked(_named, record) for record in records]
        return [item for item, name in found if normalise(name) == form]

    def words(self, query: str, side: str, k: int, offset: int = 0, allowed: IntArray | None = None) -> list[WordHit]:
        """Return the items of `side` that hold the words of `query`: all its terms or, where no item has all, any.

        Best BM25 first (equal to 1e-12 is tied), ties by number. `allowed`: numbers, ascending, that may be found. A
        query without a word finds nothing. Raises `ArgumentError` (k < 1, offset < 0).
        """
        check_page(k, offset)
        page = (min(int(k), _MOST_HITS), min(int(offset), _MOST_HITS))
        within, values = "", []
        if allowed is not None:
            # The plus sign keeps FTS5 from searching once for each number.
            within, values = " AND +rowid IN (SELECT value FROM json_each(?))", [json.dumps(allowed.tolist())]
        for every_term in (True, False):
            expression = match_expression(query, every_term)
            if not expression:
                return []
            match = f"FROM words_{side} WHERE words_{side} MATCH ?{within}"
            if self.rows(f"SELECT 1 {match} LIMIT 1", (expression, *values)):
                # Rounded, so that what is tied to 1e-12 comes in the order of numbers.
                cost = f"round(bm25(words_{side}), 12) AS cost"
                statement = f"SELECT rowid, {cost} {match} ORDER BY cost, rowid LIMIT ? OFFSET ?"
                found = self.rows(statement, (expression, *values, *page))
                return [self._checked(_word_hit, record) for record in found]
        return []

    def word_text(self, number: int) -> str:
        """Return the words of an item as they are indexed, "" where it has none."""
        found = self.rows("SELECT text FROM word_texts WHERE number = ?", (int(number),))
        return self._checked(unpack, found[0][0]) if found else ""

    def _items(self, statement: str, values: Sequence[Any]) -> list[Item]:
        return [self._checked(item_of, record) for record in self.rows(statement, values)]

    def _checked(self, read: Callable[[Any], Found], record: Any) -> Found:
        try:
            return read(record)
        except DAMAGE as error:
            raise self.damaged(error) from error


def _word_hit(record: Sequence[Any]) -> WordHit:
    number, cost = record
    return WordHit(int(number), max(0.0, -float(cost)))


def _named(record: Sequence[Any]) -> tuple[Item, str]:
    item = item_of(record)
    return item, item.names[record[-1]]


def _numbers_and_bits(records: Sequence[tuple[Any, ...]]) -> tuple[IntArray, npt.NDArray[np.uint8]]:
    bits = np.frombuffer(b"".join(structure or bytes(BYTES) for _, structure in records), dtype=np.uint8)
    return np.array([number for number, _ in records], dtype=np.int64), bits.reshape(len(records), BYTES)


def _of_numbers(columns: str, side: str, numbers: list[int]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield statements, with their values, that select `columns` of the items of `numbers`, some at a time."""
    for start in range(0, len(numbers), _MOST_MARKS):
        some = numbers[start : start + _MOST_MARKS]
        marks = ", ".join("?" * len(some))
        yield f"SELECT {columns} FROM items WHERE number IN ({marks}) AND side = ?", (*some, SIDES.index(side))


def _in_order(found: Mapping[int, Found], numbers: list[int], side: str) -> list[Found]:
    if missing := [number for number in numbers if number not in found]:
        raise ArgumentError(f"side {side} has no item of number {missing[0]}")
    return [found[number] for number in numbers]
