"""Atomic writing, locks, hashes and format versions of everything that bridgehead stores.

A reader sees the old file or the new one, never a half: content is written beside, synced, then renamed. This module is
not about what the files mean.
"""

import errno
import fcntl
import hashlib
import json
import os
import re
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from bridgehead.errors import ArgumentError, FormatVersionError, InputFileNotFoundError, RunBusyError, RunStateError

LOCK_FILE = ".lock"
_FULL = re.compile("no space left on device|disk is full|requested and [0-9]+ written", re.IGNORECASE)
UNREADABLE = (
    OSError, ValueError, KeyError, EOFError, RuntimeError, SyntaxError, MemoryError, tokenize.TokenError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What numpy raises for a damaged .npy or .npz, depending on which byte is another."""


def why_unreadable(error: BaseException) -> str:
    """Return why an array cannot be read, without numpy's advice to execute what it does not know."""
    return "it holds no plain array" if "pickle" in str(error) else str(error)


@contextmanager
def atomic_file(path: str | Path, mode: str = "wb") -> Iterator[IO[Any]]:
    """Open a file beside `path` for writing and put it in the place of `path` when the block ends without error.

    `mode` is "wb" or "w" (UTF-8). The content and the folder entry are synced before the return. Raises
    `ArgumentError` when `path` is a folder or a device: a rename would put a file in the place of `/dev/null`.
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        away = ", or move the folder away" if target.is_dir() else ""
        raise ArgumentError(f"{target} is there and no plain file; name another file to write to{away}")
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        # Opened again by name: a file made from the handle would call itself by the handle's number.
        os.close(handle)
        with open(name, mode, encoding=None if "b" in mode else "utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files for the owner alone; a result should be readable like any other new file.
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
        sync_folder(target.parent)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def sync_folder(folder: Path) -> None:
    """Make renames in `folder` durable; file systems that cannot do it are left alone."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)


def atomic_path(path: str | Path, write: Callable[[str], object]) -> None:
    """Let `write(name)` fill a file under a temporary name beside `path`, then sync it and put it in place.

    For libraries that write by name only (safetensors, faiss, polars).
    """
    with atomic_file(path) as file:
        with disk_errors(path):
            write(file.name)
        # The library may have put a new file under the name; that one is to be synced.
        with open(file.name, "rb+") as written:
            os.fsync(written.fileno())


@contextmanager
def disk_errors(path: str | Path) -> Iterator[None]:
    """Raise what a library raises for a full disk, while the block writes `path`, as the `OSError` that it is."""
    try:
        yield
    except Exception as error:
        if (isinstance(error, OSError) and error.errno is not None) or _FULL.search(str(error)) is None:
            raise
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error


def write_text(path: str | Path, text: str) -> None:
    """Write `text` as UTF-8, atomically."""
    with atomic_file(path, "w") as file:
        file.write(text)


def write_json(path: str | Path, content: dict[str, Any], kind: str, version: int = 1) -> None:
    """Write `content` as JSON with the two fields `format` (`kind`) and `version` first, atomically.

    NaN and infinity are refused (ValueError): they are not JSON; so are the two names as keys of `content`.
    """
    if reserved := {"format", "version"} & content.keys():
        raise ArgumentError(f"{', '.join(sorted(reserved))}: the names of the two first fields; use other keys")
    body = {"format": kind, "version": version, **content}
    write_text(path, json.dumps(body, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: str | Path, kind: str, version: int = 1) -> dict[str, Any]:
    """Read what `write_json` wrote, without the two fields.

    Raises `InputFileNotFoundError`, `FormatVersionError` (another kind or version) and `RunStateError` (not JSON).
    """
    source = Path(path)
    if not source.is_file():
        raise InputFileNotFoundError(f"{source} does not exist; expected a file of format {kind!r}")
    try:
        content = json.loads(source.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise RunStateError(
            f"{source} is not JSON ({error}); it is damaged: remove it and run the stage again"
        ) from error
    if not isinstance(content, dict):
        raise RunStateError(f"{source} holds a {type(content).__name__}; expected a JSON object of format {kind!r}")
    found = (content.pop("format", None), content.pop("version", None))
    if found != (kind, version):
        raise FormatVersionError(
            f"{source} has format {found[0]!r} version {found[1]!r}; this release reads {kind!r} version {version}: "
            "use the release that wrote it, or run the stage again"
        )
    return content


def write_npy(path: str | Path, array: np.ndarray[Any, Any]) -> None:
    """Write an array as .npy, atomically; object arrays are refused (ValueError)."""
    with atomic_file(path) as file, disk_errors(path):
        np.save(file, array, allow_pickle=False)


def hash_json(content: Any) -> str:
    """Return the SHA-256 (hex) of `content` as canonical JSON (sorted keys, no spaces)."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def hash_texts(texts: Iterable[str]) -> str:
    """Return the SHA-256 (hex) of a sequence of texts; boundaries count, so ["ab"] differs from ["a", "b"]."""
    digest = hashlib.sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def hash_array(array: np.ndarray[Any, Any]) -> str:
    """Return the SHA-256 (hex) of dtype, shape and content of an array; object arrays are refused (ValueError)."""
    if array.dtype.hasobject:
        raise ArgumentError(f"an array of dtype {array.dtype} holds addresses, which differ each time; hash its texts")
    digest = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def hash_file(path: str | Path) -> str:
    """Return the SHA-256 (hex) of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def folder_lock(folder: str | Path) -> Iterator[None]:
    """Hold the writer's lock of `folder` (made where it is missing) while the block runs.

    The lock is the kernel's (`flock` on `.lock`), so it goes with the process, however that ends. Raises
    `RunBusyError` at once, naming the other process, when another one holds it.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    with open(target / LOCK_FILE, "a+", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            owner = file.read().strip() or "unknown"
            raise RunBusyError(
                f"{target} is being written by another process (pid {owner}); wait until it ends, or use another folder"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)
            # A forked child holds the same open file: closing it here would leave the lock with the child.
            fcntl.flock(file, fcntl.LOCK_UN)
