"""Items, names and words of all sides in one SQLite file.

Every item has a number: the offset of its side plus its row. Names are looked up by a 64-bit hash of their normalised
form and then compared in full; searchable words live in an FTS5 table without a copy of the text. The file is written
once, in one go, and then only read. Vectors are not here (`vectors`).
"""

import hashlib
import json
import sqlite3
import threading
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bridgehead.errors import ArgumentError, DataError, RunStateError
from bridgehead.index.side import IndexSide
from bridgehead.index.vectors import check_page
from bridgehead.index.words import indexed_words, match_expression
from bridgehead.texts import normalise

_SCHEMA = """
PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE items (number INTEGER PRIMARY KEY, id TEXT NOT NULL, item TEXT NOT NULL, key TEXT, names BLOB,
    payload TEXT NOT NULL);
CREATE TABLE names (hash INTEGER NOT NULL, number INTEGER NOT NULL, position INTEGER NOT NULL,
    PRIMARY KEY (hash, number)) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize="unicode61 remove_diacritics 2");
INSERT INTO words (words, rank) VALUES ('hashsize', 67108864);
"""
_SHOWN_ITEM = "number, id, item, key, names, payload"


@dataclass(frozen=True)
class Item:
    """An item as stored: `side` ("a" or "b"), `row`, user's `id`, raw `item`, exact `key`, `names`, `payload`."""

    side: str
    row: int
    id: str
    item: str
    key: str | None = None
    names: tuple[str, ...] = ()
    payload: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class WordHit:
    """A row found by its words, and its BM25 score (above 0, higher is better; comparable within one query only)."""

    row: int
    score: float


def write_store(path: Path, sides: Mapping[str, IndexSide], fingerprint: str) -> None:
    """Write the SQLite file of `sides`, numbered in the order given, under `path`, which must not exist.

    Raises `DataError` for a payload that JSON cannot hold.
    """
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.executescript(_SCHEMA)
        connection.execute("BEGIN")
        connection.execute("INSERT INTO meta VALUES ('fingerprint', ?)", (fingerprint,))
        offset = 0
        for side in sides.values():
            connection.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?, ?)", _item_records(side, offset))
            connection.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", _word_records(side, offset))
            offset += len(side.ids)
        connection.executemany("INSERT INTO names VALUES (?, ?, ?)", _name_records(sides))
        connection.execute("INSERT INTO words (words) VALUES ('optimize')")
        connection.execute("CREATE INDEX items_by_id ON items (id)")
        connection.execute("CREATE INDEX items_by_key ON items (key) WHERE key IS NOT NULL")
        connection.execute("COMMIT")
    finally:
        connection.close()


def _item_records(side: IndexSide, offset: int) -> Iterator[tuple[Any, ...]]:
    for row, (identifier, item) in enumerate(zip(side.ids, side.items, strict=True)):
        names = list(side.names[row]) if side.names is not None else []
        payload = dict(side.payload[row]) if side.payload is not None else {}
        key = side.keys[row] if side.keys is not None else None
        packed = zlib.compress(_json(names).encode()) if names else None
        try:
            stored = _json(payload)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"the payload of item {identifier} of {side.name} cannot be stored as JSON: {error}"
            ) from error
        yield offset + row, _storable(identifier), _storable(item), key or None, packed, stored


def _word_records(side: IndexSide, offset: int) -> Iterator[tuple[int, str]]:
    for row in range(len(side.ids)):
        if words := indexed_words(side.searchable_text(row)):
            yield offset + row, words


def _name_records(sides: Mapping[str, IndexSide]) -> list[tuple[int, int, int]]:
    """Return (hash, number, position) sorted as the table is, each name of an item once, at its first position."""
    found: dict[tuple[int, int], int] = {}
    offset = 0
    for side in sides.values():
        for row, names in enumerate(side.names if side.names is not None else ()):
            for position, name in enumerate(names):
                if form := normalise(name):
                    found.setdefault((_name_hash(form), offset + row), position)
        offset += len(side.ids)
    return sorted((name, number, position) for (name, number), position in found.items())


