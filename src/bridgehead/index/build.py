"""Writing an index: vectors, items and a manifest that ties them to the model that made the rows.

The files of a build lie in a folder of their own, `build-*`; the manifest `index.json`, written last and atomically,
names that folder. So a build that is killed at any instant leaves the index as it was, and a reader sees the old index
or the new one. What a build needs of a model is its fingerprint and its rows; it never sees the model.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.files import (
    atomic_path,
    disk_errors,
    folder_lock,
    hash_file,
    hash_json,
    hash_texts,
    sync_folder,
    write_json,
    write_npy,
)
from bridgehead.index.items import content_hash, copy_store, write_store
from bridgehead.index.layout import (
    ATTACHED_FOLDER,
    INDEX_FORMAT,
    INDEX_VERSION,
    MANIFEST,
    ROW_FILE,
    STORE_FILE,
    VECTOR_FILE,
    read_manifest,
    row_sample_hash,
    sync_file,
)
from bridgehead.index.side import IndexSide
from bridgehead.index.tuning import VectorFacts, make_vectors
from bridgehead.index.vectors import FLAT_BELOW, faiss_library
from bridgehead.vectors import FloatArray

Progress = Callable[[str], None]
Attachments = Mapping[str, Callable[[Path], object]]


@dataclass(frozen=True)
class IndexFacts:
    """What was built: the index's own `fingerprint`, and for each side its shown name and `VectorFacts`."""

    fingerprint: str
    names: Mapping[str, str]
    vectors: Mapping[str, VectorFacts]

    def lines(self) -> list[str]:
        """Return one line a side to print: rows, method, nprobe and the recall that was measured."""
        return [facts.line(self.names[side]) for side, facts in self.vectors.items()]


def build_index(
    folder: str | Path,
    sides: Mapping[str, IndexSide],
    fingerprint: str,
    sample_queries: Mapping[str, FloatArray] | None = None,
    recall_floor: float = 0.98,
    progress: Progress | None = None,
    *,
    attachments: Attachments | None = None,
    reuse: str | Path | None = None,
    flat_below: int = FLAT_BELOW,
) -> IndexFacts:
    """Build the index of `sides` ("a", "b" or one of them) under `folder`, in the place of one that is there.

    `fingerprint`: of the encoders and heads that made the rows; opening compares it. `sample_queries`: for each side
    (m, d) rows of the other modality, with which `nprobe` of an IVF index is chosen so that recall@10 against exact
    search is at least `recall_floor`. `progress` is called with a line for each stage. `attachments`: name ->
    function that writes what belongs to this build (canary rows of the encoders, say) into a folder; `Index.attached`
    gives that folder. `reuse`: folder of another index; where that or the one replaced holds the same items, names and
    payload, its item file is copied, which saves most of the time. A side of `flat_below` rows or more is IVF indexed.

    Raises `ArgumentError` (sides, or a floor out of reach), `ShapeError`, `DuplicateIdError`, `NonFiniteRowsError`, and
    `RunBusyError` when another process builds there. A side of no rows is fine.
    """
    say = progress or (lambda line: None)
    if not sides or set(sides) - {"a", "b"}:
        raise ArgumentError(f"sides {sorted(sides)}; expected 'a', 'b' or both")
    if not 0 <= recall_floor <= 1:
        raise ArgumentError(f"recall_floor = {recall_floor}; expected a share in [0, 1]")
    rows = {side: sides[side].checked_rows(side).astype(np.float16) for side in sides}
    widths = {side: stored.shape[1] for side, stored in rows.items()}
    if len(set(widths.values())) > 1:
        raise ShapeError(f"rows have {widths} columns; both sides must live in one space")
    target = Path(folder)
    with folder_lock(target):
        part = Path(tempfile.mkdtemp(prefix="build-", dir=target))
        try:
            # mkdtemp makes folders for the owner alone; who may read the index may read its files.
            os.chmod(part, target.stat().st_mode & 0o777)
            facts = _write_vectors(part, sides, rows, sample_queries or {}, (recall_floor, flat_below), say)
            described = _described(sides, rows, facts)
            own = hash_json({"model": fingerprint, "sides": described})
            content = content_hash(sides)
            _write_items(part, sides, own, content, [target, *([Path(reuse)] if reuse is not None else [])], say)
            for name, write in (attachments or {}).items():
                write(part / ATTACHED_FOLDER / name)
            manifest = {"model": fingerprint, "fingerprint": own, "content": content, "sides": described}
            manifest |= {"folder": part.name, "files": _files(part)}
            write_json(target / MANIFEST, manifest, INDEX_FORMAT, INDEX_VERSION)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
        _remove_others(target, part.name)
    return IndexFacts(own, {side: sides[side].name for side in sides}, facts)


def _write_vectors(
    part: Path,
    sides: Mapping[str, IndexSide],
    rows: Mapping[str, npt.NDArray[np.float16]],
    samples: Mapping[str, FloatArray],
    limits: tuple[float, int],
    say: Progress,
) -> dict[str, VectorFacts]:
    faiss = faiss_library()
    facts = {}
    for side, stored in rows.items():
        say(f"indexing {len(stored):,} rows of {sides[side].name}")
        found, facts[side] = make_vectors(stored, samples.get(side), *limits)
        say(facts[side].line(sides[side].name))
        write_npy(part / ROW_FILE.format(side=side), stored)
        atomic_path(part / VECTOR_FILE.format(side=side), partial(faiss.write_index, found))
    return facts


def _described(
    sides: Mapping[str, IndexSide], rows: Mapping[str, npt.NDArray[np.float16]], facts: Mapping[str, VectorFacts]
) -> dict[str, Any]:
    return {
        side: {
            "name": content.name,
            "kind": content.kind,
            "vectors": asdict(facts[side]),
            "items": hash_texts(text for pair in zip(content.ids, content.items, strict=True) for text in pair),
            "row_sample": row_sample_hash(rows[side]),
        }
        for side, content in sides.items()
    }


def _write_items(
    part: Path, sides: Mapping[str, IndexSide], fingerprint: str, content: str, others: list[Path], say: Progress
) -> None:
    total = sum(len(side.ids) for side in sides.values())
    for other in others:
        if copy_store(other, part / STORE_FILE, content, fingerprint):
            say(f"copied {total:,} items with their names and words from {other}, which holds the same")
            sync_file(part / STORE_FILE)
            return
    say(f"writing {total:,} items, their names and words")
    with disk_errors(part / STORE_FILE):
        write_store(part / STORE_FILE, sides, fingerprint)
    sync_file(part / STORE_FILE)


def _files(part: Path) -> dict[str, dict[str, Any]]:
    paths = sorted(path for path in part.rglob("*") if path.is_file())
    sync_folder(part)
    return {
        path.relative_to(part).as_posix(): {"size": path.stat().st_size, "sha256": hash_file(path)} for path in paths
    }


def _remove_others(target: Path, kept: str) -> None:
    """Remove the folders of earlier builds, those that were killed included; open readers keep their files."""
    assert read_manifest(target)["folder"] == kept
    for path in target.glob("build-*"):
        if path.name != kept:
            shutil.rmtree(path, ignore_errors=True)
