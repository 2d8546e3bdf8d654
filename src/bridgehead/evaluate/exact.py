"""Exact tie levels of rows against rows, in blocks: float32 products screen, float64 decides.

For every query a float32 product with all candidates settles those that are further from a true score than a proven
bound on its rounding; the few others are scored again in float64. Identical candidate rows are scored once and counted
with their number. So the counts depend on the rows alone: not on block size, number of threads or order. Memory is
O(block x N) beside the rows. This module is not about metrics (`ties`).
"""

from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.evaluate.levels import TIE, Bounds, Truth, count_rows, level_bounds
from bridgehead.evaluate.ties import Float64Array, TieLevels
from bridgehead.vectors import IntArray, block_rows, check_rows, to_numpy

_BLOCK_BYTES = 16 << 20
_CROWDED = 1 / 64


class CosineRows:
    """Rows (n, d) of one side, ready to be compared by cosine: a float32 copy of unit rows, and float64 on demand.

    Raises `NonFiniteRowsError`, naming the rows, for NaN and infinity. A zero row has cosine 0 with everything.
    """

    def __init__(self, rows: Any, name: str) -> None:
        if hasattr(to_numpy(rows), "tocsr"):
            raise ShapeError(
                f"{name} is a sparse matrix; expected dense rows (n, d): pass .toarray(), or score in blocks with "
                "report_from_scores"
            )
        self._rows = check_rows(rows, name)
        n, self.n_columns = self._rows.shape
        self._largest = np.ones(n)
        self._norm = np.ones(n)
        self.unit32 = np.zeros(self._rows.shape, dtype=np.float32)
        for rows_slice in _slices(n, block_rows(max(1, self.n_columns), 8, _BLOCK_BYTES)):
            block = self._rows[rows_slice].astype(np.float64)
            largest = np.abs(block).max(axis=1, initial=0)
            self._largest[rows_slice] = np.where(largest > 0, largest, 1)
            block /= self._largest[rows_slice, None]
            norm = np.sqrt((block * block).sum(axis=1))
            self._norm[rows_slice] = np.where(norm > 0, norm, 1)
            self.unit32[rows_slice] = block / self._norm[rows_slice, None]

    def __len__(self) -> int:
        return len(self._norm)

    def unit64(self, index: Any) -> Float64Array:
        """Return the unit rows at `index` (rows or a slice) in float64."""
        block = self._rows[index].astype(np.float64)
        block /= self._largest[index, None]
        block /= self._norm[index, None]
        # Adding zero turns -0.0 into 0.0, so that equal rows have equal bytes.
        return np.asarray(block + 0.0)

    def distinct(self) -> tuple[IntArray, IntArray]:
        """Return (first, code): the first row of each distinct unit row, and each row's number among those."""
        codes: dict[bytes, int] = {}
        code = np.empty(len(self), dtype=np.int64)
        for rows in _slices(len(self), block_rows(max(1, self.n_columns), 8, _BLOCK_BYTES)):
            for i, row in enumerate(self.unit64(rows), rows.start):
                code[i] = codes.setdefault(blake2b(row.tobytes(), digest_size=20).digest(), len(codes))
        _, first = np.unique(code, return_index=True)
        return first.astype(np.int64), code


def _slices(n: int, step: int) -> list[slice]:
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


