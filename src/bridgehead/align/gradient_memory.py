"""Memory for the dense gradient of a large table, in large pages and used again.

A fresh gradient of 100,000 x 512 a step is 200 MB that the system clears and maps page by page: measured at 50 to 90 ms
on two cores, more than the sum that fills it. Here it is mapped in large pages and handed out again as soon as nobody
holds the former gradient. This module is not about what is written into it (`bags`).
"""

import weakref
from typing import Any

import numpy as np
import torch
from torch import nn

LEAST_BYTES = 4 << 20
"""Smaller tensors come from torch: its allocator keeps them mapped anyway."""
_ALIGNMENT = 64
_MOST_BLOCKS = 2
_ATTRIBUTE = "_bridgehead_gradient_memory"


def large_empty(shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return a tensor on the CPU whose values are not set, from 4 MiB on in large pages where the system has them.

    NumPy asks for large pages and torch does not. Rows start at multiples of 64 bytes, as torch's own do.
    """
    return _Block(shape, dtype).lend() if _is_large(shape, dtype) else torch.empty(shape, dtype=dtype)


class GradientMemory:
    """At most two blocks of memory of a table's gradient; each is handed out again once its tensor is gone.

    Whether it is gone is asked of the array under the tensor, which torch holds as long as any tensor needs it. So a
    gradient that the caller keeps, or that is still to be added to, is never written over.
    """

    def __init__(self) -> None:
        self._blocks: list[_Block] = []

    def empty(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Return a tensor on the CPU whose values are not set."""
        if not _is_large(shape, dtype):
            return torch.empty(shape, dtype=dtype)
        self._blocks = [block for block in self._blocks if block.kind == (shape, dtype)]
        for block in self._blocks:
            if block.is_free():
                return block.lend()
        block = _Block(shape, dtype)
        if len(self._blocks) < _MOST_BLOCKS:
            self._blocks.append(block)
        return block.lend()

    def __reduce__(self) -> tuple[type["GradientMemory"], tuple[()]]:
        # It hangs on a weight; a copy of the weight in another process starts without any.
        return type(self), ()


def gradient_memory(table: torch.Tensor) -> GradientMemory:
    """Return the memory that belongs to this table, which ends with it; a table that is no leaf has a new one."""
    if not table.is_leaf:
        return GradientMemory()
    found: GradientMemory | None = getattr(table, _ATTRIBUTE, None)
    if found is None:
        found = GradientMemory()
        setattr(table, _ATTRIBUTE, found)
    return found


def release_gradient_memory(model: nn.Module) -> None:
    """Give back the memory of the model's gradients, for when training has ended; gradients still held stay valid."""
    for parameter in model.parameters():
        if hasattr(parameter, _ATTRIBUTE):
            delattr(parameter, _ATTRIBUTE)


class _Block:
    """Memory for tensors of one shape, of which at most one lives at a time."""

    def __init__(self, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        self.kind = (shape, dtype)
        n_bytes = _bytes(shape, dtype)
        raw = np.empty(n_bytes + _ALIGNMENT, dtype=np.uint8)
        start = -raw.ctypes.data % _ALIGNMENT
        self._memory = raw[start : start + n_bytes]
        self._lent: weakref.ref[Any] | None = None

    def is_free(self) -> bool:
        return self._lent is None or self._lent() is None

    def lend(self) -> torch.Tensor:
        shape, dtype = self.kind
        # A new array each time: it lives exactly as long as torch holds the tensor made from it.
        array = self._memory[:]
        self._lent = weakref.ref(array)
        return torch.from_numpy(array).view(dtype).view(shape)


def _bytes(shape: tuple[int, ...], dtype: torch.dtype) -> int:
    return int(np.prod(shape, dtype=np.int64)) * torch.empty(0, dtype=dtype).element_size()


def _is_large(shape: tuple[int, ...], dtype: torch.dtype) -> bool:
    return _bytes(shape, dtype) >= LEAST_BYTES
