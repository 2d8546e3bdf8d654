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


def carried_of(folder: Path, beside: Path | None = None) -> Carried:
    """Return what came by sync into the index in `folder`, or, where that cannot be read, into the one in `beside`.

    A run has two indexes, which a sync brings up alike. One that is damaged is left behind with a note; where there is
    none that can be read, nothing is carried over. Raises `FormatVersionError` for one of a newer release, whose items
    would be lost.
    """
    notes: list[str] = []
    for place in (folder, *([] if beside is None else [beside])):
        try:
            return Carried(_synced(place), tuple(notes))
        except InputFileNotFoundError:
            continue
        except FormatVersionError:
            if _version(place) > INDEX_VERSION:
                raise
        except RunStateError as error:
            notes.append(f"the index before cannot be read: {error}")
    return Carried(notes=(*notes, "nothing that came by sync is kept") if notes else ())


def _synced(folder: Path) -> dict[str, list[Item]]:
    with open_index(folder) as opened, opened.state() as state:
        found = {}
        for side in state.sides:
            numbers = state.numbers(side).tolist()
            blocks = (state.items(side, numbers[at : at + _BLOCK]) for at in range(0, len(numbers), _BLOCK))
            found[side] = [item for block in blocks for item in block if item.origin == SYNC]
    return found


def _version(folder: Path) -> int:
    try:
        return int(json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0
