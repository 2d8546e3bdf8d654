"""`fit_encoders`: two encoders and their heads trained on linked items, from texts in to a saved aligner out.

This module is not about the loop (`loop`), one step (`live`) or the stages of a run (`runs`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bridgehead.align.dual_encoder import DualEncoderAligner
from bridgehead.encode.huggingface import HuggingFaceEncoder
from bridgehead.errors import ArgumentError
from bridgehead.train.checkpoint import remove_checkpoint, writing
from bridgehead.train.config import TrainConfig
from bridgehead.train.data import PairData
from bridgehead.train.knowledge import Knowledge, knowledge_of
from bridgehead.train.live.config import LiveConfig
from bridgehead.train.live.items import LinkedItems, LiveItems
from bridgehead.train.live.task import LiveTask
from bridgehead.train.loop import ProgressCallback, check_epochs, train_task
from bridgehead.train.seeds import start_seed

ALIGNER_NAME = "aligner"

_Reader = Callable[[Any], LiveItems]


_OF_OTHER_HEADS = (
    "hidden", "hidden_a", "hidden_b", "activation", "dropout", "input_dropout", "norm", "residual", "input_norm",
    "init_std", "storage",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class LiveResult:
    """A finished training.

    `aligner` has the weights of `best_epoch` (counted from 1; the last one where nothing validated), in evaluation mode
    on the CPU. `history` has a dict per epoch, as that of `fit_heads`, with `learning_rates` by group. `notes` are
    sentences for the user.
    """

    aligner: DualEncoderAligner
    history: list[dict[str, Any]]
    best_epoch: int
    notes: list[str]


def fit_encoders(
    model: DualEncoderAligner | Sequence[str | Path],
    items_a: Any,
    items_b: Any,
    links: Any = None,
    config: TrainConfig | None = None,
    live: LiveConfig | None = None,
    *,
    tokenizers: tuple[Any, Any] | None = None,
    valid: tuple[Any, Any, Any] | None = None,
    classes: tuple[Any, Any] | None = None,
    guide: tuple[Any, Any] | None = None,
    folder: str | Path | None = None,
    epochs: int | None = None,
    progress: ProgressCallback | None = None,
) -> LiveResult:
    """Train two encoders with their heads on linked items and return them.

    `model` is an aligner, trained in place, or the names or folders of two encoders: they are found as everywhere (no
    network), pooled by `live.pooling`, and get heads into `config.embed_dim` dimensions drawn from `config.seed`.
    `items_a`, `items_b`: lists of texts, or inputs by name (`LiveItems.of`). Texts are cut to `live.max_tokens` by the
    tokenizers of the named models; an aligner needs `tokenizers` = (of a, of b) for them.
    `links`, `valid` = (items_a, items_b, links), `classes`, `guide`, `epochs` and `progress` are those of `fit_heads`;
    without a guide a guided loss takes the encoders' rows at the start.

    Heads are trained from the first epoch and what `live.stages` name from its epoch on. A batch of any size takes the
    memory of `live.mini_batch` items (`cached_gradients`).

    `folder` receives `history.jsonl`, a checkpoint on the way, and at the end `aligner/`, as
    `DualEncoderAligner.save_pretrained` writes it: encoders that came from a folder are folders again, so that
    `text:hf=<folder>/aligner/encoder_a` is the trained encoder, frozen. Calling again after a kill, with the same first
    weights, goes on from the checkpoint and ends in bit-identical weights and history (but for seconds) on the same
    machine and number of threads.

    Raises `LinksError`, `ArgumentError`, `ShapeError` and `DataError` for what cannot be trained on, `ConfigError` for
    settings that do not go together, `RunStateError` when the folder holds the checkpoint of another training.
    """
    config, live = TrainConfig.of(config), LiveConfig.of(live)
    check_epochs(epochs, valid)
    readers = _readers(model, tokenizers, (items_a, items_b), live)
    data = _linked((items_a, items_b, links), readers)
    held_out = None if valid is None else _held_out(valid, readers)
    notes = []
    if held_out is not None and len(held_out.links) == 0:
        held_out = None
        notes.append("the validation split has no links: all epochs are trained and the last one is kept")
    knowledge = _knowledge(data, config, classes, guide)
    if not isinstance(model, DualEncoderAligner):
        notes += _unread(config)
    aligner = model if isinstance(model, DualEncoderAligner) else _from_names(model, config, live)
    task = LiveTask(aligner, data, config, live, valid=held_out, knowledge=knowledge)
    place = None if folder is None else Path(folder)
    if place is not None:
        with writing("what is trained", place):
            place.mkdir(parents=True, exist_ok=True)
    result = train_task(task, config, epochs=epochs, folder=place, progress=progress)
    task.model.keep_scale()
    aligner.cpu()
    _say_what_is_trained(aligner, live, len(result.history))
    if place is not None:
        with writing(ALIGNER_NAME, place):
            aligner.save_pretrained(place / ALIGNER_NAME)
        remove_checkpoint(place)
    return LiveResult(aligner.eval(), result.history, result.best_epoch, [*notes, *result.notes])


def _unread(config: TrainConfig) -> list[str]:
    """Return the sentence on settings of heads that those of `DualEncoderAligner` do not have, if any were changed."""
    known = type(config).model_fields
    changed = [name for name in _OF_OTHER_HEADS if getattr(config, name) != known[name].default]
    if not changed:
        return []
    return [
        f"not followed: {', '.join(changed)}, which shape the heads of fit_heads; encoders given by name get the heads "
        "of DualEncoderAligner, and others come in an aligner of your own (DualEncoderAligner.from_modules)"
    ]


def _from_names(names: Any, config: TrainConfig, live: LiveConfig) -> DualEncoderAligner:
    temperature = 1 / config.logit_scale_init
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(start_seed(config.seed))
        return DualEncoderAligner(
            str(names[0]), str(names[1]), config.embed_dim, pooling=live.pooling, initial_temperature=temperature
        )


def _readers(model: Any, tokenizers: Any, items: tuple[Any, Any], live: LiveConfig) -> list[_Reader]:
    """Return for each side what makes items of what came: texts are read by the model's own tokenizer or the given."""
    named = not isinstance(model, DualEncoderAligner)
    if named and (isinstance(model, str) or not isinstance(model, Sequence) or len(model) != 2):
        raise ArgumentError(f"model is a {type(model).__name__}; expected an aligner, or two names or folders")
    if tokenizers is not None and (
        not isinstance(tokenizers, Sequence) or len(tokenizers) != 2 or not all(callable(own) for own in tokenizers)
    ):
        raise ArgumentError(f"tokenizers = {tokenizers!r:.80}; expected a pair, (of a, of b), of transformers' kind")
    found: list[_Reader] = []
    for number, side in enumerate(items):
        if not isinstance(side, list | tuple):
            found.append(LiveItems.of)
        elif tokenizers is not None:
            found.append(partial(LiveItems.tokenised, tokenizer=tokenizers[number], max_tokens=live.max_tokens))
        elif named:
            encoder = HuggingFaceEncoder(str(model[number]), pooling=live.pooling, max_tokens=live.max_tokens)
            _, tokenizer, limit = encoder.for_training()
            found.append(partial(LiveItems.tokenised, tokenizer=tokenizer, max_tokens=limit))
        else:
            raise ArgumentError(
                f"items of {'ab'[number]} are texts, and no tokenizers came; pass tokenizers=(of a, of b), or inputs "
                "by name"
            )
    return found


