"""Means and covariances of rows: of the columns of one side, and of both sides over their links.

Rows are dense or CSR, read in blocks and never made dense as a whole. No torch here. This module is not about what is
made of the moments (`closed_form`, and `heads` for the standardised input).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from bridgehead.vectors import FloatArray, IntArray, unit_rows

_BLOCK = 4096


def standard_columns(rows: Any) -> tuple[FloatArray, FloatArray]:
    """Return mean and 1 / standard deviation (by n) of the columns of dense rows (n, d), both (d,) float64.

    A column that is constant (to 1e-6 of its mean) has 0 in place of 1 / 0. n is at least 1.
    """
    parts = _slices(len(rows))
    mean = sum(rows[part].sum(axis=0, dtype=np.float64) for part in parts) / len(rows)
    squares = sum(np.square(rows[part] - mean).sum(axis=0) for part in parts)
    std = np.sqrt(squares / len(rows))
    varies = std > 1e-6 * np.maximum(np.abs(mean), 1e-30)
    return mean, np.where(varies, 1 / np.where(varies, std, 1), 0)


@dataclass(frozen=True, eq=False)
class SideView:
    """Rows of one side as a linear map sees them: after `input_norm`, and in `basis` where there is one.

    `rows` (n, d) float32, dense or CSR; `counts` (n,) how many links each has; `shift` and `inverse_std` (d,) for
    input_norm "standard"; `basis` (d, k) float32 with orthonormal columns, or None where the columns are few enough.
    """

    rows: Any
    counts: IntArray
    input_norm: str
    shift: FloatArray | None
    inverse_std: FloatArray | None
    basis: FloatArray | None

    @classmethod
    def of(cls, rows: Any, linked: IntArray, input_norm: str, rank: int, seed: int) -> "SideView":
        """Return the view of `rows` whose links name the rows `linked`, in at most `rank` dimensions."""
        counts = np.bincount(linked, minlength=rows.shape[0]).astype(np.int64)
        shift, inverse_std = (None, None)
        if input_norm == "standard":
            shift, inverse_std = standard_columns(rows[counts > 0])
        view = cls(rows, counts, input_norm, shift, inverse_std, None)
        if rows.shape[1] <= rank:
            return view
        return cls(rows, counts, input_norm, shift, inverse_std, view._range_basis(rank, seed))

    @property
    def is_sparse(self) -> bool:
        """Whether the rows are CSR."""
        return hasattr(self.rows, "indptr")

    def take(self, numbers: IntArray) -> FloatArray:
        """Return the rows of these numbers, (len, k) float64."""
        normed = self._normed(numbers)
        if self.basis is not None:
            return np.asarray(normed @ self.basis, dtype=np.float64)
        return np.asarray(normed.toarray() if self.is_sparse else normed, dtype=np.float64)

    def mean(self) -> FloatArray:
        """Return the mean over the links, (k,) float64."""
        total = np.zeros(self.rows.shape[1])
        for part in _slices(self.rows.shape[0]):
            numbers = np.arange(part.start, min(part.stop, self.rows.shape[0]))
            numbers = numbers[self.counts[numbers] > 0]
            total += self._normed(numbers).T @ self.counts[numbers].astype(np.float64)
        mean = total / self.counts.sum()
        return mean if self.basis is None else np.asarray(mean @ self.basis, dtype=np.float64)

    def _normed(self, numbers: IntArray) -> Any:
        rows = self.rows[numbers]
        if self.input_norm == "standard":
            return (rows - self.shift) * self.inverse_std
        if self.input_norm == "none":
            return rows
        return _unit_csr(rows) if self.is_sparse else unit_rows(rows)

    def _range_basis(self, rank: int, seed: int) -> FloatArray:
        """Return an orthonormal basis of about the first right singular vectors of the linked rows.

        Each row counts as often as it has links. Which basis of that space is of no matter to the covariances.
        """
        # scikit-learn takes a second to import, and only wide rows need it.
        from sklearn.utils.extmath import randomized_range_finder

        numbers = np.flatnonzero(self.counts)
        matrix, weight = self._normed(numbers), np.sqrt(self.counts[numbers]).astype(np.float32)
        largest = np.float32(abs(matrix).max()) or np.float32(1)
        if self.is_sparse:
            scaled = sparse.csr_matrix(matrix, dtype=np.float32, copy=True)
            scaled.data *= np.repeat(weight / largest, np.diff(scaled.indptr))
        else:
            scaled = np.asarray(matrix / largest * weight[:, None], dtype=np.float32)
        width = min(rank, *scaled.shape)
        # Tried with three passes on 5,500 rows of 29,000 columns: twice the time, and retrieval the same.
        basis = randomized_range_finder(scaled.T, size=width, n_iter=1, random_state=seed)
        return np.ascontiguousarray(basis, dtype=np.float32)


@dataclass(frozen=True, eq=False)
class LinkedMoments:
    """Means (k_a,), (k_b,) and covariances (by n) of both sides over the links, each link once, float64."""

    mean_a: FloatArray
    mean_b: FloatArray
    aa: FloatArray
    bb: FloatArray
    ab: FloatArray


def linked_moments(a: SideView, b: SideView, pairs: IntArray) -> LinkedMoments:
    """Return the moments over `pairs` (row in a, row in b), sorted by a, at least one."""
    mean_a, mean_b = a.mean(), b.mean()
    aa, bb = (np.zeros((len(mean), len(mean))) for mean in (mean_a, mean_b))
    ab = np.zeros((len(mean_a), len(mean_b)))
    for part in _slices(len(pairs)):
        # A row that several links of the block name is looked at once.
        own_a, at_a, counts_a = np.unique(pairs[part, 0], return_inverse=True, return_counts=True)
        own_b, at_b, counts_b = np.unique(pairs[part, 1], return_inverse=True, return_counts=True)
        between = sparse.coo_array((np.ones(len(at_a)), (at_a, at_b)), shape=(len(own_a), len(own_b))).tocsr()
        x, y = a.take(own_a) - mean_a, b.take(own_b) - mean_b
        aa += x.T @ (x * counts_a[:, None])
        bb += y.T @ (y * counts_b[:, None])
        ab += x.T @ (between @ y)
    return LinkedMoments(mean_a, mean_b, aa / len(pairs), bb / len(pairs), ab / len(pairs))


def _slices(n: int) -> list[slice]:
    return [slice(start, start + _BLOCK) for start in range(0, n, _BLOCK)]


def _unit_csr(rows: Any) -> Any:
    """Return CSR rows over their norms; zero rows stay zero. In float64 no square overflows or vanishes."""
    wide = rows.data.astype(np.float64)
    row_of = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    norms = np.sqrt(np.bincount(row_of, weights=wide**2, minlength=rows.shape[0]))
    data = (wide / np.where(norms > 0, norms, 1)[row_of]).astype(np.float32)
    return sparse.csr_matrix((data, rows.indices, rows.indptr), shape=rows.shape)
