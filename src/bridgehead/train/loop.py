"""The training loop: batches of links, InfoNCE, AdamW, validation each epoch, early stop, resume.

This module is not about data preparation or about the stages of a run; it writes only into the folder it is given.
"""

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bridgehead.align.losses.infonce import info_nce_parts
from bridgehead.align.model import TwoHeads, save_heads
from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.files import hash_texts, write_text
from bridgehead.train.batches import epoch_batches, n_batches, start_seed, step_seed
from bridgehead.train.checkpoint import Progress, load_checkpoint, remove_checkpoint, save_checkpoint
from bridgehead.train.config import TrainConfig
from bridgehead.train.data import PairData, side_shape
from bridgehead.train.optimiser import (
    learning_rate,
    make_optimiser,
    optimiser_tensors,
    restore_optimiser,
    set_learning_rate,
)
from bridgehead.train.validation import validation_metrics
from bridgehead.vectors import IntArray

HEADS_NAME = "heads.safetensors"
HISTORY_NAME = "history.jsonl"

ProgressCallback = Callable[[int, int, dict[str, Any]], None]


@dataclass(frozen=True, eq=False)
class FitResult:
    """A finished training.

    `model` has the weights of `best_epoch` (counted from 1; the last one where nothing validated). `history` has a
    dict per epoch: epoch, loss (mean over its batches), chance_loss (what rows without signal would have: the mean
    logarithm of the number of candidates), valid_mrr and its directions (with valid pairs), learning_rate,
    logit_scale, temperature, seconds. `notes` are sentences for the user.
    """

    model: TwoHeads
    history: list[dict[str, Any]]
    best_epoch: int
    notes: list[str]


def fit_heads(
    rows_a: Any,
    rows_b: Any,
    links: Any = None,
    config: TrainConfig | None = None,
    *,
    valid: tuple[Any, Any, Any] | None = None,
    folder: str | Path | None = None,
    epochs: int | None = None,
    progress: ProgressCallback | None = None,
) -> FitResult:
    """Train two heads on linked rows and return them.

    `rows_a`, `rows_b`: dense (n, d) or CSR, of different widths as they like; `links` as everywhere (None: row i with
    row i), many-to-many allowed. A batch is `config.links_per_batch` links; the rows that they name are the candidates,
    each as often as it is named, and whatever is linked among them is a positive. So frequency alone is not rewarded:
    a text that half of the links name does not come near to everything. `valid` = (rows_a, rows_b, links) is ranked
    after each epoch: the mean of both directions' MRR chooses the epoch, `patience` epochs without a better one stop
    the training, and the best weights come back whole, scale included. Without it the last epoch is kept.

    `epochs` trains exactly that number, with the learning rates of a training planned for `config.epochs`: a refit
    repeats the course of the evaluated run and stops where validation stopped it. It does not go with `valid`.

    `folder` receives `history.jsonl` (a line per epoch), `heads.safetensors` at the end and a checkpoint on the way,
    which is removed at the end. Calling again after a kill goes on from the checkpoint and ends in bit-identical
    weights and history (but for seconds) on the same machine and number of threads. `progress(epoch, epochs, line)`
    is called after each epoch.

    Raises `ShapeError`, `NonFiniteRowsError` and `LinksError` (fewer than two different items on a side among them)
    for what cannot be trained on, `RunStateError` when the folder holds the checkpoint of another training.
    """
    config = config or TrainConfig.of()
    data = PairData.of(rows_a, rows_b, links)
    data.check_trainable()
    if epochs is not None and (valid is not None or epochs < 1):
        raise ArgumentError(f"epochs = {epochs}; expected at least 1, and no valid pairs: the length is fixed by it")
    held_out = None if valid is None else _held_out(valid, data)
    notes = []
    if held_out is not None and len(held_out.links) == 0:
        held_out = None
        notes.append("the validation split has no links: all epochs are trained and the last one is kept")
    with torch.random.fork_rng(devices=[]):
        fit = _Fit(data, held_out, config, epochs, None if folder is None else Path(folder))
        fit.resume()
        fit.train(progress)
        return fit.finish(notes)