class Candidates:
    """The distinct rows of one side: those that occur once first, then the repeated ones with their numbers."""

    def __init__(self, side: CosineRows) -> None:
        first, code = side.distinct()
        copies = np.bincount(code, minlength=len(first)).astype(np.int64)
        order = np.argsort(copies, kind="stable")
        self._side = side
        self._first = first[order]
        self.copies = copies[order]
        self.code = np.empty_like(order)
        self.code[order] = np.arange(len(order))
        self.code = self.code[code]
        self.n_single = int(np.searchsorted(self.copies, 2))
        self.n_rows = len(side)
        self.unit32 = side.unit32[self._first]

    def __len__(self) -> int:
        return len(self._first)

    def unit64(self, index: Any) -> Float64Array:
        return self._side.unit64(self._first[index])

    def count(self, mask: npt.NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
        """Return for each row of a (n, len(self)) mask the distinct candidates in it, and all of them, (n,) each."""
        distinct = count_rows(mask)
        if self.n_single == len(self):
            return distinct, distinct
        repeats = mask[:, self.n_single :] @ (self.copies[self.n_single :] - 1).astype(np.float64)
        return distinct, distinct + repeats.astype(np.int64)


def screening_error(n_columns: int) -> float:
    """Return a bound on |float32 product - exact product| of two unit rows with d columns.

    Each entry is rounded once (relative u = 2^-24), the sum of d products errs by at most d u / (1 - d u) times the
    sum of their magnitudes, which is at most 1 (Cauchy-Schwarz), in whatever order it is taken (Higham, Accuracy and
    Stability of Numerical Algorithms, section 3.1). One u more covers rounding the threshold.
    """
    rounding = (n_columns + 6) * 2.0**-24
    return rounding / (1 - rounding) if rounding < 0.5 else np.inf


def levels_of_rows(
    queries: CosineRows, candidates: Candidates, truth: Truth, block: int | None = None
) -> tuple[TieLevels, Float64Array]:
    """Return the exact tie levels of the queries in `truth`, and each one's best true score (cosine, float64).

    `block` is the number of queries taken at once (default: what fits in 16 MB of scores).
    """
    if block is not None and block < 1:
        raise ArgumentError(f"block = {block}; expected at least 1 row")
    bounds = _true_levels(queries, candidates, truth)
    above = np.zeros(len(bounds.query), dtype=np.int64)
    tied = np.zeros(len(bounds.query), dtype=np.int64)
    step = block or block_rows(len(candidates), 4, _BLOCK_BYTES)
    for rows in _slices(len(truth.rows), step):
        counter = _BlockCounter(queries, candidates, bounds, truth.rows[rows], rows.start)
        for levels in bounds.passes(rows.start, rows.stop):
            above[levels], tied[levels] = counter.count(levels)
    return bounds.levels(above, tied, candidates.n_rows), bounds.best


def levels_both_ways(
    rows_a: CosineRows, rows_b: CosineRows, truth_a: Truth, truth_b: Truth, block: int | None = None
) -> tuple[tuple[TieLevels, Float64Array], tuple[TieLevels, Float64Array]]:
    """Return what `levels_of_rows` returns for the queries of a among rows of b, and for those of b among rows of a."""
    return (
        levels_of_rows(rows_a, Candidates(rows_b), truth_a, block),
        levels_of_rows(rows_b, Candidates(rows_a), truth_b, block),
    )


def _true_levels(queries: CosineRows, candidates: Candidates, truth: Truth) -> Bounds:
    """Score every true candidate in float64 (identical ones once) and group the scores into levels."""
    entries, true = np.unique(truth.query * len(candidates) + candidates.code[truth.candidate], return_counts=True)
    query, candidate = entries // len(candidates), entries % len(candidates)
    scores = _exact_scores(queries, candidates, truth.rows[query], candidate)
    return level_bounds(query, scores, true, candidates.copies[candidate], len(truth.rows))


def _exact_scores(queries: CosineRows, candidates: Candidates, rows: IntArray, index: IntArray) -> Float64Array:
    """Return the float64 cosines of query `rows[i]` with distinct candidate `index[i]`.

    Each is a product and a sum along one contiguous row, so its value does not depend on what else is scored.
    """
    scores = np.empty(len(rows))
    for part in _slices(len(rows), block_rows(3 * max(1, queries.n_columns), 8, _BLOCK_BYTES)):
        scores[part] = (queries.unit64(rows[part]) * candidates.unit64(index[part])).sum(axis=1)
    return scores


class _BlockCounter:
    """Counts, for a block of queries, the candidates above and inside given levels."""

    def __init__(self, queries: CosineRows, candidates: Candidates, bounds: Bounds, rows: IntArray, start: int) -> None:
        self._queries, self._candidates, self._bounds = queries, candidates, bounds
        self._rows, self._start = rows, start
        self._scores = queries.unit32[rows] @ candidates.unit32.T
        self._error = screening_error(queries.n_columns) + TIE

    def count(self, levels: IntArray) -> tuple[IntArray, IntArray]:
        """Return (above, tied) for each of `levels`, of which no two belong to one query."""
        local = self._bounds.query[levels] - self._start
        scores = self._scores if len(local) == len(self._scores) else self._scores[local]
        surely_above = scores > (self._bounds.high[levels] + self._error).astype(np.float32)[:, None]
        unsure = scores >= (self._bounds.low[levels] - self._error).astype(np.float32)[:, None]
        n_sure, above = self._candidates.count(surely_above)
        n_unsure = count_rows(unsure) - n_sure
        tied = self._bounds.copies[levels].copy()
        # The true candidates themselves are always within rounding of their score; more than these needs a look.
        crowded = np.flatnonzero(n_unsure > self._bounds.entries[levels])
        if len(crowded):
            extra, tied[crowded] = self._decide(levels[crowded], unsure[crowded] & ~surely_above[crowded])
            above[crowded] += extra
        return above, tied

    def _decide(self, levels: IntArray, unsure: npt.NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
        """Score the unsure candidates in float64; return how many are above and how many tied, for each level."""
        line, index = np.nonzero(unsure)
        rows = self._rows[self._bounds.query[levels] - self._start]
        if len(line) > _CROWDED * unsure.size and self._candidates.n_rows > 1:
            scores = self._product64(rows)[line, index]
        else:
            scores = _exact_scores(self._queries, self._candidates, rows[line], index)
        weights = self._candidates.copies[index].astype(np.float64)
        higher = scores > self._bounds.high[levels][line] + TIE
        equal = ~higher & (scores >= self._bounds.low[levels][line] - TIE)
        n = len(levels)
        return (
            np.bincount(line[higher], weights[higher], n).astype(np.int64),
            np.bincount(line[equal], weights[equal], n).astype(np.int64),
        )

    def _product64(self, rows: IntArray) -> Float64Array:
        """Return all float64 scores of a few rows: cheaper than one by one when most candidates are unsure."""
        scores = np.empty((len(rows), len(self._candidates)))
        units = self._queries.unit64(rows)
        for part in _slices(len(self._candidates), block_rows(max(1, units.shape[1]), 8, _BLOCK_BYTES)):
            scores[:, part] = units @ self._candidates.unit64(part).T
        return scores
