"""What a training step says of itself: its loss beside chance, how many candidates, what was left out.

This module is not about epochs, which add steps up (`epoch_line`).
"""

import math
from dataclasses import dataclass, field

from bridgehead.align.losses.contrast import LossParts, Positives
from bridgehead.align.losses.objective import Objective


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
