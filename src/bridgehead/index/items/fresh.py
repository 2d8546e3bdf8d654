"""Writing the item file of a fresh build: all items at once, numbered from 0 in the order given.

Not about changes to a file that is there (`changes`).
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from bridgehead.index.items.changes import INSERT_ITEM
from bridgehead.index.items.content import words_probe
from bridgehead.index.items.records import SIDES, Content, contents, name_records, pack
from bridgehead.index.items.schema import KEYS, TABLES
from bridgehead.index.side import IndexSide
from bridgehead.index.where import FIELDS_SCHEMA, write_fields
from bridgehead.index.words import indexed_words

_BLOCK = 20_000


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
    number = first
    for block in _blocks(contents(given)):
        numbers = range(number, number + len(block))
        connection.executemany(
            INSERT_ITEM,
            [content.record(n, side, given.origin_of(n - first)) for n, content in zip(numbers, block, strict=True)],
        )
        payloads = [(n, json.loads(content.payload)) for n, content in zip(numbers, block, strict=True)]
        write_fields(connection, SIDES.index(side), payloads)
        texts = [(n, words) for n in numbers if (words := indexed_words(given.searchable_text(n - first)))]
        connection.executemany(f"INSERT INTO words_{side} (rowid, text) VALUES (?, ?)", texts)
        connection.executemany("INSERT INTO word_texts VALUES (?, ?)", [(n, pack(words)) for n, words in texts])
        for n in numbers if given.names is not None else ():
            named += name_records(n, given.names[n - first])  # type: ignore[index]
        number += len(block)
    return named


def _blocks(found: Iterator[Content]) -> Iterator[list[Content]]:
    while block := list(islice(found, _BLOCK)):
        yield block
