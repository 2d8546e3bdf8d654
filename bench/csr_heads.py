"""Time a step of training a head on CSR rows against making the batch dense and multiplying.

    python bench/csr_heads.py [--columns N] [--entries N] [--batch N] [--width N] [--runs N] [--quick]

A step is: take the rows of the batch out of a CSR matrix, first layer forth and back, one AdamW step with the fused
kernel on all sides. The plain side makes the batch a dense float32 matrix and applies `nn.Linear`. All start from the
same weights, their gradients are compared before anything is timed, and the steps are taken in turns. A third line is
torch's own `embedding_bag` on the same rows.
"""

import argparse
import statistics
import time

import numpy as np
import torch
from scipy import sparse
from torch import nn

from bridgehead.align.bags import bag_sum, csr_batch


def make_rows(n_rows: int, n_columns: int, n_entries: int, seed: int = 0) -> sparse.csr_matrix:
    """Return CSR rows of `n_entries` distinct columns each, all columns alike: the hardest case for a cache."""
    rng = np.random.default_rng(seed)
    columns = [np.sort(rng.choice(n_columns, n_entries, replace=False)) for _ in range(n_rows)]
    values = rng.random(n_rows * n_entries, dtype=np.float32)
    starts = np.arange(n_rows + 1, dtype=np.int32) * n_entries
    return sparse.csr_matrix((values, np.concatenate(columns).astype(np.int32), starts), shape=(n_rows, n_columns))


class Side:
    """Weights, optimiser and first layer of one side; `step` returns the gradient of the table, columns first."""

    def __init__(self, table: torch.Tensor, upstream: torch.Tensor) -> None:
        self.table = nn.Parameter(table.clone())
        self.bias = nn.Parameter(torch.zeros(table.shape[1]))
        self.upstream = upstream
        self.optimiser = torch.optim.AdamW([self.table, self.bias], lr=1e-3, fused=True)

    def output(self, rows: sparse.csr_matrix, numbers: np.ndarray) -> torch.Tensor:
        """Return the first layer of these rows."""
        return bag_sum(self.table, csr_batch(rows, numbers)) + self.bias

    def backward(self, rows: sparse.csr_matrix, numbers: np.ndarray) -> None:
        """Put gradients of a loss whose gradient with respect to the output is known."""
        self.optimiser.zero_grad(set_to_none=True)
        self.output(rows, numbers).backward(self.upstream)

    def gradient(self) -> torch.Tensor:
        """Return the gradient of the table, (columns, width)."""
        assert self.table.grad is not None
        return self.table.grad

    def step(self, rows: sparse.csr_matrix, numbers: np.ndarray) -> float:
        """Take one step and return its seconds."""
        start = time.perf_counter()
        self.backward(rows, numbers)
        self.optimiser.step()
        return time.perf_counter() - start


class Densified(Side):
    """The batch as a dense matrix through `nn.Linear`, whose weight has the width first."""

    def __init__(self, table: torch.Tensor, upstream: torch.Tensor) -> None:
        super().__init__(table.T.contiguous(), upstream)
        self.bias = nn.Parameter(torch.zeros(table.shape[1]))
        self.optimiser = torch.optim.AdamW([self.table, self.bias], lr=1e-3, fused=True)

    def output(self, rows: sparse.csr_matrix, numbers: np.ndarray) -> torch.Tensor:
        """Return the first layer of these rows."""
        return nn.functional.linear(torch.from_numpy(rows[numbers].toarray()), self.table, self.bias)

    def gradient(self) -> torch.Tensor:
        """Return the gradient of the table, (columns, width)."""
        return super().gradient().T


class Embedded(Side):
    """torch's own bag of columns and its backward."""

    def output(self, rows: sparse.csr_matrix, numbers: np.ndarray) -> torch.Tensor:
        """Return the first layer of these rows."""
        part = rows[numbers]
        indices, starts = (torch.from_numpy(array.astype(np.int64)) for array in (part.indices, part.indptr[:-1]))
        weights = torch.from_numpy(part.data)
        return (
            nn.functional.embedding_bag(indices, self.table, starts, mode="sum", per_sample_weights=weights) + self.bias
        )


def main() -> None:
    """Compare the gradients, time the sides in turns, and print milliseconds and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=int, default=100_000)
    parser.add_argument("--entries", type=int, default=500, help="non-zeros a row")
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="a tenth of the columns and of the rows, three runs")
    given = parser.parse_args()
    if given.quick:
        given.columns, given.batch, given.entries, given.runs = given.columns // 10, given.batch // 8, 50, 3
    rows = make_rows(2 * given.batch, given.columns, given.entries)
    generator = torch.Generator().manual_seed(0)
    table = torch.randn(given.columns, given.width, generator=generator) / given.width**0.5
    upstream = torch.randn(given.batch, given.width, generator=generator) / given.batch
    sides = {"bridgehead": Side(table, upstream), "densify": Densified(table, upstream)}
    sides["embedding bag"] = Embedded(table, upstream)
    print(
        f"{given.columns:,} columns, {given.entries} entries a row, batch {given.batch:,}, width {given.width}, "
        f"{torch.get_num_threads()} threads, {given.runs} runs, float32, fused AdamW on all sides"
    )
    order = np.random.default_rng(1)
    compare(sides, rows, order.permutation(len(rows.indptr) - 1)[: given.batch])
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for run in range(given.runs + 1):
        numbers = order.permutation(rows.shape[0])[: given.batch]
        for name, side in sides.items():
            taken = side.step(rows, numbers)
            if run:
                seconds[name].append(taken)
    for name, times in seconds.items():
        ratios = [plain / own for plain, own in zip(seconds["densify"], times, strict=True)]
        print(
            f"{name:14s} {1e3 * statistics.median(times):8.1f} ms a step ({1e3 * min(times):.1f} to "
            f"{1e3 * max(times):.1f}), densify takes {statistics.median(ratios):.2f} times as long "
            f"({min(ratios):.2f} to {max(ratios):.2f})"
        )


def compare(sides: dict[str, Side], rows: sparse.csr_matrix, numbers: np.ndarray) -> None:
    """Stop unless all sides have the same gradient to 1e-6."""
    for side in sides.values():
        side.backward(rows, numbers)
    expected = sides["embedding bag"].gradient()
    for name, side in sides.items():
        difference = float((side.gradient() - expected).abs().max())
        print(f"largest difference of the gradient to torch's embedding bag: {name} {difference:.1e}")
        assert difference <= 1e-6, "the sides disagree"


if __name__ == "__main__":
    main()
