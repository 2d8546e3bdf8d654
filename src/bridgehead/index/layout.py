"""Files of an index folder, their format version, and the checks that they belong together.

It is about bytes and counts, not about what is found with them. All files of a build but the item file never change;
the manifest holds their sizes, their hashes and a hash of samples of them, so that opening looks at each file without
reading it.
"""

import hashlib
import os
from pathlib import Path
from typing import Any

from bridgehead.errors import InputFileNotFoundError, RunStateError
from bridgehead.files import hash_file, read_json, sync_folder
from bridgehead.index.vectors.base import NUMBER_FILE, ROW_FILE, VECTOR_FILE

__all__ = [
    "ATTACHED_FOLDER", "INDEX_FORMAT", "INDEX_VERSION", "MANIFEST", "NUMBER_FILE", "ROW_FILE", "STORE_FILE",
    "STRUCTURE_FILE", "VECTOR_FILE", "check_files", "described_files", "read_manifest", "sync_file",
]  # fmt: skip

INDEX_FORMAT = "bridgehead index"
INDEX_VERSION = 2
MANIFEST = "index.json"
STORE_FILE = "items.sqlite"
STRUCTURE_FILE = "{side}.structures.npy"
ATTACHED_FOLDER = "attached"
_SAMPLES = 64
_SAMPLE_BYTES = 4096
_HEAD_BYTES = 1 << 16
# The lists' centres and sizes, over which FAISS may fall when they are damaged, stand before the codes.
_FAISS_HEAD_BYTES = 16 << 20
_FAISS_HEAD_SHARE = 128


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


def described_files(build: Path) -> dict[str, dict[str, Any]]:
    """Return size and hashes of all files of a build that never change, by their path in it, for the manifest."""
    sync_folder(build)
    return {
        path.relative_to(build).as_posix(): {
            "size": path.stat().st_size,
            "sampled": sampled_hash(path),
            "sha256": hash_file(path),
        }
        for path in sorted(build.rglob("*"))
        if path.is_file() and not path.relative_to(build).as_posix().startswith(STORE_FILE)
    }


def check_files(folder: Path, files: dict[str, dict[str, Any]], thorough: bool) -> None:
    """Check that the files of a build are there and whole: size and sampled hash of each, or (thorough) their hashes.

    The sample holds the head of a FAISS file, with all that says how long its lists are; what lies between samples is
    seen only by a thorough check. Raises `RunStateError`.
    """
    for name, expected in files.items():
        path = folder / name
        size = path.stat().st_size if path.is_file() else None
        if size != expected["size"]:
            found = "is missing" if size is None else f"has {size} bytes"
            raise RunStateError(f"{path} {found}; expected {expected['size']} bytes: build the index again")
        if sampled_hash(path) != expected["sampled"] or (thorough and hash_file(path) != expected["sha256"]):
            raise RunStateError(
                f"{path} is damaged or of another build (another hash than in {MANIFEST}); build the index again"
            )


def sampled_hash(path: Path) -> str:
    """Return the SHA-256 (hex) of the head of a file, of 64 blocks of 4 KiB spread over it, and of its end."""
    size = path.stat().st_size
    head = max(_FAISS_HEAD_BYTES, size // _FAISS_HEAD_SHARE) if path.suffix == ".faiss" else _HEAD_BYTES
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        digest.update(file.read(head))
        for number in range(1, _SAMPLES + 1) if size > head else ():
            file.seek(head + (size - head - _SAMPLE_BYTES) * number // _SAMPLES)
            digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()


def sync_file(path: Path) -> None:
    """Make a written file durable."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
