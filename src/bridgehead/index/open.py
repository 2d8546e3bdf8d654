"""Opening an index for reading, and looking items and neighbours up in it.

Nothing is written and no write permission is needed; rows and vectors are mapped, not read. How a query is understood
and encoded is not here (`search`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bridgehead.errors import ArgumentError, InputFileNotFoundError, MismatchError, RunStateError
from bridgehead.index.layout import (
    ATTACHED_FOLDER,
    ROW_FILE,
    STORE_FILE,
    VECTOR_FILE,
    check_files,
    read_manifest,
    row_sample_hash,
)
from bridgehead.index.store import Item, ItemStore, WordHit
from bridgehead.index.tuning import VectorFacts
from bridgehead.index.vectors import Ranked, SideVectors, faiss_library
from bridgehead.vectors import FloatArray


@dataclass(frozen=True)
class SideFacts:
    """What the manifest says of a side: shown `name`, `kind` of its items, `vectors`."""

    name: str
    kind: str
    vectors: VectorFacts


class Index:
    """An open index over the sides "a" and "b" (or one of them); made by `open_index`, shared by threads.

    `model`: fingerprint of what made the rows; `fingerprint`: of this build; `sides`: side -> `SideFacts`.
    """

    def __init__(self, manifest: Mapping[str, Any], vectors: Mapping[str, SideVectors], store: ItemStore,
                 build: Path) -> None:  # fmt: skip
        self.model = str(manifest["model"])
        self.fingerprint = str(manifest["fingerprint"])
        self.sides: dict[str, SideFacts] = {
            str(side): _side_facts(content) for side, content in manifest["sides"].items()
        }
        self._build = build
        self._vectors = dict(vectors)
        self._store = store

    def __enter__(self) -> "Index":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the item file; the index cannot be used afterwards."""
        self._store.close()

    def attached(self, name: str) -> Path | None:
        """Return the folder of the attachment `name` of this build, or None where it has none."""
        folder = self._build / ATTACHED_FOLDER / name
        return folder if folder.is_dir() else None

    def side_named(self, name: str) -> str:
        """Return "a" or "b" for a side's shown name or for "a" or "b". Raises `ArgumentError` listing the sides."""
        for side, facts in self.sides.items():
            if name == facts.name:
                return side
        if name in self.sides:
            return name
        known = ", ".join(f"{facts.name!r} ({side})" for side, facts in self.sides.items())
        raise ArgumentError(f"there is no side {name!r} in this index; expected one of: {known}")

    def size(self, side: str) -> int:
        """Return the number of items of `side`."""
        return self.sides[self.side_named(side)].vectors.n_rows

    def search(self, side: str, query_rows: Any, k: int = 10, offset: int = 0) -> list[Ranked]:
        """Return for each query row (m, d) its nearest rows of `side`: see `SideVectors.search`."""
        return self._vectors[self.side_named(side)].search(query_rows, k, offset)

    def rank_of(self, side: str, query_row: Any, row: int) -> int:
        """Return the exact rank (from 1) of an item of `side` for one query row (d,): see `SideVectors.rank_of`."""
        return self._vectors[self.side_named(side)].rank_of(query_row, self.item(side, row).row)

    def row(self, side: str, row: int) -> FloatArray:
        """Return the stored row (d,) of an item, float32 of unit length (or zero)."""
        return self._vectors[self.side_named(side)].row(self.item(side, row).row)

    def item(self, side: str, row: int) -> Item:
        """Return the item of `row`. Raises `ArgumentError` when the side has no such row."""
        return self.items(side, [row])[0]

    def items(self, side: str, rows: Sequence[int]) -> list[Item]:
        """Return the items of `rows` of one side, in that order."""
        return self._store.items(self.side_named(side), [int(row) for row in rows])

    def by_id(self, identifier: str) -> list[Item]:
        """Return the items whose user's id is exactly `identifier`, at most one a side, a first."""
        return self._store.by_id(identifier)

    def by_name(self, name: str) -> list[Item]:
        """Return the items that carry `name` once normalised; those whose main name it is come first."""
        return self._store.by_name(name)

    def by_key(self, key: str) -> list[Item]:
        """Return the items with this exact key (InChIKey)."""
        return self._store.by_key(key)

    def words(self, query: str, side: str, k: int = 10, offset: int = 0) -> list[WordHit]:
        """Return rows of `side` by the words of `query`: see `ItemStore.words`."""
        return self._store.words(query, self.side_named(side), k, offset)


