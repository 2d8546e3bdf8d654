"""The two-layer projection head with layer normalisation, for pooled hidden states of an encoder.

`heads.Head` is the head of any depth over cached rows. This module is not about encoders, pooling or the loss.
"""

from typing import Any

import torch
from torch import nn

from bridgehead.align.architecture import whole_width
from bridgehead.align.features import check_features
from bridgehead.align.pretrained import Pretrained


class ProjectionHead(Pretrained, nn.Module):
    """z = W_2 LayerNorm(GELU(W_1 x + b_1)) + b_2, (..., input_dim) -> (..., projection_dim); W_1 is square.

    The layers stand in `net`, in this order. The output is not normalised: the loss does that. Weights start as torch's
    linear layers do and are drawn from its current generator; `config` holds the arguments, and a head saves itself
    (`Pretrained`).

    Raises `ConfigError` for a width under 1 and, when called, `ShapeError` for rows of another width and
    `ArgumentError` for those of another dtype. GELU is that of Hendrycks and Gimpel 2016 (arXiv:1606.08415), exact.

    >>> ProjectionHead(8, 4)(torch.zeros(3, 8)).shape
    torch.Size([3, 4])
    """

    def __init__(self, input_dim: int, projection_dim: int = 512) -> None:
        super().__init__()
        width, out = whole_width("input_dim", input_dim), whole_width("projection_dim", projection_dim)
        self.config: dict[str, Any] = {"input_dim": width, "projection_dim": out}
        self.net = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (..., projection_dim)."""
        check_features(x, "x", self.config["input_dim"], self.net, "...")
        projected: torch.Tensor = self.net(x)
        return projected
