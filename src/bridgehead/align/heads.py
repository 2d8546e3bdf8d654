"""Projection heads: the small networks that take an encoder's rows into the shared space.

What a head is made of stands in `architecture.HeadConfig`. The numpy twin (`twin`) repeats this arithmetic and must be
changed with it. This module is not about the loss or about training.
"""

from itertools import pairwise
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from bridgehead.align.architecture import HeadConfig
from bridgehead.align.bags import CsrBatch, bag_sum, csr_batch
from bridgehead.errors import ShapeError

__all__ = ["CsrBatch", "Head", "HeadConfig", "csr_batch"]


class Head(nn.Module):
    """A projection head as `HeadConfig` describes it; its output is not normalised.

    Call it with a dense tensor (B, input_dim) or, for `sparse` heads, a `CsrBatch`; it returns (B, embed_dim). Raises
    `ShapeError` for the wrong kind or width.
    """

    mean: torch.Tensor
    inverse_std: torch.Tensor

    def __init__(self, config: HeadConfig) -> None:
        super().__init__()
        self.config = config
        widths = config.widths
        if config.sparse:
            self.first: nn.Module = nn.EmbeddingBag(config.input_dim, widths[0], mode="sum")
            nn.init.normal_(self.first.weight, std=config.init_std / widths[0] ** 0.5)
            self.first_bias = nn.Parameter(torch.zeros(widths[0]))
        else:
            self.first = nn.Linear(config.input_dim, widths[0])
        if config.input_norm == "standard":
            self.register_buffer("mean", torch.zeros(config.input_dim))
            self.register_buffer("inverse_std", torch.ones(config.input_dim))
        self.rest = nn.ModuleList(nn.Linear(wide, out) for wide, out in pairwise(widths))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for width in config.hidden) if config.norm else None

    def fit_input(self, rows: Any) -> None:
        """Take mean and standard deviation of the columns from the training rows (dense numpy, float64 inside).

        Does nothing unless input_norm is "standard".
        """
        if self.config.input_norm != "standard":
            return
        mean, std = _column_moments(rows)
        varies = std > 1e-6 * np.maximum(np.abs(mean), 1e-30)
        self.mean.copy_(torch.from_numpy(mean))
        self.inverse_std.copy_(torch.from_numpy(np.where(varies, 1 / np.where(varies, std, 1), 0)))

    def forward(self, x: torch.Tensor | CsrBatch) -> torch.Tensor:
        """Return (B, embed_dim)."""
        first = self._first_sparse(x) if isinstance(x, CsrBatch) else self._first_dense(x)
        hidden = first
        for number, layer in enumerate(self.rest):
            hidden = F.gelu(hidden) if self.config.activation == "gelu" else F.relu(hidden)
            if self.norms is not None:
                hidden = self.norms[number](hidden)
            hidden = layer(F.dropout(hidden, self.config.dropout, self.training))
        return hidden + first if self.config.residual else hidden

    def _first_dense(self, x: torch.Tensor) -> torch.Tensor:
        if self.config.sparse:
            raise ShapeError("this head reads CSR rows, as it was trained on, and dense rows came")
        if x.ndim != 2 or x.shape[1] != self.config.input_dim:
            raise ShapeError(f"rows have shape {tuple(x.shape)}; expected (n, {self.config.input_dim})")
        if self.config.input_norm == "unit":
            # In float64 the squares of float32 numbers neither overflow nor vanish.
            norms = x.norm(dim=1, keepdim=True, dtype=torch.float64)
            x = (x / torch.where(norms > 0, norms, torch.ones_like(norms))).to(x.dtype)
        elif self.config.input_norm == "standard":
            x = (x - self.mean) * self.inverse_std
        output: torch.Tensor = self.first(F.dropout(x, self.config.input_dropout, self.training))
        return output

    def _first_sparse(self, x: CsrBatch) -> torch.Tensor:
        if not self.config.sparse:
            raise ShapeError("this head reads dense rows, as it was trained on, and CSR rows came")
        if x.n_columns != self.config.input_dim:
            raise ShapeError(f"CSR rows have {x.n_columns} columns; expected {self.config.input_dim}")
        if self.config.input_norm == "unit":
            x = x.unit()
        if self.training and self.config.input_dropout > 0:
            x = x.with_weights(F.dropout(x.weights, self.config.input_dropout))
        table: torch.Tensor = self.first.weight  # type: ignore[assignment]
        return bag_sum(table, x) + self.first_bias


def _column_moments(rows: Any, block: int = 8192) -> tuple[Any, Any]:
    """Return mean and standard deviation (by n) of each column in float64, block by block."""
    blocks = [slice(start, start + block) for start in range(0, len(rows), block)]
    mean = sum(rows[part].sum(axis=0, dtype=np.float64) for part in blocks) / len(rows)
    squares = sum(np.square(rows[part] - mean).sum(axis=0) for part in blocks)
    return mean, np.sqrt(squares / len(rows))
