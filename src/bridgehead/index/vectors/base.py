"""The rows of a side as a build holds them: a FAISS index, float16 rows and numbers, none of which ever changes.

Owns the files of one side, their checks, and how much FAISS is made to look at. Items that were added or removed since
the build are in `view`.
"""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bridgehead.errors import RunStateError
from bridgehead.files import UNREADABLE, why_unreadable
from bridgehead.index.vectors.engine import candidate_rows, faiss_library, lists_of
from bridgehead.index.vectors.plan import KINDS, VectorFacts
from bridgehead.index.vectors.selection import Selection
from bridgehead.vectors import FloatArray, IntArray

ROW_FILE = "{side}.rows.npy"
NUMBER_FILE = "{side}.numbers.npy"
VECTOR_FILE = "{side}.faiss"
MEMBER_FILE = "{side}.members.npy"
START_FILE = "{side}.starts.npy"
_AGAIN = "build the index again"


class Twins:
    """Rows that are identical, of which FAISS holds one: `members` positions by group, `starts` of each group.

    A graph that holds thousands of identical rows is no longer connected, so it gets each row once.
    """

    def __init__(self, members: IntArray, starts: IntArray) -> None:
        self.members = members
        self.starts = starts

    @cached_property
    def _group_of(self) -> IntArray:
        groups = np.zeros(len(self.members), np.int64)
        groups[self.members] = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        return groups

    def expanded(self, groups: IntArray) -> IntArray:
        """Return the positions of all rows of `groups`."""
        parts = [self.members[self.starts[group] : self.starts[group + 1]] for group in groups]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def selected(self, selection: Selection) -> Selection:
        """Return the groups of which a row is selected."""
        mask = np.zeros(len(self.starts) - 1, bool)
        mask[self._group_of[selection.positions]] = True
        return Selection(mask)


class BaseVectors:
    """A FAISS index `found` over positions 0..n-1, the stored `rows` (n, d) float16 and `numbers` (n,) ascending."""

    def __init__(self, found: Any, rows: npt.NDArray[np.float16], numbers: IntArray, facts: VectorFacts,
                 twins: Twins | None = None) -> None:  # fmt: skip
        self.found = found
        self.rows = rows
        self.numbers = numbers
        self.facts = facts
        self._twins = twins

    def __len__(self) -> int:
        return len(self.rows)

    def with_facts(self, facts: VectorFacts) -> "BaseVectors":
        """Return the same vectors, searched with other settings."""
        return BaseVectors(self.found, self.rows, self.numbers, facts, self._twins)

    def candidates(
        self, queries: FloatArray, width: int, factor: int = 1, selection: Selection | None = None
    ) -> list[IntArray]:
        """Return for each float32 query (m, d) about `width` ascending positions that FAISS proposes.

        `factor`: how many times the measured effort. What lies outside of the selection or the side is left out.
        """
        inner = self._twins.selected(selection) if self._twins is not None and selection is not None else selection
        width = max(1, min(width, self.found.ntotal))
        bitmap = inner.bitmap if inner is not None else None
        if inner is None or self.facts.nprobe is None:
            rows = candidate_rows(self.found, queries, width, self._effort(width, factor, inner), bitmap)
        else:
            rows = np.concatenate([
                candidate_rows(self.found, query[None], width, self._lists_for(query, factor, inner), bitmap)
                for query in queries
            ])  # fmt: skip
        return [self._valid(found, selection) for found in rows]

    def _valid(self, found: IntArray, selection: Selection | None) -> IntArray:
        found = np.unique(found[(found >= 0) & (found < self.found.ntotal)])
        if self._twins is not None:
            found = np.sort(self._twins.expanded(found))
        found = found[found < len(self.rows)]
        return found[selection.mask[found]] if selection is not None and self._twins is not None else found

    def is_exhaustive(self, width: int, factor: int) -> bool:
        """Return whether nothing more can be looked at than with these."""
        if width < self.found.ntotal:
            return False
        return self.facts.nprobe is None or factor * self.facts.nprobe >= self.found.nlist

    def _effort(self, width: int, factor: int, selection: Selection | None) -> dict[str, int]:
        if self.facts.nprobe is not None:
            return {"nprobe": min(factor * self.facts.nprobe, self.found.nlist)}
        if self.facts.ef is None:
            return {}
        rare = self.found.ntotal / max(1, selection.count) if selection is not None else 1.0
        return {"ef": int(min(max(factor * self.facts.ef, width) * rare, self.found.ntotal))}

    def _lists_for(self, query: FloatArray, factor: int, selection: Selection) -> dict[str, int]:
        """Return how many lists hold as many selected rows as are looked at without a filter.

        Counted list by list from the nearest, so that a filter whose rows lie far from the query is answered as well.
        """
        assert self.facts.nprobe is not None
        wanted = min(factor * self.facts.nprobe * len(self.rows) / self.found.nlist, selection.count)
        order = self.found.quantizer.search(query[None], self.found.nlist)[1][0]
        held = np.cumsum(self._selected_in_lists(selection)[order])
        return {"nprobe": min(int(np.searchsorted(held, wanted)) + 1, self.found.nlist)}

    def _selected_in_lists(self, selection: Selection) -> IntArray:
        places = self._lists[selection.positions]
        return np.bincount(places[places >= 0], minlength=self.found.nlist)

    @cached_property
    def _lists(self) -> npt.NDArray[np.int32]:
        return lists_of(self.found, len(self.rows))


