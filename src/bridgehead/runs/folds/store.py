"""What each training of a cross-validation left in `folds/`, so that a finished one is never trained again.

A training has two files: a table with the figures of each query, and after it a record with its key and the hash of the
table. This module is not about training or measuring (`cross_validation`) or about what they say together
(`folds.summary`).
"""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from bridgehead.errors import InputFileNotFoundError, RunStateError
from bridgehead.evaluate import DirectionReport, RetrievalReport
from bridgehead.files import atomic_path, hash_file, read_json, write_json
from bridgehead.runs.folder import RunFolder
from bridgehead.runs.per_query import DIRECTIONS, item_key

FOLDS_FOLDER = "folds"
FOLDS_FILE = "folds.json"
FORMAT = "bridgehead-folds"
_FORMAT_ONE = "bridgehead-fold"
_WORKING = "training-"
_ENTRIES = frozenset(
    [
        "key",
        "data",
        "settings",
        "hold_out",
        "n_folds",
        "n_repeats",
        "n_seeds",
        "measures",
        "unseen_text",
        "per_fold",
        "folds_hash",
        "trainings",
        "lines",
    ]
)


@dataclass(frozen=True)
class Training:
    """Which training: `fold` and `seed` count from 0 within each repeat; `key` is the hash of what shapes it."""

    repeat: int
    fold: int
    seed: int
    key: str

    @property
    def name(self) -> str:
        """Its files' name."""
        return f"{self.repeat}-{self.fold}-{self.seed}"


@dataclass(frozen=True, eq=False)
class Trained:
    """A finished training: `facts` (counts, chance, values) and `queries`, a row for each out-of-fold query."""

    training: Training
    facts: dict[str, Any]
    queries: pl.DataFrame


def read_folds(run: RunFolder) -> dict[str, Any] | None:
    """Return the record in a run folder, whatever plan it is of; None where there is none or a damaged one.

    Raises `FormatVersionError` for one of another version: what a newer release wrote is not written over.
    """
    try:
        record = read_json(run.path(FOLDS_FILE), FORMAT)
    except (InputFileNotFoundError, RunStateError):
        return None
    return record if record.keys() >= _ENTRIES else None


def load_training(run: RunFolder, training: Training) -> Trained | None:
    """Return a finished training, None where it is missing, of other settings, or damaged.

    Raises `FormatVersionError` as `read_folds`.
    """
    table = run.path(FOLDS_FOLDER, f"{training.name}.parquet")
    try:
        facts = read_json(run.path(FOLDS_FOLDER, f"{training.name}.json"), _FORMAT_ONE)
        if facts["key"] != training.key or facts["sha256"] != hash_file(table):
            return None
        return Trained(training, facts, pl.read_parquet(table))
    except (InputFileNotFoundError, RunStateError, OSError, KeyError, pl.exceptions.PolarsError):
        return None


def store_training(run: RunFolder, training: Training, facts: dict[str, Any], queries: pl.DataFrame) -> Trained:
    """Write a finished training, its record last, and return it."""
    table = run.path(FOLDS_FOLDER, f"{training.name}.parquet")
    atomic_path(table, lambda name: queries.write_parquet(name))
    place = {"repeat": training.repeat, "fold": training.fold, "seed": training.seed}
    facts = {"key": training.key, "sha256": hash_file(table), **place, **facts}
    write_json(run.path(FOLDS_FOLDER, f"{training.name}.json"), facts, _FORMAT_ONE)
    return Trained(training, facts, queries)


def queries_table(
    report: RetrievalReport,
    ids: tuple[list[str], list[str]],
    items: tuple[list[str], list[str]],
    labels: tuple[list[str], list[str]],
    unseen: Any,
) -> pl.DataFrame:
    """Return a row for each query of both directions: direction, id, item, entity, n_true, pool, unseen, every metric.

    `ids`, `items` (raw values) and `labels` are those of the rows of both sides, `unseen` (n_b,) marks the rows of b
    whose text training never saw; queries of a have null there.
    """
    frames = []
    for name, own_ids, own_items, own_labels in zip(DIRECTIONS, ids, items, labels, strict=True):
        found: DirectionReport = getattr(report, name)
        rows = found.queries.tolist()
        columns: dict[str, Any] = {
            "direction": [name] * found.n_queries,
            "id": [own_ids[row] for row in rows],
            "item": [item_key(own_items[row]) for row in rows],
            "entity": [own_labels[row] for row in rows],
            "n_true": found.n_true,
            "pool": np.broadcast_to(found.pool, found.n_true.shape),
            "unseen": pl.Series([None if name == "a_to_b" else bool(unseen[row]) for row in rows], dtype=pl.Boolean),
        }
        frames.append(pl.DataFrame(columns | dict(found.per_query)))
    return pl.concat(frames)


def working_folder(run: RunFolder, training: Training) -> Path:
    """Return where a training works, of its own: the checkpoint of another one would be refused."""
    return run.path(FOLDS_FOLDER, f"{_WORKING}{training.key[:16]}")


def tidy(run: RunFolder, kept: set[str] | None = None, working: Path | None = None) -> None:
    """Remove what killed writers and abandoned trainings left; with `kept`, also trainings of other names."""
    folder = run.path(FOLDS_FOLDER)
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        if path.is_dir() and path.name.startswith(_WORKING) and path != working:
            shutil.rmtree(path, ignore_errors=True)
        elif path.name.endswith(".part") or (
            kept is not None and path.suffix in (".json", ".parquet") and path.stem not in kept
        ):
            path.unlink(missing_ok=True)
