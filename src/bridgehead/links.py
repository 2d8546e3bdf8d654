"""Which item of a matches which item of b: the one type for truth in bridgehead.

Sampler, loss, bank, mining and evaluator all read `Links`; nothing anywhere assumes "the diagonal". This module is not
about splits or coarse classes: those never become links.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from bridgehead.errors import LinksError
from bridgehead.vectors import IntArray, to_numpy


@dataclass(frozen=True, eq=False)
class Links:
    """Pairs (row in a, row in b) that match, with optional groups of identical items.

    `pairs` is any (n, 2) integer array, tensor or list; it is kept as int64, sorted by (a, b), duplicates collapsed.
    `n_a` and `n_b` are the numbers of rows on the two sides. `groups_a` (n_a,) and `groups_b` (n_b,) are optional
    integers: items of an equal non-negative group are the same item again and share each other's links; -1 means no
    group. Raises `LinksError` when a row is out of range or a group array has the wrong length. Empty links are
    allowed: who needs a positive says so.
    """

    pairs: IntArray
    n_a: int
    n_b: int
    groups_a: IntArray | None = field(default=None)
    groups_b: IntArray | None = field(default=None)

    def __post_init__(self) -> None:
        pairs = _as_pairs(self.pairs)
        if not (_is_count(self.n_a) and _is_count(self.n_b)):
            raise LinksError(f"n_a = {self.n_a!r}, n_b = {self.n_b!r}; expected numbers of rows, 0 or more")
        for column, size, side in ((0, self.n_a, "a"), (1, self.n_b, "b")):
            outside = (pairs[:, column] < 0) | (pairs[:, column] >= size)
            if outside.any():
                raise LinksError(
                    f"{int(outside.sum())} links point outside side {side}, which has {size} rows "
                    f"(first: {pairs[np.argmax(outside)].tolist()}); rows are counted from 0"
                )
        object.__setattr__(self, "pairs", np.unique(pairs, axis=0) if len(pairs) else pairs)
        object.__setattr__(self, "groups_a", _as_groups(self.groups_a, self.n_a, "a"))
        object.__setattr__(self, "groups_b", _as_groups(self.groups_b, self.n_b, "b"))

    @classmethod
    def identity(cls, n: int) -> "Links":
        """Return the links of row i with row i for i < n."""
        rows = np.arange(n if _is_count(n) else 0, dtype=np.int64)
        return cls(np.stack([rows, rows], axis=1), n, n)

    @classmethod
    def of(cls, links: Any, n_a: int, n_b: int) -> "Links":
        """Return `links` as `Links` over n_a and n_b rows.

        `None` is row i with row i and needs n_a == n_b; a `Links` must have these sizes; anything else is read as
        (n, 2) pairs. Raises `LinksError`.
        """
        if links is None:
            if n_a != n_b:
                raise LinksError(
                    f"side a has {n_a} rows and side b {n_b}: without links row i is paired with row i, which needs "
                    "equal numbers; pass links=, the (row in a, row in b) pairs"
                )
            return cls.identity(n_a)
        if isinstance(links, Links):
            if (links.n_a, links.n_b) != (n_a, n_b):
                raise LinksError(
                    f"links are over {links.n_a} x {links.n_b} rows, the arrays have {n_a} and {n_b}; "
                    "expected the same numbers"
                )
            return links
        return cls(links, n_a, n_b)

    def __len__(self) -> int:
        return len(self.pairs)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Links):
            return NotImplemented
        return (
            (self.n_a, self.n_b) == (other.n_a, other.n_b)
            and np.array_equal(self.pairs, other.pairs)
            and _same(self.groups_a, other.groups_a)
            and _same(self.groups_b, other.groups_b)
        )

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def matrix(self) -> sparse.csr_array:
        """The (n_a, n_b) boolean CSR matrix of all matches, those shared through groups included."""
        units_a, units_b, between = self._units
        return _expand(units_a, self.n_a) @ between @ _expand(units_b, self.n_b).T

    @cached_property
    def _units(self) -> tuple[IntArray, IntArray, sparse.csr_array]:
        units_a, size_a = _units_of(self.groups_a, self.n_a)
        units_b, size_b = _units_of(self.groups_b, self.n_b)
        between = _boolean(units_a[self.pairs[:, 0]], units_b[self.pairs[:, 1]], (size_a, size_b))
        return units_a, units_b, between

    def expanded(self) -> "Links":
        """Return the same truth with every match as a pair of its own and no groups."""
        if self.groups_a is None and self.groups_b is None:
            return self
        rows, columns = self.matrix.nonzero()
        return Links(np.stack([rows, columns], axis=1), self.n_a, self.n_b)

    def swapped(self) -> "Links":
        """Return the links seen from the other side: (row in b, row in a)."""
        return Links(self.pairs[:, ::-1], self.n_b, self.n_a, self.groups_b, self.groups_a)

    def within(self, rows_a: Any, rows_b: Any) -> "Links":
        """Return the links among the batch `rows_a` x `rows_b`, numbered by position in the batch.

        A row may occur more than once in a batch; each occurrence is matched. Matches that other pairs or groups
        brought into the batch count too. Time and memory are of the order of the batch and its links. Raises
        `LinksError` for what is no list of row numbers and for a row that there is not; -1 is none.
        """
        found_a, found_b = self.pairs_within(rows_a, rows_b)
        return Links(np.stack([found_a, found_b], axis=1), len(rows_a), len(rows_b))

    def pairs_within(self, rows_a: Any, rows_b: Any) -> tuple[IntArray, IntArray]:
        """Return what `within` does as two arrays of positions (P,), each pair once, without making links of them.

        For a training step, which needs no more. Raises as `within`.
        """
        rows_a = _as_rows(rows_a, self.n_a, "a")
        rows_b = _as_rows(rows_b, self.n_b, "b")
        units_a, units_b, between = self._units
        local = between[units_a[rows_a]] @ _boolean(
            units_b[rows_b], np.arange(len(rows_b)), (between.shape[1], len(rows_b))
        )
        found_a, found_b = local.nonzero()
        return found_a.astype(np.int64), found_b.astype(np.int64)

    def targets(self) -> tuple[IntArray, IntArray]:
        """Return (indptr, rows): the matches in b of row i of a are `rows[indptr[i]:indptr[i + 1]]`, ascending."""
        matrix = self.matrix
        matrix.sort_indices()
        return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)

    def components(self) -> tuple[IntArray, IntArray]:
        """Return a component number for each row of a (n_a,) and of b (n_b,): what links or groups connect."""
        units_a, units_b, between = self._units
        size_a, size_b = between.shape
        graph = sparse.coo_array(
            (between.data, (between.nonzero()[0], between.nonzero()[1] + size_a)),
            shape=(size_a + size_b,) * 2,
        )
        _, labels = connected_components(graph, directed=False)
        return labels[units_a].astype(np.int64), labels[size_a + units_b].astype(np.int64)


def _as_pairs(pairs: Any) -> IntArray:
    array = to_numpy(pairs)
    if array.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2:
        raise LinksError(f"links have shape {array.shape}; expected (n, 2): one (row in a, row in b) per link")
    if array.dtype.kind not in "iu":
        raise LinksError(f"links have dtype {array.dtype}; expected integers (row in a, row in b)")
    return np.asarray(array, dtype=np.int64)


def _is_count(n: Any) -> bool:
    return isinstance(n, int | np.integer) and not isinstance(n, bool) and bool(n >= 0)


def _as_rows(rows: Any, n: int, side: str) -> IntArray:
    array = to_numpy(rows)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise LinksError(
            f"rows of side {side} have dtype {array.dtype} and shape {array.shape}; expected a list of row numbers"
        )
    array = np.asarray(array, dtype=np.int64)
    outside = (array < 0) | (array >= n)
    if outside.any():
        raise LinksError(f"row {int(array[outside][0])} is not on side {side}, whose rows are 0 to {n - 1}")
    return array


def _as_groups(groups: Any, n: int, side: str) -> IntArray | None:
    if groups is None:
        return None
    array = to_numpy(groups)
    if array.shape != (n,):
        raise LinksError(f"groups_{side} has shape {array.shape}; expected ({n},), one group for each row of {side}")
    if array.dtype.kind not in "iu":
        raise LinksError(f"groups_{side} has dtype {array.dtype}; expected integers, -1 for no group")
    return np.asarray(array, dtype=np.int64)


def _units_of(groups: IntArray | None, n: int) -> tuple[IntArray, int]:
    """Number what counts as one: each group once, each ungrouped row by itself."""
    if groups is None:
        return np.arange(n, dtype=np.int64), n
    keys = np.where(groups >= 0, groups, -1 - np.arange(n))
    found, units = np.unique(keys, return_inverse=True)
    return units.astype(np.int64), len(found)


def _boolean(rows: npt.ArrayLike, columns: npt.ArrayLike, shape: tuple[int, int]) -> sparse.csr_array:
    data = np.ones(len(np.asarray(rows)), dtype=bool)
    return sparse.coo_array((data, (rows, columns)), shape=shape).tocsr()


def _expand(units: IntArray, n: int) -> sparse.csr_array:
    return _boolean(np.arange(n), units, (n, int(units.max()) + 1 if n else 0))


def _same(left: IntArray | None, right: IntArray | None) -> bool:
    if left is None or right is None:
        return left is right
    return bool(np.array_equal(left, right))
