"""What each stage cost: wall time and the most memory that the process had held when it ended (`costs.json`).

This module is not about making anything cheaper, or about timing against others.
"""

import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bridgehead.errors import BridgeheadError
from bridgehead.files import read_json, write_json
from bridgehead.runs.folder import RECORDS, RunFolder

COSTS_FILE = "costs.json"
FORMAT = "bridgehead-costs"


def read_costs(run: RunFolder) -> dict[str, dict[str, float]]:
    """Return stage -> `seconds` and `peak_bytes` of the last time it did its work; empty where nothing is known."""
    try:
        return dict(read_json(run.path(COSTS_FILE), FORMAT)["stages"])
    except (BridgeheadError, KeyError, TypeError, ValueError):
        return {}


@contextmanager
def counted(run: RunFolder, stage: str) -> Iterator[None]:
    """Note what the block costs under `stage`, unless it finds the stage done: then the record does not change.

    Memory is the peak of the whole process so far, so a stage that needs little after one that needs much has the
    same number; it is an upper bound.
    """
    before = _stamp(run, stage)
    started = time.monotonic()
    yield
    if _stamp(run, stage) != before:
        cost = {"seconds": round(time.monotonic() - started, 2), "peak_bytes": peak_bytes()}
        write_json(run.path(COSTS_FILE), {"stages": {**read_costs(run), stage: cost}}, FORMAT)


def peak_bytes() -> int:
    """Return the most memory in bytes that this process has held so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)


def _stamp(run: RunFolder, stage: str) -> Any:
    path = run.path(RECORDS[stage])
    return (path.stat().st_mtime_ns, path.stat().st_ino) if path.is_file() else None
