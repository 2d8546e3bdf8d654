"""The tables of an item file and the connections to it.

`items`, `names`, `words_a`/`words_b` (FTS5 without a copy of the text) with `word_texts` (the words as they were
indexed, so that they can be taken out exactly), `fields` (payload, for filters); `added` holds rows that no vector file
holds yet, `removed` the numbers that are no more. `meta` has the state: `fingerprint` of the build, `change` (one up
with each write), `next_number`, and for each side `base` (rows of the vector files), `size` (items that are there) and
`added` (those of them that no vector file holds). What is written and read is not here.
"""

import sqlite3
from pathlib import Path
from urllib.parse import quote

_HEAD = 100
TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE items (number INTEGER PRIMARY KEY, side INTEGER NOT NULL, id TEXT NOT NULL, item TEXT NOT NULL, key TEXT,
    names BLOB, payload TEXT NOT NULL, entity TEXT, origin TEXT NOT NULL, hash BLOB NOT NULL);
CREATE TABLE names (hash INTEGER NOT NULL, number INTEGER NOT NULL, position INTEGER NOT NULL,
    PRIMARY KEY (hash, number)) WITHOUT ROWID;
CREATE VIRTUAL TABLE words_a USING fts5(text, content='', tokenize="unicode61 remove_diacritics 2");
CREATE VIRTUAL TABLE words_b USING fts5(text, content='', tokenize="unicode61 remove_diacritics 2");
CREATE TABLE word_texts (number INTEGER PRIMARY KEY, text BLOB NOT NULL);
CREATE TABLE added (number INTEGER PRIMARY KEY, side INTEGER NOT NULL, row BLOB NOT NULL, structure BLOB);
CREATE TABLE removed (number INTEGER PRIMARY KEY, side INTEGER NOT NULL, change INTEGER NOT NULL);
CREATE INDEX removed_by_change ON removed (change);
"""
KEYS = (
    "CREATE UNIQUE INDEX items_by_id ON items (id, side)",
    "CREATE INDEX items_by_key ON items (key) WHERE key IS NOT NULL",
)
"""Made after a bulk of items was written, which is quicker."""


def connect(path: Path, mode: str, timeout: float = 30.0) -> sqlite3.Connection:
    """Return a connection to the item file `path`, which must exist; `mode` is "ro", "rw" or "ro&immutable=1".

    It begins no transaction by itself, may travel between threads, and waits `timeout` seconds for a lock.
    """
    return sqlite3.connect(
        address(path, f"mode={mode}"), uri=True, isolation_level=None, check_same_thread=False, timeout=timeout
    )


def address(path: Path, options: str) -> str:
    """Return the URI of an item file."""
    return f"file:{quote(str(path.resolve()))}?{options}"


def is_whole(path: Path) -> bool:
    """Return whether an item file is as long as its first page says, as far as that can be told while it is written.

    SQLite sees a page that is missing when it needs it; this sees a file that was cut off before.
    """
    if any(path.with_name(path.name + beside).is_file() for beside in ("-wal", "-journal")):
        return True
    with open(path, "rb") as file:
        head = file.read(_HEAD)
    if len(head) < _HEAD or head[24:28] != head[92:96]:
        return True
    page = int.from_bytes(head[16:18], "big")
    expected = (page if page > 1 else 65_536) * int.from_bytes(head[28:32], "big")
    return path.stat().st_size >= expected
