"""Exact tie levels where each query ranks a list of its own: spectra against equal-mass molecules, choose-among-T.

Lists may differ in length and may lack a true item, which then is out of reach and is counted (`ties.TieLevels`).
Every listed candidate is scored in float64 in blocks; nothing depends on their size. This module is not about how lists
come about (`candidate_lists`) or about queries that rank all candidates (`exact`, `scored`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.evaluate.arguments import rows_at_once
from bridgehead.evaluate.ranks.exact import CosineRows
from bridgehead.evaluate.ranks.levels import TIE, Truth
from bridgehead.evaluate.scored import BlockFunction, checked_block
from bridgehead.evaluate.ties import Float64Array, TieLevels
from bridgehead.vectors import IntArray, block_rows, to_numpy

_PAIRS_AT_ONCE = 1 << 20
_ROWS_BYTES = 4 << 20
_UNITS_BYTES = 256 << 20
_SCORES_BYTES = 64 << 20


@dataclass(frozen=True, eq=False)
class CandidateLists:
    """The candidates of each row of the querying side: those of row i are `indices[indptr[i]:indptr[i + 1]]`.

    Both are int64; `indices` are rows out of `n_candidates`, ascending in each list and there at most once.
    """

    indptr: IntArray
    indices: IntArray
    n_candidates: int

    @classmethod
    def of(cls, given: Any, n_queries: int, n_candidates: int, name: str = "candidates") -> "CandidateLists":
        """Return `given` as lists for `n_queries` rows, of candidates 0 .. `n_candidates` - 1.

        `given` is a sparse matrix or boolean array (n_queries, n_candidates) whose entries that are not zero are the
        candidates, a tuple of two arrays (indptr, indices) as in a CSR matrix, or a list with an integer array for each
        query. The order within a list and repeats do not matter, and a list may be empty. Raises `ShapeError` for other
        sizes and `ArgumentError` for what is no list or names a candidate that there is not.

        >>> CandidateLists.of([[2, 0, 2], []], 2, 3).indices
        array([0, 2])
        """
        indptr, indices = _as_csr(given, n_queries, n_candidates, name)
        _check(indptr, indices, n_queries, n_candidates, name)
        query = np.repeat(np.arange(n_queries, dtype=np.int64), np.diff(indptr))
        keys = distinct_keys(query * max(1, n_candidates) + indices)
        query, indices = np.divmod(keys, max(1, n_candidates))
        indptr = np.searchsorted(query, np.arange(n_queries + 1)).astype(np.int64)
        return cls(indptr, indices, n_candidates)

    @property
    def sizes(self) -> IntArray:
        """The number of candidates of each row, (n_queries,)."""
        return np.diff(self.indptr)

    def entries(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """Return (number, candidate) for all entries of the lists of `rows`, where number counts `rows` from 0."""
        sizes = self.sizes[rows]
        first = np.cumsum(sizes) - sizes
        places = np.arange(int(sizes.sum()), dtype=np.int64) + np.repeat(self.indptr[rows] - first, sizes)
        return np.repeat(np.arange(len(rows), dtype=np.int64), sizes), self.indices[places]


def distinct_keys(keys: IntArray) -> IntArray:
    """Return the distinct integers, ascending; for keys that are nearly ascending already, faster than `np.unique`."""
    ordered = np.sort(keys, kind="stable")
    return np.asarray(ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]], dtype=np.int64)


def levels_of_listed_rows(
    queries: CosineRows, candidates: CosineRows, truth: Truth, lists: CandidateLists, block: int | None = None
) -> tuple[TieLevels, Float64Array]:
    """Return the exact tie levels of the queries in `truth` by cosine, and each one's best true score.

    The score is NaN for a query whose list lacks every true item. `block` is the number of queries taken at once.
    Time is of the order of all listed pairs, memory O(block x longest list + rows).
    """
    pieces = []
    scorer = _PairScorer(queries, candidates)
    for part in _query_blocks(lists.sizes[truth.rows], block):
        own = _part(truth, part)
        query, candidate = lists.entries(own.rows)
        scores = scorer.scores(own.rows, query, candidate)
        pieces.append(_levels_of_block(scores, query, candidate, own, lists.n_candidates))
    return _joined(pieces, truth, lists)


class _PairScorer:
    """Cosines of given pairs of rows, in memory that is used again for each few hundred of them."""

    def __init__(self, queries: CosineRows, candidates: CosineRows) -> None:
        self._queries, self._candidates = queries, candidates
        width = max(1, queries.n_columns)
        self._step = block_rows(2 * width, 8, _ROWS_BYTES)
        self._left, self._right = np.empty((2, self._step, queries.n_columns))
        # Most rows stand in many lists: they are made unit rows once where that fits, else for every list again.
        fits = len(candidates) * width * 8 <= _UNITS_BYTES
        self._units = candidates.unit64(slice(None)) if fits else None
        self._read = candidates.reader(self._step)

    def scores(self, rows: IntArray, query: IntArray, candidate: IntArray) -> Float64Array:
        """Return the cosine of the query `rows[query[i]]` with `candidate[i]`, (m,); `query` ascends."""
        scores = np.empty(len(query))
        for start in range(0, len(query), self._step):
            pairs = slice(start, min(start + self._step, len(query)))
            first, last = int(query[start]), int(query[pairs.stop - 1])
            asking = self._queries.unit64(rows[first : last + 1])
            left = self._left[: pairs.stop - start]
            np.take(asking, query[pairs] - first, axis=0, out=left, mode="clip")
            scores[pairs] = np.einsum("ij,ij->i", left, self._found(candidate[pairs]))
        return scores

    def _found(self, candidate: IntArray) -> Float64Array:
        if self._units is not None:
            right = self._right[: len(candidate)]
            # Without the mode, take() would fill memory of its own first; no index is out of range.
            return np.asarray(np.take(self._units, candidate, axis=0, out=right, mode="clip"))
        right = self._read(candidate)
        right /= self._candidates.length[candidate, None]
        return right


def levels_of_listed_scores(
    score: BlockFunction,
    truth: Truth,
    n_queries: int,
    lists: CandidateLists,
    block: int | None = None,
    name: str = "score",
) -> tuple[TieLevels, Float64Array]:
    """Return the same for a scorer that gives blocks of scores against all candidates, of which the listed are read.

    Blocks without a query are not scored. Raises as `scored.checked_block` does, and `ArgumentError` for a block under
    1.
    """
    pieces = []
    step = _step(block) or block_rows(lists.n_candidates, 8, _SCORES_BYTES)
    for start in range(0, n_queries, step):
        rows = slice(start, min(start + step, n_queries))
        first, last = np.searchsorted(truth.rows, [rows.start, rows.stop]).tolist()
        if first < last:
            own = _part(truth, slice(first, last))
            query, candidate = lists.entries(own.rows)
            scores = checked_block(score, rows, lists.n_candidates, name)[own.rows[query] - rows.start, candidate]
            pieces.append(_levels_of_block(scores, query, candidate, own, lists.n_candidates))
    return _joined(pieces, truth, lists)


def _as_csr(given: Any, n_queries: int, n_candidates: int, name: str) -> tuple[IntArray, IntArray]:
    is_mask = isinstance(given, np.ndarray) and given.ndim == 2 and given.dtype == np.bool_
    if is_mask or hasattr(given, "tocsr"):
        matrix = to_numpy(given)
        if matrix.shape != (n_queries, n_candidates):
            raise ShapeError(
                f"{name} is a matrix of shape {matrix.shape}; expected ({n_queries}, {n_candidates}): a row for each "
                "query, a column for each candidate"
            )
        query, candidate = matrix.nonzero()
        indptr = np.searchsorted(query, np.arange(n_queries + 1))
        return indptr.astype(np.int64), candidate.astype(np.int64)
    if isinstance(given, tuple) and len(given) == 2:
        return _integers(given[0], f"{name}: indptr"), _integers(given[1], f"{name}: indices")
    try:
        lists = [_integers(one, f"{name}[{i}]") for i, one in enumerate(given)]
    except TypeError as error:
        raise ArgumentError(
            f"{name} is {type(given).__name__}; expected a list with an array of candidate rows for each query, a "
            "tuple (indptr, indices), or a sparse matrix"
        ) from error
    if len(lists) != n_queries:
        raise ShapeError(f"{name} has {len(lists)} lists; expected {n_queries}, one for each row of the querying side")
    sizes = np.array([len(one) for one in lists], dtype=np.int64)
    return np.append(0, np.cumsum(sizes)), np.concatenate([np.zeros(0, dtype=np.int64), *lists])


def _integers(values: Any, name: str) -> IntArray:
    array = to_numpy(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ArgumentError(f"{name} has dtype {array.dtype} and shape {array.shape}; expected row numbers, (m,)")
    return np.asarray(array, dtype=np.int64)


def _check(indptr: IntArray, indices: IntArray, n_queries: int, n_candidates: int, name: str) -> None:
    if len(indptr) != n_queries + 1 or indptr[0] != 0 or indptr[-1] != len(indices) or (np.diff(indptr) < 0).any():
        raise ShapeError(
            f"{name}: indptr has {len(indptr)} entries; expected {n_queries + 1}, ascending from 0 to the number of "
            f"indices, {len(indices)}: the candidates of row i are indices[indptr[i]:indptr[i + 1]]"
        )
    outside = np.flatnonzero((indices < 0) | (indices >= n_candidates))
    if len(outside):
        query = int(np.searchsorted(indptr, outside[0], side="right")) - 1
        raise ArgumentError(
            f"{name} names candidate {int(indices[outside[0]])} in the list of row {query}; candidates are "
            f"0 to {n_candidates - 1}, the further ones of pool= after the side's own"
        )


def _step(block: int | None) -> int | None:
    return rows_at_once(block)


def _query_blocks(sizes: IntArray, block: int | None) -> Iterator[slice]:
    """Yield slices of queries: `block` each, or as many as list about a million pairs, at least one."""
    step = _step(block)
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        before = int(ends[start]) - int(sizes[start])
        stop = start + step if step else int(np.searchsorted(ends, before + _PAIRS_AT_ONCE, side="right"))
        stop = min(max(stop, start + 1), len(sizes))
        yield slice(start, stop)
        start = stop


def _part(truth: Truth, part: slice) -> Truth:
    left, right = np.searchsorted(truth.query, [part.start, part.stop]).tolist()
    return Truth(truth.rows[part], truth.query[left:right] - part.start, truth.candidate[left:right], truth.n_without)


@dataclass(frozen=True, eq=False)
class _Piece:
    """Levels of a block of queries, numbered from 0: columns (L,), and for each query its best true score."""

    query: IntArray
    above: IntArray
    tied: IntArray
    true: IntArray
    best: Float64Array


def _levels_of_block(
    scores: Float64Array, query: IntArray, candidate: IntArray, truth: Truth, n_candidates: int
) -> _Piece:
    """Return the levels of the listed (query, candidate) pairs, ascending by query, with these scores."""
    is_true = np.isin(query * n_candidates + candidate, truth.query * n_candidates + truth.candidate)
    order = np.lexsort((-scores, query))
    scores, places = scores[order], np.flatnonzero(is_true[order])
    owner, found = query[places], scores[places]
    starts_query = np.append(True, owner[1:] != owner[:-1])[: len(owner)]
    first = np.flatnonzero(starts_query | np.append(True, found[:-1] - found[1:] > TIE)[: len(owner)])
    last = np.append(first[1:], len(owner))[: len(first)] - 1
    owner_of_level = owner[first]
    begin = np.searchsorted(query, owner_of_level)
    end = np.searchsorted(query, owner_of_level, side="right")
    above = _first_at_most(scores, begin, end, found[first] + TIE) - begin
    stop = _first_at_most(scores, begin, end, np.nextafter(found[last] - TIE, -np.inf)) - begin
    # A candidate within TIE of two levels belongs to the lower one, so that levels never overlap.
    followed = np.append(owner_of_level[1:] == owner_of_level[:-1], False)[: len(first)]
    stop = np.where(followed, np.minimum(stop, np.append(above[1:], 0)[: len(first)]), stop)
    best = np.full(len(truth.rows), np.nan)
    best[owner[starts_query]] = found[starts_query]
    return _Piece(owner_of_level, above, stop - above, last - first + 1, best)


def _first_at_most(descending: Float64Array, begin: IntArray, end: IntArray, bound: Float64Array) -> IntArray:
    """Return for each (begin, end, bound) the first place in begin .. end - 1 whose value is at most `bound`, or end.

    `descending` falls within every such span: a binary search in all spans at once.
    """
    low, high = begin.copy(), end.copy()
    while (open_ := low < high).any():
        middle = (low + high) // 2
        below = descending[np.minimum(middle, len(descending) - 1)] <= bound
        high = np.where(open_ & below, middle, high)
        low = np.where(open_ & ~below, middle + 1, low)
    return low


def _joined(pieces: list[_Piece], truth: Truth, lists: CandidateLists) -> tuple[TieLevels, Float64Array]:
    offsets = np.cumsum([0] + [len(piece.best) for piece in pieces])
    query = np.concatenate([piece.query + offset for piece, offset in zip(pieces, offsets[:-1], strict=True)])
    above, tied, true = (
        np.concatenate([getattr(piece, column) for piece in pieces]) for column in ("above", "tied", "true")
    )
    n_true = np.bincount(truth.query, minlength=len(truth.rows))
    n_missing = n_true - np.bincount(query, true, minlength=len(truth.rows)).astype(np.int64)
    levels = TieLevels.with_missing(query, above, tied, true, n_missing, lists.sizes[truth.rows])
    return levels, np.concatenate([piece.best for piece in pieces])
