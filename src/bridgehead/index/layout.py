"""Files of an index folder, their format version, and the checks that they belong together.

It is about bytes and counts, not about what is found with them.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bridgehead.errors import InputFileNotFoundError, RunStateError
from bridgehead.files import hash_array, hash_file, read_json

INDEX_FORMAT = "bridgehead index"
INDEX_VERSION = 1
MANIFEST = "index.json"
STORE_FILE = "items.sqlite"
ROW_FILE = "{side}.rows.npy"
VECTOR_FILE = "{side}.faiss"
ATTACHED_FOLDER = "attached"
_SAMPLED_ROWS = 64


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of the index in `folder`.

    Raises `InputFileNotFoundError` (no index there), `FormatVersionError` and `RunStateError` (damaged).
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise InputFileNotFoundError(f"{folder} holds no index ({MANIFEST} is not there); build it first")
    manifest = read_json(path, INDEX_FORMAT, INDEX_VERSION)
    missing = {"folder", "model", "fingerprint", "sides", "files"} - set(manifest)
    if missing or Path(str(manifest["folder"])).name != manifest["folder"]:
        raise RunStateError(f"{path} is not a whole manifest; build the index again")
    return manifest


def check_files(folder: Path, files: dict[str, dict[str, Any]], thorough: bool) -> None:
    """Check that the files of a build are there and whole: sizes of all, hashes of FAISS files or (thorough) of all.

    FAISS files are always hashed, since reading a damaged one can end the process. Raises `RunStateError`.
    """
    for name, expected in files.items():
        path = folder / name
        size = path.stat().st_size if path.is_file() else None
        if size != expected["size"]:
            found = "is missing" if size is None else f"has {size} bytes"
            raise RunStateError(f"{path} {found}; expected {expected['size']} bytes: build the index again")
        if (thorough or name.endswith(".faiss")) and hash_file(path) != expected["sha256"]:
            raise RunStateError(f"{path} is damaged (another SHA-256 than in {MANIFEST}); build the index again")


def sync_file(path: Path) -> None:
    """Make a written file durable."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def row_sample_hash(rows: npt.NDArray[np.float16]) -> str:
    """Return the hash of 64 rows spread over the file: cheap, and rows of another build do not pass."""
    chosen = np.unique(np.linspace(0, max(len(rows) - 1, 0), _SAMPLED_ROWS).astype(np.int64))
    return hash_array(np.asarray(rows[chosen[: len(rows)]]))
