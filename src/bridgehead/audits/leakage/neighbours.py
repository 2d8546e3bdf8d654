"""The nearest row of another part, exactly, for every row that has one near enough.

Dense rows are multiplied out in blocks. For sparse rows that would be slow: their few hundred heaviest columns are
multiplied out, the Cauchy-Schwarz inequality bounds what the others can add, and only pairs that may reach the floor
are looked at in full. This module is not about what nearness means (`rows`).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from bridgehead.vectors import IntArray, block_rows, check_rows, unit_rows

Float64Array = npt.NDArray[np.float64]

_DIGITS = 9
_HEAVY_COLUMNS = 768
_SCREEN_SLACK = 1e-3
"""Far above the rounding of a float32 product of unit rows with 768 columns (under 5e-5)."""
_CROWDED = 1 / 64
_PAIRS_AT_ONCE = 8192
_BLOCK_BYTES = 32 << 20
_OTHERS_AT_ONCE = 4096


def float64_unit_rows(rows: Any, name: str) -> Any:
    """Return float64 unit rows, dense or CSR as they came; zero rows stay zero. Raises as `check_rows`."""
    checked = check_rows(rows, name)
    if not hasattr(checked, "indptr"):
        return unit_rows(checked, name, dtype=np.float64)
    wide = sparse.csr_array(checked, dtype=np.float64)
    norms = np.sqrt(np.asarray(wide.multiply(wide).sum(axis=1)).ravel())
    return sparse.csr_array(sparse.diags_array(1 / np.where(norms > 0, norms, 1)) @ wide)


def nearest_rows(
    rows: Any, others: Any, floor: float, leave_out: IntArray | None = None
) -> tuple[Float64Array, IntArray]:
    """Return for each of `rows` (m, d) its highest cosine with `others` (n, d), and which row of them has it.

    Both are float64 unit rows (`float64_unit_rows`), dense or CSR. Cosines are rounded to nine digits and the first of
    equally near rows is named, so that the result does not depend on blocks. Where no cosine reaches `floor` (above 0)
    the result is (0, -1). `leave_out` (m,) is a row of `others` that does not count, such as the row itself. Memory is
    that of a block of scores.
    """
    best, where = np.zeros(rows.shape[0]), np.full(rows.shape[0], -1, dtype=np.int64)
    for row, other, cosine in near_pairs(rows, others, floor):
        if leave_out is not None:
            kept = leave_out[row] != other
            row, other, cosine = row[kept], other[kept], cosine[kept]
        order = np.lexsort((other, -cosine, row))
        first = order[np.flatnonzero(np.diff(row[order], prepend=-1))]
        # Blocks of others come in ascending order, so of equally near rows the earlier one stays.
        better = first[cosine[first] > best[row[first]]]
        best[row[better]], where[row[better]] = cosine[better], other[better]
    return best, where


def near_pairs(rows: Any, others: Any, floor: float) -> Iterator[tuple[IntArray, IntArray, Float64Array]]:
    """Yield (row, other, cosine) of all pairs whose cosine, rounded to nine digits, is at least `floor` (above 0).

    `rows` and `others` are as in `nearest_rows`. Pairs come in pieces of bounded size in which others ascend.
    """
    for row, other, cosine in _candidates(rows, others, floor):
        rounded = np.round(cosine, _DIGITS)
        kept = rounded >= floor
        yield row[kept], other[kept], rounded[kept]


def _candidates(rows: Any, others: Any, floor: float) -> Iterator[tuple[IntArray, IntArray, Float64Array]]:
    """Yield (row, other, cosine) of pairs, among them all that reach the floor."""
    screen = _Screen(rows, others) if hasattr(rows, "indptr") else None
    step = block_rows(
        min(_OTHERS_AT_ONCE, others.shape[0]) + (0 if screen is None else _HEAVY_COLUMNS), 8, _BLOCK_BYTES
    )
    for first in range(0, others.shape[0], _OTHERS_AT_ONCE):
        part = slice(first, first + _OTHERS_AT_ONCE)
        for start in range(0, rows.shape[0], step):
            block = slice(start, start + step)
            if screen is None:
                scores = rows[block] @ others[part].T
                row, other = np.nonzero(scores >= floor - _SCREEN_SLACK)
                yield row + start, other + first, scores[row, other]
                continue
            row, other = screen.candidates(block, part, floor)
            if len(row) > _CROWDED * (min(step, rows.shape[0]) * min(_OTHERS_AT_ONCE, others.shape[0])):
                full = np.asarray((rows[block] @ others[part].T).toarray())
                yield row + start, other + first, full[row, other]
                continue
            for at in range(0, len(row), _PAIRS_AT_ONCE):
                left, right = row[at : at + _PAIRS_AT_ONCE] + start, other[at : at + _PAIRS_AT_ONCE] + first
                yield left, right, np.asarray(rows[left].multiply(others[right]).sum(axis=1)).ravel()


class _Screen:
    """An upper bound of the cosines of sparse rows: x . y <= x_heavy . y_heavy + |x_light| |y_light|."""

    def __init__(self, rows: Any, others: Any) -> None:
        mass = np.asarray(rows.power(2).sum(axis=0)).ravel() + np.asarray(others.power(2).sum(axis=0)).ravel()
        heavy = np.sort(np.argsort(-mass, kind="stable")[:_HEAVY_COLUMNS])
        (self._rows, self._light_rows), (self._others, self._light_others) = (
            (csr[:, heavy].tocsr(), self._light(csr, csr[:, heavy])) for csr in (rows, others)
        )

    @staticmethod
    def _light(csr: Any, heavy: Any) -> npt.NDArray[np.float32]:
        rest = np.asarray(csr.power(2).sum(axis=1)).ravel() - np.asarray(heavy.power(2).sum(axis=1)).ravel()
        return np.asarray(np.sqrt(np.maximum(rest, 0)), dtype=np.float32)

    def candidates(self, block: slice, part: slice, floor: float) -> tuple[IntArray, IntArray]:
        left, right = (csr.astype(np.float32).toarray() for csr in (self._rows[block], self._others[part]))
        bound = left @ right.T
        bound += np.outer(self._light_rows[block], self._light_others[part])
        row, other = np.nonzero(bound >= floor - _SCREEN_SLACK)
        return row, other
