"""Batches around an anchor with guaranteed hard negatives, from a similarity matrix or, without one, from rows.

The interface is that of the book's sampler; how it differs is in the class. For links, groups and many anchors that
share neighbours see `samplers.HardBatches`.
"""

from typing import Any

import numpy as np

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.links import Links
from bridgehead.negatives.anchored import LinkNeighbours, repeated_hard_batches, with_fill
from bridgehead.negatives.mining import mine_sides
from bridgehead.negatives.samplers import EpochSampler, anchors_per_batch, check_sizes
from bridgehead.vectors import IntArray, check_rows, to_numpy

_SINGLE = 12
_BLOCK_SCORES = 1 << 23


class HardNegativeBatchSampler(EpochSampler):
    """Batches of items: anchors, the `k_hard` most similar other items of each, and random ones up to `batch_size`.

    `similarity_matrix` (N, N), an array or tensor: entry (i, j) is how similar items i and j are, the diagonal is not
    read, and -inf marks what must never be taken as a negative. `hard_negative_indices` (N, k_hard) int64 are the hard
    negatives of each item, hardest first (equal ones by number), -1 where there are no more. `pairs` are the (row of a,
    row of b) of each item.

    `sample_batch(anchor)` is one batch around one anchor. As a torch `batch_sampler` each item is an anchor exactly
    once an epoch and batch_size // (k_hard + 1) anchors share a batch, so an epoch reads an item about k_hard + 1
    times; `len` is the number of batches that it yields. Draws depend on (seed, epoch) alone; see `EpochSampler`.

    Raises `ArgumentError` (batch_size not over k_hard + 1 or over N, k_hard over N - 1, NaN or +inf) and `ShapeError`.
    """

    similarity_matrix: Any
    pairs: IntArray
    hard_negative_indices: IntArray

    def __init__(self, similarity_matrix: Any, k_hard: int = 4, batch_size: int = 32, *, seed: int = 0) -> None:
        matrix = to_numpy(similarity_matrix)
        if hasattr(matrix, "indptr") or matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ShapeError(
                f"similarity_matrix has shape {matrix.shape}; expected a dense (N, N), the similarity of each pair"
            )
        if matrix.dtype.kind not in "fiub":
            raise ArgumentError(f"similarity_matrix has dtype {matrix.dtype}; expected numbers")
        _check_n(len(matrix), k_hard, batch_size)
        self._start(k_hard, batch_size, seed)
        self.similarity_matrix = similarity_matrix
        self.pairs = np.stack([np.arange(len(matrix))] * 2, axis=1)
        self.hard_negative_indices = _most_similar(matrix, k_hard)

    @classmethod
    def from_rows(
        cls,
        rows_a: Any,
        rows_b: Any,
        links: Any = None,
        k_hard: int = 4,
        batch_size: int = 32,
        *,
        across: bool = True,
        seed: int = 0,
        **mining: Any,
    ) -> "HardNegativeBatchSampler":
        """Return the sampler over the links of two sides, mined without an N x N matrix.

        The items are the matches `pairs` of `links` (None: row i with row i). The hard negatives of a link are links
        of the rows of b nearest to its row of a and of the rows of a nearest to its row of b, in turns, none of them
        matches; with `across=False` links of the nearest rows within each side, for encoders that were never aligned.
        `mining` are options of `mine_across` or `mine_within`.
        """
        rows_a, rows_b = check_rows(rows_a, "rows_a"), check_rows(rows_b, "rows_b")
        truth = Links.of(links, rows_a.shape[0], rows_b.shape[0])
        pairs = truth.expanded().pairs
        _check_n(len(pairs), k_hard, batch_size)
        made = cls.__new__(cls)
        made._start(k_hard, batch_size, seed)
        made.similarity_matrix = None
        made.pairs = pairs
        found = mine_sides(rows_a, rows_b, truth, across=across, k=k_hard, seed=seed, **mining)
        of = LinkNeighbours.drawn(pairs, found[0].neighbours, found[1].neighbours, across, seed, 0)
        made.hard_negative_indices = _first_k(of, len(pairs), k_hard)
        return made

    def _start(self, k_hard: int, batch_size: int, seed: int) -> None:
        super().__init__(batch_size, seed)
        self.k_hard = int(k_hard)

    @property
    def shortage(self) -> IntArray:
        """(m, 2) int64: each item with fewer than `k_hard` hard negatives, and how many it lacks."""
        lacking = (self.hard_negative_indices < 0).sum(axis=1)
        short = np.flatnonzero(lacking)
        return np.stack([short, lacking[short]], axis=1).astype(np.int64)

    def sample_batch(self, anchor_idx: int) -> list[int]:
        """Return `batch_size` different items: the anchor, its hard negatives, hardest first, and random others.

        The same for the same (seed, epoch, anchor). Raises `ArgumentError` for an anchor that there is not.
        """
        n = len(self.hard_negative_indices)
        if isinstance(anchor_idx, bool) or not isinstance(anchor_idx, int | np.integer) or not 0 <= anchor_idx < n:
            raise ArgumentError(f"anchor_idx = {anchor_idx!r}; expected an item number from 0 to {n - 1}")
        hard = self.hard_negative_indices[anchor_idx]
        held = np.concatenate([[anchor_idx], hard[hard >= 0]]).astype(np.int64)
        batch: list[int] = with_fill(held, n, self.batch_size, [self.seed, _SINGLE, self.epoch, anchor_idx]).tolist()
        return batch

    def batches(self, epoch: int) -> list[IntArray]:
        """Return the batches of an epoch as item numbers."""
        indices = self.hard_negative_indices
        anchors = anchors_per_batch(self.batch_size, self.k_hard)
        drawn = repeated_hard_batches(
            len(indices), lambda chosen: indices[chosen], self.batch_size, self.k_hard, self.seed, epoch, anchors
        )
        return drawn.batches


