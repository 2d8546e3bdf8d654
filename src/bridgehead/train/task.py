"""What the training loop needs to know of the thing that it trains: heads over cached rows, or live encoders.

This module is not about how epochs follow each other, checkpoints or early stopping: that is the loop's (`loop`).
"""

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import nn

from bridgehead.align.scale import LogitScale
from bridgehead.errors import NonFiniteRowsError
from bridgehead.negatives.plan import BatchPlan
from bridgehead.train.batch_loss import BatchLoss
from bridgehead.train.outcome import StepOutcome
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


class Task(Protocol):
    """A thing to train. All that is random in it is drawn from the seed, the epoch and the number of the batch."""

    scale: LogitScale
    precision: Precision
    plan: BatchPlan
    loss: BatchLoss
    n_batches: int

    @property
    def model(self) -> nn.Module:
        """All weights, learned or not: a checkpoint holds its `state_dict`."""

    @property
    def notes(self) -> list[str]:
        """Sentences for the user."""

    def key(self) -> str:
        """Return a hash of all that shapes the result: data, architecture, settings."""

    def groups(self) -> list[ParameterGroup]:
        """Return the weights that are ever learned; those of a later epoch are frozen until then."""

    def begin_epoch(self, epoch: int) -> list[Any]:
        """Return the batches of an epoch (0 the first), after what it needs: mining, unfreezing."""

    def resume_epoch(self, epoch: int) -> list[Any]:
        """Return the batches of an epoch that was begun before; what was mined for it is back in `plan`."""

    def backward(self, batch: Any, epoch: int, number: int) -> StepOutcome:
        """Add the gradients of one batch to those of the weights, through `precision`."""

    def validate(self) -> dict[str, float]:
        """Return figures on held-out pairs, `valid_mrr` among them, or nothing where there are none."""


def first_not_finite(model: nn.Module) -> str | None:
    """Return the name of the first weight of `model` that holds NaN or infinity, or None."""
    weights = model.state_dict().items()
    return next((name for name, weight in weights if not bool(torch.isfinite(weight).all())), None)


def check_trained(model: nn.Module, whose: str = "") -> None:
    """Raise `NonFiniteRowsError` for weights that the last step made NaN: the loss would tell of it one step later."""
    if bad := first_not_finite(model):
        raise NonFiniteRowsError(f"{bad}{whose} holds NaN or infinity after the last step; lower the learning rate")
