"""The cache of rows: what an interruption, a second process or a damaged file can and cannot do."""

import multiprocessing
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from bridgehead.encode.cache import Block, CountRows, RowCache, cached_rows
from bridgehead.errors import ArgumentError

STEP = "0123456789abcdef" * 4


class Lengths:
    """Row of a text: its length and 1; `bad` has none; stops after `stop` blocks of two."""

    def __init__(self, stop: int | None = None) -> None:
        self.stop = stop
        self.computed: list[str] = []

    def __call__(self, items: list[str]) -> Iterator[Block]:
        for number, start in enumerate(range(0, len(items), 2)):
            if number == self.stop:
                raise KeyboardInterrupt
            chunk = items[start : start + 2]
            self.computed += chunk
            good = [i for i, item in enumerate(chunk) if item != "bad"]
            rows = np.array([[len(chunk[i]), 1] for i in good], dtype=np.float32).reshape(-1, 2)
            reasons = [(start + i, "is bad") for i, item in enumerate(chunk) if item == "bad"]
            yield Block(rows, np.array(good, dtype=np.int64) + start, np.ones((len(good), 1), np.int64), reasons)


def test_rows_come_in_the_order_of_the_items_and_equal_items_are_computed_once() -> None:
    compute = Lengths()
    block = cached_rows(None, STEP, ["aaa", "b", "bad", "aaa", "", "bad"], compute)
    assert compute.computed == ["aaa", "b", "bad", ""]
    assert block.rows[:, 0].tolist() == [3, 1, 3, 0] and block.index.tolist() == [0, 1, 3, 4]
    assert block.reasons == [(2, "is bad"), (5, "is bad")]


def test_a_second_call_computes_only_what_is_new(tmp_path: Path) -> None:
    first, second = Lengths(), Lengths()
    cached_rows(RowCache(tmp_path), STEP, ["a", "bb", "ccc"], first)
    block = cached_rows(RowCache(tmp_path), STEP, ["ccc", "dddd", "a"], second)
    assert second.computed == ["dddd"]
    assert block.rows[:, 0].tolist() == [3, 4, 1]


def test_another_step_shares_nothing(tmp_path: Path) -> None:
    compute = Lengths()
    cached_rows(RowCache(tmp_path), STEP, ["a"], Lengths())
    cached_rows(RowCache(tmp_path), "f" * 64, ["a"], compute)
    assert compute.computed == ["a"]


def test_an_interrupted_encoding_goes_on_where_it_stopped(tmp_path: Path) -> None:
    items = [f"{'x' * n}{n}" for n in range(20)]
    with pytest.raises(KeyboardInterrupt):
        cached_rows(RowCache(tmp_path, shard_items=4), STEP, items, Lengths(stop=7))
    rest = Lengths()
    block = cached_rows(RowCache(tmp_path, shard_items=4), STEP, items, rest)
    assert rest.computed == items[14:]
    assert np.array_equal(block.rows, cached_rows(None, STEP, items, Lengths()).rows)


def test_a_killed_process_leaves_whole_shards_only(tmp_path: Path) -> None:
    items = [f"{n}" for n in range(12)]
    cached_rows(RowCache(tmp_path, shard_items=4), STEP, items, Lengths())
    shards = sorted(tmp_path.rglob("*.npz"))
    assert len(shards) == 3
    # What a kill in the middle of a write leaves: a part file that is no shard.
    (shards[0].parent / ".x.npz.abc.part").write_bytes(shards[0].read_bytes()[:100])
    again = Lengths()
    cached_rows(RowCache(tmp_path), STEP, items, again)
    assert again.computed == []


@pytest.mark.parametrize("damage", ["cut", "empty", "noise", "flipped"])
def test_a_damaged_shard_is_computed_again(tmp_path: Path, damage: str) -> None:
    items = [f"item {n}" for n in range(8)]
    expected = cached_rows(RowCache(tmp_path, shard_items=4), STEP, items, Lengths()).rows
    shard = sorted(tmp_path.rglob("*.npz"))[0]
    content = shard.read_bytes()
    flipped = bytearray(content)
    flipped[len(content) // 3] ^= 0xFF
    shard.write_bytes({"cut": content[:-50], "empty": b"", "noise": b"noise" * 99, "flipped": bytes(flipped)}[damage])
    again = Lengths()
    assert np.array_equal(cached_rows(RowCache(tmp_path), STEP, items, again).rows, expected)
    assert len(again.computed) in (0, 4)


def fill(folder: str, first: int) -> None:
    cached_rows(RowCache(folder, shard_items=3), STEP, [f"{n}" for n in range(first, first + 40)], Lengths())


def test_two_processes_may_fill_one_cache(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=fill, args=(str(tmp_path), first)) for first in (0, 20)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0]
    again = Lengths()
    block = cached_rows(RowCache(tmp_path), STEP, [f"{n}" for n in range(60)], again)
    assert again.computed == [] and block.rows[:, 0].tolist() == [1] * 10 + [2] * 50


def test_counts_survive_the_disk_and_a_change_of_table(tmp_path: Path) -> None:
    def counts(rows: list[dict[int, int]]) -> CountRows:
        table = np.unique(np.array([key for row in rows for key in row], dtype=np.uint64))
        codes = [np.searchsorted(table, np.array(sorted(row), dtype=np.uint64)) for row in rows]
        values = [[row[key] for key in sorted(row)] for row in rows]
        offsets = np.cumsum([0, *map(len, rows)])
        return CountRows(
            offsets, np.concatenate(codes).astype(np.uint32), np.concatenate(values).astype(np.uint32), table
        )

    contents = {"a": {5: 1, 2**60: 7}, "b": {3: 2, 5: 9}, "c": {3: 4}}

    def compute(items: list[str]) -> Iterator[Block]:
        for i, item in enumerate(items):
            yield Block(counts([contents[item]]), np.array([i]), np.zeros((1, 0), np.int64))

    cached_rows(RowCache(tmp_path, shard_items=2), STEP, ["a", "b"], compute)
    rows = cached_rows(RowCache(tmp_path), STEP, ["c", "b", "a", "c"], compute).rows
    assert isinstance(rows, CountRows)
    found = [
        dict(zip(rows.table[rows.codes[s:e]].tolist(), rows.counts[s:e].tolist(), strict=True))
        for s, e in zip(rows.offsets[:-1], rows.offsets[1:], strict=True)
    ]
    assert found == [contents[name] for name in "cbac"]


def test_a_shard_of_less_than_one_item_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="shard_items = 0"):
        RowCache(tmp_path, shard_items=0)
