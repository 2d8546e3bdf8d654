"""Many trainings of one architecture in one batched computation: seeds x conditions, each as if trained alone.

Controls and error bars need the same training again and again: other seeds, shuffled links, one direction, a side
hidden. The models are small, so a step is mostly overhead, and S of them at once cost little more than one. This module
is not about what the conditions prove (`audits`) or about a single training (`loop`).
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from bridgehead.align.losses.contrast import Positives
from bridgehead.align.losses.infonce import info_nce_parts
from bridgehead.align.model import TwoHeads
from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.train.config import TrainConfig
from bridgehead.train.data import PairData, side_shape
from bridgehead.train.ensemble.members import Course, Member, check_settings, first_models, is_one_to_one, make_plans
from bridgehead.train.ensemble.shared_rows import SharedRows
from bridgehead.train.ensemble.stacked import PairedLoss, StackedModels, check_losses, put_into
from bridgehead.train.epoch_line import closing_notes
from bridgehead.train.fit import FitResult
from bridgehead.train.optimiser import FusedAdamW, learning_rate
from bridgehead.train.task import check_trained
from bridgehead.train.validation import validation_metrics
from bridgehead.vectors import IntArray

__all__ = ["Course", "Member", "fit_ensemble"]

EpochCallback = Callable[[int, int, list[dict[str, Any]]], None]

# Most scores of validation links that are held at once, unless one model has more.
_SCORES_AT_ONCE = 1 << 25


def fit_ensemble(
    rows_a: Any,
    rows_b: Any,
    links: Any = None,
    config: TrainConfig | None = None,
    members: Sequence[Member] = (),
    *,
    valid: tuple[Any, Any, Any] | None = None,
    course: Course | None = None,
    dtype: torch.dtype = torch.float32,
    progress: EpochCallback | None = None,
) -> list[FitResult]:
    """Train one model a member, all at once, and return their results in the order of `members`.

    Rows, `links`, `valid` and `config` are those of `fit_heads`; rows are dense. A member with nothing of its own but
    a seed ends as `fit_heads` with that seed does: same first weights, batches, dropout, rates, choice of the epoch and
    early stop. Only rounding differs, as sums are taken in another order: by under 1e-5 after 10 steps in float32. See
    `Member` for what may differ between members, and `Course` for other rates, decay and choice of the epoch.

    Where no item has two links, the loss of all members is one batched computation; otherwise each member's loss is
    computed by itself (`info_nce`), and the rest together. Memory is S times that of one training, the scores of a
    batch included; `chosen_by="loss"` holds one model's scores of all validation links. A member whose patience has
    ended keeps its result and is trained on, unused, until the last one ends. `dtype=torch.float64` trains, and
    returns, models in double precision. `progress(epoch, epochs, lines)` gets each member's line after each epoch; its
    `seconds` are those of all members together.

    >>> rows = np.random.default_rng(0).standard_normal((64, 8))
    >>> config = TrainConfig.of(embed_dim=8, epochs=2)
    >>> found = fit_ensemble(rows, rows[:, :5], None, config, [Member(seed) for seed in range(3)])
    >>> len(found), found[0].model.project_a(rows).shape
    (3, (64, 8))

    Raises `ArgumentError` (no members, CSR rows, settings or members that cannot be trained together), and what
    `fit_heads` raises.
    """
    config, course = TrainConfig.of(config), course or Course()
    check_settings(config, dtype)
    data = PairData.of(rows_a, rows_b, links)
    for side, rows in (("a", data.rows_a), ("b", data.rows_b)):
        if side_shape(rows)[1]:
            raise ArgumentError(f"rows_{side} is a CSR matrix; expected dense rows: train such heads with fit_heads")
    held_out = None if valid is None else _valid_pairs(valid, data)
    notes = []
    if held_out is not None and len(held_out.links) == 0:
        held_out = None
        notes.append("the validation split has no links: all epochs are trained and the last one is kept")
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        fit = _Ensemble(data, held_out, config, course, members, dtype)
        fit.train(progress)
        return fit.finish(notes)


def _valid_pairs(valid: Any, data: PairData) -> PairData:
    if not isinstance(valid, tuple | list) or len(valid) != 3:
        raise ArgumentError(f"valid is a {type(valid).__name__}; expected (rows_a, rows_b, links), links None by order")
    found = PairData.of(*valid)
    for side in ("rows_a", "rows_b"):
        came, like = side_shape(getattr(found, side)), side_shape(getattr(data, side))
        if came != like:
            raise ShapeError(f"valid {side} have (width, is it CSR) = {came}; expected {like}, as in training")
    return found


@dataclass(eq=False)
class _Standing:
    """How far one member has come; `stopped` once its patience has ended."""

    history: list[dict[str, Any]] = field(default_factory=list)
    best_value: float | None = None
    best_epoch: int = 0
    stopped: bool = False


class _Ensemble:
    """S trainings under way."""

    def __init__(
        self,
        data: PairData,
        valid: PairData | None,
        config: TrainConfig,
        course: Course,
        members: Sequence[Member],
        dtype: torch.dtype,
    ) -> None:
        self.valid, self.config, self.course, self.dtype = valid, config, course, dtype
        self.plans = make_plans(members, data, config)
        steps = self.plans[0].steps
        self.planned = config.epochs * steps
        self.warmup = min(round(config.warmup_epochs * steps), self.planned // 2)
        self.models = first_models(members, data, config)
        self.stack = StackedModels(self.models, dtype)
        for model in self.models:
            # Validation ranks in float32, whatever is trained.
            model.float()
        self.optimiser = self._optimiser()
        self.a = SharedRows(self.models[0].head_a, data.rows_a, [plan.hidden_a for plan in self.plans], dtype)
        self.b = SharedRows(self.models[0].head_b, data.rows_b, [plan.hidden_b for plan in self.plans], dtype)
        self.widths = (self.stack.a.mask_widths, self.stack.b.mask_widths)
        self.one_to_one = all(plan.one_to_one for plan in self.plans)
        forth = [{"a_to_b": 1.0, "b_to_a": 0.0}.get(plan.direction, 0.5) for plan in self.plans]
        self.paired_loss = PairedLoss(torch.tensor(forth, dtype=dtype))
        self.scale = self.stack.log_scale.exp()
        self.standings = [_Standing() for _ in self.plans]
        self.best = {name: weight.clone() for name, weight in self.stack.weights.items()}
        self.step = 0

    def _optimiser(self) -> FusedAdamW:
        """Return AdamW over the weights of all models: it works entry by entry, so it is S optimisers in one."""
        config, parts = self.config, (self.stack.matrices, self.stack.others)
        decays = (config.weight_decay, config.weight_decay if self.course.decay == "all" else 0.0)
        groups = [
            {"params": [weights], "weight_decay": decay, "lr": config.learning_rate}
            for weights, decay in zip(parts, decays, strict=True)
        ]
        return FusedAdamW(groups, config.betas)

    def train(self, progress: EpochCallback | None) -> None:
        """Train epoch after epoch until the planned end or until every member has stopped."""
        for epoch in range(self.config.epochs):
            started = time.monotonic()
            losses, chance = self._epoch(epoch)
            lines = self._close_epoch(epoch + 1, losses, chance, started)
            if progress is not None:
                progress(epoch + 1, self.config.epochs, lines)
            if all(standing.stopped for standing in self.standings):
                return

    def _epoch(self, epoch: int) -> tuple[torch.Tensor, float]:
        """Train one epoch; return the mean loss of each member (S,) and the loss of rows without signal."""
        found = [plan.epoch(epoch) for plan in self.plans]
        lengths = found[0][1]
        order_a, order_b = (torch.from_numpy(np.stack([pairs[:, side] for pairs, _ in found])) for side in (0, 1))
        parts = zip(torch.split(order_a, lengths, dim=1), torch.split(order_b, lengths, dim=1), strict=True)
        losses = torch.zeros(len(self.plans), dtype=self.dtype)
        for batch, (at_a, at_b) in enumerate(parts):
            for group in self.optimiser.param_groups:
                group["lr"] = self._rate(self.step)
            losses += self._step((epoch, batch), at_a, at_b)
            self.step += 1
        return losses / len(lengths), sum(math.log(length) for length in lengths) / len(lengths)

    def _rate(self, step: int) -> float:
        if self.course.rate == "constant":
            return self.config.learning_rate
        return learning_rate(step, self.planned, self.warmup, self.config.learning_rate)

    def _step(self, at: tuple[int, int], at_a: torch.Tensor, at_b: torch.Tensor) -> torch.Tensor:
        """Step all models on their rows (S, n) of both sides; return their losses before it, (S,)."""
        masks_a, masks_b = self._masks(at, at_a.numpy(), at_b.numpy())
        z_a = self.stack.a.forward(self.a.take(at_a), masks_a)
        z_b = self.stack.b.forward(self.b.take(at_b), masks_b)
        if self.one_to_one:
            losses, by_a, by_b, by_log = self.paired_loss(z_a, z_b, self.scale)
        else:
            losses, by_a, by_b, by_log = self._separate_losses(z_a, z_b, at_a.numpy(), at_b.numpy())
        self.stack.a.backward(by_a, masks_a)
        self.stack.b.backward(by_b, masks_b)
        if self.config.learn_scale:
            self.stack.gradients["scale.log_logit_scale"].copy_(by_log)
        self.optimiser.step()
        if self.config.learn_scale:
            self.stack.project_()
            self.scale = self.stack.log_scale.exp()
        return losses

    def _masks(self, at: tuple[int, int], at_a: IntArray, at_b: IntArray) -> list[list[torch.Tensor | None] | None]:
        """Return each side's dropout masks (S, n, width); every member draws what it would draw alone."""
        if not any(share > 0 for side in self.widths for _, share in side):
            return [None, None]
        drawn = [
            plan.masks(at, rows, self.widths, self.dtype)
            for plan, *rows in zip(self.plans, at_a, at_b, strict=True)
        ]  # fmt: skip
        return [
            [None if layer[0] is None else torch.stack(layer) for layer in zip(*side, strict=True)]
            for side in zip(*drawn, strict=True)
        ]

    def _separate_losses(
        self, z_a: torch.Tensor, z_b: torch.Tensor, at_a: IntArray, at_b: IntArray
    ) -> tuple[torch.Tensor, ...]:
        """Return what `PairedLoss` does where items have several links, each member's loss by itself."""
        leaves = [tensor.detach().requires_grad_() for tensor in (z_a, z_b, self.stack.log_scale)]
        own_a, own_b, scales = leaves[0], leaves[1], leaves[2].exp()
        found = []
        for m, plan in enumerate(self.plans):
            there_a, there_b = (torch.from_numpy(there) for there in plan.links.pairs_within(at_a[m], at_b[m]))
            positives = Positives(there_a, there_b, at_a.shape[1], at_b.shape[1])
            parts = info_nce_parts(own_a[m], own_b[m], scales[m], positives, self.config.form, plan.direction)
            found.append(parts.loss)
        losses = torch.stack(found)
        return losses.detach(), *torch.autograd.grad(losses.sum(), leaves)

    def _close_epoch(self, epoch: int, losses: torch.Tensor, chance: float, started: float) -> list[dict[str, Any]]:
        """Validate where it is due, keep what is best, and return the line of each member."""
        check_losses(losses, [plan.name for plan in self.plans])
        metrics = self._validate() if self.valid is not None and epoch % self.course.validate_every == 0 else None
        means, scales, logs = losses.tolist(), self.scale.tolist(), self.stack.log_scale.tolist()
        rate, candidates, improved = self._rate(self.step - 1), round(math.exp(chance), 9), []
        lines: list[dict[str, Any]] = []
        for m, standing in enumerate(self.standings):
            found = {} if metrics is None else metrics[m]
            line = {
                "epoch": epoch,
                "loss": means[m],
                "chance_loss": chance,
                "candidates": candidates,
            }
            if self.one_to_one:
                line["mutual_information"] = chance - line["loss"]
            line |= {**found, "learning_rate": rate, "log_logit_scale": logs[m]}
            line |= {"logit_scale": scales[m], "temperature": 1 / scales[m]}
            lines.append(line | {"seconds": round(time.monotonic() - started, 4)})
            if not standing.stopped:
                standing.history.append(lines[-1])
                if self._is_better(standing, found, epoch):
                    improved.append(m)
        self._keep(improved)
        return lines

    def _is_better(self, standing: _Standing, found: dict[str, float], epoch: int) -> bool:
        """Take note of a validation; say whether it is the member's best one."""
        value = -found["valid_loss"] if "valid_loss" in found else found.get("valid_mrr")
        better = value is not None and (standing.best_value is None or value > standing.best_value)
        if better:
            standing.best_value, standing.best_epoch = value, epoch
        patience = self.config.patience
        standing.stopped = (
            patience is not None and standing.best_value is not None and epoch - standing.best_epoch >= patience
        )
        return better

    @torch.no_grad()
    def _keep(self, improved: list[int]) -> None:
        """Keep the weights of these members as their best ones."""
        if improved:
            index = torch.tensor(improved)
            for name, weight in self.stack.weights.items():
                self.best[name][index] = weight[index]

    @torch.no_grad()
    def _validate(self) -> list[dict[str, float]]:
        assert self.valid is not None
        if self.course.chosen_by == "loss":
            return [{"valid_loss": value} for value in self._valid_losses(self.valid).tolist()]
        found: list[dict[str, float]] = []
        for m, (model, standing) in enumerate(zip(self.models, self.standings, strict=True)):
            if not standing.stopped:
                self._fill(model, self.stack.weights, m)
            found.append({} if standing.stopped else validation_metrics(model.eval(), self.valid))
        return found

    def _valid_losses(self, valid: PairData) -> torch.Tensor:
        """Return each member's InfoNCE (S,) over all validation links as one batch, in both directions."""
        pairs = valid.links.expanded().pairs
        at = [torch.from_numpy(pairs[:, side].copy()).expand(len(self.plans), -1) for side in (0, 1)]
        z_a = self.stack.a.forward(self.a.take(at[0], self.a.prepared(valid.rows_a)))
        z_b = self.stack.b.forward(self.b.take(at[1], self.b.prepared(valid.rows_b)))
        if is_one_to_one(pairs):
            many = max(1, _SCORES_AT_ONCE // len(pairs) ** 2)
            parts = zip(*(torch.split(part, many) for part in (z_a, z_b, self.scale)), strict=True)
            return torch.cat([PairedLoss(torch.full_like(s, 0.5)).losses(own_a, own_b, s) for own_a, own_b, s in parts])
        truth, form = valid.links.within(*pairs.T), self.config.form
        return torch.stack([
            info_nce_parts(z_a[m], z_b[m], scale, truth, form).loss for m, scale in enumerate(self.scale)
        ])  # fmt: skip

    def _fill(self, model: TwoHeads, stacked: dict[str, torch.Tensor], number: int) -> None:
        put_into(model, stacked, number)
        self.a.blind_(model.head_a, number)
        self.b.blind_(model.head_b, number)

    def finish(self, notes: list[str]) -> list[FitResult]:
        """Return each member with its best weights, or its last ones where nothing validated."""
        results = []
        for m, (plan, standing) in enumerate(zip(self.plans, self.standings, strict=True)):
            model, own, last = self.models[m].to(self.dtype), list(notes), standing.history[-1]
            self._fill(model, self.best if standing.best_epoch else self.stack.weights, m)
            check_trained(model, f" of {plan.name}")
            best_epoch = standing.best_epoch or last["epoch"]
            if last["epoch"] < self.config.epochs:
                own.append(
                    f"stopped after epoch {last['epoch']} of {self.config.epochs}: epoch {best_epoch} stayed the best"
                )
            own += closing_notes(standing.history, warm=self.warmup / plan.steps)
            results.append(FitResult(model.eval(), standing.history, best_epoch, own))
        return results
