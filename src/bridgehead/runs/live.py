"""Training encoders with their heads on the items of a part, from the encoders of a run to tuned ones.

An encoder that is not trained takes part with the rows it has, dense or CSR. Heads are those of `[train]`, the same as
over frozen encoders, so that what training the encoders adds can be read off two runs. This module is not about stages,
keys or lines for people (`fitting`), nor about steps and epochs (`train.live`, `train.loop`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from bridgehead.align.layers import training_mode
from bridgehead.align.model import TwoHeads, model_input, save_heads
from bridgehead.encode import Encoder
from bridgehead.encode.huggingface import HuggingFaceEncoder
from bridgehead.encode.pooling import pool
from bridgehead.files import hash_array, hash_texts
from bridgehead.pairs import PairTable
from bridgehead.runs.encoded import PartRows, Rows, SideRows, save_encoder
from bridgehead.train.checkpoint import remove_checkpoint
from bridgehead.train.config import TrainConfig
from bridgehead.train.data import PairData, side_shape
from bridgehead.train.fit import HEADS_NAME
from bridgehead.train.knowledge import Knowledge, knowledge_of
from bridgehead.train.live.config import LiveConfig, StagesConfig
from bridgehead.train.live.items import LinkedItems, LiveItems
from bridgehead.train.live.task import LiveTask
from bridgehead.train.loop import LoopResult, ProgressCallback, train_task
from bridgehead.train.seeds import start_seed
from bridgehead.vectors import IntArray

# Two numbers of float32 hold the number of a row exactly, whatever the device.
_ROWS_A_LEAF = 1 << 20


class Network(nn.Module):
    """A transformer whose hidden states are pooled as its `HuggingFaceEncoder` pools them."""

    def __init__(self, network: nn.Module, pooling: str) -> None:
        super().__init__()
        self.network, self.pooling = network, pooling

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, **_unused: Any) -> torch.Tensor:
        """Return (B, d) float32. Further inputs of a tokenizer are left out, as in encoding."""
        hidden = self.network(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        pooled: torch.Tensor = pool(hidden, attention_mask, self.pooling)
        return pooled.float()


class RowNumbers(nn.Module):
    """Stands for an encoder that is not trained: an item is the number of its row, which `StoredHead` reads."""

    content: torch.Tensor

    def __init__(self, rows: Any) -> None:
        super().__init__()
        # Among the weights, so that a checkpoint over other rows is seen to be that of another training.
        self.register_buffer("content", torch.frombuffer(bytearray.fromhex(_hash_rows(rows)), dtype=torch.uint8))

    def forward(self, row: torch.Tensor) -> torch.Tensor:
        """Return (B, 2) as it came."""
        return row

    @staticmethod
    def items(numbers: IntArray) -> LiveItems:
        """Return the items at these rows."""
        return LiveItems.of({"row": np.stack(np.divmod(numbers, _ROWS_A_LEAF), axis=1).astype(np.float32)})


class StoredHead(nn.Module):
    """A head that is handed the numbers of its rows; the rows stay in main memory, dense or CSR."""

    def __init__(self, head: nn.Module, rows: Any) -> None:
        super().__init__()
        self.head, self.rows = head, rows

    def forward(self, row: torch.Tensor) -> torch.Tensor:
        """Return (B, embed_dim)."""
        leaf, place = row.detach().cpu().numpy().astype(np.int64).T
        projected: torch.Tensor = self.head(model_input(self.rows, leaf * _ROWS_A_LEAF + place).to(row.device))
        return projected


class Bridge(nn.Module):
    """Two encoders and their heads, as `LiveTask` wants an aligner; what is frozen stays in evaluation mode."""

    def __init__(self, a: "_Side", b: "_Side") -> None:
        super().__init__()
        self.encoder_a, self.encoder_b = a.module, b.module
        self.proj_a, self.proj_b = a.head, b.head

    def encode_a(self, **inputs: torch.Tensor) -> torch.Tensor:
        """Return (B, embed_dim) of side a, not normalised."""
        projected: torch.Tensor = self.proj_a(self.encoder_a(**inputs))
        return projected

    def encode_b(self, **inputs: torch.Tensor) -> torch.Tensor:
        """As `encode_a`, for side b."""
        projected: torch.Tensor = self.proj_b(self.encoder_b(**inputs))
        return projected

    def train(self, mode: bool = True) -> "Bridge":
        """Set training mode, but for encoders whose weights are all frozen."""
        super().train(mode)
        if mode:
            for encoder in (self.encoder_a, self.encoder_b):
                training_mode(encoder)
        return self


@dataclass(frozen=True, eq=False)
class Tuned:
    """A finished training: its course, and how many weights of which encoder it trained from which epoch (from 0) on.

    `trained` has for each stage a dict: `group`, `from_epoch`, `learning_rate`, `n_weights` that the stage sets free,
    `n_encoder` of the whole encoder.
    """

    result: LoopResult
    trained: list[dict[str, Any]]


def tune(
    encoders: dict[str, Encoder],
    rows: Rows,
    table: PairTable,
    part: PartRows,
    config: TrainConfig,
    live: StagesConfig,
    folder: Path,
    *,
    valid: PartRows | None = None,
    classes: tuple[Any, Any] | None = None,
    epochs: int | None = None,
    progress: ProgressCallback | None = None,
) -> Tuned:
    """Train the encoders that `live.stages` name with the heads of both sides; leave all in `folder`.

    `encoders` and `rows` (of all items of `table`) are those before any training, `part` what is trained on. `folder`
    gets `history.jsonl`, a checkpoint on the way, and at the end `encoders/a`, `encoders/b` (the tuned ones with their
    models) and `heads.safetensors`. Heads start from the weights that `fit_heads` draws. Calling again after a kill
    goes on from the checkpoint; `epochs`, `valid`, `classes` and `progress` are those of `fit_heads`.

    Raises `EncoderError` and `MissingExtraError` for a model that cannot be loaded, and what `LiveTask` raises.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(start_seed(config.seed))
        heads = TwoHeads(config.heads(side_shape(part.rows_a), side_shape(part.rows_b)))
    heads.head_a.fit_input(part.rows_a)
    heads.head_b.fit_input(part.rows_b)
    sides = {
        side: _live_side(encoders[side], head, table.side(side).items, table.side(side).name)  # type: ignore[arg-type]
        if any(stage.side == side for stage in live.stages)
        else _stored_side(head, stored)
        for side, head, stored in (("a", heads.head_a, rows.a), ("b", heads.head_b, rows.b))
    }
    task = LiveTask(
        Bridge(sides["a"], sides["b"]),
        _linked(sides, part),
        config,
        LiveConfig.of(live.model_dump()),
        valid=None if valid is None else _linked(sides, valid),
        knowledge=_knowledge(part, config, classes),
    )
    trained = _trained(task, live)
    folder.mkdir(parents=True, exist_ok=True)
    result = train_task(task, config, epochs=epochs, folder=folder, progress=progress)
    task.model.cpu()
    for side, encoder in encoders.items():
        place, module = folder / "encoders" / side, sides[side].module
        if isinstance(module, Network) and isinstance(encoder, HuggingFaceEncoder):
            encoder.save_tuned(module.network, place)
        else:
            save_encoder(encoder, place)
    heads.scale.load_state_dict(task.scale.state_dict())
    heads.eval().round_tables_(config.storage)
    save_heads(heads, folder / HEADS_NAME, storage=config.storage)
    remove_checkpoint(folder)
    return Tuned(result, trained)


