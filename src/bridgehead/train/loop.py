"""The training loop: epochs of steps, the learning rate, validation, early stop, history, checkpoints and resume.

One loop for heads over cached rows (`rows_task`) and for live encoders (`live`); what a step computes is the task's.
It writes only into the folder it is given. This module is not about losses, batches or data.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import torch
from torch import nn

from bridgehead.errors import ArgumentError, LinksError, RunStateError
from bridgehead.files import hash_texts
from bridgehead.train.carried import carried_state, restore_carried, under
from bridgehead.train.checkpoint import Progress, load_checkpoint, save_checkpoint
from bridgehead.train.config import TrainConfig
from bridgehead.train.epoch_line import EpochSums, closing_notes
from bridgehead.train.optimiser import (
    group_rate,
    make_optimiser,
    optimiser_tensors,
    restore_optimiser,
    set_group_rates,
)
from bridgehead.train.task import ParameterGroup, Task, check_trained
from bridgehead.train.trackers import History

ProgressCallback = Callable[[int, int, dict[str, Any]], None]


@dataclass(frozen=True, eq=False)
class LoopResult:
    """A finished training; the task's model has the weights of `best_epoch` (counted from 1, the last without valid).

    `history` has a dict per epoch, `notes` are sentences for the user.
    """

    history: list[dict[str, Any]]
    best_epoch: int
    notes: list[str]


def check_epochs(epochs: Any, valid: Any) -> None:
    """Raise `ArgumentError` unless `epochs` is None, or a whole number of at least 1 without `valid` pairs."""
    if epochs is None:
        return
    if isinstance(epochs, bool) or not isinstance(epochs, Integral):
        raise ArgumentError(f"epochs = {epochs!r:.80}; expected a whole number of at least 1, or None")
    if valid is not None or int(epochs) < 1:
        raise ArgumentError(f"epochs = {epochs}; expected at least 1, and no valid pairs: the length is fixed by it")


def train_task(
    task: Task,
    config: TrainConfig,
    *,
    epochs: int | None = None,
    folder: Path | None = None,
    progress: ProgressCallback | None = None,
) -> LoopResult:
    """Train `task` and leave its model with the best weights, all of them: encoders, both heads, scale.

    `epochs` trains exactly that number at the learning rates of a training planned for `config.epochs`. `folder` gets
    `history.jsonl` and, on the way, a checkpoint; calling again after a kill goes on from it and ends in bit-identical
    weights and history (but for seconds) on the same machine and number of threads. The checkpoint is left for the
    caller to remove (`remove_checkpoint`) once what he makes of the model is written.

    Raises `RunStateError` when the folder holds the checkpoint of another training, `LinksError` when an epoch has no
    batch, and what the task raises.
    """
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        loop = _Loop(task, config, epochs, folder)
        with loop.log:
            loop.resume()
            loop.train(progress)
        return loop.finish()


class _Loop:
    """One training under way: the task, its optimiser and where it stands."""

    def __init__(self, task: Task, config: TrainConfig, epochs: int | None, folder: Path | None) -> None:
        self.task, self.config, self.folder = task, config, folder
        self.epochs = config.epochs if epochs is None else epochs
        self.planned = max(config.epochs, self.epochs) * task.n_batches
        self.warmup = min(round(config.warmup_epochs * task.n_batches), self.planned // 2)
        self.groups = task.groups()
        self.optimiser = make_optimiser(self.groups, config)
        self.state = Progress()
        self.sums = EpochSums()
        self.epoch_batches = task.n_batches
        self.watched = _watched(self.groups, task.precision.kind)
        self.best: dict[str, torch.Tensor] = {}
        self.key = "" if folder is None else hash_texts([config.fingerprint(), str(epochs), task.key()])
        if config.tensorboard and folder is None:
            raise ArgumentError("tensorboard = true, and there is no folder to write its files into; pass folder=")
        self.log = History(folder, folder / "tensorboard" if config.tensorboard and folder is not None else None)
        self.saved_at, self.pause = time.monotonic(), config.checkpoint_seconds
        self.resumed_within = False

    def resume(self) -> None:
        """Take up the checkpoint of the folder, where there is one, and bring the history file into its state."""
        if self.folder is None:
            return
        found = load_checkpoint(self.folder, self.key)
        if found is not None:
            self.state, tensors = found
            self.sums = EpochSums(**self.state.sums)
            self.task.model.load_state_dict(under("model.", tensors))
            restore_optimiser(self.optimiser, self.task.model, tensors)
            restore_carried(self.task, under("task.", tensors))
            self.best = under("best.", tensors)
            self.resumed_within = self.state.batch > 0
        self.log.restart(self.state.history)

    def train(self, progress: ProgressCallback | None) -> None:
        """Train epoch after epoch until the planned end or the early stop."""
        while self.state.epoch < self.epochs and not self._out_of_patience():
            self._epoch()
            line = self._close_epoch()
            if progress is not None:
                progress(self.state.epoch, self.epochs, dict(line))

    def _out_of_patience(self) -> bool:
        patience = self.config.patience
        if patience is None or self.state.best_value is None:
            return False
        return self.state.epoch - self.state.best_epoch >= patience

    def _epoch(self) -> None:
        state, task = self.state, self.task
        begin = task.resume_epoch if self.resumed_within else task.begin_epoch
        self.resumed_within = False
        batches = begin(state.epoch)
        if not batches:
            raise LinksError(
                f"epoch {state.epoch + 1} has no batch: negatives.sampling = 'distinct' wants links that share no item "
                "and do not match across, and found fewer than 2, or than an eighth of batch_size, that go together; "
                "lower batch_size, or use sampling = 'random'"
            )
        self.epoch_batches = len(batches)
        task.model.train()
        while state.batch < len(batches):
            started = time.monotonic()
            self._step(batches[state.batch])
            state.batch += 1
            state.step += 1
            state.seconds += time.monotonic() - started
            if state.batch < len(batches):
                self._save_if_due()

    def _step(self, batch: Any) -> None:
        set_group_rates(self.optimiser, self._rates(self.state.epoch, self.state.batch))
        self.optimiser.zero_grad()
        outcome = self.task.backward(batch, self.state.epoch, self.state.batch)
        stepped = self.task.precision.step(self.optimiser, self.watched)  # type: ignore[arg-type]
        self.task.scale.project_()
        self.sums.add(outcome, stepped)

    def _rates(self, epoch: int, batch: int) -> list[float]:
        """Return the rate of each group; an epoch covers its share of the plan however many batches it has."""
        step = epoch * self.task.n_batches + batch * self.task.n_batches / self.epoch_batches
        firsts = [group.from_epoch * self.task.n_batches for group in self.groups]
        return [
            group_rate(step, first, self.planned, self.warmup, group.learning_rate)
            for group, first in zip(self.groups, firsts, strict=True)
        ]

    def _close_epoch(self) -> dict[str, Any]:
        """Validate, keep the best, write the line of the epoch and a checkpoint where one is due."""
        state, started = self.state, time.monotonic()
        self.task.model.eval()
        metrics = self.task.validate()
        scale = float(self.task.scale().detach())
        rates = self._rates(state.epoch, state.batch - 1)
        line: dict[str, Any] = {
            "epoch": state.epoch + 1,
            **self.sums.means(),
            **metrics,
            "learning_rate": rates[0],
            "log_logit_scale": float(self.task.scale.log_logit_scale.detach()),
            "logit_scale": scale,
            "temperature": 1 / scale if scale else None,
            "seconds": round(state.seconds + time.monotonic() - started, 4),
        }
        if len({group.name for group in self.groups}) > 1:
            line["learning_rates"] = {
                group.name: rate if state.epoch >= group.from_epoch else 0.0
                for group, rate in zip(self.groups, rates, strict=True)
            }
        state.epoch, state.batch, state.seconds = state.epoch + 1, 0, 0.0
        self.sums = EpochSums()
        state.history.append(line)
        if metrics and (state.best_value is None or metrics["valid_mrr"] > state.best_value):
            state.best_value, state.best_epoch = metrics["valid_mrr"], state.epoch
            self._keep_best()
        self.log.add(line)
        self._save_if_due()
        return line

    def _keep_best(self) -> None:
        weights = self.task.model.state_dict()
        if self.best.keys() == weights.keys():
            # Into the same memory: fresh pages for hundreds of megabytes take longer than the copy.
            for name, tensor in weights.items():
                self.best[name].copy_(tensor)
        else:
            self.best = {name: tensor.clone() for name, tensor in weights.items()}

    def _save_if_due(self) -> None:
        if self.folder is None or time.monotonic() - self.saved_at < self.pause:
            return
        started = time.monotonic()
        self.state.sums = self.sums.plain()
        tensors = {f"model.{name}": tensor for name, tensor in self.task.model.state_dict().items()}
        tensors |= {f"best.{name}": tensor for name, tensor in self.best.items()}
        tensors |= {f"task.{name}": tensor for name, tensor in carried_state(self.task).items()}
        tensors |= optimiser_tensors(self.optimiser, self.task.model)
        try:
            save_checkpoint(self.folder, self.key, self.state, tensors)
        except OSError as error:
            raise RunStateError(
                f"the checkpoint could not be written into {self.folder} ({error}); what was there before is whole: "
                "make room on the disk and start again, and the training goes on from it"
            ) from error
        self.saved_at = time.monotonic()
        if self.config.checkpoint_seconds > 0:
            # Hundreds of megabytes on a slow disk must not take over: writing gets a tenth of the time at most.
            self.pause = max(self.config.checkpoint_seconds, 9 * (self.saved_at - started))

    def finish(self) -> LoopResult:
        """Restore the best weights whole."""
        state = self.state
        if self.best:
            self.task.model.load_state_dict(self.best)
        check_trained(self.task.model)
        self.task.model.eval()
        # Two processes that trained here at once would have written their lines into each other's.
        self.log.restart(state.history)
        best_epoch = state.best_epoch or state.epoch
        notes = list(self.task.notes)
        if state.epoch < self.epochs:
            notes.append(f"stopped after epoch {state.epoch} of {self.epochs}: epoch {best_epoch} stayed the best")
        notes += closing_notes(state.history, warm=self.warmup / self.task.n_batches)
        return LoopResult(state.history, best_epoch, notes)


def _watched(groups: list[ParameterGroup], kind: str) -> list[tuple[str, nn.Parameter]]:
    """Return the weights whose gradients are looked at for NaN before each step.

    In half precision all are. In float32 none: it would cost a pass over memory a step for what cannot overflow, and
    the loss, which is always looked at, says so one step later.
    """
    return [] if kind == "float32" else [item for group in groups for item in group.parameters]
