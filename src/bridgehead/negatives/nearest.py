"""The nearest rows of each query in bounded memory: exact up to a stated number of rows, through an index beyond it.

Dense rows go through FAISS, which scores block against block and never holds all scores; CSR rows through sparse
products of a block with all rows. Similarity is the cosine. This module is not about what counts as a negative
(`mining`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.index.vectors import faiss_library
from bridgehead.vectors import IntArray, float32_rows, unit_rows

Scores = npt.NDArray[np.float32]

EXACT_UP_TO, EXACT_UP_TO_CSR = 50_000, 20_000
_RECALL_FLOOR = 0.95
_SAMPLE = 256
_DEPTH = 10
_ROUNDING = 1e-6
_LEAST_GAIN = 0.01
_PROJECTED, _REFETCHED = 512, 4
_GATHERED = 1 << 24


def unit_any(rows: Any, name: str) -> Any:
    """Return dense rows or a CSR matrix in float32 with rows of norm 1; a zero row stays zero.

    Raises `ShapeError`, `ArgumentError` and `NonFiniteRowsError` as `vectors.check_rows` does.
    """
    rows = float32_rows(rows, name)
    if not hasattr(rows, "indptr"):
        return np.ascontiguousarray(unit_rows(rows, name))
    csr = sparse.csr_array(rows)
    sizes = np.diff(csr.indptr)
    # Norms after dividing by the largest magnitude: neither overflow nor vanish, as for dense rows.
    largest = np.asarray(abs(csr).max(axis=1).todense()).ravel().astype(np.float64)
    scaled = csr.data / np.repeat(np.where(largest > 0, largest, 1), sizes)
    squares = np.bincount(np.repeat(np.arange(csr.shape[0]), sizes), scaled**2, minlength=csr.shape[0])
    scaled /= np.repeat(np.sqrt(np.where(squares > 0, squares, 1)), sizes)
    return sparse.csr_array((scaled.astype(np.float32), csr.indices, csr.indptr), shape=csr.shape)


def zero_rows(rows: Any) -> npt.NDArray[np.bool_]:
    """Return which rows of a dense array or CSR matrix are zero throughout, (n,)."""
    if hasattr(rows, "indptr"):
        largest = np.asarray(abs(rows).sum(axis=1)).ravel()
    else:
        largest = np.abs(rows).max(axis=1, initial=0)
    return np.asarray(largest == 0, dtype=bool)


def pair_scores(queries: Any, candidates: Any, left: IntArray, right: IntArray) -> Scores:
    """Return the products of query `left[k]` with candidate `right[k]`, (P,) float32, gathered piece by piece."""
    found = np.empty(len(left), dtype=np.float32)
    width = max(1, int(candidates.nnz // max(1, candidates.shape[0])) if hasattr(candidates, "indptr") else
                candidates.shape[1])  # fmt: skip
    step = max(1, _GATHERED // width)
    for start in range(0, len(left), step):
        part = slice(start, start + step)
        x, y = queries[left[part]], candidates[right[part]]
        found[part] = (
            np.asarray(x.multiply(y).sum(axis=1)).ravel() if hasattr(x, "indptr") else np.einsum("ij,ij->i", x, y)
        )
    return found


class NearestRows:
    """Search among unit `candidates` (N, d), dense or CSR.

    Up to `exact_up_to` candidates (None: 50,000, and 20,000 for CSR rows) the search is exact. Beyond it dense rows are
    looked up in an inverted file (FAISS, full rows); the number of lists that are looked at is doubled until `recall`,
    the share of the 10 nearest that is found for a sample of queries, is 0.95 or gains under 0.01. CSR rows are first
    projected to 512 columns at random (Achlioptas 2003), and four times as many as are asked for are scored again from
    the rows. Projection and lists are drawn from `seed`.
    """

    def __init__(self, queries: Any, candidates: Any, *, exact_up_to: int | None, seed: int) -> None:
        if queries.shape[1] != candidates.shape[1]:
            raise ShapeError(
                f"queries have {queries.shape[1]} columns and candidates {candidates.shape[1]}; "
                "both must live in one space"
            )
        if hasattr(queries, "indptr") != hasattr(candidates, "indptr"):
            raise ArgumentError("one side is dense and the other a sparse matrix; expected both of one kind")
        self.queries, self.candidates = queries, candidates
        self.n = int(candidates.shape[0])
        is_sparse = hasattr(candidates, "indptr")
        if exact_up_to is None:
            exact_up_to = EXACT_UP_TO_CSR if is_sparse else EXACT_UP_TO
        self.exact = self.n <= exact_up_to
        self.recall = 1.0
        # Whether all scores of a block are held at once.
        self.in_blocks = is_sparse and self.exact
        self._rescore = is_sparse and not self.exact
        self._nprobe = 0
        if is_sparse:
            self._transposed = sparse.csr_array(candidates.T)
        if self.in_blocks:
            return
        self._dense = (queries, candidates) if not self._rescore else _projected(queries, candidates, seed)
        self._index = None if self.exact else self._inverted(seed)

    def search(self, rows: IntArray, width: int) -> tuple[IntArray, Scores]:
        """Return for queries number `rows` (m,) the `width` nearest, best first: numbers (m, width) and scores.

        Ties are ordered by number. Where an index holds no more, the number is -1 and the score -inf.
        """
        width = min(width, self.n)
        if width == 0 or not len(rows):
            return np.zeros((len(rows), width), np.int64), np.zeros((len(rows), width), np.float32)
        if self.in_blocks:
            numbers, scores = _best(self.queries[rows] @ self._transposed, width)
        else:
            fetched = min(self.n, _REFETCHED * width) if self._rescore else width
            numbers, scores = self._by_faiss(np.ascontiguousarray(self._dense[0][rows]), fetched)
        if self._rescore:
            left = np.repeat(rows, numbers.shape[1])
            scores = pair_scores(self.queries, self.candidates, left, np.maximum(numbers, 0).ravel())
            scores = scores.reshape(numbers.shape)
        scores = np.where(numbers < 0, np.float32(-np.inf), scores)
        order = np.lexsort((numbers, -scores), axis=1)[:, :width]
        return np.take_along_axis(numbers, order, axis=1), np.take_along_axis(scores, order, axis=1)

    def _by_faiss(self, queries: Any, width: int) -> tuple[IntArray, Scores]:
        faiss = faiss_library()
        if self._index is None:
            scores, numbers = faiss.knn(queries, self._dense[1], width, metric=faiss.METRIC_INNER_PRODUCT)
        else:
            parameters = faiss.SearchParametersIVF(nprobe=self._nprobe)
            scores, numbers = self._index.search(queries, width, params=parameters)
        return np.asarray(numbers, dtype=np.int64), np.asarray(scores, dtype=np.float32)

    def _inverted(self, seed: int) -> Any:
        faiss, candidates = faiss_library(), self._dense[1]
        n_lists = max(1, min(int(4 * np.sqrt(self.n)), self.n // 8))
        index = faiss.index_factory(candidates.shape[1], f"IVF{n_lists},Flat", faiss.METRIC_INNER_PRODUCT)
        # Fewer rounds and points than FAISS's own 25 x 256: the lists looked at are measured and make up for it.
        index.cp.niter, index.cp.max_points_per_centroid, index.cp.min_points_per_centroid = 6, 32, 1
        index.cp.seed = seed % 2**31
        index.train(candidates)
        index.add(candidates)
        self._index, self._nprobe = index, index.nlist
        rows = np.flatnonzero(~zero_rows(self.queries))
        if len(rows):
            self._choose(np.unique(rows[np.linspace(0, len(rows) - 1, min(_SAMPLE, len(rows))).astype(np.int64)]))
        return index

    def _choose(self, sample: IntArray) -> None:
        """Double the number of lists that are looked at until recall is high enough; equal scores are as good."""
        depth = min(_DEPTH, self.n)
        if self._rescore:
            exact = _best(self.queries[sample] @ self._transposed, depth)[1].min(axis=1, keepdims=True)
        else:
            faiss, rows = faiss_library(), np.ascontiguousarray(self.queries[sample])
            exact = faiss.knn(rows, self.candidates, depth, metric=faiss.METRIC_INNER_PRODUCT)[0][:, -1:]
        n_lists, self._nprobe, self.recall = self._nprobe, 4, -1.0
        while True:
            self._nprobe, before = min(2 * self._nprobe, n_lists), self.recall
            _, found = self.search(sample, depth)
            self.recall = float((found >= exact - _ROUNDING).mean())
            if self.recall >= _RECALL_FLOOR or self.recall < before + _LEAST_GAIN or self._nprobe == n_lists:
                return


@contextmanager
def faiss_threads(threads: int | None) -> Iterator[None]:
    """Let FAISS use this many threads in the block; None leaves it as it is. Raises `ArgumentError` under 1."""
    if threads is None:
        yield
        return
    if threads < 1:
        raise ArgumentError(f"threads = {threads}; expected at least 1, or None for as many as FAISS takes by itself")
    faiss = faiss_library()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(threads)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def _best(scores: Any, width: int) -> tuple[IntArray, Scores]:
    """Return the `width` largest of each row of a block of sparse scores; what is not stored is 0."""
    dense = scores.toarray()
    numbers = np.argpartition(dense, dense.shape[1] - width, axis=1)[:, dense.shape[1] - width :]
    return numbers.astype(np.int64), np.take_along_axis(dense, numbers, axis=1)


def _projected(queries: Any, candidates: Any, seed: int) -> tuple[Any, Any]:
    from sklearn.random_projection import SparseRandomProjection

    projection = SparseRandomProjection(_PROJECTED, density=1 / 3, dense_output=True, random_state=seed % 2**32)
    projection.fit(candidates)
    sides = (projection.transform(side).astype(np.float32) for side in (queries, candidates))
    first, second = (np.ascontiguousarray(unit_rows(side)) for side in sides)
    return first, second
