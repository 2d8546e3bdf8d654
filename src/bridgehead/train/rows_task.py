"""Training two heads on cached rows: the task that `fit_heads` gives to the loop.

This module is not about epochs and checkpoints (`loop`) or about encoders that are trained too (`live`).
"""

from typing import Any

import numpy as np
import torch
from torch import nn

from bridgehead.align.losses.objective import Objective
from bridgehead.align.model import TwoHeads
from bridgehead.files import hash_texts
from bridgehead.negatives.plan import BatchPlan
from bridgehead.train.augment import alone_pairs, augment_batch, batch_generator, column_std
from bridgehead.train.batch_loss import BatchLoss
from bridgehead.train.config import TrainConfig
from bridgehead.train.data import PairData, side_shape
from bridgehead.train.knowledge import Knowledge
from bridgehead.train.outcome import StepOutcome
from bridgehead.train.precision import Precision
from bridgehead.train.seeds import seed_draws, start_seed, step_seed
from bridgehead.train.task import ParameterGroup
from bridgehead.train.validation import validation_metrics
from bridgehead.vectors import IntArray

Batch = tuple[IntArray, IntArray]


class Learned(nn.Module):
    """All that is learned: two heads with their scale, and what the loss itself learns (a bias, for the sigmoid)."""

    def __init__(self, heads: TwoHeads, objective: Objective) -> None:
        super().__init__()
        self.heads = heads
        self.objective = objective


class RowsTask:
    """Two heads over rows that are in memory: `data` to train on, `valid` to choose the epoch by, what the loss knows.

    The heads start from weights drawn from `config.seed`; batches, dropout and augmentation are drawn from (seed,
    epoch, batch).
    """

    def __init__(self, data: PairData, valid: PairData | None, config: TrainConfig, knowledge: Knowledge) -> None:
        self.data, self.valid, self.config, self.knowledge = data, valid, config, knowledge
        self.precision = Precision(config.device, config.precision)
        seed_draws(start_seed(config.seed))
        self.heads = TwoHeads(config.heads(side_shape(data.rows_a), side_shape(data.rows_b)))
        for head, rows in ((self.heads.head_a, data.rows_a), (self.heads.head_b, data.rows_b)):
            head.fit_input(rows)
        self.objective = Objective(config.loss, config.form, config.direction)
        self.model = Learned(self.heads, self.objective).to(self.precision.device)
        self.scale = self.heads.scale
        self.truth = data.links.expanded()
        self.plan = BatchPlan(data.links, config.links_per_batch(len(self.truth)), config.seed, config.negatives)
        self.n_batches = self.plan.n_batches
        device = self.precision.device
        self.loss = BatchLoss.of(self.objective, config, data.links, knowledge, config.embed_dim, device)
        # Seeding takes a tenth of a millisecond, which small steps without dropout do not need to pay.
        self.draws = config.dropout > 0 or config.input_dropout > 0
        config.augment.check_cached(*(side_shape(rows)[1] for rows in (data.rows_a, data.rows_b)))
        self.std_a, self.std_b = (
            column_std(rows) if config.augment.feature_noise and not side_shape(rows)[1] else None
            for rows in (data.rows_a, data.rows_b)
        )

    @property
    def notes(self) -> list[str]:
        """Sentences of the batches and the mining."""
        return self.plan.notes

    def key(self) -> str:
        """Return a hash of settings, rows and links."""
        valid = "" if self.valid is None else self.valid.fingerprint()
        return hash_texts([self.data.fingerprint(), valid, self.knowledge.fingerprint()])

    def groups(self) -> list[ParameterGroup]:
        """Return one group of weights that decay and one of those that do not: biases, norms and the scale."""
        learned = [(name, p) for name, p in self.model.named_parameters() if p.requires_grad]
        rate = self.config.learning_rate
        return [
            ParameterGroup("heads", [item for item in learned if item[1].ndim >= 2], rate, self.config.weight_decay),
            ParameterGroup("heads", [item for item in learned if item[1].ndim < 2], rate, 0.0),
        ]

    def begin_epoch(self, epoch: int) -> list[Batch]:
        """Mine hard negatives where they are due, and return the batches."""
        if self.plan.wants_rows(epoch):
            rows = self.data.rows_a, self.data.rows_b
            if self.config.negatives.mine_from == "current":
                rows = self.heads.project_a(rows[0]), self.heads.project_b(rows[1])
            self.plan.mine(*rows, epoch)
        return self.resume_epoch(epoch)

    def resume_epoch(self, epoch: int) -> list[Batch]:
        """Return the batches of an epoch whose mining is done."""
        return self.plan.batches(epoch)

    def backward(self, batch: Batch, epoch: int, number: int) -> StepOutcome:
        """Add the gradients of one batch.

        Each row is projected once and stands in the loss as often as the batch's links name it: so an item that many
        links name is a candidate in proportion, and being frequent earns it nothing (sampling corrects for it).
        """
        rows_a, rows_b = batch
        if self.draws:
            seed_draws(step_seed(self.config.seed, epoch, number))
        with self.precision.autocast():
            z_a, z_b, scale = self._projected(rows_a, rows_b, epoch, number)
        parts, outcome = self.loss(z_a, z_b, scale, rows_a, rows_b)
        self.precision.backward(parts.loss)
        return outcome

    def validate(self) -> dict[str, float]:
        """Return the MRR of both directions on the validation pairs, where there are any."""
        return {} if self.valid is None else validation_metrics(self.heads, self.valid)

    def _projected(
        self, rows_a: IntArray, rows_b: IntArray, epoch: int, number: int
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the rows of the batch in the shared space, and s."""
        if self.loss.paired or self.config.augment.latent_mixing is not None:
            # Mixed pairs are rows of their own, each to be projected by itself.
            return self.heads(*self._inputs(rows_a, rows_b, epoch, number))  # type: ignore[no-any-return]
        (once_a, at_a), (once_b, at_b) = (np.unique(rows, return_inverse=True) for rows in (rows_a, rows_b))
        z_a, z_b, scale = self.heads(*self._inputs(once_a, once_b, epoch, number))
        z_a, z_b = (z.index_select(0, torch.from_numpy(at).to(z.device)) for z, at in ((z_a, at_a), (z_b, at_b)))
        return z_a, z_b, scale

    def _inputs(self, rows_a: IntArray, rows_b: IntArray, epoch: int, number: int) -> tuple[Any, Any]:
        """Return what the heads read for these rows, varied as the config says."""
        inputs, augment = self.data.inputs(rows_a, rows_b), self.config.augment
        if augment.changes_rows:
            alone = None
            if augment.latent_mixing is not None and not self.loss.paired:
                alone = alone_pairs(self.loss.positives(rows_a, rows_b, "cpu"))
            generator = batch_generator(self.config.seed, epoch, number)
            inputs = augment_batch(*inputs, augment, generator, self.std_a, self.std_b, alone)
        device = self.precision.device
        return inputs if device.type == "cpu" else (inputs[0].to(device), inputs[1].to(device))
