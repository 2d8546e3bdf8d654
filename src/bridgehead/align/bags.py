"""A batch of CSR rows as bags of columns, and the sum over a bag with a fast exact gradient.

Back it is a product of the transposed rows with the gradient; forth it is torch's `embedding_bag`, or a product with
one part of the table after the other where the table is larger than the cache and read often. Measured on two cores for
2,048 rows of 500 entries and a table of 100,000 x 512: forth 85 ms where `embedding_bag` took 140, back 30 ms where the
same sum by `embedding_bag` into fresh memory took 90; `bench/csr_heads.py` times whole steps.
The gradient comes out dense, so that the plain fused AdamW applies: a lazily updated optimiser was measured too and its
gathering and scattering of touched rows cost what it saved. This module is not about the layers after the first
(`heads`) or the gradient's memory (`gradient_memory`).
"""

import warnings
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from scipy import sparse

from bridgehead.align.gradient_memory import GradientMemory, gradient_memory
from bridgehead.errors import ShapeError

# A part of the table of this size stays in the cache while all rows are summed over it.
_PART_BYTES = 48 << 20
_OFTEN = 4
_PRODUCT_DTYPES = (torch.float32, torch.float64)


@dataclass(frozen=True)
class CsrBatch:
    """CSR rows as bags: row i holds columns `indices[offsets[i]:offsets[i + 1]]` with `weights`, the last to the end.

    `indices` (nnz,) and `offsets` (B,), both int32 or both int64, `weights` (nnz,) float32; `n_columns` is the width of
    the rows.
    """

    indices: torch.Tensor
    offsets: torch.Tensor
    weights: torch.Tensor
    n_columns: int

    def __len__(self) -> int:
        return len(self.offsets)

    def ends(self) -> torch.Tensor:
        """Return the offsets with the number of entries after the last, (B + 1,)."""
        return torch.cat([self.offsets, self.offsets.new_tensor([len(self.indices)])])

    def row_numbers(self) -> torch.Tensor:
        """Return the row of each entry, (nnz,) int64."""
        return torch.repeat_interleave(torch.arange(len(self), device=self.indices.device), self.ends().diff())

    def with_weights(self, weights: torch.Tensor) -> "CsrBatch":
        """Return the same bags with other weights (nnz,)."""
        return CsrBatch(self.indices, self.offsets, weights, self.n_columns)

    def to(self, device: torch.device) -> "CsrBatch":
        """Return the batch on a device."""
        return CsrBatch(self.indices.to(device), self.offsets.to(device), self.weights.to(device), self.n_columns)

    def unit(self) -> "CsrBatch":
        """Return the batch with each row divided by its Euclidean norm; a zero row stays zero."""
        if len(self) == 0:
            return self
        ends = self.ends().long()
        # In float64 the squares of float32 numbers neither overflow nor vanish.
        squares = self.weights.double().square_()
        norms = torch.segment_reduce(squares, "sum", offsets=ends, initial=0.0).sqrt_()
        norms[norms == 0] = 1
        each = torch.repeat_interleave(norms, ends.diff(), output_size=len(self.weights))
        return self.with_weights((self.weights / each).to(self.weights.dtype))


def csr_batch(csr: Any, rows: Any = None) -> CsrBatch:
    """Return the rows of a SciPy CSR matrix (all, or those numbered `rows`, repeats allowed) as a `CsrBatch`.

    Raises `ShapeError` when `csr` is not a CSR matrix.
    """
    if not hasattr(csr, "indptr") or getattr(csr, "format", "") != "csr":
        raise ShapeError(f"expected a CSR matrix, got {type(csr).__name__}; dense rows go to a head with sparse=False")
    part = csr if rows is None else csr[np.asarray(rows, dtype=np.int64)]
    # Rows that were taken out are nobody else's; the whole matrix is, and is copied.
    copy = rows is None
    return CsrBatch(
        torch.from_numpy(part.indices.copy() if copy else part.indices),
        torch.from_numpy(part.indptr[:-1].copy() if copy else part.indptr[:-1]),
        torch.from_numpy(part.data.astype(np.float32, copy=copy)),
        int(part.shape[1]),
    )


def bag_sum(table: torch.Tensor, batch: CsrBatch) -> torch.Tensor:
    """Return sum_j weights_ij table[j] for each row i of the batch, (B, width), differentiable in `table` only.

    On the CPU in float32 and float64 the gradient lies in memory that belongs to the table and is used again when
    nobody holds the former gradient. The order of summation is fixed: equal inputs give equal bits.
    """
    sums: torch.Tensor = _BagSum.apply(table, batch)  # type: ignore[no-untyped-call]
    return sums


