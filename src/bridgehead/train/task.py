"""What the training loop needs to know of the thing that it trains: heads over cached rows, or live encoders.

This module is not about how epochs follow each other, checkpoints or early stopping: that is the loop's (`loop`).
"""

import math
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import nn

from bridgehead.align.losses.contrast import LossParts, Positives
from bridgehead.align.losses.objective import Objective
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


class Task(Protocol):
    """A thing to train. All that is random in it is drawn from the seed, the epoch and the number of the batch."""

    scale: LogitScale
    precision: Precision
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
        """Return the batches of an epoch that was begun before; `load_state` has put back what it had made."""

    def backward(self, batch: Any, epoch: int, number: int) -> StepOutcome:
        """Add the gradients of one batch to those of the weights, through `precision`."""

    def validate(self) -> dict[str, float]:
        """Return figures on held-out pairs, `valid_mrr` among them, or nothing where there are none."""

    def state(self) -> dict[str, torch.Tensor]:
        """Return what a checkpoint must hold beside the weights: precision, memory bank, mined neighbours."""

    def load_state(self, tensors: dict[str, torch.Tensor]) -> None:
        """Put back what `state` gave."""


def step_outcome(
    objective: Objective,
    parts: LossParts,
    positives: Positives | None,
    n_a: int,
    n_b: int,
    drawn_at_random: bool = True,
) -> StepOutcome:
    """Return what a step says of itself, from the loss of its batch.

    `positives` None is row i with row i. Mutual information is read where candidates were `drawn_at_random` only.
    """
    information = None
    single = objective.config.name == "info_nce" and min(n_a, n_b) >= 2 if positives is None else None
    if drawn_at_random and (single or (positives is not None and objective.reads_mutual_information(positives))):
        contrastive = parts.loss if parts.terms is None else parts.terms["contrastive"]
        information = math.log(objective.n_candidates(n_a, n_b)) - float(contrastive.detach())
    terms = {name: float(value) for name, value in (parts.terms or {}).items() if name != "contrastive"}
    if "alignment" in terms or "uniformity" in terms:
        terms["contrastive"] = float((parts.terms or {})["contrastive"])
    return StepOutcome(
        loss=float(parts.loss.detach()),
        chance=objective.chance(n_a, n_b, positives),
        n_candidates=objective.n_candidates(n_a, n_b),
        information=information,
        left_out_a=parts.left_out_a,
        left_out_b=parts.left_out_b,
        terms=terms,
    )


def mean_outcome(outcomes: list[StepOutcome], left_out_a: int, left_out_b: int) -> StepOutcome:
    """Return the mean of the directions of one step; of candidates the geometric one, as their logarithms are added."""
    if len(outcomes) == 1:
        return outcomes[0]

    def mean(values: list[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return sum(known) / len(known) if len(known) == len(values) else None

    loss = mean([outcome.loss for outcome in outcomes])
    assert loss is not None
    return StepOutcome(
        loss=loss,
        chance=mean([outcome.chance for outcome in outcomes]),
        n_candidates=math.prod(outcome.n_candidates for outcome in outcomes) ** (1 / len(outcomes)),
        information=mean([outcome.information for outcome in outcomes]),
        left_out_a=left_out_a,
        left_out_b=left_out_b,
        terms={name: sum(own.terms[name] for own in outcomes) / len(outcomes) for name in outcomes[0].terms},
    )


def under(prefix: str, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the tensors whose names begin with `prefix`, under the rest of their names."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
