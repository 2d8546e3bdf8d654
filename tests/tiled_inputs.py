"""What the tests of tiled sums share: rows, links, gradients, and a record of what operations return."""

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from bridgehead.links import Links


def rows_of(*shapes, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes]


def value_and_gradients(loss, *inputs):
    inputs = [each.detach().clone().requires_grad_() for each in inputs]
    value = loss(*inputs)
    return [value.detach(), *torch.autograd.grad(value, inputs)]


def largest_difference(left, right):
    """The largest difference of values and gradients, relative where they are above 1."""
    return max(float((a - b).abs().max()) / max(1.0, float(b.abs().max())) for a, b in zip(left, right, strict=True))


def many_to_many(n_a, n_b, dtype=torch.float64, seed=0):
    """Rows, and links with several positives a row, rows of both sides without one, and rows of equal identity."""
    z_a, z_b = rows_of((n_a, 6), (n_b, 6), seed=seed, dtype=dtype)
    pairs = [(i, (3 * i) % n_b) for i in range(n_a) if i != 2] + [(0, 1), (0, 4), (1, 0), (n_a - 1, n_b - 1)]
    groups = np.full(n_a, -1)
    groups[[1, 3, 5]] = 8
    return z_a, z_b, Links(pairs, n_a, n_b, groups_a=groups)


class LargestResult(TorchDispatchMode):
    """Records the most numbers that any operation returned, views included, and the products of matrices."""

    def __init__(self):
        super().__init__()
        self.largest, self.products = 0, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for each in result if isinstance(result, tuple | list) else (result,):
            if isinstance(each, torch.Tensor):
                self.largest = max(self.largest, each.numel())
        self.products += func.overloadpacket in (torch.ops.aten.addmm, torch.ops.aten.mm)
        return result
