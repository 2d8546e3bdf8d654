"""Writing an index: vectors, items and a manifest that ties them to the model that made the rows.

The files of a build lie in a folder of their own, `build-*`; the manifest `index.json`, written last and atomically,
names that folder. So a build that is killed at any instant leaves the index as it was, and a reader sees the old index
or the new one. The next build of the same content goes on where the killed one stood. What a build needs of a model is
its fingerprint and its rows; it never sees the model.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bridgehead.errors import ArgumentError, BridgeheadError, ShapeError
from bridgehead.files import (
    disk_errors,
    folder_lock,
    hash_array,
    hash_file,
    hash_json,
    hash_texts,
    read_json,
    write_json,
)
from bridgehead.index.items import content_hash, copy_store, write_store
from bridgehead.index.layout import (
    ATTACHED_FOLDER,
    INDEX_FORMAT,
    INDEX_VERSION,
    MANIFEST,
    STORE_FILE,
    STRUCTURE_FILE,
    described_files,
    read_manifest,
    sync_file,
)
from bridgehead.index.side import IndexSide
from bridgehead.index.structures import BYTES, structure_bits
from bridgehead.index.vectors import VectorFacts, VectorPlan
from bridgehead.index.vectors.row_file import BLOCK, write_blocks
from bridgehead.index.vectors.sources import picked_rows
from bridgehead.index.vectors.tuning import N_QUERIES, OTHER_SIDE
from bridgehead.index.vectors.writing import tidy_side, write_side

Progress = Callable[[str], None]
Attachments = Mapping[str, Callable[[Path], object]]
_UNFINISHED = "unfinished.json"
_UNFINISHED_FORMAT = "bridgehead unfinished build"


@dataclass(frozen=True)
class IndexFacts:
    """What was built: the index's own `fingerprint`, and for each side its shown name and `VectorFacts`."""

    fingerprint: str
    names: Mapping[str, str]
    vectors: Mapping[str, VectorFacts]

    def lines(self) -> list[str]:
        """Return one line a side to print: rows, method, effort and the recall that was measured."""
        return [facts.line(self.names[side]) for side, facts in self.vectors.items()]


def build_index(
    folder: str | Path,
    sides: Mapping[str, IndexSide],
    fingerprint: str,
    sample_queries: Mapping[str, Any] | None = None,
    plan: VectorPlan | None = None,
    progress: Progress | None = None,
    *,
    attachments: Attachments | None = None,
    reuse: str | Path | None = None,
) -> IndexFacts:
    """Build the index of `sides` ("a", "b" or one of them) under `folder`, in the place of one that is there.

    `fingerprint`: of the encoders and heads that made the rows; opening compares it. `sample_queries`: for each side
    (m, d) rows of the other modality, with which recall@10 against exact search is measured (default: rows of the
    other side); rows of the side itself are always asked too. `plan`: kind of index, memory and recall floor.
    `progress` is called with a line for each stage. `attachments`: name -> function that writes what belongs to this
    build (canary rows of the encoders, say) into a folder; `Index.attached` gives that folder. `reuse`: folder of
    another index; where that or the one replaced holds the same items, names and payload, its item file is copied,
    which saves most of the time.

    Items get the numbers 0, 1, ... in the order of `sides` and of their items. A build that was killed or interrupted
    is gone on with when the same content comes again; one that fails is removed. Memory does not grow with the rows
    but for their 1-byte codes (a float32 block, a training sample and a float16 page are held besides).

    Raises `ArgumentError` (sides, memory, or a floor out of reach), `ShapeError`, `DuplicateIdError`,
    `NonFiniteRowsError`, and `RunBusyError` when another process builds there. A side of no rows is fine.
    """
    if not sides or set(sides) - {"a", "b"}:
        raise ArgumentError(f"sides {sorted(sides)}; expected 'a', 'b' or both")
    hashes = {side: given.check(side) for side, given in sides.items()}
    widths = {side: given.source().shape[1] for side, given in sides.items()}
    if len(set(widths.values())) > 1:
        raise ShapeError(f"rows have {widths} columns; both sides must live in one space")
    build = _Build(sides, fingerprint, sample_queries or {}, plan or VectorPlan(), progress or (lambda line: None))
    target = Path(folder)
    with folder_lock(target):
        part = build.folder(target, hashes)
        try:
            facts = build.write(part, [target, *([Path(reuse)] if reuse is not None else [])], attachments or {})
        except Exception:
            # A build goes on after a kill or Ctrl-C; after a failure what is there would only fill the disk.
            shutil.rmtree(part, ignore_errors=True)
            raise
        _remove_others(target, part)
    return facts


