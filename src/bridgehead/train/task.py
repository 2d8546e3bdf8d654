"""What the training loop needs to know of the thing that it trains: heads over cached rows, or live encoders.

This module is not about how epochs follow each other, checkpoints or early stopping: that is the loop's (`loop`).
"""

from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import nn

from bridgehead.align.scale import LogitScale
from bridgehead.train.precision import Precision


@dataclass(frozen=True, eq=False)
class ParameterGroup:
    """Weights that are learned together: (name in the model, parameter), from the epoch `from_epoch` on (0 the first).

    Until then they are frozen. `learning_rate` is the peak of their rate, `weight_decay` that of AdamW.
    """

    name: str
    parameters: list[tuple[str, nn.Parameter]]
    learning_rate: float
    weight_decay: float
    from_epoch: int = 0


@dataclass(frozen=True, eq=False)
class StepOutcome:
    """What one step says of itself, gradients aside.

    `loss` is detached. `chance` is what rows without signal would lose, in nats, None where the loss has no such value.
    `n_candidates` is the mean number of rows that an anchor is told from, its own positives included. `information` is
    the lower bound of the mutual information in nats, None where the loss does not give one. `left_out_a` and
    `left_out_b` are rows without a positive; `terms` further named parts of the loss.
    """

    loss: float
    chance: float | None
    n_candidates: float
    information: float | None = None
    left_out_a: int = 0
    left_out_b: int = 0
    terms: dict[str, float] = field(default_factory=dict)


class ScaledModel(Protocol):
    """A model whose logit scale the log shows and the loop keeps in its bounds."""

    scale: LogitScale


class Task(Protocol):
    """A thing to train. All that is random in it is drawn from the seed, the epoch and the number of the batch."""

    model: nn.Module
    scale: LogitScale
    precision: Precision
    n_batches: int
    notes: list[str]

    def key(self) -> str:
        """Return a hash of all that shapes the result: data, architecture, settings."""

    def groups(self) -> list[ParameterGroup]:
        """Return the weights that are ever learned; those of a later epoch are frozen until then."""

    def begin_epoch(self, epoch: int) -> list[Any]:
        """Return the batches of an epoch (0 the first), after what it needs: mining, unfreezing."""

    def resume_epoch(self, epoch: int) -> list[Any]:
        """Return the batches of an epoch that was begun before; `load_state` has put back what it had made."""

    def backward(self, batch: Any, epoch: int, number: int) -> StepOutcome:
        """Add the gradients of one batch to those of the weights, through `precision`."""

    def validate(self) -> dict[str, float]:
        """Return figures on held-out pairs, `valid_mrr` among them, or nothing where there are none."""

    def state(self) -> dict[str, torch.Tensor]:
        """Return what a checkpoint must hold beside the weights: the memory bank, mined neighbours."""

    def load_state(self, tensors: dict[str, torch.Tensor]) -> None:
        """Put back what `state` gave."""
