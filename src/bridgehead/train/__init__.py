"""Training: settings, the loop with validation, early stop and resume, heads on cached rows, live encoders, many seeds.

The names are loaded when they are first used, so that `TrainConfig` can be read without torch. This folder is not about
the heads themselves (`align`) or about run folders and stages (`runs`).
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "Aligner": "aligner",
    "AugmentConfig": "augment_config",
    "Course": "ensemble.members",
    "FitResult": "fit",
    "LiveConfig": "live.config",
    "LiveResult": "live.fit",
    "Member": "ensemble.members",
    "MoleculeTextDataset": "dataset",
    "TrainConfig": "config",
    "epoch_line": "alignment",
    "fit_encoders": "live.fit",
    "fit_ensemble": "ensemble.fit",
    "fit_heads": "fit",
    "train_alignment": "alignment",
    "train_task": "loop",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