def _linked(sides: tuple[Any, Any, Any], readers: list[_Reader]) -> LinkedItems:
    a, b = (read(side) for read, side in zip(readers, sides[:2], strict=True))
    return LinkedItems.of(a, b, sides[2])


def _held_out(valid: Any, readers: list[_Reader]) -> LinkedItems:
    if not isinstance(valid, tuple | list) or len(valid) != 3:
        raise ArgumentError(
            f"valid is a {type(valid).__name__}; expected (items_a, items_b, links), links None by order"
        )
    return _linked((valid[0], valid[1], valid[2]), readers)


def _knowledge(data: LinkedItems, config: TrainConfig, classes: Any, guide: Any) -> Knowledge:
    """Return what the loss is told; a guide that did not come is left to the task, which has the encoders' rows."""
    rows_a, rows_b = (np.zeros((len(side), 1), dtype=np.float32) for side in (data.a, data.b))
    return knowledge_of(
        PairData(rows_a, rows_b, data.links),
        classes,
        guide,
        needs_classes=config.loss.name == "hierarchical",
        needs_guide=config.loss.name == "guided" and guide is not None,
    )


def _say_what_is_trained(aligner: DualEncoderAligner, live: LiveConfig, n_epochs: int) -> None:
    """Leave the aligner with those weights unfrozen that the stages reached, as a saved one says of itself."""
    aligner.freeze()
    for stage in live.stages:
        if stage.from_epoch < n_epochs:
            aligner.unfreeze(stage.side, stage.last)
    if hasattr(aligner.loss_fn, "log_temperature"):
        aligner.loss_fn.log_temperature.requires_grad_(True)
    for head in (aligner.proj_a, aligner.proj_b):
        head.requires_grad_(True)
