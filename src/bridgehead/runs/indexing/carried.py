"""What came into an index by sync, carried over into the one that takes its place: ids and all they say stay.

This module is not about how items come by sync (`syncing`).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bridgehead.errors import FormatVersionError, InputFileNotFoundError, RunStateError
from bridgehead.index import Item, open_index
from bridgehead.index.layout import INDEX_VERSION, MANIFEST

SYNC = "sync"
_BLOCK = 4096


@dataclass(frozen=True)
class Carried:
    """Items that came by sync, side -> items in order of their numbers, and `notes` on those that cannot stay."""

    items: Mapping[str, list[Item]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def without(self, side: str, taken: set[str], name: str) -> "Carried":
        """Return the same less those of a side whose ids the run itself has now."""
        kept = [item for item in self.items.get(side, []) if item.id not in taken]
        lost = len(self.items.get(side, [])) - len(kept)
        notes = (f"{lost:,} {name} items that came by sync have ids that the run itself has now: its own stand",)
        return Carried({**self.items, side: kept}, self.notes + (notes if lost else ()))


def carried_of(folder: Path) -> Carried:
    """Return what came by sync into the index in `folder`, nothing where there is none.

    An index that is damaged is left behind with a note. Raises `FormatVersionError` for one of a newer release, whose
    items would be lost.
    """
    try:
        opened = open_index(folder)
    except InputFileNotFoundError:
        return Carried()
    except FormatVersionError:
        if _version(folder) > INDEX_VERSION:
            raise
        return Carried()
    except RunStateError as error:
        return Carried(notes=(f"the index before cannot be read, so nothing that came by sync is kept: {error}",))
    with opened, opened.state() as state:
        found = {}
        for side in state.sides:
            numbers = state.numbers(side).tolist()
            blocks = (state.items(side, numbers[at : at + _BLOCK]) for at in range(0, len(numbers), _BLOCK))
            found[side] = [item for block in blocks for item in block if item.origin == SYNC]
    return Carried(found)


def _version(folder: Path) -> int:
    try:
        return int(json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0
