"""Writing the item file of a fresh build: all items at once, numbered from 0 in the order given.

Not about changes to a file that is there (`changes`).
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import overload

from bridgehead.index.items.changes import INSERT_ITEM
from bridgehead.index.items.content import words_probe
from bridgehead.index.items.records import SIDES, contents, name_records, pack
from bridgehead.index.items.schema import KEYS, TABLES
from bridgehead.index.side import IndexSide
from bridgehead.index.where import FIELDS_SCHEMA, write_fields
from bridgehead.index.words import indexed_words
from bridgehead.workers import map_chunks

_BLOCK = 20_000
_MANY = 100_000


def write_store(path: Path, sides: Mapping[str, IndexSide], fingerprint: str) -> None:
    """Write the SQLite file of `sides` under `path`, which must not exist; the file is not synced.

    Items are numbered from 0, one side after the other in the order given. `fingerprint`: of the build. Raises
    `DataError` for a payload that JSON cannot hold.
    """
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -65536;")
        connection.executescript(TABLES + FIELDS_SCHEMA)
        connection.execute("BEGIN")
        first = 0
        named: list[tuple[int, int, int]] = []
        for side, given in sides.items():
            connection.execute(f"INSERT INTO words_{side} (words_{side}, rank) VALUES ('hashsize', 67108864)")
            named += _write_side(connection, side, given, first)
            connection.execute(f"INSERT INTO words_{side} (words_{side}) VALUES ('optimize')")
            size = len(given.ids)
            connection.executemany(
                "INSERT INTO meta VALUES (?, ?)",
                [(f"{what}:{side}", count) for what, count in (("base", size), ("size", size), ("added", 0))],
            )
            first += size
        named.sort()
        connection.executemany("INSERT INTO names VALUES (?, ?, ?)", named)
        state = [("fingerprint", fingerprint), ("change", 0), ("next_number", first), ("words", words_probe())]
        connection.executemany("INSERT INTO meta VALUES (?, ?)", state)
        for statement in KEYS:
            connection.execute(statement)
        connection.execute("COMMIT")
    finally:
        connection.close()


def _write_side(connection: sqlite3.Connection, side: str, given: IndexSide, first: int) -> list[tuple[int, int, int]]:
    named: list[tuple[int, int, int]] = []
    # Cutting text into words takes about as long as all the rest, and another core can do it meanwhile.
    processes = None if len(given.ids) >= _MANY else 1
    words = map_chunks(_words_of, _SearchableTexts(given), chunk=_BLOCK, processes=processes)
    held = contents(given)
    for part, texts in words:
        block = list(islice(held, part.stop - part.start))
        numbers = range(first + part.start, first + part.stop)
        connection.executemany(
            INSERT_ITEM,
            [content.record(n, side, given.origin_of(n - first)) for n, content in zip(numbers, block, strict=True)],
        )
        payloads = [(n, json.loads(content.payload)) for n, content in zip(numbers, block, strict=True)]
        write_fields(connection, SIDES.index(side), payloads)
        spoken = [(n, text) for n, text in zip(numbers, texts, strict=True) if text]
        connection.executemany(f"INSERT INTO words_{side} (rowid, text) VALUES (?, ?)", spoken)
        connection.executemany("INSERT INTO word_texts VALUES (?, ?)", [(n, pack(text)) for n, text in spoken])
        for n in numbers if given.names is not None else ():
            named += name_records(n, given.names[n - first])  # type: ignore[index]
    return named


class _SearchableTexts(Sequence[str]):
    """The searchable texts of a side, made when they are asked for."""

    def __init__(self, given: IndexSide) -> None:
        self._given = given

    def __len__(self) -> int:
        return len(self._given.ids)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self._given.searchable_text(row) for row in range(*place.indices(len(self)))]
        return self._given.searchable_text(place)


def _words_of(texts: Sequence[str]) -> list[str]:
    return [indexed_words(text) for text in texts]
