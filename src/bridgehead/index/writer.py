"""Changing an index while others search it: adding, replacing and deleting items, one writer at a time.

Every call is one transaction of the item file, durable when it returns; a process that ends at any instant leaves what
was acknowledged and nothing else. Vectors of the build are not touched: readers search them together with the rows
added since, until `compact` writes a new build. Not about encoding, or about which items there should be.
"""

import os
import shutil
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from bridgehead.errors import ArgumentError, MismatchError, RunStateError, ShapeError
from bridgehead.files import folder_lock
from bridgehead.index.build import IndexFacts, write_manifest
from bridgehead.index.compaction import COMPACTING, write_compacted
from bridgehead.index.forks import never_close, tell_of_forks
from bridgehead.index.items.changes import ItemChanges, Written
from bridgehead.index.items.content import words_probe
from bridgehead.index.items.journal import close_written, open_for_writing
from bridgehead.index.layout import STORE_FILE, STRUCTURE_FILE, read_manifest
from bridgehead.index.side import IndexSide
from bridgehead.index.snapshot import snapshot_to
from bridgehead.index.structures import structure_bits
from bridgehead.index.vectors import VectorPlan

__all__ = ["IndexWriter", "Written"]

_UNFINISHED = "unfinished.json"
"""Beside what `build_index` has written when it was killed, and will go on with."""


