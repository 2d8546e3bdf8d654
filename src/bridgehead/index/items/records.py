"""Items as records: what a reader gets, how they are packed for SQLite, and the hash of what an item holds.

Not about tables (`schema`) or about who writes them.
"""

import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bridgehead.errors import DataError
from bridgehead.index.side import IndexSide
from bridgehead.texts import normalise

SIDES = ("a", "b")
"""The sides as they are numbered in the tables: a is 0, b is 1."""

ITEM_COLUMNS = "number, side, id, item, key, names, payload, entity, origin"
DAMAGE = (zlib.error, ValueError, TypeError, LookupError, RecursionError)
"""What reading a record ends in that is not what was written."""
_PLAIN_BELOW = 160
_as_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
_as_sorted_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True).encode


@dataclass(frozen=True)
class Item:
    """An item as stored.

    `side`: "a" or "b". `number`: its name in this index, an int64 that no other item has or ever gets. `id`: the
    user's. `item`: the raw value; `key`: exact key (InChIKey) or None; `names`: the main one first; `payload`: further
    fields. `entity`: items of an equal one are the same thing, None where nothing is known. `origin`: who put it there,
    "run" or "sync".
    """

    side: str
    number: int
    id: str
    item: str
    key: str | None = None
    names: tuple[str, ...] = ()
    payload: Mapping[str, Any] = field(default_factory=dict)
    entity: str | None = None
    origin: str = "run"


@dataclass(frozen=True)
class WordHit:
    """An item found by its words, and its BM25 score (above 0, higher is better; comparable within one query only)."""

    number: int
    score: float


@dataclass(frozen=True)
class Content:
    """What an item of a side holds, ready to be stored; `names` and `payload` as JSON, `hash` of all of it."""

    id: str
    item: str
    key: str | None
    names: str
    payload: str
    entity: str | None
    hash: bytes

    def record(self, number: int, side: str, origin: str) -> tuple[Any, ...]:
        """Return the values of a row of the table `items`."""
        names = pack(self.names) if self.names != "[]" else None
        return (number, SIDES.index(side), self.id, self.item, self.key, names, self.payload, self.entity, origin,
                self.hash)  # fmt: skip


def item_hash(
    item: str,
    names: Sequence[str] = (),
    payload: Mapping[str, Any] | None = None,
    key: str | None = None,
    entity: str | None = None,
) -> bytes:
    """Return the hash (16 bytes) of what an item holds; the order of the payload's fields does not count.

    Two items of one id are the same where it is equal. Raises `ValueError` or `TypeError` for a payload that JSON
    cannot hold.
    """
    return _hash(
        storable(item),
        _as_json(list(names)),
        _as_sorted_json(dict(payload or {})),
        _storable_or_none(key),
        _storable_or_none(entity),
    )


def _hash(item: str, names: str, payload: str, key: str | None, entity: str | None) -> bytes:
    # JSON holds no NUL, and a list of texts says where each ends.
    text = "\0".join((names, payload, _as_json([item, key, entity])))
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()


def contents(side: IndexSide) -> Iterator[Content]:
    """Yield what each item of `side` holds. Raises `DataError` for a payload that JSON cannot hold."""
    for row, (identifier, item) in enumerate(zip(side.ids, side.items, strict=True)):
        names = list(side.names[row]) if side.names is not None else []
        payload = dict(side.payload[row]) if side.payload is not None else {}
        key = _storable_or_none(side.keys[row] if side.keys is not None else None)
        entity = _storable_or_none(side.entities[row] if side.entities is not None else None)
        try:
            stored = _as_json(payload)
            ordered = _as_sorted_json(payload)
            spoken = _as_json(names)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"the payload of item {identifier} of {side.name} cannot be stored as JSON: {error}"
            ) from error
        plain = storable(item)
        hashed = _hash(plain, spoken, ordered, key, entity)
        yield Content(storable(identifier), plain, key, storable(spoken), storable(stored), entity, hashed)


def item_of(record: Sequence[Any]) -> Item:
    """Return the item of a row of `ITEM_COLUMNS`. Raises one of `DAMAGE` for a damaged one."""
    number, side, identifier, item, key, names, payload, entity, origin = record[:9]
    shown = json.loads(unpack(names)) if names is not None else []
    fields = json.loads(payload)
    texts = [identifier, item, origin, *(value for value in (key, entity) if value is not None), *shown]
    if not isinstance(shown, list) or not isinstance(fields, dict) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"item {number} holds a value of another kind than was written")
    return Item(SIDES[side], number, identifier, item, key, tuple(shown), fields, entity, origin)


def name_records(number: int, names: Sequence[str]) -> list[tuple[int, int, int]]:
    """Return (hash, number, position) of each name of an item, each normalised form once, at its first position."""
    found: dict[int, int] = {}
    for position, name in enumerate(names):
        if form := normalise(name):
            found.setdefault(name_hash(form), position)
    return [(form, number, position) for form, position in found.items()]


def name_hash(form: str) -> int:
    """Return the 64-bit hash of a normalised name, by which it is looked up before it is compared in full."""
    digest = hashlib.blake2b(form.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def pack(text: str) -> str | bytes:
    """Return `text` as it is stored: compressed where that pays."""
    if len(text) < _PLAIN_BELOW:
        return text
    return zlib.compress(text.encode(), 1)


def unpack(stored: str | bytes) -> str:
    """Return what `pack` was given."""
    return stored if isinstance(stored, str) else zlib.decompress(stored).decode()


def storable(text: str) -> str:
    """Return `text` with lone surrogates, which UTF-8 cannot hold, replaced by a question mark."""
    return text.encode("utf-8", "replace").decode()


def _storable_or_none(text: str | None) -> str | None:
    return storable(text) if text else None
