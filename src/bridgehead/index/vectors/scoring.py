"""Exact scores of stored float16 rows: screened in float32 where there are many, decided in float64.

A float32 score of two unit rows is off by at most d times float32's rounding. So whatever lies further than twice that
below the last place wanted cannot belong there, and only the rest is scored in float64. Results do not depend on
blocks or threads, since the float64 score of a row is summed within that row.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from bridgehead.index.vectors.ranked import Ranked
from bridgehead.vectors import FloatArray, IntArray

Float16Rows = npt.NDArray[np.float16]
DECIMALS = 12
BLOCK = 16_384
_ALL_IN_FLOAT64 = 256
_WIDENED: list[FloatArray] = []


def widened(rows: Float16Rows) -> FloatArray:
    """Return float16 `rows` as float32; a table of the 65,536 values, which is three times as fast as a cast."""
    if not _WIDENED:
        _WIDENED.append(np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32))
    return np.take(_WIDENED[0], np.ascontiguousarray(rows).view(np.uint16))


def cosines(rows: Float16Rows, query: FloatArray) -> npt.NDArray[np.float64]:
    """Return the cosines (m,) in float64 of stored rows (m, d) with a unit query (d,), to 12 decimals.

    A zero row scores 0. Identical rows get identical scores wherever they stand.
    """
    stored = rows.astype(np.float64)
    norms = np.sqrt(np.einsum("ij,ij->i", stored, stored))
    scores = np.einsum("ij,j->i", stored, query) / np.where(norms > 0, norms, 1)
    # Adding zero turns -0.0, which would be shown, into 0.0.
    return np.asarray(np.round(np.clip(scores, -1, 1), DECIMALS) + 0.0)


def screened(rows: Float16Rows, query: FloatArray) -> FloatArray:
    """Return the cosines (m,) in float32, off by at most `margin`."""
    stored = widened(rows)
    norms = np.sqrt(np.einsum("ij,ij->i", stored, stored))
    return np.asarray(np.einsum("ij,j->i", stored, query) / np.where(norms > 0, norms, 1), dtype=np.float32)


def margin(dim: int) -> float:
    """Return how far a float32 cosine of rows of `dim` columns may be off."""
    return float((dim + 4) * np.finfo(np.float32).eps)


def best_of(
    rows: Float16Rows, positions: IntArray | slice, query: FloatArray, limit: int, rough: FloatArray | None = None
) -> tuple[Ranked, float]:
    """Return the best `limit` of `rows[positions]` in exact order, and what the least of all their scores is at most.

    `positions` ascending (or a slice) into `rows`, a memory-mapped array for all that this cares; the numbers of the
    result are positions. `query`: a float64 unit row. `rough`: the `screened` scores of these positions, where they are
    known. At least the rows tied with the last place are all compared.
    """
    where = np.arange(*positions.indices(len(rows))) if isinstance(positions, slice) else positions
    if len(where) <= _ALL_IN_FLOAT64:
        scores = cosines(rows[where], query)
        lowest = float(scores.min()) if len(scores) else 0.0
        return Ranked(where, scores).ordered(limit), lowest
    if rough is None:
        rough = np.concatenate(list(_rough(rows, where, query.astype(np.float32))))
    off = margin(rows.shape[1])
    least = -np.inf
    if limit < len(where):
        least = float(np.partition(rough, len(rough) - limit)[len(rough) - limit]) - 2 * off
    kept = where[rough >= least]
    scores = np.concatenate([cosines(rows[kept[i : i + BLOCK]], query) for i in range(0, len(kept), BLOCK)])
    return Ranked(kept, scores).ordered(limit), float(rough.min()) + off


def _rough(rows: Float16Rows, where: IntArray, query: FloatArray) -> Iterator[FloatArray]:
    for start in range(0, len(where), BLOCK):
        yield screened(rows[where[start : start + BLOCK]], query)


def rank_among(rows: Float16Rows, query: FloatArray, own: float, before: npt.NDArray[np.bool_],
               live: npt.NDArray[np.bool_] | None) -> int:  # fmt: skip
    """Return how many of `rows` stand before a score `own`: above it, or equal and marked in `before`.

    `live` marks the rows that count, None for all. Reads every row, in blocks.
    """
    off = margin(rows.shape[1])
    query32 = query.astype(np.float32)
    count = 0
    for start in range(0, len(rows), BLOCK):
        block = slice(start, start + BLOCK)
        rough = screened(rows[block], query32)
        counted = live[block] if live is not None else np.ones(len(rough), bool)
        count += int((counted & (rough > own + 2 * off)).sum())
        near = start + np.flatnonzero(counted & (np.abs(rough - own) <= 2 * off))
        scores = cosines(rows[near], query)
        count += int(((scores > own) | ((scores == own) & before[near])).sum())
    return count
