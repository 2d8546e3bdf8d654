"""The scores of two sets of unit rows one tile at a time: how large a tile is, what lies in it, and its products.

The n_a x n_b matrix of scores is cut into squares of `size` rows and columns, numbered along the rows. This module is
not about any loss; `tiled` is.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from bridgehead.align.losses.contrast import Positives
from bridgehead.errors import ArgumentError

Tile = int | Literal["auto"] | None
Products = Literal["float32", "bf16"]

_ROWS = 1024
"""Rows and columns of a tile that an outer cache holds (4 MB in float32) and that still fill the matrix product."""
_SMALL = 128
"""Rows up to which a batch is faster without tiles: operations cost more than numbers there."""
_KEPT = 512 * 2**20
"""Most bytes of tiles that "auto" keeps between forward and backward."""


@dataclass(frozen=True)
class Tiling:
    """n_a x n_b scores in squares of `size`, cut off at the edges; the first `kept` may stay between two passes."""

    n_a: int
    n_b: int
    size: int
    kept: int

    @classmethod
    def of(cls, tile: int | Literal["auto"], n_a: int, n_b: int, d: int, dtype: torch.dtype) -> "Tiling":
        """Return the tiling for a checked `tile`: "auto" keeps tiles while memory allows, a number keeps none.

        A matrix that is one tile is kept always: it is there anyway.
        """
        size = choose_tile(n_a, n_b, d, dtype) if tile == "auto" else tile
        if size >= max(n_a, n_b):
            return cls(n_a, n_b, max(n_a, n_b), 1)
        bytes_of_tile = dtype.itemsize * min(size, n_a) * min(size, n_b)
        kept = min(_KEPT, available_memory() // 16) // bytes_of_tile if tile == "auto" else 0
        return cls(n_a, n_b, size, kept)

    def tiles(self) -> Iterator[tuple[int, slice, slice]]:
        """Yield the number of each tile, its rows and its columns, along the rows."""
        tile = 0
        for top in range(0, self.n_a, self.size):
            for left in range(0, self.n_b, self.size):
                yield (
                    tile,
                    slice(top, min(top + self.size, self.n_a)),
                    slice(left, min(left + self.size, self.n_b)),
                )
                tile += 1

    def buffer(self, like: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
        """Return memory for one tile, flat."""
        return like.new_empty(min(self.size, self.n_a) * min(self.size, self.n_b), dtype=dtype or like.dtype)


class TilePairs:
    """Where the positives lie: `within(k)` says for tile k which pairs it holds and their places in it."""

    def __init__(self, positives: Positives, tiling: Tiling) -> None:
        size, n_b = tiling.size, tiling.n_b
        self.n_pairs, self._positives = len(positives), positives
        self._order: torch.Tensor | None = None
        if size >= max(tiling.n_a, n_b):
            self._places, self._starts = positives.a * n_b + positives.b, [0, self.n_pairs]
            return
        tile_a, tile_b = positives.a // size, positives.b // size
        across = -(-n_b // size)
        number = tile_a * across + tile_b
        width = (n_b - tile_b * size).clamp(max=size)
        self._order = torch.argsort(number, stable=True)
        self._places = ((positives.a - tile_a * size) * width + positives.b - tile_b * size)[self._order]
        counts = torch.bincount(number, minlength=across * -(-tiling.n_a // size))
        self._starts = [0, *torch.cumsum(counts, 0).tolist()]

    def within(self, tile: int) -> tuple[torch.Tensor | slice, torch.Tensor] | None:
        """Return (which pairs, their row-major places in the tile), or None where there is none."""
        start, stop = self._starts[tile], self._starts[tile + 1]
        if start == stop:
            return None
        which = slice(start, stop)
        return (which if self._order is None else self._order[which]), self._places[which]

    def cosines(self, unit_a: torch.Tensor, unit_b: torch.Tensor, which: torch.Tensor | slice) -> torch.Tensor:
        """Return u.v of some pairs in the dtype of the rows, a few thousand pairs at a time."""
        chunks = zip(*(torch.split(each[which], 4096) for each in (self._positives.a, self._positives.b)), strict=True)
        return torch.cat([(unit_a[a] * unit_b[b]).sum(1) for a, b in chunks])


class TileProducts:
    """The three matrix products of a tile, in the dtype of the rows or in bfloat16.

    In bfloat16 each product of two tiles is rounded to bfloat16 once (its inner sum is not), and what is summed over
    tiles is summed in the dtype of the rows.
    """

    def __init__(self, unit_a: torch.Tensor, unit_b: torch.Tensor, tiling: Tiling, products: Products) -> None:
        self.a, self.b = unit_a, unit_b
        self._half: torch.Tensor | None = None
        if products == "bf16":
            self.a, self.b = unit_a.bfloat16(), unit_b.bfloat16()
            self._half = tiling.buffer(unit_a, torch.bfloat16)

    def scores(self, out: torch.Tensor, rows: slice, columns: slice, factor: float, offset: float) -> None:
        """Write factor x cosine + offset into `out`."""
        if self._half is None:
            if offset:
                out.fill_(offset)
            torch.addmm(out, self.a[rows], self.b[columns].T, beta=int(offset != 0), alpha=factor, out=out)
            return
        half = self._half[: out.numel()].view_as(out)
        torch.mm(self.a[rows], self.b[columns].T, out=half)
        out.copy_(half).mul_(factor)
        if offset:
            out.add_(offset)

    def add_gradient(
        self,
        weights: torch.Tensor,
        rows: slice,
        columns: slice,
        sum_a: torch.Tensor | None,
        sum_b: torch.Tensor | None,
    ) -> None:
        """Add weights @ b to `sum_a` (n_a, d) and weights.T @ a to `sum_b` (n_b, d), where they are wanted.

        The first tile of a row of tiles sets `sum_a`, the first of a column `sum_b`: they may start uninitialised.
        """
        if self._half is not None:
            weights = self._half[: weights.numel()].view_as(weights).copy_(weights)
        if sum_a is not None:
            self._add(sum_a[rows], weights, self.b[columns], first=columns.start == 0)
        if sum_b is not None:
            self._add(sum_b[columns], weights.T, self.a[rows], first=rows.start == 0)

    def _add(self, out: torch.Tensor, weights: torch.Tensor, unit: torch.Tensor, first: bool) -> None:
        if self._half is None:
            torch.addmm(out, weights, unit, beta=0 if first else 1, out=out)
        elif first:
            out.copy_(weights @ unit)
        else:
            out.add_(weights @ unit)


def choose_tile(n_a: int, n_b: int, d: int, dtype: torch.dtype) -> int:
    """Return the most rows and columns of a tile for n_a x n_b scores of d-dimensional rows, at least 1.

    Up to 1,024 x 1,024 scores are one tile. Above, a tile has as many: two of them stay in the cache between the
    operations on them, and larger ones were no faster. That is 1,024 rows, or more where one side has fewer than that.
    Where memory is short the number is halved, down to 64, until four tiles and two panels of d columns take no more
    than an eighth of what is available. So the scores never decide the memory: working tiles take 8 MB in float32, and
    "auto" keeps up to 512 MB of tiles (a sixteenth of what is available at most) from forward to backward, which saves
    their second computation.
    """
    if n_a * n_b <= _ROWS * _ROWS:
        return max(n_a, n_b)
    shorter = min(n_a, n_b, _ROWS)
    size = _ROWS * _ROWS // shorter
    limit = available_memory() // 8
    while size > 64 and dtype.itemsize * (4 * size * min(size, shorter) + 2 * size * d) > limit:
        size //= 2
    return size


def is_small(n_a: int, n_b: int) -> bool:
    """Return whether "auto" takes the n_a x n_b scores at once because that is faster; they are few."""
    return max(n_a, n_b) <= _SMALL


def available_memory() -> int:
    """Return the bytes that this process can still take without swapping, as the system says; 1 GB if it says nothing.

    That is the least of what the kernel calls available and what the limit of the control group leaves.
    """
    found = [_meminfo(), _control_group()]
    return min((each for each in found if each is not None), default=10**9)


def _meminfo() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _control_group() -> int | None:
    folder = Path("/sys/fs/cgroup")
    try:
        limit, used = ((folder / name).read_text(encoding="ascii") for name in ("memory.max", "memory.current"))
        return max(int(limit) - int(used), 0)
    except (OSError, ValueError):
        return None


def check_tile(tile: Any, products: Any) -> None:
    """Raise `ArgumentError` unless `tile` is None, "auto" or a whole number from 1 and `products` is known."""
    whole = isinstance(tile, int) and not isinstance(tile, bool) and tile >= 1
    if tile is not None and not whole and not (isinstance(tile, str) and tile == "auto"):
        raise ArgumentError(f"tile = {tile!r}; expected None, 'auto' or a whole number of rows, 1 or more")
    if not isinstance(products, str) or products not in ("float32", "bf16"):
        raise ArgumentError(f"products = {products!r}; expected 'float32' or 'bf16'")
    if products == "bf16" and tile is None:
        raise ArgumentError("products = 'bf16' needs tiles; expected tile = 'auto' or a number of rows beside it")
