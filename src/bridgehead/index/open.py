"""Opening an index for reading, and keeping up with what is written to it.

A reader looks at the manifest and at the change counter of the item file whenever a state is asked for, which takes
microseconds, and is never held up by a writer. Nothing is written and no write permission is needed; rows and vectors
are mapped, not read. How a query is understood and encoded is not here (`search`).
"""

import os
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bridgehead.errors import BridgeheadError, InputFileNotFoundError, MismatchError, RunStateError
from bridgehead.index.forks import tell_of_forks
from bridgehead.index.items.records import Item, WordHit
from bridgehead.index.layout import MANIFEST, read_manifest
from bridgehead.index.opened import OpenBuild
from bridgehead.index.state import IndexState, SideFacts
from bridgehead.index.structures.stored import StructureBits
from bridgehead.index.vectors import Ranked
from bridgehead.index.where import FieldFacts, Where
from bridgehead.vectors import FloatArray, IntArray

__all__ = ["Index", "IndexState", "SideFacts", "open_index"]

_PAUSE = 1.0
"""Seconds until a manifest is looked at again that could not be followed."""


class Index:
    """An open index over the sides "a" and "b" (or one of them); made by `open_index`, shared by threads.

    `model`: fingerprint of what made the rows. Every method asks the state that is current when it is called; what
    belongs together is asked within one `state()`. New builds of the same model are followed; one of another model
    leaves this index as it is, and `superseded` says so.
    """

    def __init__(self, folder: Path, build: OpenBuild, stamp: object) -> None:
        self.folder = folder
        self._manifest = str(folder / MANIFEST)
        self.model = build.model
        self._build = build
        self._stamp = stamp
        self._superseded = False
        self._not_before = 0.0
        self._lock = threading.Lock()
        tell_of_forks(self)

    def __enter__(self) -> "Index":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the item file; the index cannot be used afterwards."""
        self._build.close()

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the build that is read now."""
        return self._build.fingerprint

    @property
    def superseded(self) -> bool:
        """Whether the folder now holds an index of another model: who has encoders must open both anew."""
        self._follow()
        return self._superseded

    @contextmanager
    def state(self) -> Iterator[IndexState]:
        """Give one committed state, for one thread; it stays as it is while the block runs.

        Raises `RunStateError` (closed or damaged) and `RunBusyError` (a file system without write-ahead logging, and a
        writer that is at it for long).
        """
        self._follow()
        with ExitStack() as stack:
            yield self._entered(stack)

    def _entered(self, stack: ExitStack) -> IndexState:
        while True:
            build = self._build
            try:
                return IndexState(build, *stack.enter_context(build.transaction()))
            except RunStateError:
                # Unless another thread has followed a new build and closed this one meanwhile.
                if build is self._build:
                    raise

    def _follow(self) -> None:
        """Go on to the build that the manifest names now, if that is another one of the same model.

        One thread opens it; others go on with the build before until it is there.
        """
        if _stamp(self._manifest) == self._stamp or time.monotonic() < self._not_before:
            return
        if not self._lock.acquire(blocking=False):
            return
        try:
            self._follow_now(_stamp(self._manifest))
        finally:
            self._lock.release()

    def _follow_now(self, stamp: object) -> None:
        if stamp == self._stamp:
            return
        try:
            build = _followed(self.folder, self._build)
        except (BridgeheadError, OSError):
            # What is there cannot be read; what is open can. It may be better in a while.
            self._not_before = time.monotonic() + _PAUSE
            return
        self._superseded = build is None
        if build is not None and build is not self._build:
            self._build, before = build, self._build
            before.close()
        self._stamp = stamp

    def after_fork(self) -> None:
        """Take a lock of its own in a forked child."""
        self._lock = threading.Lock()

    @property
    def sides(self) -> dict[str, SideFacts]:
        """See `IndexState.sides`."""
        with self.state() as state:
            return state.sides

    def attached(self, name: str) -> Path | None:
        """See `IndexState.attached`."""
        with self.state() as state:
            return state.attached(name)

    def side_named(self, name: str) -> str:
        """See `IndexState.side_named`."""
        with self.state() as state:
            return state.side_named(name)

    def size(self, side: str) -> int:
        """See `IndexState.size`."""
        with self.state() as state:
            return state.size(side)

    def numbers(self, side: str) -> IntArray:
        """See `IndexState.numbers`."""
        with self.state() as state:
            return state.numbers(side)

    def search(
        self, side: str, query_rows: Any, k: int = 10, offset: int = 0, allowed: IntArray | None = None
    ) -> list[Ranked]:
        """See `IndexState.search`."""
        with self.state() as state:
            return state.search(side, query_rows, k, offset, allowed)

    def rank_of(self, side: str, query_row: Any, number: int) -> int:
        """See `IndexState.rank_of`."""
        with self.state() as state:
            return state.rank_of(side, query_row, number)

    def row(self, side: str, number: int) -> FloatArray:
        """See `IndexState.row`."""
        with self.state() as state:
            return state.row(side, number)

    def rows(self, side: str, numbers: Iterable[int]) -> FloatArray:
        """See `IndexState.rows`."""
        with self.state() as state:
            return state.rows(side, numbers)

    def item(self, side: str, number: int) -> Item:
        """See `IndexState.item`."""
        with self.state() as state:
            return state.item(side, number)

    def items(self, side: str, numbers: Iterable[int]) -> list[Item]:
        """See `IndexState.items`."""
        with self.state() as state:
            return state.items(side, numbers)

    def by_id(self, identifier: str) -> list[Item]:
        """See `IndexState.by_id`."""
        with self.state() as state:
            return state.by_id(identifier)

    def by_name(self, name: str) -> list[Item]:
        """See `IndexState.by_name`."""
        with self.state() as state:
            return state.by_name(name)

    def by_key(self, key: str) -> list[Item]:
        """See `IndexState.by_key`."""
        with self.state() as state:
            return state.by_key(key)

    def words(
        self, query: str, side: str, k: int = 10, offset: int = 0, allowed: IntArray | None = None
    ) -> list[WordHit]:
        """See `IndexState.words`."""
        with self.state() as state:
            return state.words(query, side, k, offset, allowed)

    def word_text(self, number: int) -> str:
        """See `IndexState.word_text`."""
        with self.state() as state:
            return state.word_text(number)

    def matching(self, side: str, where: Where | str) -> IntArray:
        """See `IndexState.matching`."""
        with self.state() as state:
            return state.matching(side, where)

    def fields(self, side: str) -> list[FieldFacts]:
        """See `IndexState.fields`."""
        with self.state() as state:
            return state.fields(side)

    def structures(self, side: str) -> StructureBits | None:
        """See `IndexState.structures`."""
        with self.state() as state:
            return state.structures(side)


