"""Rows as they come in: an array, or shards on disk that are read block by block.

Owns how many rows lie in memory at once while an index is built. What becomes of them is in `writing`.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bridgehead.errors import ArgumentError, InputFileNotFoundError, RunStateError, ShapeError
from bridgehead.files import UNREADABLE, why_unreadable
from bridgehead.vectors import to_numpy

_READ = 8192


class RowSource(Protocol):
    """Rows (n, d) that can be gone through more than once."""

    @property
    def shape(self) -> tuple[int, int]:
        """Return (n, d)."""

    def blocks(self, size: int) -> Iterator[Any]:
        """Yield the rows in order as float arrays of at most `size` rows each."""


class ArrayRows:
    """An array (n, d), in memory or memory-mapped, as a `RowSource`. Raises `ShapeError` unless two-dimensional."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows if isinstance(rows, np.memmap) else to_numpy(rows)
        if self.rows.ndim != 2:
            raise ShapeError(f"rows have shape {self.rows.shape}; expected two dimensions (n, d)")

    @property
    def shape(self) -> tuple[int, int]:
        """Return (n, d)."""
        return int(self.rows.shape[0]), int(self.rows.shape[1])

    def blocks(self, size: int) -> Iterator[Any]:
        """Yield the rows in order, `size` at a time."""
        for start in range(0, self.shape[0], size):
            yield np.asarray(self.rows[start : start + size])


class RowShards:
    """Rows in several .npy files of one width, read block by block and never mapped, so memory stays small.

    `paths`: files of (n_i, d) floats, in the order of the items. Raises `InputFileNotFoundError`, `RunStateError`
    (no plain array), `ShapeError` (widths differ) and `ArgumentError` (no file).
    """

    def __init__(self, paths: Sequence[str | Path]) -> None:
        self.paths = [Path(path) for path in paths]
        if not self.paths:
            raise ArgumentError("no shards; expected at least one .npy file of rows")
        self._headers = [_header(path) for path in self.paths]
        widths = {shape[1] for shape, _, _ in self._headers}
        if len(widths) > 1:
            raise ShapeError(f"shards have {sorted(widths)} columns; expected one width")

    @property
    def shape(self) -> tuple[int, int]:
        """Return (n, d) of all shards together."""
        return sum(shape[0] for shape, _, _ in self._headers), self._headers[0][0][1]

    def __len__(self) -> int:
        return self.shape[0]

    def blocks(self, size: int) -> Iterator[Any]:
        """Yield the rows in order, at most `size` at a time; a block ends where its shard ends."""
        for path, ((n, dim), dtype, start) in zip(self.paths, self._headers, strict=True):
            with open(path, "rb") as file:
                file.seek(start)
                for first in range(0, n, size):
                    count = min(size, n - first)
                    block = np.fromfile(file, dtype, count * dim)
                    if len(block) != count * dim:
                        raise RunStateError(f"{path} ends before its {n} rows; it is cut off: write it again")
                    yield block.reshape(count, dim)


def _header(path: Path) -> tuple[tuple[int, int], np.dtype[Any], int]:
    """Return shape, dtype and where the numbers begin."""
    if not path.is_file():
        raise InputFileNotFoundError(f"{path} does not exist; expected a .npy file of rows")
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except UNREADABLE as error:
        raise RunStateError(f"{path} is no array of rows ({why_unreadable(error)})") from error
    if not isinstance(array, np.memmap) or array.ndim != 2 or array.dtype.kind != "f" or not array.flags.c_contiguous:
        raise ShapeError(f"{path} holds {array.dtype} of shape {array.shape}; expected floats (n, d) in row order")
    return (array.shape[0], array.shape[1]), array.dtype, array.offset


def as_source(rows: Any) -> RowSource:
    """Return `rows` as a `RowSource`: shards and other sources as they are, all else as an array."""
    return rows if hasattr(rows, "blocks") else ArrayRows(rows)


def even_blocks(source: RowSource, size: int = _READ) -> Iterator[Any]:
    """Yield the rows of `source` in blocks of exactly `size` (the last is shorter), wherever its shards end."""
    held: list[Any] = []
    count = 0
    for block in source.blocks(size):
        while len(block):
            part, block = block[: size - count], block[size - count :]
            held.append(part)
            count += len(part)
            if count == size:
                yield held[0] if len(held) == 1 else np.concatenate(held)
                held, count = [], 0
    if held:
        yield held[0] if len(held) == 1 else np.concatenate(held)


def picked_rows(source: RowSource, count: int) -> Any:
    """Return about `count` rows spread evenly over `source`, read in one pass."""
    n, dim = source.shape
    chosen = np.unique(np.linspace(0, max(n - 1, 0), min(count, n)).astype(np.int64))
    parts, start = [np.zeros((0, dim), np.float32)], 0
    for block in source.blocks(_READ):
        inside = chosen[(chosen >= start) & (chosen < start + len(block))] - start
        parts.append(np.asarray(block[inside], np.float32))
        start += len(block)
    return np.concatenate(parts)
