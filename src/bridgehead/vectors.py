"""Geometry of rows: unit rows, blockwise scores, and one policy for zero, NaN and infinite rows.

A row is the vector of an item, float32 or float64, in a dense (n, d) array or a SciPy CSR matrix. The policy: NaN and
infinity are refused with the numbers of the rows; a zero row stays zero, so that its cosine with everything is 0. This
module is not about who matches whom (`links`) or about ranks (`evaluate`).
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bridgehead.errors import ArgumentError, NonFiniteRowsError, ShapeError

FloatArray = npt.NDArray[np.floating[Any]]
IntArray = npt.NDArray[np.int64]

_SHOWN = 10


def to_numpy(rows: Any) -> Any:
    """Return `rows` as a numpy array, or a sparse matrix as CSR with sorted columns, each at most once a row.

    Tensors are recognised by their methods (`detach`, `cpu`), so torch is never imported here.
    """
    if hasattr(rows, "tocsr"):
        return _canonical(rows.tocsr())
    if hasattr(rows, "detach"):
        rows = _of_tensor(rows)
    if isinstance(rows, np.ma.MaskedArray):
        raise ArgumentError("rows are a masked array, whose mask would be lost; expected plain numbers")
    try:
        return np.asarray(rows)
    except ValueError as error:
        raise ShapeError(f"rows must all have the same number of columns ({error})") from error


def _of_tensor(tensor: Any) -> Any:
    """Return a tensor's numbers as an array; raises `ArgumentError` for one that holds none, or not in rows."""
    try:
        dense = tensor.detach().cpu()
        if str(dense.dtype) in ("torch.bfloat16", "torch.float16"):
            dense = dense.float()
        return dense.numpy()
    except (TypeError, RuntimeError, NotImplementedError) as error:
        raise ArgumentError(
            f"rows are a tensor of {getattr(tensor, 'dtype', '?')} with layout {getattr(tensor, 'layout', '?')} on "
            f"{getattr(tensor, 'device', '?')}, which is no plain array of numbers; expected a dense tensor of floats"
        ) from error


def _canonical(csr: Any) -> Any:
    # Entries that name a column twice are one number, their sum: a norm taken entry by entry would be another.
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    return csr


def check_rows(rows: Any, name: str = "rows", ids: Sequence[str] | None = None) -> Any:
    """Return `rows` as a float array (n, d) or CSR matrix after checking shape and finiteness.

    Integers become float32; float64 stays float64. Raises `ShapeError` when the array is not two-dimensional,
    `ArgumentError` when it is not numeric, and `NonFiniteRowsError` naming the first rows (by id where `ids` is
    given) that hold NaN or infinity. An array of no rows is fine.
    """
    array = to_numpy(rows)
    if array.ndim != 2:
        raise ShapeError(f"{name} has shape {array.shape}; expected two dimensions (n, d)")
    if array.dtype.kind not in "fiub":
        raise ArgumentError(f"{name} has dtype {array.dtype}; expected numbers")
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float32)
    bad = non_finite_rows(array)
    if bad.size:
        raise NonFiniteRowsError(
            f"{name}: {bad.size} of {array.shape[0]} rows hold NaN or infinity ({_shown(bad, ids)}); "
            "expected finite numbers: leave these rows out or mend them before going on"
        )
    return array


def float32_rows(rows: Any, name: str = "rows") -> Any:
    """Return `rows` as a float32 array (n, d) or CSR matrix; rows that are float32 already are not copied.

    Raises as `check_rows` does, and `NonFiniteRowsError` naming the rows with numbers beyond float32 (3.4e38).
    """
    array = check_rows(rows, name)
    if array.dtype == np.float32:
        return array
    with np.errstate(over="ignore"):
        narrow = array.astype(np.float32)
    bad = non_finite_rows(narrow)
    if bad.size:
        raise NonFiniteRowsError(
            f"{name}: {bad.size} of {array.shape[0]} rows hold numbers beyond float32, 3.4e38 ({_shown(bad)}); "
            "scale the rows down, or leave these out"
        )
    return narrow


def _shown(rows: IntArray, ids: Sequence[str] | None = None) -> str:
    shown = ", ".join(str(ids[i]) if ids is not None else str(i) for i in rows[:_SHOWN])
    return f"rows {shown}" + (f" and {rows.size - _SHOWN} more" if rows.size > _SHOWN else "")


def non_finite_rows(rows: Any) -> IntArray:
    """Return the numbers of the rows of a dense array or CSR matrix that hold NaN or infinity, ascending."""
    if hasattr(rows, "indptr"):
        entries = np.flatnonzero(~np.isfinite(rows.data))
        return np.unique(np.searchsorted(rows.indptr, entries, side="right") - 1).astype(np.int64)
    if rows.shape[0] == 0 or rows.shape[1] == 0:
        return np.zeros(0, dtype=np.int64)
    # A sum is finite only if every addend is, or finite addends overflow: the second look settles those few rows.
    with np.errstate(over="ignore", invalid="ignore"):
        suspects = np.flatnonzero(~np.isfinite(rows.sum(axis=1)))
    return np.asarray(suspects[~np.isfinite(rows[suspects]).all(axis=1)], dtype=np.int64)


def unit_rows(rows: Any, name: str = "rows", dtype: Any = None) -> FloatArray:
    """Return dense (n, d) rows divided by their Euclidean norm; a zero row stays zero.

    `dtype` is that of the result (default: that of `rows`); the arithmetic is in the wider of the two. Norms are taken
    after dividing by the largest magnitude of the row, so rows of 1e30 or 1e-30 in float32 neither overflow nor vanish.
    Raises as `check_rows` does, and `ArgumentError` for a sparse matrix.
    """
    array = check_rows(rows, name)
    if hasattr(array, "indptr"):
        raise ArgumentError(f"{name} is a sparse matrix; expected a dense array (n, d): project the rows first")
    result = np.dtype(dtype or array.dtype)
    array = np.asarray(array, dtype=np.result_type(array.dtype, result))
    if array.size == 0:
        return np.array(array, dtype=result)
    largest = np.abs(array).max(axis=1, keepdims=True)
    scaled = array / np.where(largest > 0, largest, 1)
    norms = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))[:, None]
    return np.asarray(scaled / np.where(norms > 0, norms, 1), dtype=result)


def block_rows(n_candidates: int, bytes_per_score: int = 4, budget_bytes: int = 64 << 20) -> int:
    """Return how many query rows fit in a block whose scores against `n_candidates` take about `budget_bytes`."""
    return max(1, budget_bytes // max(1, n_candidates * bytes_per_score))


def score_blocks(
    queries: FloatArray, candidates: FloatArray, block: int | None = None
) -> Iterator[tuple[slice, FloatArray]]:
    """Yield (rows, scores): a slice of query rows and their inner products with all candidates, (len, N).

    Memory is O(block x N) whatever the number of queries. Raises `ShapeError` when the widths differ and
    `ArgumentError` when `block` is under 1.
    """
    if queries.shape[1] != candidates.shape[1]:
        raise ShapeError(
            f"queries have {queries.shape[1]} columns and candidates {candidates.shape[1]}; both must live in one space"
        )
    if block is not None and block < 1:
        raise ArgumentError(f"block = {block}; expected at least 1 row")
    step = block or block_rows(candidates.shape[0], candidates.dtype.itemsize)
    for start in range(0, queries.shape[0], step):
        rows = slice(start, min(start + step, queries.shape[0]))
        yield rows, queries[rows] @ candidates.T
