"""Files of one array that are written block by block, synced now and then, and gone on with after a kill.

It is about bytes on disk. What the rows are used for is in `training` and `scoring`.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bridgehead.errors import ShapeError
from bridgehead.files import disk_errors, read_json, sync_folder, write_json
from bridgehead.index.vectors.sources import RowSource, even_blocks
from bridgehead.vectors import unit_rows

BLOCK = 8192
BLOCKS_PER_SYNC = 16
_NOTE_FORMAT = "bridgehead array being written"

Say = Callable[[str], None]


def stored_rows(block: Any, name: str = "rows") -> Any:
    """Return rows as they are stored: float16 rows as they are, others of unit length as float16."""
    return block if block.dtype == np.float16 else unit_rows(block, name, np.float32).astype(np.float16)


def write_rows(path: Path, rows: RowSource, say: Say) -> None:
    """Write `rows` as float16 rows to the .npy file `path`: see `write_blocks`. Raises what `unit_rows` raises."""

    def from_row(start: int) -> Iterator[Any]:
        at = 0
        for block in even_blocks(rows, BLOCK):
            if at >= start:
                yield stored_rows(block)
            at += len(block)

    write_blocks(path, rows.shape, np.float16, from_row, say)


def write_blocks(
    path: Path, shape: tuple[int, int], dtype: type, blocks_from: Callable[[int], Iterator[Any]], say: Say
) -> None:
    """Write the .npy file `path` of `shape` (n, d), atomically, going on where an earlier call was killed.

    `blocks_from(start)` gives the rows from `start` on in blocks of `BLOCK` rows; `start` is a whole number of blocks.
    A file that is there is left as it is. Raises `ShapeError` when another number of rows comes than `shape` says.
    """
    if path.is_file():
        return
    part, note = path.with_name(path.name + ".part"), path.with_name(path.name + ".json")
    done = _done(part, note, shape)
    with open(part, "r+b" if done else "wb") as file, disk_errors(path):
        header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        file.seek(file.tell() + done * shape[1] * np.dtype(dtype).itemsize)
        file.truncate()
        at = done
        for number, block in enumerate(blocks_from(done), 1):
            block.astype(dtype, copy=False).tofile(file)
            at += len(block)
            if number % BLOCKS_PER_SYNC == 0 and at < shape[0]:
                _sync(file)
                write_json(note, {"rows": at, "shape": list(shape)}, _NOTE_FORMAT)
                say(f"{path.name}: {at:,} of {shape[0]:,} rows written")
        _sync(file)
    if at != shape[0]:
        raise ShapeError(f"{at:,} rows came for {path.name}, and {shape[0]:,} were announced")
    os.replace(part, path)
    note.unlink(missing_ok=True)
    sync_folder(path.parent)


def _sync(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())


def _done(part: Path, note: Path, shape: tuple[int, int]) -> int:
    if not (part.is_file() and note.is_file()):
        return 0
    content = read_json(note, _NOTE_FORMAT)
    return int(content["rows"]) if content["shape"] == list(shape) else 0
