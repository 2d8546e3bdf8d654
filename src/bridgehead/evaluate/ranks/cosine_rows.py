"""Rows of one side, ready to be compared by cosine: exact float64 cosines of single pairs, float32 rows for products.

The cosine of a pair is one number, a function of its two rows alone: it is the same whichever row is the query, and
whatever else is scored. Float32 products come with a proven bound on how far they can be from it. This module is not
about counting (`exact`) or metrics (`ties`).
"""

from collections.abc import Callable
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from bridgehead.errors import ShapeError
from bridgehead.evaluate.ties import Float64Array
from bridgehead.vectors import IntArray, block_rows, check_rows, to_numpy

Float32Array = npt.NDArray[np.float32]

_BLOCK_BYTES = 4 << 20
_PAIR_BYTES = 1 << 20
# Squares of numbers up to 2^400 and sums of them stay inside float64 (2^1023), and so do those of 2^-400.
_FAR = 400


class CosineRows:
    """Rows (n, d) of one side with their lengths; nothing of their size is copied until it is asked for.

    `rows` is an array or tensor of numbers. A zero row has cosine 0 with everything. Raises `NonFiniteRowsError`,
    naming the rows, for NaN and infinity, and `ShapeError` for a sparse matrix or another number of dimensions.
    """

    def __init__(self, rows: Any, name: str) -> None:
        if hasattr(to_numpy(rows), "tocsr"):
            raise ShapeError(
                f"{name} is a sparse matrix; expected dense rows (n, d): pass .toarray(), or score in blocks with "
                "report_from_scores"
            )
        self._rows = check_rows(rows, name)
        n, self.n_columns = self._rows.shape
        self._shift: IntArray | None = None
        self.length = np.ones(n)
        for part in self.parts():
            self._measure(part)

    def __len__(self) -> int:
        return len(self.length)

    def _measure(self, part: slice) -> None:
        largest = np.abs(self._rows[part]).max(axis=1, initial=0)
        exponent = np.frexp(largest.astype(np.float64))[1]
        far = np.abs(exponent) > _FAR
        if far.any():
            self._shift = np.zeros(len(self), dtype=np.int64) if self._shift is None else self._shift
            self._shift[part] = np.where(far, -exponent, 0)
        block = self.scaled64(part)
        length = np.sqrt((block * block).sum(axis=1))
        self.length[part] = np.where(length > 0, length, 1)

    def parts(self) -> list[slice]:
        """Return slices of the rows, each of about 4 MB in float64."""
        return slices(len(self), block_rows(max(1, self.n_columns), 8, _BLOCK_BYTES))

    def scaled64(self, index: Any) -> Float64Array:
        """Return the rows at `index` in float64, each times a power of two that is 1 unless its numbers are extreme."""
        block: Float64Array = self._rows[index].astype(np.float64)
        return block if self._shift is None else np.ldexp(block, self._shift[index, None])

    def reader(self, most: int) -> Callable[[IntArray], Float64Array]:
        """Return a function that reads up to `most` rows as `scaled64` does, into memory that it uses again each time.

        Memory that is new each time costs more than the numbers that are put into it.
        """
        raw = np.empty((most, self.n_columns), dtype=self._rows.dtype)
        wide = np.empty((most, self.n_columns))

        def read(index: IntArray) -> Float64Array:
            block = wide[: len(index)]
            # Without the mode, take() would fill memory of its own first; no index is out of range.
            np.copyto(block, np.take(self._rows, index, axis=0, out=raw[: len(index)], mode="clip"))
            return block if self._shift is None else np.ldexp(block, self._shift[index, None], out=block)

        return read

    def unit64(self, index: Any) -> Float64Array:
        """Return the unit rows at `index` (rows or a slice) in float64."""
        block = self.scaled64(index)
        block /= self.length[index, None]
        # Adding zero turns -0.0 into 0.0, so that equal rows have equal bytes.
        block += 0.0
        return block

    @cached_property
    def unit32(self) -> Float32Array:
        """All unit rows, (n, d), rounded once to float32."""
        return self.unit32_at(np.arange(len(self)))

    def unit32_at(self, index: IntArray) -> Float32Array:
        """Return the unit rows at `index` (m,) in float32, (m, d): those of `unit64`, rounded once."""
        units = np.empty((len(index), self.n_columns), dtype=np.float32)
        for part in slices(len(index), block_rows(max(1, self.n_columns), 8, _BLOCK_BYTES)):
            units[part] = self.unit64(index[part])
        return units

    def distinct(self) -> tuple[IntArray, IntArray]:
        """Return (first, code): the first row of each distinct unit row, and each row's number among those."""
        marks = np.concatenate([_marks(self.unit64(part)) for part in self.parts()] or [np.zeros(0, dtype=np.uint64)])
        _, code, count = np.unique(marks, return_inverse=True, return_counts=True)
        # Equal rows have equal marks, so a mark that occurs once settles its row; the others are told by their bytes.
        shared = np.flatnonzero(count[code] > 1)
        seen: dict[bytes, int] = {}
        for part in slices(len(shared), block_rows(max(1, self.n_columns), 8, _BLOCK_BYTES)):
            for i, row in zip(shared[part].tolist(), self.unit64(shared[part]), strict=True):
                code[i] = len(count) + seen.setdefault(blake2b(row.tobytes(), digest_size=20).digest(), len(seen))
        _, first, code = np.unique(code, return_index=True, return_inverse=True)
        return first.astype(np.int64), code.astype(np.int64)


