"""Rows on disk, so that what is expensive runs once and an interrupted encoding goes on where it stopped.

A cache holds shards: files of a few thousand rows, keyed by the fingerprint of the step that computed them and the hash
of each item. Shards are written whole (atomic rename) under names of their own, so two processes may fill one cache at
the same time; there is no index file that could disagree with them. A shard that cannot be read is computed again. This
module is not about what the rows mean.
"""

import hashlib
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bridgehead.errors import ArgumentError
from bridgehead.files import UNREADABLE, atomic_file
from bridgehead.vectors import FloatArray, IntArray

Progress = Callable[[int, int], None]

_KEY_BYTES = 16
_SHARD_VERSION = 1


@dataclass(frozen=True, eq=False)
class CountRows:
    """Ragged counts: row i has `counts[offsets[i]:offsets[i + 1]]` of the features `table[codes[...]]`, ascending.

    `table` (uint64, sorted, distinct) holds the feature ids that occur, so `codes` are small.
    """

    offsets: IntArray
    codes: npt.NDArray[np.uint32]
    counts: npt.NDArray[np.uint32]
    table: npt.NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, rows: IntArray) -> "CountRows":
        """Return the rows at these numbers, in this order; the table stays."""
        lengths = np.diff(self.offsets)[rows]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        entries = np.repeat(self.offsets[rows] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return CountRows(offsets, self.codes[entries], self.counts[entries], self.table)

    @classmethod
    def joined(cls, parts: Sequence["CountRows"]) -> "CountRows":
        """Return the rows of all parts one after the other, over one table."""
        if not parts:
            return cls(np.zeros(1, np.int64), np.zeros(0, np.uint32), np.zeros(0, np.uint32), np.zeros(0, np.uint64))
        table = np.unique(np.concatenate([part.table for part in parts]))
        codes = [np.searchsorted(table, part.table).astype(np.uint32)[part.codes] for part in parts]
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        return cls(
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            np.concatenate(codes),
            np.concatenate([part.counts for part in parts]),
            table,
        )


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of the items at positions `index` of a list; `reasons` for those that have none.

    `rows` is a dense (n, d) float32 array or `CountRows`; `stats` (n, k) are whole numbers kept with each row.
    """

    rows: "FloatArray | CountRows"
    index: IntArray
    stats: IntArray
    reasons: list[tuple[int, str]] = field(default_factory=list)


Compute = Callable[[list[str]], Iterator[Block]]


class RowCache:
    """A folder of shards.

    `shard_items` is how many rows a shard takes before it is written: what an interruption can cost. Raises
    `ArgumentError` when it is under 1.
    """

    def __init__(self, folder: str | Path, shard_items: int = 4096) -> None:
        if shard_items < 1:
            raise ArgumentError(f"shard_items = {shard_items}; expected at least 1")
        self.folder = Path(folder)
        self.shard_items = shard_items

    def __repr__(self) -> str:
        return f"RowCache({str(self.folder)!r})"

    def read(self, step: str, items: Sequence[str]) -> Iterator[Block]:
        """Yield the stored rows of `items` (distinct texts) for the step with this fingerprint, shard by shard."""
        wanted = {item_key(item): position for position, item in enumerate(items)}
        for path in sorted(self._folder_of(step).glob("*.npz")):
            if not wanted:
                return
            block = _read_shard(path, wanted)
            if block is not None:
                yield block

    def write(self, step: str, items: Sequence[str], blocks: Sequence[Block]) -> None:
        """Store the rows of `blocks`, whose index points into `items`, as one shard."""
        whole = joined_blocks(blocks)
        if not len(whole.index):
            return
        keys = np.frombuffer(b"".join(item_key(items[position]) for position in whole.index), dtype=np.uint8)
        arrays: dict[str, Any] = {"keys": keys.reshape(-1, _KEY_BYTES), "stats": whole.stats}
        if isinstance(whole.rows, CountRows):
            arrays |= {name: getattr(whole.rows, name) for name in ("offsets", "codes", "counts", "table")}
        else:
            arrays["rows"] = whole.rows
        path = self._folder_of(step) / f"{uuid.uuid4().hex}.npz"
        with atomic_file(path) as file:
            np.savez(file, version=np.int64(_SHARD_VERSION), **arrays)

    def _folder_of(self, step: str) -> Path:
        return self.folder / step[:32]


def item_key(item: str) -> bytes:
    """Return the 16-byte hash under which an item's row is stored."""
    return hashlib.blake2b(item.encode("utf-8", "surrogatepass"), digest_size=_KEY_BYTES).digest()


def cached_rows(
    cache: RowCache | None, step: str, items: Sequence[str], compute: Compute, progress: Progress | None = None
) -> Block:
    """Return the rows of all `items`, from the cache where it has them and from `compute` where not.

    Equal items are computed once. `compute(items)` yields blocks in any order; they are stored as shards as they come,
    also when it is interrupted. The result's index is ascending. Reasons are not stored: what failed is tried again.
    """
    distinct = list(dict.fromkeys(items))
    blocks = list(cache.read(step, distinct)) if cache is not None else []
    have = np.zeros(len(distinct), dtype=bool)
    for block in blocks:
        have[block.index] = True
    missing = np.flatnonzero(~have)
    done = len(distinct) - len(missing)
    waiting: list[Block] = []
    texts = [distinct[position] for position in missing]
    try:
        for block in compute(texts) if texts else ():
            waiting.append(block)
            blocks.append(_renumbered(block, missing))
            done += len(block.index) + len(block.reasons)
            if cache is not None and sum(len(part.index) for part in waiting) >= cache.shard_items:
                cache.write(step, texts, waiting)
                waiting = []
            if progress is not None:
                progress(done, len(distinct))
    finally:
        if cache is not None and waiting:
            cache.write(step, texts, waiting)
    return _spread(joined_blocks(blocks) if blocks else None, distinct, items)


def joined_blocks(blocks: Sequence[Block]) -> Block:
    """Return the rows of at least one block as one, in the order given."""
    dense = [block.rows for block in blocks if not isinstance(block.rows, CountRows)]
    counted = [block.rows for block in blocks if isinstance(block.rows, CountRows)]
    rows: FloatArray | CountRows = CountRows.joined(counted) if counted else np.concatenate(dense)
    return Block(
        rows,
        np.concatenate([block.index for block in blocks]).astype(np.int64),
        np.concatenate([block.stats for block in blocks]).astype(np.int64),
        [reason for block in blocks for reason in block.reasons],
    )


def _renumbered(block: Block, positions: IntArray) -> Block:
    reasons = [(int(positions[at]), reason) for at, reason in block.reasons]
    return Block(block.rows, positions[block.index], block.stats, reasons)


def _spread(whole: Block | None, distinct: list[str], items: Sequence[str]) -> Block:
    """Bring the rows of distinct items to all items, in the order of the items."""
    if whole is None:
        return Block(CountRows.joined([]), np.zeros(0, np.int64), np.zeros((0, 0), np.int64))
    row_of = np.full(len(distinct), -1, dtype=np.int64)
    row_of[whole.index] = np.arange(len(whole.index))
    number = {item: position for position, item in enumerate(distinct)}
    positions = np.array([number[item] for item in items], dtype=np.int64)
    index = np.flatnonzero(row_of[positions] >= 0)
    rows = row_of[positions[index]]
    why = dict(whole.reasons)
    reasons = [(at, why[int(p)]) for at, p in enumerate(positions) if row_of[p] < 0]
    return Block(_take(whole.rows, rows), index.astype(np.int64), whole.stats[rows], reasons)


def _take(rows: "FloatArray | CountRows", numbers: IntArray) -> "FloatArray | CountRows":
    return rows.take(numbers) if isinstance(rows, CountRows) else rows[numbers]


def _read_shard(path: Path, wanted: dict[bytes, int]) -> Block | None:
    """Return the rows of a shard that are wanted, and take them off `wanted`.

    None when there is none, or when the shard is damaged or of another version: it is then as if it were not there.
    """
    try:
        # np.load would leave the file open when its end is missing.
        with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
            if int(file["version"]) != _SHARD_VERSION:
                return None
            keys = [bytes(key) for key in file["keys"]]
            found = [row for row, key in enumerate(keys) if key in wanted]
            if not found:
                return None
            stats = file["stats"]
            rows: FloatArray | CountRows
            if "rows" in file:
                rows = file["rows"]
            else:
                rows = CountRows(file["offsets"], file["codes"], file["counts"], file["table"])
            if not len(keys) == len(stats) == len(rows):
                return None
    except UNREADABLE:
        return None
    index = [wanted.pop(keys[row]) for row in found]
    numbers = np.array(found, dtype=np.int64)
    return Block(_take(rows, numbers), np.array(index, dtype=np.int64), stats[numbers])