def open_index(folder: str | Path, expected_fingerprint: str | None = None, *, thorough: bool = False) -> Index:
    """Open the index in `folder` for reading.

    `expected_fingerprint`: of the encoders and heads that queries will go through. `thorough` hashes every file and
    checks all pages of the item file, instead of comparing sizes and samples only.

    Raises `InputFileNotFoundError` (none there), `FormatVersionError`, `MismatchError` (another model made the rows)
    and `RunStateError` (files missing, cut off, damaged, or of different builds).
    """
    target = Path(folder)
    stamp = _stamp(str(target / MANIFEST))
    manifest = read_manifest(target)
    if expected_fingerprint is not None and manifest["model"] != expected_fingerprint:
        raise MismatchError(
            f"the index in {target} was built with another model (fingerprint {str(manifest['model'])[:12]}, expected "
            f"{expected_fingerprint[:12]}): its rows and new queries do not belong together; build the index again"
        )
    try:
        return Index(target, OpenBuild(target / str(manifest["folder"]), manifest, thorough), stamp)
    except (InputFileNotFoundError, RunStateError):
        # A build that ended since the manifest was read has put other files in the place of these.
        if read_manifest(target)["folder"] == manifest["folder"]:
            raise
        return open_index(target, expected_fingerprint, thorough=thorough)
    except (KeyError, TypeError, AttributeError) as error:
        raise RunStateError(f"the manifest of {target} lacks or misstates {error}; build the index again") from error


def _followed(folder: Path, build: OpenBuild) -> OpenBuild | None:
    """Return the build that the manifest names: `build` itself or a new one of its model; None for another model."""
    manifest = read_manifest(folder)
    if manifest["model"] != build.model:
        return None
    if manifest["folder"] == build.folder.name:
        return build
    try:
        return OpenBuild(folder / str(manifest["folder"]), manifest)
    except BridgeheadError:
        if read_manifest(folder)["folder"] == manifest["folder"]:
            raise
        return _followed(folder, build)


def _stamp(manifest: str) -> object:
    """Return what differs after the file `manifest` was written again, None where there is none."""
    try:
        found = os.stat(manifest)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