def open_index(folder: str | Path, expected_fingerprint: str | None = None, *, thorough: bool = False) -> Index:
    """Open the index in `folder` for reading.

    `expected_fingerprint`: of the encoders and heads that queries will go through. `thorough` hashes every file instead
    of comparing sizes, a sample of the rows and the FAISS files only.

    Raises `InputFileNotFoundError` (none there), `FormatVersionError`, `MismatchError` (another model made the rows)
    and `RunStateError` (files missing, cut off, damaged, or of different builds).
    """
    target = Path(folder)
    manifest = read_manifest(target)
    if expected_fingerprint is not None and manifest["model"] != expected_fingerprint:
        raise MismatchError(
            f"the index in {target} was built with another model (fingerprint {str(manifest['model'])[:12]}, expected "
            f"{expected_fingerprint[:12]}): its rows and new queries do not belong together; build the index again"
        )
    try:
        return _open_build(target / str(manifest["folder"]), manifest, thorough)
    except (InputFileNotFoundError, RunStateError):
        # A build that ended since the manifest was read has put other files in the place of these.
        if read_manifest(target)["folder"] == manifest["folder"]:
            raise
        return open_index(target, expected_fingerprint, thorough=thorough)
    except (KeyError, TypeError, AttributeError) as error:
        raise RunStateError(f"the manifest of {target} lacks or misstates {error}; build the index again") from error


def _open_build(build: Path, manifest: Mapping[str, Any], thorough: bool) -> Index:
    if not build.is_dir():
        raise InputFileNotFoundError(f"{build} is not there, but the manifest names it; build the index again")
    check_files(build, manifest["files"], thorough)
    vectors = {side: _open_vectors(build, side, content) for side, content in manifest["sides"].items()}
    sizes = {side: content["vectors"]["n_rows"] for side, content in manifest["sides"].items()}
    store = ItemStore(build / STORE_FILE, sizes, manifest["fingerprint"])
    return Index(manifest, vectors, store, build)


def _open_vectors(build: Path, side: str, content: Mapping[str, Any]) -> SideVectors:
    faiss = faiss_library()
    facts = VectorFacts(**content["vectors"])
    rows = _map_rows(build / ROW_FILE.format(side=side))
    # Zero-copy mapping came with FAISS 1.11; before, the file is read.
    flags = getattr(faiss, "IO_FLAG_MMAP_IFC", 0)
    found = faiss.read_index(str(build / VECTOR_FILE.format(side=side)), flags)
    shapes = {"manifest": (facts.n_rows, facts.dim), "rows": rows.shape, "FAISS": (found.ntotal, found.d)}
    if len(set(shapes.values())) > 1:
        raise RunStateError(f"{build}: side {side} has different shapes: {shapes}; build the index again")
    lists = getattr(found, "nlist", None)
    if (lists is None) != (facts.nprobe is None) or not (lists is None or _is_between(facts.nprobe, 1, lists)):
        raise RunStateError(
            f"{build}: side {side} has {lists} lists and nprobe = {facts.nprobe!r}; build the index again"
        )
    if row_sample_hash(rows) != content["row_sample"]:
        raise RunStateError(f"{build}: the rows of side {side} are not those of this build; build the index again")
    return SideVectors(found, rows, facts.nprobe)


def _map_rows(path: Path) -> npt.NDArray[np.float16]:
    try:
        rows = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        raise RunStateError(f"{path} is not an array of rows ({error}); build the index again") from error
    if rows.dtype != np.float16 or rows.ndim != 2:
        raise RunStateError(f"{path} holds {rows.dtype} of shape {rows.shape}; expected float16 (n, d)")
    return rows  # type: ignore[no-any-return]


def _is_between(number: Any, least: int, most: int) -> bool:
    return isinstance(number, int) and least <= number <= most


def _side_facts(content: Mapping[str, Any]) -> SideFacts:
    return SideFacts(str(content["name"]), str(content["kind"]), VectorFacts(**content["vectors"]))