def _name_hash(form: str) -> int:
    digest = hashlib.blake2b(form.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def _json(content: Any) -> str:
    return _storable(json.dumps(content, ensure_ascii=False, allow_nan=False))


def _storable(text: str) -> str:
    """Return `text` with lone surrogates, which UTF-8 cannot hold, replaced by a question mark."""
    return text.encode("utf-8", "replace").decode()


class ItemStore:
    """Reads the SQLite file; safe to share between threads. `offsets`: side -> number of its first item."""

    def __init__(self, path: Path, sizes: Mapping[str, int], fingerprint: str) -> None:
        """Open `path` for reading only; neither the file nor its folder needs to be writable.

        `sizes`: side -> number of items, in the order of the build. Raises `RunStateError` when the file is damaged,
        belongs to another build, or holds another number of items.
        """
        self._lock = threading.Lock()
        self._path = path
        self._sizes = dict(sizes)
        self._offsets: dict[str, int] = {}
        total = 0
        for side, size in sizes.items():
            self._offsets[side] = total
            total += size
        address = f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"
        self._connection = sqlite3.connect(address, uri=True, check_same_thread=False)
        try:
            self._check(path, total, fingerprint)
        except BaseException:
            self._connection.close()
            raise

    def _check(self, path: Path, total: int, fingerprint: str) -> None:
        again = "build the index again"
        try:
            found = self._checked_rows("SELECT value FROM meta WHERE name = 'fingerprint'")
            count = self._checked_rows("SELECT count(*) FROM items")[0][0]
        except (sqlite3.Error, IndexError) as error:
            raise RunStateError(f"{path} is not the item file of an index ({error}); {again}") from error
        if not found or found[0][0] != fingerprint:
            raise RunStateError(f"{path} belongs to another build than the vectors beside it; {again}")
        if count != total:
            raise RunStateError(f"{path} holds {count} items and the vectors {total} rows; {again}")

    def close(self) -> None:
        """Close the file; the store cannot be used afterwards."""
        self._connection.close()

    def _rows(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._checked_rows(statement, values)
        except sqlite3.DatabaseError as error:
            raise RunStateError(f"{self._path} is damaged ({error}); build the index again") from error

    def _checked_rows(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._connection.execute(statement, values).fetchall()

    def items(self, side: str, rows: list[int]) -> list[Item]:
        """Return the items of `rows` in that order. Raises `ArgumentError` for a row that the side does not have."""
        offset, size = self._offsets[side], self._sizes[side]
        outside = [row for row in rows if not 0 <= row < size]
        if outside:
            raise ArgumentError(f"side {side} has no row {outside[0]}; expected 0 to {size - 1}")
        found: dict[int, Item] = {}
        for start in range(0, len(rows), 500):
            numbers = tuple(offset + row for row in rows[start : start + 500])
            marks = ", ".join("?" * len(numbers))
            for record in self._rows(f"SELECT {_SHOWN_ITEM} FROM items WHERE number IN ({marks})", numbers):
                found[record[0] - offset] = self._item(record)
        return [found[row] for row in rows]

    def by_id(self, identifier: str) -> list[Item]:
        """Return the items (at most one a side) whose user's id is exactly `identifier`."""
        statement = f"SELECT {_SHOWN_ITEM} FROM items WHERE id = ? ORDER BY number"
        return [self._item(record) for record in self._rows(statement, (_storable(identifier),))]

    def by_key(self, key: str) -> list[Item]:
        """Return the items whose exact key (InChIKey) is `key`, in the order of their numbers."""
        statement = f"SELECT {_SHOWN_ITEM} FROM items WHERE key = ? ORDER BY number"
        return [self._item(record) for record in self._rows(statement, (_storable(key),))]

    def by_name(self, name: str) -> list[Item]:
        """Return the items that carry `name` (normalised): those whose main name it is first, then by number."""
        form = normalise(name)
        if not form:
            return []
        statement = (
            f"SELECT {_SHOWN_ITEM}, position FROM names JOIN items USING (number) WHERE hash = ? "
            "ORDER BY position > 0, number"
        )
        found = [(self._item(record), record[-1]) for record in self._rows(statement, (_name_hash(form),))]
        return [item for item, position in found if normalise(item.names[position]) == form]

    def words(self, query: str, side: str, k: int, offset: int = 0) -> list[WordHit]:
        """Return the rows of `side` that hold the words of `query`: all its terms or, where no item has all, any.

        Best BM25 first, ties by row. A query without a word finds nothing. Raises `ArgumentError` (k < 1, offset < 0).
        """
        check_page(k, offset)
        first, size = self._offsets[side], self._sizes[side]
        within = (first, first + size - 1)
        # More than there are would be beyond what SQLite counts to.
        k, offset = int(min(k, size)), int(min(offset, size))
        statement = (
            "SELECT rowid, bm25(words) AS cost FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? "
            "ORDER BY cost, rowid LIMIT ? OFFSET ?"
        )
        for every_term in (True, False):
            expression = match_expression(query, every_term)
            if not expression:
                return []
            if self._rows("SELECT 1 FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? LIMIT 1",
                          (expression, *within)):  # fmt: skip
                found = self._rows(statement, (expression, *within, k, offset))
                return [WordHit(int(number) - first, max(0.0, -float(cost))) for number, cost in found]
        return []

    def _item(self, record: tuple[Any, ...]) -> Item:
        number, identifier, item, key, packed, payload = record[:6]
        side = next(s for s, first in self._offsets.items() if first <= number < first + self._sizes[s])
        try:
            names = tuple(json.loads(zlib.decompress(packed))) if packed else ()
            return Item(side, number - self._offsets[side], identifier, item, key, names, json.loads(payload))
        except (zlib.error, ValueError) as error:
            raise RunStateError(f"{self._path} is damaged ({error}); build the index again") from error
