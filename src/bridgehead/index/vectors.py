"""The rows of one side: candidates from FAISS, scores and order from the stored float16 rows.

Under 50,000 rows the FAISS index is flat, so candidates are exact; above it is IVF with 8-bit codes, and `nprobe` is
measured to reach a recall against exact search with queries of the other modality (an index tuned with its own rows can
fail for those). Either way the candidates are scored again from the stored rows in float64, and ordered by score (equal
to 1e-12 is tied), then by row, so pages are stable. This module is not about items or names (`store`).
"""

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.vectors import FloatArray, IntArray, check_rows, unit_rows

FLAT_BELOW = 50_000
_DECIMALS = 12
_NEARLY_TIED = 1e-6
_FIRST_PAGES = 256
_WIDTH = 4
_GROWTH = 4
_BLOCK = 16_384


@dataclass(frozen=True, eq=False)
class Ranked:
    """Rows found for one query, best first: `rows` int64 (m,), `scores` float64 (m,), cosines in [-1, 1]."""

    rows: IntArray
    scores: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.rows)


class SideVectors:
    """Search over the rows of one side: `found` is a FAISS index of them, `rows` the stored (n, d) float16 array.

    `nprobe` is how many of the lists of an IVF index are looked at for the first pages, None for a flat one.
    """

    def __init__(self, found: Any, rows: npt.NDArray[np.float16], nprobe: int | None) -> None:
        self.found = found
        self.rows = rows
        self.nprobe = nprobe

    def row(self, number: int) -> FloatArray:
        """Return row `number` as a float32 unit row (d,); a zero row stays zero."""
        stored: FloatArray = unit_rows(self.rows[number : number + 1].astype(np.float32))[0]
        return stored

    def search(self, queries: Any, k: int, offset: int = 0) -> list[Ranked]:
        """Return for each query row (m, d) the hits number offset + 1 to offset + k.

        The score is the cosine of the query with the stored row. Fewer hits are returned when the side has fewer rows;
        a zero query has no direction and gets none. Pages of one query never overlap. Raises `ArgumentError` (k < 1,
        offset < 0), `ShapeError` and `NonFiniteRowsError`.
        """
        check_page(k, offset)
        queries = unit_rows(check_rows(queries, "query rows"), dtype=np.float64)
        if queries.shape[1] != self.rows.shape[1]:
            raise ShapeError(f"query rows have {queries.shape[1]} columns; the index has {self.rows.shape[1]}")
        return [self._page(query, k, offset) for query in queries]

    def rank_of(self, query: Any, row: int) -> int:
        """Return the exact rank (from 1) of `row` among all rows for one query (d,), ties by row number as in `search`.

        Reads every stored row, in blocks. Raises `ShapeError` and `NonFiniteRowsError`.
        """
        unit = unit_rows(check_rows(np.asarray(query)[None], "query rows"), dtype=np.float64)[0]
        own = _cosines(self.rows[row : row + 1], unit)[0]
        before = 0
        for start in range(0, len(self.rows), _BLOCK):
            scores = _cosines(self.rows[start : start + _BLOCK], unit)
            numbers = np.arange(start, start + len(scores))
            before += int(((scores > own) | ((scores == own) & (numbers < row))).sum())
        return before + 1

    def _page(self, query: FloatArray, k: int, offset: int) -> Ranked:
        if not len(self.rows) or not query.any():
            return Ranked(np.zeros(0, np.int64), np.zeros(0))
        ranked = self._ranked(query, min(offset + k, len(self.rows)))
        return Ranked(ranked.rows[offset : offset + k], ranked.scores[offset : offset + k])

    def _ranked(self, query: FloatArray, end: int) -> Ranked:
        """Return at least `end` hits. A deeper page extends the order of the pages before it, so none overlap."""
        rows = np.zeros(0, np.int64)
        scores = np.zeros(0)
        limit = _FIRST_PAGES
        while len(rows) < end:
            nprobe = self.nprobe * (limit // _FIRST_PAGES) if self.nprobe is not None else None
            found, complete = self._candidates(query, limit, nprobe)
            fresh = ~np.isin(found.rows, rows)
            room = int(fresh.sum()) if complete else limit - len(rows)
            rows = np.concatenate([rows, found.rows[fresh][:room]])
            scores = np.concatenate([scores, found.scores[fresh][:room]])
            limit *= _GROWTH
        return Ranked(rows, scores)

    def _candidates(self, query: FloatArray, limit: int, nprobe: int | None) -> tuple[Ranked, bool]:
        """Return candidates in exact order and whether they are all rows; tied ones at `limit` are all among them."""
        width = _WIDTH * limit
        while True:
            numbers = candidate_rows(self.found, query[None].astype(np.float32), min(width, len(self.rows)), nprobe)[0]
            numbers = numbers[numbers >= 0]
            found = rescored(self.rows, numbers, query)
            complete = len(numbers) == len(self.rows)
            cut_in_tie = len(numbers) >= limit and found.scores[limit - 1] - found.scores[-1] <= _NEARLY_TIED
            if complete or not cut_in_tie:
                return found, complete
            width *= _GROWTH
            nprobe = nprobe * _GROWTH if nprobe is not None else None


def check_page(k: Any, offset: Any) -> None:
    """Raise `ArgumentError` unless `k` is a whole number of at least 1 and `offset` one of at least 0."""
    if not _is_whole(k) or k < 1:
        raise ArgumentError(f"k = {k!r}; expected the number of hits, a whole number of at least 1")
    if not _is_whole(offset) or offset < 0:
        raise ArgumentError(f"offset = {offset!r}; expected the number of hits to skip, a whole number of at least 0")


def _is_whole(number: Any) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


def faiss_library() -> Any:
    """Return FAISS, imported when it is first needed; untyped, since its stubs lag behind its Python layer."""
    return importlib.import_module("faiss")


def candidate_rows(found: Any, queries: FloatArray, width: int, nprobe: int | None) -> IntArray:
    """Return (m, width) row numbers from FAISS, -1 where the lists that were looked at hold no more."""
    if nprobe is None:
        return np.asarray(found.search(queries, width)[1], dtype=np.int64)
    # nprobe travels with the call: the index is shared by threads.
    parameters = faiss_library().SearchParametersIVF(nprobe=min(nprobe, found.nlist))
    return np.asarray(found.search(queries, width, params=parameters)[1], dtype=np.int64)


def rescored(rows: npt.NDArray[np.float16], numbers: IntArray, query: FloatArray) -> Ranked:
    """Return rows `numbers` by descending cosine with `query` (a unit row), in float64; ties by row number."""
    numbers = np.sort(numbers)
    blocks = [numbers[start : start + _BLOCK] for start in range(0, len(numbers), _BLOCK)]
    scores = np.concatenate([_cosines(rows[block], query) for block in blocks]) if blocks else np.zeros(0)
    order = np.argsort(-scores, kind="stable")
    return Ranked(numbers[order], scores[order])


def _cosines(rows: npt.NDArray[np.float16], query: FloatArray) -> npt.NDArray[np.float64]:
    stored = np.asarray(rows, dtype=np.float64)
    # The product is summed within each row, so that identical rows get identical scores wherever they stand.
    norms = np.sqrt((stored * stored).sum(axis=1))
    scores = (stored * query).sum(axis=1) / np.where(norms > 0, norms, 1)
    # Adding zero turns -0.0, which would be shown, into 0.0.
    return np.asarray(np.round(np.clip(scores, -1, 1), _DECIMALS) + 0.0)


def exact_scores(rows: npt.NDArray[np.float16], queries: FloatArray, block: int = _BLOCK) -> Iterator[FloatArray]:
    """Yield (m, block) float32 cosines of unit `queries` with the stored rows, block after block."""
    for start in range(0, len(rows), block):
        yield queries @ unit_rows(rows[start : start + block].astype(np.float32)).T
