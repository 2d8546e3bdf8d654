"""Looking after the indexes of a run: compaction, and snapshots that search and serve by themselves.

This module is not about what goes into an index (`stage`, `indexing`).
"""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from bridgehead.errors import ArgumentError, InputFileNotFoundError
from bridgehead.files import sync_folder
from bridgehead.index import IndexWriter
from bridgehead.runs.folder import CONFIG_FILE, RunFolder
from bridgehead.runs.indexing.stage import FOLDERS
from bridgehead.runs.prepare import Progress
from bridgehead.runs.syncing.applying import compact_index

_BESIDE = (CONFIG_FILE, "report.html", "card.md", "metrics.json", "contract.json", "indexed.json")


def indexes_of(run: RunFolder) -> dict[str, str]:
    """Return heads -> name of the folder of each index that the run has; raises `InputFileNotFoundError` for none."""
    found = {heads: name for heads, (name, _) in FOLDERS.items() if run.path(name, "index.json").is_file()}
    if not found:
        raise InputFileNotFoundError(f"{run.folder} has no index; run: bridgehead index {run.folder}")
    return found


def compact_run(run: RunFolder, progress: Progress) -> dict[str, Any]:
    """See `bridgehead.runs.compact`."""
    content: dict[str, Any] = {}
    lines = []
    for heads, name in indexes_of(run).items():
        with IndexWriter(run.path(name)) as writer:
            found = compact_index(run.config, writer, heads, progress, "index")
        content[heads] = list(found)
        lines += [f"index with the {heads} heads:", *(f"  {line}" for line in found)]
    return {**content, "lines": lines}


def snapshot_run(run: RunFolder, target: Path, progress: Progress) -> Path:
    """See `bridgehead.runs.snapshot`."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ArgumentError(f"{target} is there already; name a folder that is not, or move this one away")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent))
    try:
        # mkdtemp makes folders for the owner alone; who may read the run may read its snapshot.
        os.chmod(part, run.folder.stat().st_mode & 0o777)
        for heads, name in indexes_of(run).items():
            progress("snapshot", f"the index with the {heads} heads", None, None)
            with IndexWriter(run.path(name)) as writer:
                writer.snapshot(part / name)
        for name in _BESIDE:
            if run.path(name).is_file():
                shutil.copyfile(run.path(name), part / name)
        os.rename(part, target)
        sync_folder(target.parent)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    return target