def _held_out(valid: Any, data: PairData) -> PairData:
    """Return the validation pairs; what the heads could not read is found before an epoch is trained."""
    if not isinstance(valid, tuple | list) or len(valid) != 3:
        raise ArgumentError(f"valid is a {type(valid).__name__}; expected (rows_a, rows_b, links), links None by order")
    found = PairData.of(*valid)
    for side, rows, like in (("a", found.rows_a, data.rows_a), ("b", found.rows_b, data.rows_b)):
        (width, is_csr), (expected, csr_expected) = side_shape(rows), side_shape(like)
        if is_csr != csr_expected:
            kinds = {True: "CSR", False: "dense"}
            raise ShapeError(
                f"valid rows of {side} are {kinds[is_csr]}; expected {kinds[csr_expected]} rows, as in training"
            )
        if width != expected:
            raise ShapeError(f"valid rows of {side} have {width} columns; expected {expected}, as in training")
    return found


class _Fit:
    """One training under way: model, optimiser and where it stands."""

    def __init__(
        self, data: PairData, valid: PairData | None, config: TrainConfig, epochs: int | None, folder: Path | None
    ) -> None:
        self.data, self.valid, self.config, self.folder = data, valid, config, folder
        self.pairs: IntArray = data.links.expanded().pairs
        self.epochs = config.epochs if epochs is None else epochs
        self.batch_size = config.links_per_batch(len(self.pairs))
        steps = n_batches(len(self.pairs), self.batch_size)
        self.planned = max(config.epochs, self.epochs) * steps
        self.warmup = min(round(config.warmup_epochs * steps), self.planned // 2)
        torch.manual_seed(start_seed(config.seed))
        self.model = TwoHeads(config.heads(side_shape(data.rows_a), side_shape(data.rows_b)))
        for head, rows in ((self.model.head_a, data.rows_a), (self.model.head_b, data.rows_b)):
            head.fit_input(rows)
        self.optimiser = make_optimiser(self.model, config)
        self.state = Progress()
        self.best: dict[str, torch.Tensor] = {}
        self.key = "" if folder is None else self._key(epochs)
        self.saved_at, self.pause = time.monotonic(), config.checkpoint_seconds

    def _key(self, epochs: int | None) -> str:
        valid = "" if self.valid is None else self.valid.fingerprint()
        return hash_texts([self.config.fingerprint(), str(epochs), self.data.fingerprint(), valid])

    def resume(self) -> None:
        """Take up the checkpoint of the folder, where there is one, and bring the history file into its state."""
        if self.folder is None:
            return
        found = load_checkpoint(self.folder, self.key)
        if found is not None:
            self.state, tensors = found
            self.model.load_state_dict(_under("model.", tensors))
            restore_optimiser(self.optimiser, self.model, tensors)
            self.best = _under("best.", tensors)
        write_text(self.folder / HISTORY_NAME, "".join(json.dumps(line) + "\n" for line in self.state.history))

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
        self.model.train()
        batches = epoch_batches(self.pairs, self.batch_size, self.config.seed, self.state.epoch)
        while self.state.batch < len(batches):
            started = time.monotonic()
            rows_a, rows_b = batches[self.state.batch]
            self._step(rows_a, rows_b)
            self.state.batch += 1
            self.state.step += 1
            self.state.seconds += time.monotonic() - started
            if self.state.batch < len(batches):
                self._save_if_due()

    def _step(self, rows_a: IntArray, rows_b: IntArray) -> None:
        state, config = self.state, self.config
        torch.manual_seed(step_seed(config.seed, state.epoch, state.batch))
        set_learning_rate(self.optimiser, self._rate(state.step))
        # Each row is projected once, and stands in the loss as often as the batch's links name it: so an item that
        # many links name is a candidate in proportion, and being frequent earns it nothing (sampling corrects for it).
        (once_a, at_a), (once_b, at_b) = (np.unique(rows, return_inverse=True) for rows in (rows_a, rows_b))
        x_a, x_b = self.data.inputs(once_a, once_b)
        z_a, z_b, scale = self.model(x_a, x_b)
        z_a, z_b = z_a.index_select(0, torch.from_numpy(at_a)), z_b.index_select(0, torch.from_numpy(at_b))
        truth = self.data.links.within(rows_a, rows_b)
        parts = info_nce_parts(z_a, z_b, scale, truth, config.form, config.direction)
        self.optimiser.zero_grad(set_to_none=True)
        parts.loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        self.model.scale.project_()
        state.loss_sum += float(parts.loss.detach())
        # Each anchor is lost among the candidates of the other side.
        chance = {"a_to_b": math.log(len(rows_b)), "b_to_a": math.log(len(rows_a))}
        state.chance_sum += chance.get(config.direction, sum(chance.values()) / 2)

    def _rate(self, step: int) -> float:
        return learning_rate(step, self.planned, self.warmup, self.config.learning_rate)

    def _close_epoch(self) -> dict[str, Any]:
        """Validate, keep the best, write the line of the epoch and a checkpoint where one is due."""
        state, started = self.state, time.monotonic()
        metrics = {} if self.valid is None else validation_metrics(self.model.eval(), self.valid)
        line: dict[str, Any] = {
            "epoch": state.epoch + 1,
            "loss": state.loss_sum / state.batch,
            "chance_loss": state.chance_sum / state.batch,
            **metrics,
            "learning_rate": self._rate(state.step - 1),
            "logit_scale": float(self.model.scale().detach()),
            "temperature": self.model.scale.temperature,
            "seconds": round(state.seconds + time.monotonic() - started, 4),
        }
        state.epoch, state.batch, state.loss_sum, state.chance_sum, state.seconds = state.epoch + 1, 0, 0.0, 0.0, 0.0
        state.history.append(line)
        if metrics and (state.best_value is None or metrics["valid_mrr"] > state.best_value):
            state.best_value, state.best_epoch = metrics["valid_mrr"], state.epoch
            self.best = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        if self.folder is not None:
            with open(self.folder / HISTORY_NAME, "a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        self._save_if_due()
        return line

    def _save_if_due(self) -> None:
        if self.folder is None or time.monotonic() - self.saved_at < self.pause:
            return
        started = time.monotonic()
        tensors = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        tensors |= {f"best.{name}": tensor for name, tensor in self.best.items()}
        save_checkpoint(self.folder, self.key, self.state, tensors | optimiser_tensors(self.optimiser, self.model))
        self.saved_at = time.monotonic()
        if self.config.checkpoint_seconds > 0:
            # Hundreds of megabytes on a slow disk must not take over: writing gets a tenth of the time at most.
            self.pause = max(self.config.checkpoint_seconds, 9 * (self.saved_at - started))

    def finish(self, notes: list[str]) -> FitResult:
        """Restore the best weights, round them to how they are stored, write them and remove the checkpoint."""
        state = self.state
        if self.best:
            self.model.load_state_dict(self.best)
        best_epoch = state.best_epoch or state.epoch
        if state.epoch < self.epochs:
            notes = [*notes, f"stopped after epoch {state.epoch} of {self.epochs}: epoch {best_epoch} stayed the best"]
        last = state.history[-1]
        if last["loss"] > 0.95 * last["chance_loss"]:
            notes = [
                *notes,
                f"no signal: the loss ends at {last['loss']:.3f}, and rows drawn at random have about "
                f"{last['chance_loss']:.3f}; check that the links join what belongs together",
            ]
        self.model.round_tables_(self.config.storage)
        if self.folder is not None:
            save_heads(self.model, self.folder / HEADS_NAME, storage=self.config.storage)
            remove_checkpoint(self.folder)
        return FitResult(self.model.eval(), state.history, best_epoch, notes)


def _under(prefix: str, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