class _BagSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: torch.Tensor, batch: CsrBatch) -> torch.Tensor:
        ctx.batch = batch
        by_product = _by_product(table)
        if by_product and ctx.needs_input_grad[0]:
            ctx.memory = gradient_memory(table)
        return _product(batch, table) if by_product and _reads_much(table, batch) else _embedding_bag(table, batch)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, None]:
        if not ctx.needs_input_grad[0]:
            return None, None
        if not _by_product(gradient):
            return _embedding_bag(gradient.contiguous(), _transposed(ctx.batch)), None
        return _transposed_product(ctx.batch, gradient.contiguous(), ctx.memory), None


def _by_product(dense: torch.Tensor) -> bool:
    return dense.device.type == "cpu" and dense.dtype in _PRODUCT_DTYPES


def _embedding_bag(table: torch.Tensor, batch: CsrBatch) -> torch.Tensor:
    weights = batch.weights.to(table.dtype)
    return F.embedding_bag(batch.indices, table, batch.offsets, mode="sum", per_sample_weights=weights)


def _n_parts(table: torch.Tensor) -> int:
    return -(-table.numel() * table.element_size() // _PART_BYTES)


def _reads_much(table: torch.Tensor, batch: CsrBatch) -> bool:
    """Say whether the table does not stay in the cache as a whole, and its rows are read often enough to take turns."""
    return _n_parts(table) > 1 and len(batch.indices) > _OFTEN * len(table)


def _product(batch: CsrBatch, table: torch.Tensor) -> torch.Tensor:
    """Return the batch times the table, one part of the table after the other."""
    sums = torch.zeros(len(batch), table.shape[1], dtype=table.dtype)
    csr, n_parts = _scipy(batch), _n_parts(table)
    for low, high in pairwise(len(table) * part // n_parts for part in range(n_parts + 1)):
        part = csr[:, low:high]
        if part.nnz:
            sums.addmm_(_torch_csr(part, table.dtype), table[low:high])
    return sums


def _transposed_product(batch: CsrBatch, gradient: torch.Tensor, memory: GradientMemory) -> torch.Tensor:
    """Return the transposed batch times the gradient, (n_columns, width), in memory of the table."""
    sums = memory.empty((batch.n_columns, gradient.shape[1]), gradient.dtype)
    if len(batch) == 0 or len(batch.indices) == 0:
        return sums.zero_()
    # With beta = 0 what stood in the memory before is not read.
    by_column = _torch_csr(_scipy(batch).tocsc(), gradient.dtype, (batch.n_columns, len(batch)))
    return torch.addmm(sums, by_column, gradient, beta=0, out=sums)


def _transposed(batch: CsrBatch) -> CsrBatch:
    """Return the columns of the batch as bags of rows."""
    by_column = _scipy(batch).tocsc()
    device = batch.indices.device
    parts = (by_column.indices, by_column.indptr[:-1], by_column.data)
    rows, offsets, weights = (torch.from_numpy(part).to(device) for part in parts)
    return CsrBatch(rows, offsets, weights, len(batch))


def _scipy(batch: CsrBatch) -> Any:
    parts = tuple(part.detach().cpu().numpy() for part in (batch.weights, batch.indices, batch.ends()))
    return sparse.csr_array(parts, shape=(len(batch), batch.n_columns))


def _torch_csr(compressed: Any, dtype: torch.dtype, shape: tuple[int, int] | None = None) -> torch.Tensor:
    """Return SciPy's compressed rows as a torch matrix over the same memory; columns are the rows of the transpose."""
    _say_nothing_of_beta()
    parts = (torch.from_numpy(part) for part in (compressed.indptr, compressed.indices, compressed.data))
    starts, indices, values = parts
    size = compressed.shape if shape is None else shape
    return torch.sparse_csr_tensor(starts, indices, values.to(dtype), size, check_invariants=False)


@lru_cache(maxsize=1)
def _say_nothing_of_beta() -> None:
    """Make the first sparse CSR matrix of the process here, so that torch's one warning about them is not shown."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.sparse_csr_tensor(torch.tensor([0, 0]), torch.tensor([]).long(), torch.tensor([]), (1, 1))