def slices(stop: int, step: int, start: int = 0) -> list[slice]:
    """Return consecutive slices of `step` that cover start .. stop - 1; the last may be shorter."""
    return [slice(left, min(left + step, stop)) for left in range(start, stop, step)]


def _marks(units: Float64Array) -> npt.NDArray[np.uint64]:
    """Return a 64-bit number for each row, equal for rows of equal bytes."""
    bits = units.view(np.uint64)
    # Round numbers such as 0.5 differ in their upper bits only, which multiplication would push out.
    bits = bits ^ (bits >> np.uint64(32))
    weights = np.random.default_rng(0).integers(0, 2**64, units.shape[1], dtype=np.uint64) | np.uint64(1)
    bits *= weights
    return np.asarray(bits.sum(axis=1, dtype=np.uint64))


def pair_cosines(left: CosineRows, right: CosineRows, rows_left: IntArray, rows_right: IntArray) -> Float64Array:
    """Return the float64 cosines of row `rows_left[i]` with row `rows_right[i]`, (m,).

    Each is a product and a sum along one contiguous row and one division, so its value depends on the two rows alone,
    and is the same with the sides exchanged.
    """
    cosines = np.empty(len(rows_left))
    step = max(1, min(len(rows_left), block_rows(max(1, left.n_columns), 8, _PAIR_BYTES)))
    own, other = left.reader(step), right.reader(step)
    for part in slices(len(rows_left), step):
        products = own(rows_left[part])
        products *= other(rows_right[part])
        products.sum(axis=1, out=cosines[part])
    cosines /= left.length[rows_left] * right.length[rows_right]
    return cosines


def screening_error(n_columns: int) -> float:
    """Return a bound on |float32 product - exact product| of two unit rows with d columns.

    Each entry is rounded once (relative u = 2^-24), the sum of d products errs by at most d u / (1 - d u) times the
    sum of their magnitudes, which is at most 1 (Cauchy-Schwarz), in whatever order it is taken (Higham, Accuracy and
    Stability of Numerical Algorithms, section 3.1). One u more covers rounding the threshold.
    """
    return _error(n_columns, 2.0**-24)


def product64_error(n_columns: int) -> float:
    """Return a bound on |float64 product of `unit64` rows - `pair_cosines`|, which differ in the order of rounding."""
    return 2 * _error(n_columns, 2.0**-53)


def _error(n_columns: int, unit: float) -> float:
    rounding = (n_columns + 6) * unit
    return rounding / (1 - rounding) if rounding < 0.5 else np.inf