def _check_n(n: int, k_hard: int, batch_size: int) -> None:
    check_sizes(batch_size, k_hard)
    if k_hard > n - 1:
        raise ArgumentError(f"k_hard = {k_hard} with {n} items; an item has at most {n - 1} others, lower k_hard")
    if batch_size > n:
        raise ArgumentError(f"batch_size = {batch_size} with {n} items; expected at most {n}: a batch repeats no item")


def _most_similar(matrix: Any, k: int) -> IntArray:
    """Return (N, k) the columns of the largest entries of each row off the diagonal, block after block of rows."""
    n = len(matrix)
    found = np.empty((n, k), dtype=np.int64)
    step = max(1, _BLOCK_SCORES // n)
    for start in range(0, n, step):
        block = np.array(matrix[start : start + step], dtype=np.result_type(matrix.dtype, np.float32))
        rows = np.arange(len(block))
        block[rows, start + rows] = -np.inf
        if np.isnan(block).any() or np.isposinf(block).any():
            bad = start + np.flatnonzero((np.isnan(block) | np.isposinf(block)).any(axis=1))
            raise ArgumentError(
                f"similarity_matrix holds NaN or +inf in {len(bad)} or more rows (first: {int(bad[0])}); expected "
                "finite similarities, or -inf for what must not be a negative"
            )
        order = np.argsort(-block, axis=1, kind="stable")[:, :k]
        found[start : start + step] = np.where(np.isneginf(np.take_along_axis(block, order, axis=1)), -1, order)
    return found


def _first_k(neighbours: LinkNeighbours, n: int, k: int) -> IntArray:
    """Return (n, k) the first k neighbours of each link, -1 behind them."""
    result = np.full((n, k), -1, dtype=np.int64)
    for start in range(0, n, 1 << 16):
        anchors = np.arange(start, min(n, start + (1 << 16)))
        found = neighbours(anchors)
        place = np.cumsum(found >= 0, axis=1)
        at, column = np.nonzero((found >= 0) & (place <= k))
        result[anchors[at], place[at, column] - 1] = found[at, column]
    return result
