"""The loss of one batch of rows: the objective, what it is told of the items, and the memory bank's rows.

For tasks whose rows come from wherever they like. This module is not about how rows are made or gradients taken.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from bridgehead.align.losses.contrast import Direction, LossParts, Positives
from bridgehead.align.losses.objective import Objective
from bridgehead.links import Links
from bridgehead.negatives.bank import MemoryBank, bank_loss
from bridgehead.train.config import TrainConfig
from bridgehead.train.knowledge import Knowledge
from bridgehead.train.outcome import StepOutcome, mean_outcome, step_outcome
from bridgehead.vectors import IntArray


@dataclass(frozen=True, eq=False)
class BatchLoss:
    """`objective` of `config` over `links`, told what `knowledge` holds, with the rows in `bank` as candidates.

    `paired` says that row i of a batch matches row i and nothing else. Use `of`. The bank is no part of a model: its
    state is for the checkpoint.
    """

    objective: Objective
    config: TrainConfig
    links: Links
    knowledge: Knowledge
    bank: MemoryBank | None
    paired: bool = False
    one_way: dict[str, Objective] = field(default_factory=dict)

    @classmethod
    def of(
        cls, objective: Objective, config: TrainConfig, links: Links, knowledge: Knowledge, dim: int, device: Any
    ) -> "BatchLoss":
        """Return the loss of rows (n, `dim`) on `device`; of `config` loss, form, direction and negatives count."""
        size = config.negatives.bank_size
        bank = MemoryBank(size, dim).to(device) if size else None
        ways: tuple[Direction, ...] = ("a_to_b", "b_to_a")
        one_way: dict[str, Objective] = {way: Objective(config.loss, config.form, way) for way in ways}
        for own in one_way.values():
            if hasattr(own, "bias"):
                # With a bank each direction has candidates of its own; the bias is that of all.
                own.bias = objective.bias
        # Where each row has one link and a batch never repeats one.
        paired = config.negatives.sampling != "hard" and _one_to_one(links.expanded().pairs)
        return cls(objective, config, links, knowledge, bank, paired, one_way)

    def positives(self, rows_a: IntArray, rows_b: IntArray, device: Any) -> Positives:
        """Return what matches what among the rows of a batch, on `device`."""
        if self.paired:
            return _diagonal(len(rows_a), device)
        pairs_a, pairs_b = (torch.from_numpy(own).to(device) for own in self.links.pairs_within(rows_a, rows_b))
        return Positives(pairs_a, pairs_b, len(rows_a), len(rows_b))

    def __call__(
        self, z_a: torch.Tensor, z_b: torch.Tensor, scale: torch.Tensor, rows_a: IntArray, rows_b: IntArray
    ) -> tuple[LossParts, StepOutcome]:
        """Return the loss of the rows of items `rows_a` (n_a,) and `rows_b` (n_b,), and what the step says of itself.

        The rows are in the bank afterwards. Raises what the objective raises.
        """
        if self.bank is not None:
            return self._with_bank(self.bank, z_a, z_b, scale, (rows_a, rows_b))
        positives = self.positives(rows_a, rows_b, z_a.device)
        parts: LossParts = self.objective(z_a, z_b, scale, positives, **self._told(rows_a, rows_b, z_a.device))
        random = self.config.negatives.sampling != "hard"
        told = None if self.paired else positives
        return parts, step_outcome(self.objective, parts, told, len(z_a), len(z_b), random)

    def state(self) -> dict[str, torch.Tensor]:
        """Return the bank, for a checkpoint."""
        return {} if self.bank is None else self.bank.state_dict()

    def load_state(self, tensors: dict[str, torch.Tensor]) -> None:
        """Put back what `state` gave."""
        if self.bank is not None:
            self.bank.load_state_dict(tensors)

    def _with_bank(
        self,
        bank: MemoryBank,
        z_a: torch.Tensor,
        z_b: torch.Tensor,
        scale: torch.Tensor,
        batch: tuple[IntArray, IntArray],
    ) -> tuple[LossParts, StepOutcome]:
        more = bank.extended(z_a, batch[0], z_b, batch[1], self.links)
        found: list[tuple[LossParts, StepOutcome]] = []

        def loss_of(left: torch.Tensor, right: torch.Tensor, links: Links, direction: str) -> torch.Tensor:
            objective = self.one_way.get(direction, self.objective)
            items_a = more.items_a.cpu().numpy() if direction == "b_to_a" else batch[0]
            items_b = more.items_b.cpu().numpy() if direction == "a_to_b" else batch[1]
            positives = Positives.of(links, len(left), len(right), left.device)
            parts: LossParts = objective(left, right, scale, positives, **self._told(items_a, items_b, left.device))
            found.append((parts, step_outcome(objective, parts, positives, len(left), len(right), False)))
            return parts.loss

        loss = bank_loss(loss_of, more, self.config.direction)
        bank.push(z_a.detach(), batch[0], z_b.detach(), batch[1])
        left_out = (found[0][0].left_out_a, found[-1][0].left_out_b)
        outcome = mean_outcome([own for _, own in found], *left_out)
        return LossParts(loss, None, None, *left_out), outcome

    def _told(self, rows_a: IntArray, rows_b: IntArray, device: torch.device) -> dict[str, Any]:
        told = self.knowledge.of(rows_a, rows_b)
        return {name: tuple(None if own is None else own.to(device) for own in both) for name, both in told.items()}


@lru_cache(maxsize=4)
def _diagonal(n: int, device: Any) -> Positives:
    """Return row i with row i: the same at every step."""
    return Positives.diagonal(n, device)


def _one_to_one(pairs: IntArray) -> bool:
    """Whether each row of either side is in one pair at most."""
    return all(len(np.unique(pairs[:, column])) == len(pairs) for column in (0, 1))
