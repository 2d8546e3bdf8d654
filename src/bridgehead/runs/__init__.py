"""The run folder and the stages that fill it: the only place where pairs, encoders, heads, evaluation and index meet.

`run("config.toml")` runs all stages; `check`, `encode`, `train`, `evaluate`, `audit`, `refit` and `index` one, with
what it stands on; `sync` brings the indexes up to date with a file, `compact` and `snapshot` look after them. Names are
loaded when they are first used. This folder is not about arguments or printing (`cli`).
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "RunConfig": "config",
    "RunFolder": "folder",
    "audit": "flow",
    "check": "flow",
    "compact": "flow",
    "compare_runs": "comparing",
    "demo": "demonstration",
    "encode": "flow",
    "evaluate": "flow",
    "index": "flow",
    "init_config": "starting",
    "read_config": "config",
    "read_folds": "folds.store",
    "refit": "flow",
    "report": "flow",
    "run": "flow",
    "snapshot": "flow",
    "sync": "flow",
    "train": "flow",
    "with_folds": "folds.plan",
    "two_view_study": "study.two_views",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
