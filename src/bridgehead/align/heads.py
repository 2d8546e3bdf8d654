"""Projection heads: the small networks that take an encoder's rows into the shared space.

What a head is made of stands in `architecture.HeadConfig`. The numpy twin (`twin`) repeats this arithmetic and must be
changed with it. This module is not about the loss or about training.
"""

from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from bridgehead.align.architecture import NORM_EPSILON, HeadConfig
from bridgehead.align.bags import CsrBatch, bag_sum, csr_batch
from bridgehead.align.features import check_features
from bridgehead.align.moments import standard_columns
from bridgehead.errors import ShapeError

__all__ = ["BatchNorm", "CsrBatch", "Head", "HeadConfig", "csr_batch"]


_HALF = (torch.float16, torch.bfloat16)


class BatchNorm(nn.Module):
    """Batch normalisation of (B, width) that takes a batch of one row too.

    In training it subtracts the mean and divides by the deviation of each unit over the batch, and moves the running
    averages a tenth of the way towards them (the variance by B - 1); in evaluation it uses the running averages. A
    batch of one row has no variance: in training it is treated as in evaluation and moves nothing. Source: Ioffe and
    Szegedy 2015 (arXiv:1502.03167), algorithm 1; torch's BatchNorm1d refuses the single row.
    """

    running_mean: torch.Tensor
    running_var: torch.Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.register_buffer("running_mean", torch.zeros(width))
        self.register_buffer("running_var", torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (B, width)."""
        over_batch = self.training and len(x) > 1
        return F.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, over_batch, momentum=0.1, eps=NORM_EPSILON
        )


class Head(nn.Module):
    """A projection head as `HeadConfig` describes it; its output is not normalised.

    Call it with a dense tensor (B, input_dim) or, for `sparse` heads, a `CsrBatch`; it returns (B, embed_dim). Raises
    `ShapeError` for the wrong kind or width, `ArgumentError` for what is no tensor or has another dtype.
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
        self.norms = (
            None if config.norm == "none" else nn.ModuleList(_norm(str(config.norm), width) for width in config.hidden)
        )

    def fit_input(self, rows: Any) -> None:
        """Take mean and standard deviation of the columns from the training rows (dense numpy, float64 inside).

        Does nothing unless input_norm is "standard".
        """
        if self.config.input_norm != "standard":
            return
        mean, inverse_std = standard_columns(rows)
        self.mean.copy_(torch.from_numpy(mean))
        self.inverse_std.copy_(torch.from_numpy(inverse_std))

    def forward(self, x: torch.Tensor | CsrBatch) -> torch.Tensor:
        """Return (B, embed_dim)."""
        first = self._first_sparse(x) if isinstance(x, CsrBatch) else self._first_dense(x)
        # `hidden` is what a layer gives before its activation, `below` the finished units of the layer under it.
        hidden, below = first, first
        for number, layer in enumerate(self.rest):
            units = F.gelu(hidden) if self.config.activation == "gelu" else F.relu(hidden)
            if self.norms is not None:
                # Root mean squares are taken in float32, as the other norms do by themselves under autocast.
                units = self.norms[number](units.float() if units.dtype in _HALF else units)
            if self.training and self.config.dropout > 0:
                units = F.dropout(units, self.config.dropout)
            below = below + units if self.config.skips(number) else units
            hidden = layer(below)
        return hidden + first if self.config.residual == "output" else hidden

    def _first_dense(self, x: torch.Tensor) -> torch.Tensor:
        if self.config.sparse:
            raise ShapeError("this head reads CSR rows, as it was trained on, and dense rows came")
        check_features(x, "x", self.config.input_dim, self.first, "n")
        if x.ndim != 2:
            raise ShapeError(f"x has shape {tuple(x.shape)}; expected (n, {self.config.input_dim})")
        if self.config.input_norm == "unit":
            # In float64 the squares of float32 numbers neither overflow nor vanish.
            norms = x.norm(dim=1, keepdim=True, dtype=torch.float64)
            x = (x / torch.where(norms > 0, norms, torch.ones_like(norms))).to(x.dtype)
        elif self.config.input_norm == "standard":
            x = (x - self.mean) * self.inverse_std
        if self.training and self.config.input_dropout > 0:
            x = F.dropout(x, self.config.input_dropout)
        output: torch.Tensor = self.first(x)
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


def _norm(kind: str, width: int) -> nn.Module:
    if kind == "layer":
        return nn.LayerNorm(width, eps=NORM_EPSILON)
    return BatchNorm(width) if kind == "batch" else nn.RMSNorm(width, eps=NORM_EPSILON)