def open_base(build: Path, side: str, facts: VectorFacts | Mapping[str, Any]) -> BaseVectors:
    """Open the vectors of `side` in the folder of a build; everything is mapped, nothing is read whole.

    The files must have passed `layout.check_files`: FAISS may end the process over a damaged one. Raises
    `RunStateError` when they do not fit together.
    """
    if not isinstance(facts, VectorFacts):
        facts = VectorFacts(**facts)
    faiss = faiss_library()
    rows = _mapped(build / ROW_FILE.format(side=side), np.float16, 2)
    numbers = _mapped(build / NUMBER_FILE.format(side=side), np.int64, 1)
    # Zero-copy mapping came with FAISS 1.11; before, the file is read.
    flags = getattr(faiss, "IO_FLAG_MMAP_IFC", 0)
    try:
        found = faiss.read_index(str(build / VECTOR_FILE.format(side=side)), flags)
    except RuntimeError as error:
        raise RunStateError(f"{build}: FAISS cannot read the vectors of side {side} ({error}); {_AGAIN}") from error
    twins = _twins(build, side)
    distinct = len(twins.starts) - 1 if twins is not None else len(rows)
    shapes = {"manifest": (facts.n_rows, facts.dim), "rows": rows.shape, "FAISS": (found.ntotal, found.d)}
    shapes["FAISS"] = (facts.n_rows if found.ntotal == distinct else found.ntotal, found.d)
    if len(set(shapes.values())) > 1 or len(numbers) != len(rows):
        raise RunStateError(f"{build}: side {side} has different shapes: {shapes}, {len(numbers)} numbers; {_AGAIN}")
    _check_effort(build, side, found, facts)
    return BaseVectors(found, rows, numbers, facts, twins)


def _twins(build: Path, side: str) -> Twins | None:
    path = build / MEMBER_FILE.format(side=side)
    if not path.is_file():
        return None
    return Twins(_mapped(path, np.int64, 1), _mapped(build / START_FILE.format(side=side), np.int64, 1))


def _check_effort(build: Path, side: str, found: Any, facts: VectorFacts) -> None:
    lists = getattr(found, "nlist", None)
    is_graph = hasattr(found, "hnsw")
    right = (
        facts.method in KINDS
        and (facts.nprobe is None if lists is None else _is_between(facts.nprobe, 1, lists))
        and (_is_between(facts.ef, 1, 1 << 30) if is_graph else facts.ef is None)
        and _is_between(facts.candidates, 1, 1 << 30)
    )
    if not right:
        raise RunStateError(
            f"{build}: side {side} has {lists} lists and the manifest says {facts.method}, nprobe = {facts.nprobe!r}, "
            f"ef = {facts.ef!r}, candidates = {facts.candidates!r}; {_AGAIN}"
        )


def _mapped(path: Path, dtype: type, dimensions: int) -> Any:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except UNREADABLE as error:
        raise RunStateError(f"{path} is not an array of rows ({why_unreadable(error)}); {_AGAIN}") from error
    if array.dtype != dtype or array.ndim != dimensions:
        raise RunStateError(
            f"{path} holds {array.dtype} of shape {array.shape}; expected {np.dtype(dtype)} of {dimensions} dimensions"
        )
    # A plain view: every look into a memmap makes another memmap.
    return np.asarray(array)


def _is_between(number: Any, least: int, most: int) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and least <= number <= most
