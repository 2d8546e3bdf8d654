"""Towers: multilayer perceptrons that take the raw features of each side into one space, trained from scratch.

A tower is a `heads.Head` without norms, nothing more. This module is not about the loss, the scale or encoders.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from bridgehead.align.architecture import HeadConfig
from bridgehead.align.heads import Head
from bridgehead.align.losses.contrast import unit
from bridgehead.align.pretrained import Pretrained


def tower(
    input_dim: int,
    embed_dim: int = 16,
    hidden: Sequence[int] = (40,),
    activation: str = "relu",
    *,
    norm: str = "none",
    dropout: float = 0.0,
) -> Head:
    """Return an MLP (n, input_dim) -> (n, embed_dim), not normalised: a head whose input is taken as it is.

    Weights start as torch's linear layers do, drawn layer by layer from its current generator. `norm` and `dropout` are
    those of `HeadConfig`, and so are the errors (`ConfigError`).
    """
    return Head(_config(input_dim, embed_dim, hidden, activation, norm, dropout))


class TwoTowers(Pretrained, nn.Module):
    """A tower for each side, `tower_a` and `tower_b`; calling it returns unit rows of both, (n_a, d) and (n_b, d).

    The towers differ in the width of their input alone. With widths 14 and 11, the defaults are 2,392 weights. A row
    that a tower maps to zero stays zero. There is no scale: take a fixed s, or `LogitScale` beside it. `config` holds
    the arguments, and it saves itself (`Pretrained`); errors as in `tower`.

    >>> u, v = TwoTowers(14, 11)(torch.ones(3, 14), torch.ones(3, 11))
    >>> u.shape, v.shape
    (torch.Size([3, 16]), torch.Size([3, 16]))
    """

    def __init__(
        self,
        input_dim_a: int,
        input_dim_b: int,
        embed_dim: int = 16,
        hidden: Sequence[int] = (40,),
        activation: str = "relu",
        *,
        norm: str = "none",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        own = (embed_dim, hidden, activation, norm, dropout)
        a, b = _config(input_dim_a, *own), _config(input_dim_b, *own)
        self.config: dict[str, Any] = {
            "input_dim_a": a.input_dim,
            "input_dim_b": b.input_dim,
            "embed_dim": a.embed_dim,
            "hidden": list(a.hidden),
            "activation": a.activation,
            "norm": a.norm,
            "dropout": a.dropout,
        }
        self.tower_a, self.tower_b = Head(a), Head(b)

    def encode_a(self, x: torch.Tensor) -> torch.Tensor:
        """Return unit rows (n, embed_dim) of side a, in float32 or better. Raises `ShapeError`."""
        return unit(self.tower_a(x))

    def encode_b(self, x: torch.Tensor) -> torch.Tensor:
        """As `encode_a`, for side b."""
        return unit(self.tower_b(x))

    def forward(self, x_a: torch.Tensor, x_b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return unit rows of both sides."""
        return self.encode_a(x_a), self.encode_b(x_b)


def _config(
    input_dim: int, embed_dim: int, hidden: Sequence[int], activation: str, norm: str, dropout: float
) -> HeadConfig:
    # What is no sequence goes on as it is, for the config to name it.
    widths: Any = tuple(hidden) if isinstance(hidden, Sequence) else hidden
    return HeadConfig(input_dim, embed_dim, widths, activation, dropout=dropout, norm=norm, input_norm="none")
