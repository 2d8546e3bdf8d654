"""The rows of a side as a build holds them: a FAISS index, float16 rows and numbers, none of which ever changes.

Owns the files of one side and their checks. What a search looks at is in `reach`, items that were added or removed
since the build in `view`.
"""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bridgehead.errors import RunStateError
from bridgehead.files import UNREADABLE, why_unreadable
from bridgehead.index.vectors.engine import faiss_library, lists_of
from bridgehead.index.vectors.plan import KINDS, VectorFacts
from bridgehead.index.vectors.selection import Selection
from bridgehead.vectors import IntArray

ROW_FILE = "{side}.rows.npy"
NUMBER_FILE = "{side}.numbers.npy"
VECTOR_FILE = "{side}.faiss"
MEMBER_FILE = "{side}.members.npy"
START_FILE = "{side}.starts.npy"
_AGAIN = "build the index again"


class Twins:
    """Rows that are identical, of which FAISS holds one: `members` positions by group, `starts` of each group.

    A graph that holds thousands of identical rows is no longer connected, and a list that is full of them proposes
    nothing else, so FAISS gets each row once.
    """

    def __init__(self, members: IntArray, starts: IntArray) -> None:
        self.members = members
        self.starts = starts

    @cached_property
    def group_of(self) -> IntArray:
        """The group of each position."""
        groups = np.zeros(len(self.members), np.int64)
        groups[self.members] = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        return groups

    def expanded(self, groups: IntArray) -> IntArray:
        """Return the positions of all rows of `groups`."""
        first = self.starts[groups]
        sizes = self.starts[groups + 1] - first
        if (sizes == 1).all():
            return np.asarray(self.members[first])
        within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return np.asarray(self.members[np.repeat(first, sizes) + within])

    def selected(self, selection: Selection) -> Selection:
        """Return the groups of which a row is selected."""
        mask = np.zeros(len(self.starts) - 1, bool)
        mask[self.group_of[selection.positions]] = True
        return Selection(mask)


class BaseVectors:
    """A FAISS index `found` over positions 0..n-1, the stored `rows` (n, d) float16 and `numbers` (n,) ascending."""

    def __init__(self, found: Any, rows: npt.NDArray[np.float16], numbers: IntArray, facts: VectorFacts,
                 twins: Twins | None = None) -> None:  # fmt: skip
        """`twins`: which rows are identical, where some are; `found` then holds groups instead of positions."""
        self.found = found
        self.rows = rows
        self.numbers = numbers
        self.facts = facts
        self.twins = twins

    def __len__(self) -> int:
        return len(self.rows)

    def with_facts(self, facts: VectorFacts) -> "BaseVectors":
        """Return the same vectors, searched with other settings."""
        return BaseVectors(self.found, self.rows, self.numbers, facts, self.twins)

    @cached_property
    def lists(self) -> npt.NDArray[np.int32]:
        """The list of an IVF index that each of its entries lies in."""
        return lists_of(self.found, int(self.found.ntotal))


def open_base(build: Path, side: str, facts: VectorFacts | Mapping[str, Any]) -> BaseVectors:
    """Open the vectors of `side` in the folder of a build; everything is mapped, nothing is read whole.

    The files must have passed `layout.check_files`: FAISS may end the process over a damaged one. Raises
    `RunStateError` when they do not fit together.
    """
    if not isinstance(facts, VectorFacts):
        facts = VectorFacts(**facts)
    faiss = faiss_library()
    rows = mapped(build / ROW_FILE.format(side=side), np.float16, 2)
    numbers = mapped(build / NUMBER_FILE.format(side=side), np.int64, 1)
    # Zero-copy mapping came with FAISS 1.11; before, the file is read.
    flags = getattr(faiss, "IO_FLAG_MMAP_IFC", 0)
    try:
        found = faiss.read_index(str(build / VECTOR_FILE.format(side=side)), flags)
    except RuntimeError as error:
        raise RunStateError(f"{build}: FAISS cannot read the vectors of side {side} ({error}); {_AGAIN}") from error
    twins = open_twins(build, side)
    distinct = len(twins.starts) - 1 if twins is not None else len(rows)
    shapes = {"manifest": (facts.n_rows, facts.dim), "rows": rows.shape, "FAISS": (found.ntotal, found.d)}
    shapes["FAISS"] = (facts.n_rows if found.ntotal == distinct else found.ntotal, found.d)
    if len(set(shapes.values())) > 1 or len(numbers) != len(rows):
        raise RunStateError(f"{build}: side {side} has different shapes: {shapes}, {len(numbers)} numbers; {_AGAIN}")
    _check_effort(build, side, found, facts)
    return BaseVectors(found, rows, numbers, facts, twins)


def open_twins(build: Path, side: str) -> Twins | None:
    """Return which rows of `side` are identical, None where all differ."""
    path = build / MEMBER_FILE.format(side=side)
    if not path.is_file():
        return None
    return Twins(mapped(path, np.int64, 1), mapped(build / START_FILE.format(side=side), np.int64, 1))


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


def mapped(path: Path, dtype: type, dimensions: int) -> Any:
    """Return the array of a file of a build, mapped; raises `RunStateError` where it is not there or another."""
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