class _Build:
    """One build: what goes in, and its steps, each of which is left out where its file is there already."""

    def __init__(self, sides: Mapping[str, IndexSide], model: str, samples: Mapping[str, Any], plan: VectorPlan,
                 say: Progress) -> None:  # fmt: skip
        self.sides, self.model, self.plan, self.say = sides, model, plan, say
        self.content = content_hash(sides)
        self.samples = {side: self._samples(side, samples) for side in sides}

    def _samples(self, side: str, given: Mapping[str, Any]) -> dict[str, Any]:
        if side in given:
            return {OTHER_SIDE: np.asarray(given[side])}
        other = next((content for name, content in self.sides.items() if name != side), None)
        return {OTHER_SIDE: picked_rows(other.source(), N_QUERIES)} if other is not None and len(other.ids) else {}

    def folder(self, target: Path, hashes: Mapping[str, str]) -> Path:
        """Return the folder of the unfinished build of just this content, or a new one; others are removed."""
        samples = {
            side: [hash_array(np.asarray(rows)) for rows in given.values()] for side, given in self.samples.items()
        }
        key = {"model": self.model, "content": self.content, "rows": hashes, "plan": asdict(self.plan)}
        note = {"key": hash_json({**key, "samples": samples})}
        current = _current(target)
        for path in sorted(target.glob("build-*")):
            if path.name != current and _unfinished(path) == note:
                self.say("going on with a build of the same content that did not end")
                return path
        part = Path(tempfile.mkdtemp(prefix="build-", dir=target))
        # mkdtemp makes folders for the owner alone; who may read the index may read its files.
        os.chmod(part, target.stat().st_mode & 0o777)
        write_json(part / _UNFINISHED, note, _UNFINISHED_FORMAT)
        return part

    def write(self, part: Path, others: list[Path], attachments: Attachments) -> IndexFacts:
        facts = self._write_vectors(part)
        described = self._described(facts)
        own = hash_json({"model": self.model, "sides": described})
        self._write_structures(part, others)
        self._write_items(part, own, others)
        shutil.rmtree(part / ATTACHED_FOLDER, ignore_errors=True)
        for name, write in attachments.items():
            write(part / ATTACHED_FOLDER / name)
        for side in self.sides:
            tidy_side(part, side)
        (part / _UNFINISHED).unlink()
        write_manifest(part, self.model, own, self.content, described)
        return IndexFacts(own, {side: given.name for side, given in self.sides.items()}, facts)

    def _write_vectors(self, part: Path) -> dict[str, VectorFacts]:
        facts, first = {}, 0
        for side, given in self.sides.items():
            rows = given.source()
            n = rows.shape[0]
            self.say(f"indexing {n:,} rows of {given.name}")
            numbers = np.arange(first, first + n, dtype=np.int64)
            facts[side] = write_side(part, side, rows, numbers, self.samples[side], self.plan, self.say)
            self.say(facts[side].line(given.name))
            first += n
        return facts

    def _described(self, facts: Mapping[str, VectorFacts]) -> dict[str, Any]:
        return {
            side: {
                "name": given.name,
                "kind": given.kind,
                "vectors": asdict(facts[side]),
                "items": hash_texts(text for pair in zip(given.ids, given.items, strict=True) for text in pair),
            }
            for side, given in self.sides.items()
        }

    def _write_structures(self, part: Path, others: list[Path]) -> None:
        for side, given in self.sides.items():
            path = part / STRUCTURE_FILE.format(side=side)
            if given.kind != "molecule" or not given.structures or _linked(path, others, self.content):
                continue
            self.say(f"computing structure bits of {len(given.items):,} items of {given.name}")
            write_blocks(path, (len(given.items), BYTES), np.uint8, _bits_of(given), self.say)

    def _write_items(self, part: Path, fingerprint: str, others: list[Path]) -> None:
        path, unsynced = part / STORE_FILE, part / f"{STORE_FILE}.part"
        if path.is_file():
            return
        total = sum(len(side.ids) for side in self.sides.values())
        unsynced.unlink(missing_ok=True)
        for other in others:
            if copy_store(other, unsynced, self.content, fingerprint):
                self.say(f"copied {total:,} items with their names and words from {other}, which holds the same")
                break
        else:
            self.say(f"writing {total:,} items, their names and words")
            with disk_errors(path):
                write_store(unsynced, self.sides, fingerprint)
        sync_file(unsynced)
        os.replace(unsynced, path)


def write_manifest(part: Path, model: str, fingerprint: str, content: str | None, sides: Mapping[str, Any]) -> None:
    """Make the finished folder `part` the build of the index that it lies in, in one step.

    `model`: fingerprint of what made the rows; `fingerprint`: of this build; `content`: what `content_hash` says of
    its items, None where they have changed since; `sides`: name, kind and `vectors` of each side.
    """
    manifest = {"model": model, "fingerprint": fingerprint, "content": content, "sides": dict(sides)}
    # The item file as it is now: whoever copies it later sees whether it was changed.
    manifest |= {"folder": part.name, "files": described_files(part), "store": hash_file(part / STORE_FILE)}
    write_json(part.parent / MANIFEST, manifest, INDEX_FORMAT, INDEX_VERSION)


def _bits_of(given: IndexSide) -> Callable[[int], Iterator[Any]]:
    def blocks(start: int) -> Iterator[Any]:
        for first in range(start, len(given.items), BLOCK):
            yield structure_bits([given.items[row] for row in range(first, min(first + BLOCK, len(given.items)))])

    return blocks


def _linked(path: Path, others: list[Path], content: str) -> bool:
    """Take the structure bits of an index that holds the same items; return whether `path` is there."""
    for index in others if not path.is_file() else ():
        try:
            manifest = read_manifest(index)
            if manifest.get("content") == content:
                os.link(index / str(manifest["folder"]) / path.name, path)
                return True
        except (BridgeheadError, OSError):
            continue
    return path.is_file()


def _current(target: Path) -> str | None:
    try:
        return str(read_manifest(target)["folder"])
    except BridgeheadError:
        return None


def _unfinished(part: Path) -> dict[str, Any] | None:
    try:
        return read_json(part / _UNFINISHED, _UNFINISHED_FORMAT)
    except BridgeheadError:
        return None


def _remove_others(target: Path, kept: Path) -> None:
    """Remove the folders of earlier builds, those that were killed included; open readers keep their files."""
    assert read_manifest(target)["folder"] == kept.name
    for path in target.glob("build-*"):
        if path.name != kept.name:
            shutil.rmtree(path, ignore_errors=True)
