"""What can be asked of an index at one state: neighbours, items, words, filters and structures that belong together.

Which state that is, and that there is always one, is in `open`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from bridgehead.errors import ArgumentError
from bridgehead.index.items.lookup import ItemLookup
from bridgehead.index.items.records import SIDES, Item, WordHit
from bridgehead.index.layout import ATTACHED_FOLDER
from bridgehead.index.opened import OpenBuild, Tracked
from bridgehead.index.structures.stored import StructureBits
from bridgehead.index.vectors import Ranked, SideView, VectorFacts
from bridgehead.index.where import FieldFacts, Where, field_facts, matching_numbers, parse_where
from bridgehead.vectors import FloatArray, IntArray

Found = TypeVar("Found")


@dataclass(frozen=True)
class SideFacts:
    """What is known of a side: shown `name`, `kind` of its items, `vectors` of the build, `n_items` that are there."""

    name: str
    kind: str
    vectors: VectorFacts
    n_items: int


class IndexState:
    """One committed state of an index, for one thread; made by `Index.state` and valid while its block runs.

    `change` counts the writes of this build. Sides go by their shown name or as "a" and "b".
    """

    def __init__(self, build: OpenBuild, items: ItemLookup, tracked: Tracked) -> None:
        self._build = build
        self._items = items
        self._tracked = tracked
        self.change = tracked.change

    @property
    def sides(self) -> dict[str, SideFacts]:
        """The sides "a" and "b" (or one of them) with their facts."""
        return {
            side: SideFacts(head.name, head.kind, head.vectors, len(self._tracked.views[side]))
            for side, head in self._build.heads.items()
        }

    def side_named(self, name: str) -> str:
        """Return "a" or "b" for a side's shown name or for "a" or "b". Raises `ArgumentError` listing the sides."""
        heads = self._build.heads
        for side, head in heads.items():
            if name == head.name:
                return side
        if name in heads:
            return name
        known = ", ".join(f"{head.name!r} ({side})" for side, head in heads.items())
        raise ArgumentError(f"there is no side {name!r} in this index; expected one of: {known}")

    def size(self, side: str) -> int:
        """Return the number of items of `side`."""
        return len(self._view(side))

    def numbers(self, side: str) -> IntArray:
        """Return the numbers of all items of `side`, ascending."""
        return self._view(side).numbers()

    def search(
        self, side: str, query_rows: Any, k: int = 10, offset: int = 0, allowed: IntArray | None = None
    ) -> list[Ranked]:
        """Return for each query row (m, d) its nearest items of `side`: see `SideView.search`."""
        return self._view(side).search(query_rows, k, offset, allowed)

    def rank_of(self, side: str, query_row: Any, number: int) -> int:
        """Return the exact rank (from 1) of an item of `side` for one query row (d,): see `SideView.rank_of`."""
        return self._view(side).rank_of(query_row, int(number))

    def row(self, side: str, number: int) -> FloatArray:
        """Return the stored row (d,) of an item, float32 of unit length (or zero)."""
        return self._view(side).row(int(number))

    def rows(self, side: str, numbers: Iterable[int]) -> FloatArray:
        """Return the stored rows (m, d) of items, in the order of `numbers`, float32 of unit length (or zero)."""
        return self._view(side).rows(np.fromiter(numbers, dtype=np.int64))

    def item(self, side: str, number: int) -> Item:
        """Return the item of a number. Raises `ArgumentError` when the side has no such item."""
        return self.items(side, [number])[0]

    def items(self, side: str, numbers: Iterable[int]) -> list[Item]:
        """Return the items of `numbers` of one side, in that order."""
        return self._those(self._items.items, side, numbers)

    def texts(self, side: str, numbers: Iterable[int]) -> list[str]:
        """Return the raw items of `numbers` of one side, in that order."""
        return self._those(self._items.texts, side, numbers)

    def by_id(self, identifier: str) -> list[Item]:
        """Return the items whose user's id is exactly `identifier`, at most one a side, a first."""
        return self._items.by_id(identifier)

    def by_name(self, name: str) -> list[Item]:
        """Return the items that carry `name` once normalised; those whose main name it is come first."""
        return self._items.by_name(name)

    def by_key(self, key: str) -> list[Item]:
        """Return the items with this exact key (InChIKey)."""
        return self._items.by_key(key)

    def words(
        self, query: str, side: str, k: int = 10, offset: int = 0, allowed: IntArray | None = None
    ) -> list[WordHit]:
        """Return items of `side` by the words of `query`: see `ItemLookup.words`."""
        return self._items.words(query, self.side_named(side), k, offset, allowed)

    def word_text(self, number: int) -> str:
        """Return the words of an item as they are indexed, "" where it has none."""
        return self._items.word_text(number)

    def matching(self, side: str, where: Where | str) -> IntArray:
        """Return the numbers, ascending, of the items of `side` that the filter is true of: see `matching_numbers`."""
        letter = self.side_named(side)
        parsed = parse_where(where) if isinstance(where, str) else where
        key = (letter, parsed, self.change)
        found = self._build.remembered(key)
        if found is None:
            found = self._items.reading(lambda: matching_numbers(self._items.connection, SIDES.index(letter), parsed))
            found.setflags(write=False)
            self._build.remember(key, found)
        return found

    def fields(self, side: str) -> list[FieldFacts]:
        """Return the payload fields that items of `side` have, by name."""
        number = SIDES.index(self.side_named(side))
        return self._items.reading(lambda: field_facts(self._items.connection, number))

    def structures(self, side: str) -> StructureBits | None:
        """Return the structure bits of `side`, None where it was built without."""
        letter = self.side_named(side)
        if (bits := self._build.structures.get(letter)) is None:
            return None
        growth = self._tracked.growth[letter]
        numbers = self._build.bases[letter].numbers
        return StructureBits(numbers, bits, growth.removed, *self._items.added_structures(letter))

    def attached(self, name: str) -> Path | None:
        """Return the folder of the attachment `name` of this build, or None where it has none."""
        folder = self._build.folder / ATTACHED_FOLDER / name
        return folder if folder.is_dir() else None

    def _those(
        self, look: Callable[[str, Iterable[int]], list[Found]], side: str, numbers: Iterable[int]
    ) -> list[Found]:
        letter, wanted = self.side_named(side), list(numbers)
        try:
            return look(letter, wanted)
        except ArgumentError as error:
            if not np.isin(wanted, self.numbers(letter)).all():
                raise
            raise self._items.damaged(error) from error

    def _view(self, side: str) -> SideView:
        return self._tracked.views[self.side_named(side)]
