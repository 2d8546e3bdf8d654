"""What an item file holds, as one hash; and copying a file that holds the same instead of writing it again.

A run has two indexes over the same items (evaluated and refit heads) and is often indexed again after training: only
the rows differ then, while writing a million names takes longer than everything else. Not about vectors.
"""

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import bridgehead
from bridgehead.errors import BridgeheadError
from bridgehead.files import hash_file
from bridgehead.index.layout import STORE_FILE, read_manifest
from bridgehead.index.side import IndexSide
from bridgehead.index.words import indexed_words

# A change of the normaliser or of the splitting into words changes this, so that no file of the old form is copied.
_PROBE = "β‐Blocker, 2′,3′-cAMP; 5-HT1A COX-2 N,N-Dimethyl ΑΒΓ .alpha.-x NOT * é ß ﬁ 肝炎"


def words_probe() -> str:
    """Return what normaliser and splitting of this release make of a few hard words; stored with the file."""
    return indexed_words(_PROBE)


def content_hash(sides: Mapping[str, IndexSide]) -> str:
    """Return the hash (hex) of all that an item file is made of: items, ids, names, keys, payload, words, release."""
    digest = hashlib.sha256(f"{bridgehead.__version__}\n{words_probe()}".encode())
    for side, content in sides.items():
        head = [side, content.name, content.kind, list(content.word_columns), len(content.ids)]
        digest.update(json.dumps(head).encode())
        for row in range(len(content.ids)):
            record = [content.ids[row], content.items[row], content.origin_of(row)]
            further = [content.names, content.payload, content.keys, content.entities]
            digest.update(json.dumps([record, [part[row] if part is not None else None for part in further]],
                                     default=_plain).encode())  # fmt: skip
    return digest.hexdigest()


def _plain(value: object) -> object:
    """Let names be any sequence and payload any mapping; what JSON cannot hold is refused when it is written."""
    return dict(value) if isinstance(value, Mapping) else repr(value)


def copy_store(index: Path, path: Path, content: str, fingerprint: str) -> bool:
    """Copy the item file of the index in folder `index` to `path` when it holds `content`, as part of another build.

    Returns whether it did; an index that is not there, damaged or of another release is a no.
    """
    try:
        manifest = read_manifest(index)
        build = index / str(manifest["folder"])
        if manifest.get("content") != content:
            return False
        # As it was written: one that was changed since has another hash, and its content is another.
        if hash_file(build / STORE_FILE) != manifest["store"]:
            return False
        shutil.copyfile(build / STORE_FILE, path)
    except (BridgeheadError, OSError, KeyError, TypeError):
        path.unlink(missing_ok=True)
        return False
    connection = sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=rw", uri=True)
    try:
        with connection:
            connection.execute("UPDATE meta SET value = ? WHERE name = 'fingerprint'", (fingerprint,))
    finally:
        connection.close()
    return True
