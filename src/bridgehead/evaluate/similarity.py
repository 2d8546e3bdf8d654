"""How alike an item is to the training items: the cosine of the nearest one, for slices by how new an item is.

Nothing N x N is made. This module is not about slices (`slices`), pairs of nearly equal structures (`cliffs`) or rows
of two modalities (`exact`).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.evaluate.arguments import rows_at_once
from bridgehead.evaluate.ties import Float64Array
from bridgehead.vectors import block_rows, check_rows, unit_rows

_BYTES = 32 << 20


def nearest_similarity(rows: Any, train_rows: Any, block: int | None = None) -> Float64Array:
    """Return the cosine of each row with the most similar training row, (n,), in [-1, 1].

    `rows` (n, d) and `train_rows` (m, d) are of one encoder, dense or CSR; a zero row has cosine 0 with everything. The
    arithmetic is in float64 for sparse and in float32 for dense rows, good to about 1e-6. `block`: rows at once; the
    result does not depend on it. Raises `ShapeError` for other widths, `ArgumentError` for no training rows and
    `NonFiniteRowsError` for NaN and infinity.

    >>> nearest_similarity([[1.0, 0.0], [1.0, 1.0]], [[2.0, 0.0], [0.0, -1.0]]).round(3)
    array([1.   , 0.707])
    """
    left, right = check_rows(rows, "rows"), check_rows(train_rows, "train_rows")
    if left.shape[1] != right.shape[1]:
        raise ShapeError(
            f"rows have {left.shape[1]} columns and train_rows {right.shape[1]}; expected those of one encoder"
        )
    if right.shape[0] == 0:
        raise ArgumentError("train_rows has no rows; expected at least one: without training there is no nearest item")
    block = rows_at_once(block)
    is_sparse = hasattr(left, "tocsr") or hasattr(right, "tocsr")
    left, right = (_unit_csr(side) if is_sparse else unit_rows(side, dtype=np.float32) for side in (left, right))
    found = np.empty(left.shape[0])
    for part in _slices(left.shape[0], block or block_rows(right.shape[0], 4, _BYTES)):
        scores = left[part] @ right.T
        # Entries that a sparse product does not hold are cosines of 0, and its maximum counts them.
        highest = scores.max(axis=1).toarray().ravel() if is_sparse else scores.max(axis=1)
        found[part] = highest
    return np.clip(found, -1.0, 1.0)


def _unit_csr(rows: Any) -> sparse.csr_array:
    matrix = sparse.csr_array(rows).astype(np.float64)
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    # Dividing by the largest entry first keeps the squares of very large and very small numbers in range.
    largest = np.zeros(matrix.shape[0])
    np.maximum.at(largest, row, np.abs(matrix.data))
    matrix.data /= np.where(largest > 0, largest, 1)[row]
    norm = np.sqrt(np.bincount(row, matrix.data**2, matrix.shape[0]))
    matrix.data /= np.where(norm > 0, norm, 1)[row]
    return matrix


def _slices(n: int, step: int) -> Iterator[slice]:
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))