class IndexWriter:
    """The one writer of the index in `folder`, within a `with` block; for one thread.

    Entering raises `InputFileNotFoundError` (no index there), `RunBusyError` (another process writes), `MismatchError`
    (words were indexed by another release) and `RunStateError` (damaged, or not writable).
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._stack = ExitStack()

    def __enter__(self) -> "IndexWriter":
        read_manifest(self.folder)
        with ExitStack() as stack:
            stack.enter_context(folder_lock(self.folder))
            self._open()
            self._remove_leftovers()
            self._stack = stack.pop_all()
        tell_of_forks(self)
        return self

    def __exit__(self, *exception: object) -> None:
        with self._stack:
            self._close()

    def _open(self) -> None:
        store = self.folder / str(read_manifest(self.folder)["folder"]) / STORE_FILE
        if not store.is_file():
            raise RunStateError(f"{store} is missing; build the index again")
        self._use(open_for_writing(store))
        try:
            self._check(store)
        except BaseException:
            self._close()
            raise

    def _use(self, connection: sqlite3.Connection) -> None:
        """Go on with the build that the manifest names, and a connection to its item file."""
        self.manifest = read_manifest(self.folder)
        self.build = self.folder / str(self.manifest["folder"])
        self.connection: sqlite3.Connection | None = connection
        self._changes = ItemChanges(connection, self.build / STORE_FILE)

    def _check(self, store: Path) -> None:
        meta = self._changes.meta()
        if meta.get("fingerprint") != self.manifest["fingerprint"]:
            raise RunStateError(f"{store} belongs to another build than the vectors beside it; build the index again")
        if meta.get("words") != words_probe():
            raise MismatchError(
                f"the words of {store} were indexed by another release, which cuts text in another way; build the "
                "index again before it is changed"
            )

    def _remove_leftovers(self) -> None:
        """Remove builds that are no more, or were not put in place when a process ended; open readers keep theirs."""
        current = f"{COMPACTING}{self.build.name}-"
        left = [path for path in self.folder.glob(f"{COMPACTING}*") if not path.name.startswith(current)]
        left += [path for path in self.folder.glob("build-*") if path != self.build]
        for path in left:
            if not (path / _UNFINISHED).is_file():
                shutil.rmtree(path, ignore_errors=True)

    def _close(self) -> None:
        if self.connection is not None:
            close_written(self.connection, self.build / STORE_FILE)
            self.connection = None

    def put(self, side: str, items: IndexSide) -> Written:
        """Add items to a side, or put them in the place of those of the same id; return how many.

        An item that holds the same as the one of its id (item, names, payload, key, entity) is left as it is, whatever
        its row. All of a call is there when it returns, or nothing is. Raises `ArgumentError` (no such side),
        `ShapeError`, `DuplicateIdError`, `NonFiniteRowsError`, `DataError` (payload), `OSError` (disk full) and
        `RunStateError` (damaged).
        """
        letter = self._letter(side)
        rows = items.checked_rows(letter).astype(np.float16)
        dim = int(self.manifest["sides"][letter]["vectors"]["dim"])
        if rows.shape[1] != dim:
            raise ShapeError(f"rows of side {letter} have {rows.shape[1]} columns; the index has {dim}")
        structured = (self.build / STRUCTURE_FILE.format(side=letter)).is_file()
        return self._changed.put(letter, items, rows, structure_bits if structured else None)

    def delete(self, side: str, ids: Sequence[str]) -> int:
        """Delete the items of `ids` from a side; return how many were there. Ids that are not there are passed over.

        Raises `ArgumentError` (no such side, or a text for `ids`), `OSError` and `RunStateError`.
        """
        if isinstance(ids, str):
            raise ArgumentError(f"ids is the text {ids[:40]!r}; expected a list of ids")
        return self._changed.delete(self._letter(side), list(ids))

    def hashes(self, side: str, origin: str | None = None) -> dict[str, bytes]:
        """Return id -> content hash (see `item_hash`) of the items of a side, of one `origin` where it is given."""
        return self._changed.hashes(self._letter(side), origin)

    def growth(self, side: str) -> float:
        """Return the rows added to or removed from a side since its vectors were built, as a share of theirs.

        A replaced item counts twice, since it is both. Infinity where the build has no row and there are some now.
        """
        letter = self._letter(side)
        meta = self._changed.meta()
        base, added = int(meta[f"base:{letter}"]), int(meta[f"added:{letter}"])
        removed = base + added - int(meta[f"size:{letter}"])
        if not base:
            return float("inf") if added else 0.0
        return (added + removed) / base

    def compact(
        self,
        samples: Mapping[str, Any] | None = None,
        plan: VectorPlan | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> IndexFacts:
        """Write a new build with all that was added and without what was removed, and put it in place in one step.

        Numbers stay. Recall is measured again: `samples` are for each side (m, d) rows of the other modality (default:
        items of the other side), `plan` as in `build_index`. Readers go on in the old build until the new one is
        there. Raises `ArgumentError` (a recall floor or memory that cannot be kept), `OSError` (disk full) and
        `RunStateError`; the index is as before then.
        """
        connection, say = self._connected, progress or (lambda line: None)
        try:
            with self._changes.errors():
                done = write_compacted(self.folder, self.manifest, connection, samples, plan or VectorPlan(), say)
        except Exception:
            # What is gone on with after a kill only fills the disk after a failure.
            for part in self.folder.glob(f"{COMPACTING}*"):
                shutil.rmtree(part, ignore_errors=True)
            raise
        final = self.folder / f"build-{done.folder.name.rpartition('-')[2]}"
        shutil.rmtree(final, ignore_errors=True)
        os.rename(done.folder, final)
        # With its journal as a writer wants it, before readers come.
        fresh = open_for_writing(final / STORE_FILE)
        try:
            write_manifest(final, str(self.manifest["model"]), done.fingerprint, None, done.sides)
        except BaseException:
            fresh.close()
            raise
        connection.close()
        self._use(fresh)
        self._remove_leftovers()
        names = {side: str(content["name"]) for side, content in done.sides.items()}
        return IndexFacts(done.fingerprint, names, dict(done.facts))

    def snapshot(self, target: str | Path) -> Path:
        """Write this index as it is now into the folder `target`, which opens by itself; return that folder.

        Files that never change are linked where the file system can. Raises `ArgumentError` (something is there),
        `OSError` and `RunStateError`.
        """
        with self._changes.errors():
            return snapshot_to(Path(target), self.build, self._connected, self.manifest)

    @property
    def _connected(self) -> sqlite3.Connection:
        if self.connection is None:
            raise RunStateError("this writer is closed; use it within its `with` block")
        return self.connection

    @property
    def _changed(self) -> ItemChanges:
        assert self._connected is not None
        return self._changes

    def _letter(self, side: str) -> str:
        sides: Mapping[str, Any] = self.manifest["sides"]
        for letter, content in sides.items():
            if side in (content["name"], letter):
                return str(letter)
        known = ", ".join(f"{content['name']!r} ({letter})" for letter, content in sides.items())
        raise ArgumentError(f"there is no side {side!r} in this index; expected one of: {known}")

    def after_fork(self) -> None:
        """Drop the connection in a forked child without closing it: it is the parent's."""
        if self.connection is not None:
            never_close(self.connection)
            self.connection = None
