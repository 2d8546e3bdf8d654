"""The trainer of sentence-transformers on cached rows, for `head_training.py`; needs sentence-transformers[train].

It reads texts, not vectors: the inputs are row numbers as texts, and a module looks the rows up, which costs next to
nothing. Its model card callback is removed, as it describes the inputs and not the training.
"""

import time
import warnings
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from datasets.table import InMemoryTable
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.base.modules import InputModule, Module, Router
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from torch import nn
from transformers import TrainerCallback


class Lookup(InputModule):
    """Row numbers as texts to rows."""

    def __init__(self, rows: np.ndarray) -> None:
        super().__init__()
        self.rows = torch.from_numpy(rows)

    def preprocess(self, inputs: Sequence[Any], prompt: str | None = None, **_: Any) -> dict[str, Any]:
        """Return the rows of these numbers."""
        return {"sentence_embedding": self.rows[torch.tensor([int(number) for number in inputs])]}

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Hand the rows on."""
        return features

    def save(self, output_path: str, *arguments: Any, **options: Any) -> None:
        """Nothing is saved."""


class Layers(Module):
    """The layers of one side."""

    def __init__(self, layers: nn.Module) -> None:
        super().__init__()
        self.layers = layers

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Project the rows."""
        return {**features, "sentence_embedding": self.layers(features["sentence_embedding"])}

    def save(self, output_path: str, *arguments: Any, **options: Any) -> None:
        """Nothing is saved."""


class Clock(TrainerCallback):
    """The moments at which epochs end."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def on_epoch_end(self, *_: Any, **__: Any) -> None:
        """Note the time."""
        self.ends.append(time.perf_counter())


def seconds_a_step(
    rows_a: np.ndarray, rows_b: np.ndarray, layers: tuple[nn.Module, nn.Module], batch: int, epochs: int, folder: str
) -> float:
    """Return the mean seconds of a step after the first epoch."""
    routes: dict[str, list[Any]] = {
        side: [Lookup(rows), Layers(part)] for side, rows, part in zip("ab", (rows_a, rows_b), layers, strict=True)
    }
    with warnings.catch_warnings(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        warnings.simplefilter("ignore")
        model = SentenceTransformer(modules=[Router(routes)], device="cpu")
        numbers = [str(number) for number in range(len(rows_a))]
        options = SentenceTransformerTrainingArguments(
            output_dir=folder,
            num_train_epochs=epochs,
            per_device_train_batch_size=batch,
            learning_rate=1e-3,
            weight_decay=0.01,
            router_mapping={"a": "a", "b": "b"},
            use_cpu=True,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            logging_strategy="no",
        )
        clock = Clock()
        trainer = SentenceTransformerTrainer(
            model=model,
            args=options,
            # A fingerprint of our own: theirs pickles the table, which not every version of its parts can do.
            train_dataset=Dataset(InMemoryTable.from_pydict({"a": numbers, "b": numbers}), fingerprint="numbers"),
            loss=MultipleNegativesRankingLoss(
                model,
                scale=1 / 0.07,
                directions=("query_to_doc", "doc_to_query"),
                partition_mode="per_direction",
            ),
            callbacks=[clock],
        )
        for callback in list(trainer.callback_handler.callbacks):
            if "ModelCard" in type(callback).__name__:
                trainer.remove_callback(callback)
        trainer.train()
    steps = -(-len(rows_a) // batch)
    return (clock.ends[-1] - clock.ends[0]) / (len(clock.ends) - 1) / steps
