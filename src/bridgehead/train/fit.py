"""`fit_heads`: two heads trained on linked rows, from arrays in to weights out.

This module is not about the loop (`loop`), one step (`rows_task`) or the stages of a run (`runs`).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from bridgehead.align.gradient_memory import release_gradient_memory
from bridgehead.align.model import TwoHeads, save_heads
from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.train.checkpoint import remove_checkpoint, writing
from bridgehead.train.config import TrainConfig
from bridgehead.train.data import PairData, side_shape
from bridgehead.train.knowledge import knowledge_of
from bridgehead.train.loop import ProgressCallback, check_epochs, train_task
from bridgehead.train.rows_task import RowsTask
from bridgehead.train.task import first_not_finite

HEADS_NAME = "heads.safetensors"


@dataclass(frozen=True, eq=False)
class FitResult:
    """A finished training.

    `model` has the weights of `best_epoch` (counted from 1; the last one where nothing validated). `history` has a
    dict per epoch: epoch, loss (mean over its batches), chance_loss (what rows without signal would have: the mean
    logarithm of the number of candidates), candidates (mean number of rows that an anchor is told from), loss_<term>
    for each part of a loss that has several, mutual_information (nats, where the loss is single-positive InfoNCE),
    left_out_a and left_out_b (rows without a positive, where there were any), skipped_steps, valid_mrr and its
    directions (with valid pairs), learning_rate, log_logit_scale, logit_scale, temperature, seconds. `notes` are
    sentences for the user.
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
    classes: tuple[Any, Any] | None = None,
    guide: tuple[Any, Any] | None = None,
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

    `classes` = (classes_a, classes_b), integers with -1 for none, are what the hierarchical loss calls coarse.
    `guide` = (rows_a, rows_b) are frozen rows by which the guided loss leaves out likely false negatives (None: the
    rows themselves).

    `epochs` trains exactly that number, with the learning rates of a training planned for `config.epochs`: a refit
    repeats the course of the evaluated run and stops where validation stopped it. It does not go with `valid`.

    `folder` receives `history.jsonl` (a line per epoch), `heads.safetensors` at the end and a checkpoint on the way,
    which is removed at the end. Calling again after a kill goes on from the checkpoint and ends in bit-identical
    weights and history (but for seconds) on the same machine and number of threads. `progress(epoch, epochs, line)`
    is called after each epoch.

    Raises `ShapeError`, `NonFiniteRowsError` and `LinksError` (fewer than two different items on a side among them)
    for what cannot be trained on, `NonFiniteRowsError` and `ArgumentError` when what was trained is not finite or
    beyond `config.storage`, `ConfigError` when the loss needs classes that did not come, `RunStateError` when the
    folder holds the checkpoint of another training, cannot be written to or the disk is full.
    """
    config = TrainConfig.of(config)
    data = PairData.of(rows_a, rows_b, links)
    data.check_trainable()
    check_epochs(epochs, valid)
    held_out = None if valid is None else _held_out(valid, data)
    notes = []
    if held_out is not None and len(held_out.links) == 0:
        held_out = None
        notes.append("the validation split has no links: all epochs are trained and the last one is kept")
    needs = {"needs_classes": config.loss.name == "hierarchical", "needs_guide": config.loss.name == "guided"}
    knowledge = knowledge_of(data, classes, guide, **needs)
    place = None if folder is None else Path(folder)
    with torch.random.fork_rng(devices=[]):
        task = RowsTask(data, held_out, config, knowledge)
    result = train_task(task, config, epochs=epochs, folder=place, progress=progress)
    model = task.heads.cpu().eval()
    for parameter in model.parameters():
        parameter.grad = None
    release_gradient_memory(model)
    model.round_tables_(config.storage)
    if bad := first_not_finite(model):
        raise ArgumentError(
            f"{bad} holds values beyond float16 (65504), and storage = {config.storage!r}; train with storage = "
            "'float32', or a smaller init_std"
        )
    if place is not None:
        with writing(HEADS_NAME, place):
            save_heads(model, place / HEADS_NAME, storage=config.storage)
        remove_checkpoint(place)
    return FitResult(model, result.history, result.best_epoch, [*notes, *result.notes])


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
