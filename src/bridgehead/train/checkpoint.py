"""The state of an unfinished training as one file, so that a kill at any instant costs little and changes nothing.

Weights, moments and the best weights so far are tensors of a safetensors file, all counters and the history JSON in its
header: one rename makes both valid together. Nothing random is stored, because every draw depends on seed and step
alone (`batches`). This module is not about finished heads (`align.model`).
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from bridgehead.errors import BridgeheadError, FormatVersionError, RunStateError
from bridgehead.files import atomic_path, sync_folder

CHECKPOINT_NAME = "checkpoint.safetensors"
_FORMAT, _VERSION = "bridgehead-checkpoint", "2"


@dataclass
class Progress:
    """Where a training stands: the next batch of the next epoch, sums over the epoch begun, and the best so far.

    `epoch` epochs are done (0 at the start) and `batch` batches of the next one; `step` counts all steps.
    `sums` are over this epoch's batches (`EpochSums`), `seconds` what the epoch took so far.
    """

    epoch: int = 0
    batch: int = 0
    step: int = 0
    sums: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    best_epoch: int = 0
    best_value: float | None = None
    history: list[dict[str, Any]] = field(default_factory=list)


def save_checkpoint(folder: Path, key: str, progress: Progress, tensors: dict[str, torch.Tensor]) -> None:
    """Write the checkpoint of the training named by `key`, atomically: the one before stays until this one is whole.

    Raises `OSError` when it cannot be written, on a full disk say.
    """
    header = {"format": _FORMAT, "version": _VERSION, "key": key, "progress": json.dumps(asdict(progress))}
    plain = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    try:
        atomic_path(folder / CHECKPOINT_NAME, lambda name: save_file(plain, name, metadata=header))
    except SafetensorError as error:
        # It wraps the system's error in one of its own.
        raise OSError(str(error)) from error


def load_checkpoint(folder: Path, key: str) -> tuple[Progress, dict[str, torch.Tensor]] | None:
    """Return the checkpoint in `folder`, or None where there is none.

    Raises `FormatVersionError`, and `RunStateError` when the file is damaged or belongs to a training with another
    config or other data.
    """
    path = folder / CHECKPOINT_NAME
    if not path.is_file():
        return None
    try:
        with safe_open(str(path), framework="pt") as file:
            header = file.metadata() or {}
            _check_header(path, header, key)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        return Progress(**json.loads(header["progress"])), tensors
    except (SafetensorError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise RunStateError(f"{path} is damaged ({error}); remove it to train from the start") from error


@contextmanager
def writing(what: str, folder: str | Path) -> Iterator[None]:
    """Raise `RunStateError` in place of the system's error when `what` cannot be written into `folder`."""
    try:
        yield
    except BridgeheadError:
        raise
    except (OSError, SafetensorError) as error:
        raise RunStateError(
            f"{what} could not be written into {folder} ({error}); make room on the disk, or name a folder that can be "
            "written to, and start again: a checkpoint that is there is whole, and the training goes on from it"
        ) from error


def remove_checkpoint(folder: Path) -> None:
    """Remove the checkpoint of a finished training, and what a kill left of one that was being written."""
    for path in (folder / CHECKPOINT_NAME, *folder.glob(f".{CHECKPOINT_NAME}.*.part")):
        path.unlink(missing_ok=True)
    sync_folder(folder)


def _check_header(path: Path, header: dict[str, str], key: str) -> None:
    found = (header.get("format"), header.get("version"))
    if found != (_FORMAT, _VERSION):
        raise FormatVersionError(
            f"{path} has format {found[0]!r} version {found[1]!r}; this release reads {_FORMAT!r} version "
            f"{_VERSION!r}: remove it to train from the start"
        )
    if header["key"] != key:
        raise RunStateError(
            f"{path} belongs to a training with another config or other data; remove it to train from the start, or "
            "use another folder"
        )
