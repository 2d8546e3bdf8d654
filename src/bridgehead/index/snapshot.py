"""A snapshot of an index: a folder that opens by itself, as things were at one change.

Files that never change are linked where the file system can, so a snapshot beside the index costs little more than its
item file. Also what a new build takes over from the one before. Not about who holds the writer's lock (`writer`).
"""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bridgehead.errors import ArgumentError
from bridgehead.files import disk_errors, sync_folder, write_json
from bridgehead.index.layout import INDEX_FORMAT, INDEX_VERSION, MANIFEST, STORE_FILE, sync_file


def snapshot_to(target: Path, build: Path, connection: sqlite3.Connection, manifest: Mapping[str, Any]) -> Path:
    """Write the index of `build`, with the item file as `connection` sees it, as the folder `target`; return that.

    `target` must not be there, or be an empty folder; it is there whole or not at all. Raises `ArgumentError` and
    `OSError`.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ArgumentError(f"{target} is there already; name a folder that is not, or move this one away")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent))
    try:
        # mkdtemp makes folders for the owner alone; who may read the index may read its snapshot.
        os.chmod(part, build.stat().st_mode & 0o777)
        copy = part / build.name
        copy.mkdir(mode=build.stat().st_mode & 0o777)
        link_files(build, copy, manifest["files"])
        copy_items(connection, copy / STORE_FILE)
        write_json(part / MANIFEST, dict(manifest), INDEX_FORMAT, INDEX_VERSION)
        os.rename(part, target)
        sync_folder(target.parent)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    return target


def link_files(source: Path, target: Path, names: Iterable[str]) -> None:
    """Let the files `names` of the folder `source` be in `target` too: linked, or copied where that cannot be."""
    for name in names:
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source / name, place)
        except OSError:
            with disk_errors(place):
                shutil.copyfile(source / name, place)
            sync_file(place)
    for folder in {target, *(target / name for name in names)}:
        sync_folder(folder if folder.is_dir() else folder.parent)


def copy_items(connection: sqlite3.Connection, path: Path) -> None:
    """Write what `connection` sees as an item file of its own, without a log beside it, and make it durable."""
    copy = sqlite3.connect(path, isolation_level=None)
    try:
        with disk_errors(path):
            copy.execute("PRAGMA synchronous = OFF")
            connection.backup(copy, pages=65_536)
            copy.execute("PRAGMA journal_mode = DELETE")
    finally:
        copy.close()
    sync_file(path)
