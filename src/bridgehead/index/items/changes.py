"""Changing an item file: items that come, are replaced or go, each call in one durable transaction.

An item that is replaced gets a new number, and its old one goes to `removed`; so whoever holds a state of before finds
nothing changed in it. Who may write is in `writer`, how rows are searched in `vectors`.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bridgehead.errors import RunStateError
from bridgehead.files import disk_errors
from bridgehead.index.items.records import SIDES, Content, contents, name_records, pack, storable, unpack
from bridgehead.index.side import IndexSide
from bridgehead.index.where import remove_fields, write_fields
from bridgehead.index.words import indexed_words

INSERT_ITEM = f"INSERT INTO items VALUES ({', '.join('?' * 10)})"
_MOST_MARKS = 500
Structures = Callable[[Sequence[str]], npt.NDArray[np.uint8]]


@dataclass(frozen=True)
class Written:
    """What a `put` did: items `added`, `replaced`, and left as they were because they hold the same (`unchanged`)."""

    added: int
    replaced: int
    unchanged: int


@dataclass(frozen=True)
class _Fresh:
    """An item that is to be written: its position in what was given, what it holds, and the number it replaces."""

    position: int
    content: Content
    replaces: int | None


class ItemChanges:
    """Writes the item file `path` through `connection`; one thread, one process at a time."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    def put(
        self, side: str, given: IndexSide, rows: npt.NDArray[np.float16], structures: Structures | None = None
    ) -> Written:
        """Write the items of `given` with their stored `rows` (n, d); those that hold the same are left alone.

        `structures`: gives the bits (m, 512) of raw items, None where the side has none. Raises `OSError` (disk full),
        `DataError` (payload) and `RunStateError` (damaged); nothing of the call is written then.
        """
        with self.errors():
            known = self._known(side, given.ids)
        fresh = [
            _Fresh(position, content, known[content.id][0] if content.id in known else None)
            for position, content in enumerate(contents(given))
            if content.id not in known or known[content.id][1] != content.hash
        ]
        if fresh:
            bits = structures([item.content.item for item in fresh]) if structures is not None else None
            with self._change(side) as change:
                self._remove(side, [item.replaces for item in fresh if item.replaces is not None], change)
                self._insert(side, given, fresh, rows, bits)
        replaced = sum(item.replaces is not None for item in fresh)
        return Written(len(fresh) - replaced, replaced, len(given.ids) - len(fresh))

    def delete(self, side: str, ids: Sequence[str]) -> int:
        """Remove the items of `ids`; return how many were there. Raises `OSError` and `RunStateError`."""
        with self.errors():
            known = self._known(side, ids)
        if known:
            with self._change(side) as change:
                self._remove(side, [number for number, _ in known.values()], change)
        return len(known)

    def hashes(self, side: str, origin: str | None = None) -> dict[str, bytes]:
        """Return id -> content hash of the items of `side`, of one `origin` where it is given."""
        statement, values = "SELECT id, hash FROM items WHERE side = ?", [SIDES.index(side)]
        with self.errors():
            if origin is None:
                return dict(self._connection.execute(statement, values))
            return dict(self._connection.execute(f"{statement} AND origin = ?", (*values, origin)))

    def meta(self) -> dict[str, Any]:
        """Return the state of the file: see `schema`."""
        with self.errors():
            return dict(self._connection.execute("SELECT name, value FROM meta"))

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raise what SQLite says of a full disk as `OSError`, and of anything else as `RunStateError`."""
        try:
            with disk_errors(self._path):
                yield
        except sqlite3.DatabaseError as error:
            raise RunStateError(
                f"{self._path} cannot be changed ({error}); nothing of this call was written"
            ) from error

    @contextmanager
    def _change(self, side: str) -> Iterator[int]:
        """Make the block one transaction, durable when it ends; give the number of the change."""
        with self.errors():
            execute = self._connection.execute
            execute("BEGIN IMMEDIATE")
            try:
                change = self._meta("change") + 1
                yield change
                self._set("change", change)
                execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    execute("ROLLBACK")
                raise

    def _known(self, side: str, ids: Sequence[str]) -> dict[str, tuple[int, bytes]]:
        """Return id -> (number, hash) of those of `ids` that are there."""
        found: dict[str, tuple[int, bytes]] = {}
        for some in _parts(list(dict.fromkeys(map(storable, ids)))):
            statement = f"SELECT id, number, hash FROM items WHERE id IN ({_marks(some)}) AND side = ?"
            for identifier, number, held in self._connection.execute(statement, (*some, SIDES.index(side))):
                found[identifier] = (number, held)
        return found

    def _insert(
        self,
        side: str,
        given: IndexSide,
        fresh: Sequence[_Fresh],
        rows: npt.NDArray[np.float16],
        bits: npt.NDArray[np.uint8] | None,
    ) -> None:
        first = self._meta("next_number")
        numbered = list(enumerate(fresh, start=first))
        many = self._connection.executemany
        letter = SIDES.index(side)
        many(
            INSERT_ITEM,
            (item.content.record(number, side, given.origin_of(item.position)) for number, item in numbered),
        )
        texts = [(n, words) for n, item in numbered if (words := indexed_words(given.searchable_text(item.position)))]
        many(f"INSERT INTO words_{side} (rowid, text) VALUES (?, ?)", texts)
        many("INSERT INTO word_texts VALUES (?, ?)", ((n, pack(words)) for n, words in texts))
        named = sorted(record for n, item in numbered for record in name_records(n, json.loads(item.content.names)))
        many("INSERT INTO names VALUES (?, ?, ?)", named)
        write_fields(self._connection, letter, [(n, json.loads(item.content.payload)) for n, item in numbered])
        many(
            "INSERT INTO added VALUES (?, ?, ?, ?)",
            (
                (n, letter, rows[item.position].tobytes(), bits[i].tobytes() if bits is not None else None)
                for i, (n, item) in enumerate(numbered)
            ),
        )
        self._set("next_number", first + len(fresh))
        self._set(f"added:{side}", self._meta(f"added:{side}") + len(fresh))
        self._set(f"size:{side}", self._meta(f"size:{side}") + len(fresh))

    def _remove(self, side: str, numbers: Sequence[int], change: int) -> None:
        if not numbers:
            return
        many = self._connection.executemany
        one = [(number,) for number in numbers]
        held = self._held(numbers)
        texts = self._texts(numbers)
        many(f"INSERT INTO words_{side} (words_{side}, rowid, text) VALUES ('delete', ?, ?)", texts.items())
        many("DELETE FROM word_texts WHERE number = ?", one)
        many("DELETE FROM names WHERE hash = ? AND number = ?",
             [record[:2] for number, (names, _) in held.items() for record in name_records(number, names)])  # fmt: skip
        remove_fields(self._connection, SIDES.index(side), [(n, payload) for n, (_, payload) in held.items()])
        many("DELETE FROM items WHERE number = ?", one)
        before = self._connection.total_changes
        many("DELETE FROM added WHERE number = ?", one)
        taken_back = self._connection.total_changes - before
        many("INSERT INTO removed VALUES (?, ?, ?)", [(number, SIDES.index(side), change) for number in numbers])
        self._set(f"added:{side}", self._meta(f"added:{side}") - taken_back)
        self._set(f"size:{side}", self._meta(f"size:{side}") - len(numbers))

    def _held(self, numbers: Sequence[int]) -> dict[int, tuple[list[str], Mapping[str, Any]]]:
        """Return number -> (names, payload) as they were written."""
        found: dict[int, tuple[list[str], Mapping[str, Any]]] = {}
        for some in _parts(numbers):
            statement = f"SELECT number, names, payload FROM items WHERE number IN ({_marks(some)})"
            for number, names, payload in self._connection.execute(statement, some):
                found[number] = (json.loads(unpack(names)) if names is not None else [], json.loads(payload))
        return found

    def _texts(self, numbers: Sequence[int]) -> dict[int, str]:
        found: dict[int, str] = {}
        for some in _parts(numbers):
            statement = f"SELECT number, text FROM word_texts WHERE number IN ({_marks(some)})"
            found |= {number: unpack(text) for number, text in self._connection.execute(statement, some)}
        return found

    def _meta(self, name: str) -> int:
        found = self._connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        if found is None:
            raise RunStateError(f"{self._path} lacks {name!r}; build the index again")
        return int(found[0])

    def _set(self, name: str, value: int) -> None:
        self._connection.execute("UPDATE meta SET value = ? WHERE name = ?", (value, name))


def _parts(values: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (values[start : start + _MOST_MARKS] for start in range(0, len(values), _MOST_MARKS))


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))
