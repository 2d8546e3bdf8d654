"""The rows that several models read together: normalised once, with columns that some of the models never see.

This module is not about which rows make a batch (`members`) or about layers (`stacked`).
"""

from typing import Any

import numpy as np
import torch

from bridgehead.align.heads import Head


class SharedRows:
    """One side's training rows as the heads of all members read them.

    `hidden` has for each member which columns (d,) it does not see, True for those: what the mean of the training rows
    becomes stands there.
    """

    def __init__(self, head: Head, rows: Any, hidden: list[Any], dtype: torch.dtype) -> None:
        self.head, self.dtype = head, dtype
        self.rows = self.prepared(rows)
        self.hidden = torch.from_numpy(np.stack(hidden))[:, None, :] if np.any(hidden) else None
        self.mean = torch.from_numpy(rows.mean(axis=0, dtype=np.float64).astype(np.float32))
        self.instead = self.prepared(self.mean.numpy()[None])

    def prepared(self, rows: Any) -> torch.Tensor:
        """Return rows (n, d) after the heads' input normalisation."""
        return prepared_rows(self.head, torch.as_tensor(rows).to(self.dtype))

    def take(self, at: torch.Tensor, rows: torch.Tensor | None = None) -> torch.Tensor:
        """Return the rows numbered `at` (S, n) as (S, n, d), from the training rows or from other prepared ones."""
        x = (self.rows if rows is None else rows).index_select(0, at.reshape(-1)).view(*at.shape, -1)
        return x if self.hidden is None else torch.where(self.hidden, self.instead, x)

    @torch.no_grad()
    def blind_(self, head: Head, number: int) -> None:
        """Make the finished head of member `number` ignore the columns that it did not see in training."""
        if self.hidden is None:
            return
        hidden, weight = self.hidden[number, 0], head.first.weight
        assert isinstance(weight, torch.Tensor)
        assert isinstance(head.first.bias, torch.Tensor)
        unseen = torch.where(hidden, self.instead[0].to(weight.dtype), 0)
        head.first.bias.add_(weight @ unseen)
        weight[:, hidden] = 0


def prepared_rows(head: Head, rows: torch.Tensor) -> torch.Tensor:
    """Return rows (n, input_dim) after the head's input_norm, in their dtype: the same for all models."""
    if head.config.input_norm == "unit":
        norms = rows.norm(dim=1, keepdim=True, dtype=torch.float64)
        return (rows / torch.where(norms > 0, norms, torch.ones_like(norms))).to(rows.dtype)
    if head.config.input_norm == "standard":
        return (rows - head.mean.to(rows.dtype)) * head.inverse_std.to(rows.dtype)
    return rows
