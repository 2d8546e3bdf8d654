"""What heads and encoders demand of what they are called with, said in a sentence before torch says it in its own way.

This module is not about CSR rows (`bags`).
"""

from typing import Any

import numpy as np
import torch
from torch import nn

from bridgehead.errors import ArgumentError, ShapeError


def check_features(rows: Any, name: str, width: int, layer: nn.Module, leading: str = "B") -> None:
    """Raise unless `rows` is a tensor (`leading`, width) of the dtype of the weights of `layer`.

    Raises `ArgumentError` (no tensor; another dtype, which autocast alone bridges) and `ShapeError` (width).
    """
    dtype = next(layer.parameters()).dtype
    if not isinstance(rows, torch.Tensor):
        raise ArgumentError(
            f"{name} is a {type(rows).__name__}; expected a tensor ({leading}, {width}): make it by "
            f"torch.as_tensor(rows, dtype={dtype})"
        )
    if rows.ndim == 0 or rows.shape[-1] != width:
        raise ShapeError(f"{name} has shape {tuple(rows.shape)}; expected ({leading}, {width})")
    if rows.dtype != dtype and not torch.is_autocast_enabled(rows.device.type):
        raise ArgumentError(
            f"{name} has dtype {rows.dtype} and the weights {dtype}; expected the same: use .to({dtype})"
        )


def check_inputs(side: str, features: Any, inputs: dict[str, Any]) -> None:
    """Raise `ArgumentError` unless what came is tensors; modules of the user's own may take anything."""
    came = {"inputs": features} if features is not None else inputs
    if not came:
        raise ArgumentError(f"no inputs of side {side} came; expected tensors by name, such as input_ids")
    for name, value in came.items():
        if isinstance(value, str | int | float | list | tuple | np.ndarray):
            raise ArgumentError(
                f"{name} of side {side} is a {type(value).__name__}; expected a tensor, and texts tokenised with "
                "return_tensors='pt'"
            )
