"""How the items of a file stand to an index: new, changed, unchanged, or the run's own, which a file cannot change.

What is unchanged is known by the content hash of the index and is never encoded. This module is not about writing
(`applying`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bridgehead.errors import StructureError
from bridgehead.index import IndexState, Item, item_hash
from bridgehead.molecules import Identity, identify, identify_all
from bridgehead.runs.indexing.carried import SYNC
from bridgehead.runs.indexing.known_ids import KnownIds
from bridgehead.runs.indexing.sides import text_entity
from bridgehead.runs.syncing.reading import FailedRecord, FileItem, FileItems

_BLOCK = 2000
_BULK_SHARE = 3


@dataclass(frozen=True)
class Coming:
    """An item that is to be written, with its identity; `names` and `payload` as in the file."""

    id: str
    item: str
    key: str | None
    entity: str | None
    names: tuple[str, ...]
    payload: Mapping[str, Any]
    record: int
    is_new: bool


@dataclass(frozen=True, eq=False)
class Standing:
    """The items of a file against one state of an index.

    `coming` are those to be written, `unchanged` and `own` counts (of the run itself), `missing` the ids of items that
    came by sync and are not in the file, `failed` what cannot be written. `same_as` maps the id of a coming item to
    that of another item of the same exact key.
    """

    coming: list[Coming]
    unchanged: int
    own: int
    missing: list[str]
    failed: list[FailedRecord]
    same_as: dict[str, str]


class Identities:
    """Identities of molecules, each found once however many indexes ask; `progress(done, total)` is called then."""

    def __init__(self, progress: Callable[[int, int], None] | None = None) -> None:
        self._progress = progress
        self._known: dict[str, Identity | str] = {}

    def of(self, texts: Sequence[str]) -> list[Identity | str]:
        """Return for each SMILES its identity, or why it cannot be read."""
        asked = [text for text in dict.fromkeys(texts) if text not in self._known]
        found, failures = identify_all(asked, progress=self._progress)
        reasons = dict(failures)
        self._known |= {
            text: reasons[at] if identity is None else identity
            for at, (text, identity) in enumerate(zip(asked, found, strict=True))
        }
        return [self._known[text] for text in texts]


def standing_of(
    state: IndexState,
    side: str,
    kind: str,
    given: FileItems,
    known: KnownIds,
    came_by_sync: Iterable[str],
    identities: Identities,
) -> Standing:
    """Compare the items of a file with one state of an index.

    `kind`: what items of the side are ("molecule", "text", "rows"). `known`: which record ids stand for items of
    the run under other ids. `came_by_sync`: ids of the items of the side that came by sync. `identities`: of
    molecules, kept from index to index.
    """
    held = _held(state, side, given.items)
    fresh: list[FileItem] = []
    failed = list(given.failed)
    unchanged = own = 0
    for one in given.items:
        there = held.get(one.id)
        if there is not None and there.origin == SYNC:
            if _holds(there, one):
                unchanged += 1
            else:
                fresh.append(one)
        elif _is_own(state, side, kind, one, there, known):
            own += 1
        elif there is not None:
            failed.append(
                FailedRecord(
                    one.record, one.id, "the id belongs to the run, whose pairs say another item: change those"
                )
            )
        else:
            fresh.append(one)
    coming, unread = _identified(fresh, kind, held, identities)
    missing = sorted(set(came_by_sync) - given.ids)
    return Standing(coming, unchanged, own, missing, failed + unread, _same_as(state, side, coming))


def _held(state: IndexState, side: str, items: Sequence[FileItem]) -> dict[str, Item]:
    """Return id -> item of the index for the ids of the file that it has."""
    if len(items) * _BULK_SHARE < state.size(side):
        found = [item for one in items for item in state.by_id(one.id) if item.side == side]
        return {item.id: item for item in found}
    wanted = {one.id for one in items}
    return {item.id: item for item in all_items(state, side) if item.id in wanted}


def all_items(state: IndexState, side: str) -> Iterator[Item]:
    """Yield the items of a side in the order of their numbers."""
    numbers = state.numbers(side).tolist()
    for start in range(0, len(numbers), _BLOCK):
        yield from state.items(side, numbers[start : start + _BLOCK])


def _holds(there: Item, one: FileItem) -> bool:
    """Say whether an index holds what the file says: key and entity follow from the item, so they need no parsing."""
    if there.item != one.item:
        return False
    entity = one.entity or there.entity
    stored = item_hash(there.item, there.names, there.payload, there.key, there.entity)
    return stored == item_hash(one.item, one.names, one.payload, there.key, entity)


def _is_own(state: IndexState, side: str, kind: str, one: FileItem, there: Item | None, known: KnownIds) -> bool:
    """Say whether an item of the file is one of the run's own, under its id or merged into another."""
    if there is not None and _is_same(kind, there, one.item):
        return True
    merged = known.get(side, {}).get(one.record_id, ())
    others = [item for id_ in merged for item in state.by_id(id_) if item.side == side]
    return any(_is_same(kind, item, one.item) for item in others)


def _is_same(kind: str, there: Item, text: str) -> bool:
    if there.item == text:
        return True
    if kind != "molecule" or there.key is None:
        return False
    try:
        return identify(text).exact == there.key
    except StructureError:
        return False


def _identified(
    fresh: Sequence[FileItem], kind: str, held: Mapping[str, Item], identities: Identities
) -> tuple[list[Coming], list[FailedRecord]]:
    """Return the items to write with key and entity, and the molecules that cannot be read."""
    known = identities.of([one.item for one in fresh]) if kind == "molecule" else [None] * len(fresh)
    coming: list[Coming] = []
    unread: list[FailedRecord] = []
    for one, identity in zip(fresh, known, strict=True):
        if isinstance(identity, str):
            unread.append(FailedRecord(one.record, one.id, identity))
            continue
        entity = one.entity or (identity.skeleton if identity else text_entity(one.item) if kind == "text" else None)
        key = identity.exact if identity else None
        coming.append(Coming(one.id, one.item, key, entity, one.names, one.payload, one.record, one.id not in held))
    return coming, unread


def _same_as(state: IndexState, side: str, coming: Sequence[Coming]) -> dict[str, str]:
    """Return id -> id of another item of the same exact key, in the index or before it in the file."""
    found: dict[str, str] = {}
    first: dict[str, str] = {}
    for one in coming:
        if one.key is None:
            continue
        others = [item.id for item in state.by_key(one.key) if item.side == side and item.id != one.id]
        if other := next(iter(others), first.get(one.key)):
            found[one.id] = other
        first.setdefault(one.key, one.id)
    return found
