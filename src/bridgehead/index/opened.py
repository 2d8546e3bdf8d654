"""One build of an index, open for reading: its vectors, its item file, and the state of both at one change.

Owns how a reader keeps up with what is written to the item file. Which build is the index's own is in `open`; what can
be asked of a state in `state`.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bridgehead.errors import InputFileNotFoundError, RunStateError
from bridgehead.index.forks import tell_of_forks
from bridgehead.index.growth import Growth
from bridgehead.index.items.lookup import ItemLookup
from bridgehead.index.items.readers import Readers
from bridgehead.index.items.records import DAMAGE
from bridgehead.index.layout import STORE_FILE, STRUCTURE_FILE, check_files
from bridgehead.index.vectors import SideView, VectorFacts, open_base
from bridgehead.index.vectors.base import mapped
from bridgehead.vectors import IntArray

_MOST_REMEMBERED = 64 << 20


@dataclass(frozen=True)
class Tracked:
    """The vectors of all sides at one change of the item file."""

    change: int
    growth: Mapping[str, Growth]
    views: Mapping[str, SideView]


@dataclass(frozen=True)
class SideHead:
    """What the manifest says of a side: shown `name`, `kind` of its items, `vectors` of the build."""

    name: str
    kind: str
    vectors: VectorFacts


class OpenBuild:
    """The build in `folder`, which `manifest` describes; threads may share it.

    Raises `InputFileNotFoundError` and `RunStateError` (files missing, cut off, damaged, or of different builds).
    """

    def __init__(self, folder: Path, manifest: Mapping[str, Any], thorough: bool = False) -> None:
        if not folder.is_dir():
            raise InputFileNotFoundError(f"{folder} is not there, but the manifest names it; build the index again")
        self.folder = folder
        self.model = str(manifest["model"])
        self.fingerprint = str(manifest["fingerprint"])
        self.heads = {str(side): _head(content) for side, content in manifest["sides"].items()}
        check_files(folder, manifest["files"], thorough)
        self.bases = {side: open_base(folder, side, head.vectors) for side, head in self.heads.items()}
        # Mapped now, not at the first question: the folder may be gone by then.
        names = {side: STRUCTURE_FILE.format(side=side) for side in self.heads}
        self.structures = {
            side: mapped(folder / name, np.uint8, 2) for side, name in names.items() if name in manifest["files"]
        }
        self._store = folder / STORE_FILE
        self.readers = Readers(self._store)
        self._lock = threading.Lock()
        self._tracked: Tracked | None = None
        tell_of_forks(self)
        self._remembered: OrderedDict[object, IntArray] = OrderedDict()
        try:
            with self.readers.transaction() as connection:
                self._check(ItemLookup(connection, self._store), thorough)
        except BaseException:
            self.readers.close()
            raise

    def _check(self, items: ItemLookup, thorough: bool) -> None:
        again = "build the index again"
        meta = items.meta()
        if meta.get("fingerprint") != self.fingerprint:
            raise RunStateError(f"{items.path} belongs to another build than the vectors beside it; {again}")
        for side, head in self.heads.items():
            count, rows = meta.get(f"base:{side}"), head.vectors.n_rows
            if count != rows:
                raise RunStateError(f"{items.path} holds {count} items of side {side}, vectors {rows}; {again}")
        if thorough and (found := items.rows("PRAGMA quick_check(1)")) != [("ok",)]:
            raise RunStateError(f"{items.path} is damaged ({found[0][0]}); {again}")

    def close(self) -> None:
        """Close the item file as soon as nobody reads it any more."""
        self.readers.close()

    @contextmanager
    def transaction(self) -> Iterator[tuple[ItemLookup, Tracked]]:
        """Give items and vectors of one committed state."""
        while True:
            connection, change = self.readers.begin()
            try:
                items = ItemLookup(connection, self._store)
                if (tracked := self._at(items, change)) is not None:
                    yield items, tracked
                    return
            finally:
                self.readers.end(connection)

    def _at(self, items: ItemLookup, change: int) -> Tracked | None:
        """Return the vectors as of `change`, which `items` sees; None when another thread has gone further."""
        known = self._tracked
        if known is not None and known.change == change:
            return known
        with self._lock:
            known = self._tracked
            if known is not None and known.change >= change:
                return known if known.change == change else None
            try:
                self._tracked = self._brought_up(items, known, change)
            except DAMAGE as error:
                raise items.damaged(f"what it says of its state is not what was written: {error!s:.80}") from error
            return self._tracked

    def _brought_up(self, items: ItemLookup, known: Tracked | None, change: int) -> Tracked:
        meta = items.meta()
        growth, views = {}, {}
        for side, base in self.bases.items():
            before = known.growth[side] if known else Growth.none(self.heads[side].vectors.dim)
            since = known.change if known else -1
            now = before.brought_up(items, side, since, int(meta["next_number"]))
            views[side] = SideView(base, now.numbers, now.rows, now.removed)
            growth[side] = now
            size, rows = meta[f"size:{side}"], len(views[side])
            if size != rows:
                raise RunStateError(
                    f"{items.path} holds {size} items of side {side}, and {rows} have a row; build the index again"
                )
        return Tracked(change, growth, views)

    def remembered(self, key: object) -> IntArray | None:
        """Return the numbers that were remembered for `key`, None where there are none (any more)."""
        with self._lock:
            found = self._remembered.get(key)
            if found is not None:
                self._remembered.move_to_end(key)
            return found

    def remember(self, key: object, numbers: IntArray) -> None:
        """Keep `numbers` for `key`, and forget what was not asked for longest when that takes too much memory."""
        with self._lock:
            self._remembered[key] = numbers
            while sum(kept.nbytes for kept in self._remembered.values()) > _MOST_REMEMBERED:
                self._remembered.popitem(last=False)

    def after_fork(self) -> None:
        """Take a lock of its own in a forked child."""
        self._lock = threading.Lock()


def _head(content: Mapping[str, Any]) -> SideHead:
    return SideHead(str(content["name"]), str(content["kind"]), VectorFacts(**content["vectors"]))
