"""Compaction: a new build of an index out of its item file, with the rows that were added and without those removed.

Numbers stay as they are, recall is measured again, and readers go on to the new build when its manifest is in place;
until then the old one serves. A compaction that is killed leaves the index as it was, and the next one goes on with the
files that it had finished. Not about who holds the writer's lock (`writer`).
"""

import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bridgehead.files import disk_errors, hash_json, sync_folder
from bridgehead.index.items.records import SIDES
from bridgehead.index.layout import ATTACHED_FOLDER, STORE_FILE, STRUCTURE_FILE, VECTOR_FILE, sync_file
from bridgehead.index.snapshot import copy_items, link_files
from bridgehead.index.structures.bits import BYTES
from bridgehead.index.vectors import BaseVectors, VectorFacts, VectorPlan, open_base
from bridgehead.index.vectors.base import mapped
from bridgehead.index.vectors.tuning import OTHER_SIDE
from bridgehead.index.vectors.writing import tidy_side, write_side
from bridgehead.vectors import IntArray

COMPACTING = "compacting-"
_SAMPLE = 1000
_BLOCK = 8192
Progress = Callable[[str], None]


class LiveRows:
    """The rows (n, d) of a side that are there, as a `RowSource`: of the build, then those added since.

    `numbers`: their numbers (n,), ascending.
    """

    def __init__(self, base: BaseVectors, connection: sqlite3.Connection, side: str) -> None:
        self._base = base
        self._connection = connection
        self._side = (SIDES.index(side),)
        removed = self._numbers("SELECT number FROM removed WHERE side = ?")
        self.kept: IntArray = np.flatnonzero(~np.isin(base.numbers, removed))
        added = self._numbers("SELECT number FROM added WHERE side = ? ORDER BY number")
        self.numbers: IntArray = np.concatenate([base.numbers[self.kept], added])

    def _numbers(self, statement: str) -> IntArray:
        found = self._connection.execute(statement, self._side).fetchall()
        return np.array(found, dtype=np.int64).reshape(-1)

    @property
    def shape(self) -> tuple[int, int]:
        """Return (n, d)."""
        return len(self.numbers), self._base.facts.dim

    def blocks(self, size: int) -> Iterator[npt.NDArray[np.float16]]:
        """Yield the rows in order as float16 arrays of at most `size` rows each."""
        for start in range(0, len(self.kept), size):
            yield self._base.rows[self.kept[start : start + size]]
        for some in self._added("row", size):
            yield np.frombuffer(b"".join(some), dtype=np.float16).reshape(len(some), -1)

    def sample(self, count: int) -> npt.NDArray[np.float32]:
        """Return about `count` of the rows, spread over all of them."""
        step = max(1, len(self.numbers) // count)
        parts = [block[::step].astype(np.float32) for block in self.blocks(max(_BLOCK // step, 1) * step)]
        return np.concatenate(parts) if parts else np.zeros((0, self.shape[1]), dtype=np.float32)

    def write_bits(self, source: Path, target: Path) -> None:
        """Write the structure bits (n, 512) of the rows, those of the build taken from the file `source`."""
        given = mapped(source, np.uint8, 2)
        bits = np.lib.format.open_memmap(target, mode="w+", dtype=np.uint8, shape=(len(self.numbers), BYTES))
        place = 0
        for start in range(0, len(self.kept), _BLOCK):
            some = self.kept[start : start + _BLOCK]
            bits[place : place + len(some)] = given[some]
            place += len(some)
        for added in self._added("structure", _BLOCK):
            joined = b"".join(one or bytes(BYTES) for one in added)
            bits[place : place + len(added)] = np.frombuffer(joined, dtype=np.uint8).reshape(-1, BYTES)
            place += len(added)
        bits.flush()
        sync_file(target)

    def _added(self, column: str, size: int) -> Iterator[list[bytes]]:
        cursor = self._connection.execute(f"SELECT {column} FROM added WHERE side = ? ORDER BY number", self._side)
        while some := cursor.fetchmany(size):
            yield [value for (value,) in some]


@dataclass(frozen=True)
class Compacted:
    """A build that is ready: its folder, and what its manifest says."""

    folder: Path
    fingerprint: str
    sides: Mapping[str, Any]
    facts: Mapping[str, VectorFacts]


def write_compacted(
    folder: Path,
    manifest: Mapping[str, Any],
    connection: sqlite3.Connection,
    samples: Mapping[str, Any] | None,
    plan: VectorPlan,
    progress: Progress,
) -> Compacted:
    """Write all files of the build that follows that of `manifest` in the index `folder`.

    `connection`: to its item file, with nobody who writes. `samples`: side -> (m, d) rows of the other modality to
    measure recall with; by default items of the other side.
    """
    build = folder / str(manifest["folder"])
    change = int(connection.execute("SELECT value FROM meta WHERE name = 'change'").fetchone()[0])
    part = _part(folder, f"{COMPACTING}{build.name}-{hash_json([dict(manifest), change, asdict(plan)])[:16]}")
    rows = {
        str(side): LiveRows(open_base(build, side, VectorFacts(**content["vectors"])), connection, side)
        for side, content in manifest["sides"].items()
    }
    facts = {}
    for side, live in rows.items():
        queries = samples.get(side) if samples is not None else _other(rows, side)
        asked = {OTHER_SIDE: queries} if queries is not None and len(queries) else {}
        trained = build / VECTOR_FILE.format(side=side)
        facts[side] = write_side(part, side, live, live.numbers, asked, plan, progress, trained)
        progress(facts[side].line(str(manifest["sides"][side]["name"])))
        source = build / STRUCTURE_FILE.format(side=side)
        if source.is_file():
            live.write_bits(source, part / source.name)
    sides = {
        side: {**manifest["sides"][side], "vectors": asdict(facts[side]), "items": _items_of(manifest, side, change)}
        for side in rows
    }
    fingerprint = hash_json({"model": manifest["model"], "sides": sides})
    shutil.rmtree(part / ATTACHED_FOLDER, ignore_errors=True)
    link_files(build, part, [name for name in manifest["files"] if name.startswith(f"{ATTACHED_FOLDER}/")])
    progress("copying items, names and words")
    _write_items(connection, part / STORE_FILE, fingerprint, {side: len(live.numbers) for side, live in rows.items()})
    for side in rows:
        tidy_side(part, side)
    return Compacted(part, fingerprint, sides, facts)


def _items_of(manifest: Mapping[str, Any], side: str, change: int) -> str:
    """Return what stands for the items of a side: those of the build before, and all changes up to this one."""
    return hash_json([manifest["sides"][side].get("items"), manifest["fingerprint"], change])


def _part(folder: Path, name: str) -> Path:
    """Return the folder to write into: what a killed compaction of the same left, and nothing of others."""
    part = folder / name
    for other in folder.glob(f"{COMPACTING}*"):
        if other != part:
            shutil.rmtree(other, ignore_errors=True)
    part.mkdir(exist_ok=True)
    part.chmod(folder.stat().st_mode & 0o777)
    return part


def _other(rows: Mapping[str, LiveRows], side: str) -> npt.NDArray[np.float32] | None:
    return next((live.sample(_SAMPLE) for other, live in rows.items() if other != side), None)


def _write_items(connection: sqlite3.Connection, path: Path, fingerprint: str, sizes: Mapping[str, int]) -> None:
    for name in (path, Path(f"{path}-journal")):
        name.unlink(missing_ok=True)
    copy_items(connection, path)
    copy = sqlite3.connect(path, isolation_level=None)
    try:
        with disk_errors(path):
            copy.execute("BEGIN")
            copy.execute("DELETE FROM added")
            copy.execute("DELETE FROM removed")
            copy.execute("UPDATE meta SET value = ? WHERE name = 'fingerprint'", (fingerprint,))
            for side, size in sizes.items():
                copy.execute("UPDATE meta SET value = ? WHERE name = ?", (size, f"base:{side}"))
                copy.execute("UPDATE meta SET value = 0 WHERE name = ?", (f"added:{side}",))
            copy.execute("COMMIT")
    finally:
        copy.close()
    sync_folder(path.parent)