@dataclass(frozen=True, eq=False)
class _Side:
    """What stands for the encoder, its head, and what gives the items of these numbers in the table."""

    module: nn.Module
    head: nn.Module
    items: Callable[[IntArray], LiveItems]


def _live_side(encoder: Encoder, head: nn.Module, texts: Sequence[str], name: str) -> _Side:
    assert isinstance(encoder, HuggingFaceEncoder)
    network, tokenizer, limit = encoder.for_training()

    def items(numbers: IntArray) -> LiveItems:
        found = LiveItems.tokenised([texts[number] for number in numbers], tokenizer, limit)
        return replace(found, notes=[f"{name}: {note}" for note in found.notes])

    return _Side(Network(network, encoder.pooling), head, items)


def _stored_side(head: nn.Module, stored: SideRows) -> _Side:
    def items(numbers: IntArray) -> LiveItems:
        return RowNumbers.items(stored.position[numbers])

    return _Side(RowNumbers(stored.encoded.rows), StoredHead(head, stored.encoded.rows), items)


def _linked(sides: dict[str, _Side], part: PartRows) -> LinkedItems:
    return LinkedItems.of(sides["a"].items(part.items_a), sides["b"].items(part.items_b), part.links)


def _knowledge(part: PartRows, config: TrainConfig, classes: tuple[Any, Any] | None) -> Knowledge:
    """Return what the loss is told; a guided one is guided by the rows of the encoders before any training."""
    return knowledge_of(
        PairData(part.rows_a, part.rows_b, part.links),
        classes,
        None,
        needs_classes=config.loss.name == "hierarchical",
        needs_guide=config.loss.name == "guided",
    )


def _trained(task: LiveTask, live: StagesConfig) -> list[dict[str, Any]]:
    found = []
    for stage in live.stages:
        encoder = f"encoder_{stage.side}"
        groups = [g for g in task.groups() if g.name.startswith(encoder) and g.from_epoch == stage.from_epoch]
        found.append(
            {
                "group": stage.group,
                "from_epoch": stage.from_epoch,
                "learning_rate": stage.learning_rate or live.encoder_learning_rate,
                "n_weights": sum(weight.numel() for group in groups for _, weight in group.parameters),
                "n_encoder": sum(weight.numel() for weight in getattr(task.aligner, encoder).parameters()),
            }
        )
    return found


def _hash_rows(rows: Any) -> str:
    arrays = (rows.data, rows.indices, rows.indptr) if hasattr(rows, "indptr") else (rows,)
    return hash_texts([hash_array(np.ascontiguousarray(array)) for array in arrays])
