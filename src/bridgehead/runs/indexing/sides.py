"""What an index is told of an item: its id, entity, names, payload; and a side of an index made of such items.

This module is not about which items there are (`entries`, `carried`) or about their rows (`rows`).
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from bridgehead.encode import Encoder
from bridgehead.index import IndexSide
from bridgehead.runs.config import RunConfig
from bridgehead.runs.encoded import shown_name
from bridgehead.search import item_kind
from bridgehead.texts import normalise
from bridgehead.vectors import FloatArray


class Indexed(Protocol):
    """An item as an index is told of it: an entry, a record of a file, or an item of another index."""

    @property
    def id(self) -> str:
        """The id under which it is found."""

    @property
    def item(self) -> str:
        """The raw value."""

    @property
    def key(self) -> str | None:
        """The exact key (InChIKey)."""

    @property
    def entity(self) -> str | None:
        """Of what it is a view."""

    @property
    def names(self) -> Iterable[str]:
        """Names, the main one first."""

    @property
    def payload(self) -> Mapping[str, Any]:
        """What else is known of it."""


@dataclass
class Entry:
    """One item of the run on its way into an index: what all records and pools that hold it say of it.

    `members` are the numbers in the table of the items that it stands for, none for an item of a pool.
    """

    id: str
    item: str
    key: str | None
    entity: str | None = None
    names: dict[str, None] = field(default_factory=dict)
    payload: dict[str, Any] = field(default_factory=dict)
    members: list[int] = field(default_factory=list)


def text_entity(text: str) -> str:
    """Return the entity of a text: the same for all that are equal once normalised."""
    return "text-" + hashlib.blake2b(normalise(text).encode("utf-8", "replace"), digest_size=8).hexdigest()


def index_id(config: RunConfig, side: str, id_: str) -> str:
    """Return the id under which an index holds what a file calls `id_`, so that an id names one thing on both sides.

    Records of a file give their ids to items of both sides; on side b the name of its column stands before it.
    """
    prefix = f"{config.pairs.b}:"
    return id_ if side == "a" or id_.startswith(prefix) else prefix + id_


def file_id(config: RunConfig, side: str, id_: str) -> str:
    """Return what files call the item that an index holds under `id_`: encoders that look rows up know it so."""
    return id_ if side == "a" else id_.removeprefix(f"{config.pairs.b}:")


def index_side(
    config: RunConfig,
    side: str,
    encoder: Encoder,
    rows: FloatArray,
    items: Sequence[Indexed],
    origin: str | Sequence[str] = "run",
) -> IndexSide:
    """Return a side of an index: `items` and their `rows` (n, d). `origin`: who puts them there, "run" or "sync", for
    all or for each."""
    return IndexSide(
        name=shown_name(config, side),
        rows=rows,
        items=[item.item for item in items],
        ids=[item.id for item in items],
        kind=item_kind(encoder),
        names=[list(item.names) for item in items],
        payload=[item.payload for item in items],
        keys=[item.key for item in items],
        entities=[item.entity for item in items],
        origin=origin,
        word_columns=(config.pairs.b,) if side == "a" else (),
    )
