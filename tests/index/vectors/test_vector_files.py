"""Files of a side: what is written, gone on with, taken over from an earlier build, and refused when it is damaged."""

import shutil

import numpy as np
import pytest

from bridgehead.errors import InputFileNotFoundError, NonFiniteRowsError, RunStateError, ShapeError
from bridgehead.index.vectors import ArrayRows, RowShards, SideView, VectorPlan, open_base, write_side
from bridgehead.index.vectors.base import BaseVectors
from bridgehead.index.vectors.sources import even_blocks, picked_rows
from vector_sides import clustered, half, written_side

PLAN = VectorPlan(kind="ivf-sq8")


def save_shards(folder, rows, sizes):
    paths, start = [], 0
    for number, size in enumerate(sizes):
        paths.append(folder / f"shard-{number}.npy")
        np.save(paths[-1], rows[start : start + size])
        start += size
    return RowShards(paths)


def test_shards_of_any_size_make_the_files_that_one_array_makes(tmp_path):
    rows = clustered(9000, 16, 0)
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    write_side(tmp_path / "one", "a", ArrayRows(rows), np.arange(9000), {}, PLAN)
    shards = save_shards(tmp_path, rows, [1, 4000, 0, 4999])
    assert shards.shape == (9000, 16) and len(shards) == 9000
    write_side(tmp_path / "two", "a", shards, np.arange(9000), {}, PLAN)
    for name in ("a.rows.npy", "a.faiss", "a.numbers.npy", "a.facts.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_blocks_are_even_and_rows_picked_are_spread(tmp_path):
    rows = np.arange(40, dtype=np.float32).reshape(20, 2)
    shards = save_shards(tmp_path, rows, [3, 10, 7])
    assert [len(block) for block in even_blocks(shards, 8)] == [8, 8, 4]
    np.testing.assert_array_equal(np.concatenate(list(even_blocks(shards, 8))), rows)
    assert picked_rows(shards, 3)[:, 0].tolist() == [0, 18, 38]


def test_shards_that_are_missing_cut_off_or_of_several_widths_are_refused(tmp_path):
    with pytest.raises(InputFileNotFoundError):
        RowShards([tmp_path / "none.npy"])
    (tmp_path / "text.npy").write_text("no array")
    with pytest.raises(RunStateError, match="no array of rows"):
        RowShards([tmp_path / "text.npy"])
    np.save(tmp_path / "flat.npy", np.zeros(3))
    with pytest.raises(ShapeError, match="expected floats"):
        RowShards([tmp_path / "flat.npy"])
    shards = save_shards(tmp_path, np.ones((20, 4)), [10, 10])
    np.save(tmp_path / "wide.npy", np.ones((2, 5)))
    with pytest.raises(ShapeError, match=r"\[4, 5\] columns"):
        RowShards([*shards.paths, tmp_path / "wide.npy"])
    shards.paths[1].write_bytes(shards.paths[1].read_bytes()[:-8])
    with pytest.raises(RunStateError, match="ends before its 10 rows"):
        list(shards.blocks(4))


def test_rows_with_nan_are_refused(tmp_path):
    with pytest.raises(NonFiniteRowsError):
        write_side(tmp_path, "a", ArrayRows(np.full((3, 2), np.nan)), [0, 1, 2], {}, PLAN)


def test_float16_rows_are_stored_bit_for_bit(tmp_path):
    rows = half(clustered(500, 16, 0))
    write_side(tmp_path, "a", ArrayRows(rows), np.arange(500), {}, VectorPlan())
    np.testing.assert_array_equal(np.load(tmp_path / "a.rows.npy"), rows)


@pytest.mark.parametrize("stage", ["write_rows", "trained_index", "add_rows", "tuned"])
def test_a_build_that_broke_off_goes_on_and_ends_the_same(tmp_path, monkeypatch, stage):
    rows, samples = clustered(20_000, 16, 0), {"other side": clustered(50, 16, 1)}
    (tmp_path / "whole").mkdir()
    (tmp_path / "broken").mkdir()
    whole = write_side(tmp_path / "whole", "a", ArrayRows(rows), np.arange(20_000), samples, PLAN)
    monkeypatch.setattr("bridgehead.index.vectors.training.CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr("bridgehead.index.vectors.row_file.BLOCKS_PER_SYNC", 1)

    def breaking(line):
        if {"write_rows": "rows written", "trained_index": "training", "add_rows": "added", "tuned": "exactly"}[
            stage
        ] in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_side(tmp_path / "broken", "a", ArrayRows(rows), np.arange(20_000), samples, PLAN, breaking)
    said: list[str] = []
    facts = write_side(tmp_path / "broken", "a", ArrayRows(rows), np.arange(20_000), samples, PLAN, said.append)
    assert facts == whole
    for name in ("a.rows.npy", "a.faiss", "a.numbers.npy"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "broken" / name).read_bytes()
    if stage in ("add_rows", "tuned"):
        assert not any("training" in line for line in said)
    # Everything is done: a third call does nothing.
    assert write_side(tmp_path / "broken", "a", ArrayRows(rows), np.arange(20_000), samples, PLAN, pytest.fail) == whole


def test_training_is_taken_over_from_a_build_before_where_it_fits(tmp_path):
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    for folder in (first, second, third):
        folder.mkdir()
    rows = clustered(5000, 16, 0)
    write_side(first, "a", ArrayRows(rows), np.arange(5000), {}, PLAN)
    said: list[str] = []
    more = np.concatenate([rows, clustered(500, 16, 3)])
    facts = write_side(second, "a", ArrayRows(more), np.arange(5500), {}, PLAN, said.append, first / "a.faiss")
    assert not any("training" in line for line in said) and facts.n_lists == int(4 * np.sqrt(5000))
    view = SideView(open_base(second, "a", facts))
    assert view.search(more[-1:], 1)[0].numbers.tolist() == [5499]
    write_side(third, "a", ArrayRows(more[:300]), np.arange(300), {}, PLAN, said.append, first / "a.faiss")
    assert any("training" in line for line in said)


def test_positions_that_faiss_makes_up_are_left_out():
    rows = clustered(500, 8, 0)
    view, facts = written_side(rows)
    base = view.base

    class Wrong:
        ntotal, d = base.found.ntotal, base.found.d

        def search(self, queries, width, params=None):
            scores, numbers = base.found.search(queries, width)
            numbers[:, 64::2] = -1
            numbers[:, 65::2] += 500
            return scores, numbers

    damaged = SideView(BaseVectors(Wrong(), base.rows, base.numbers, facts))
    for k in (30, 500):
        assert damaged.search(rows[:1], k)[0].numbers.tolist() == view.search(rows[:1], k)[0].numbers.tolist()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.rows.npy", np.zeros((3, 4), np.float32)),
        ("a.rows.npy", np.zeros((4, 4), np.float16)),
        ("a.numbers.npy", np.zeros(3, np.int32)),
        ("a.numbers.npy", np.zeros(2, np.int64)),
    ],
)
def test_files_that_do_not_fit_together_are_refused(tmp_path, name, content):
    facts = write_side(tmp_path, "a", ArrayRows(np.eye(3, 4)), [0, 1, 2], {}, VectorPlan())
    np.save(tmp_path / name, content)
    with pytest.raises(RunStateError):
        open_base(tmp_path, "a", facts)


def test_rows_with_objects_are_refused_and_not_executed(tmp_path):
    facts = write_side(tmp_path, "a", ArrayRows(np.eye(3)), [0, 1, 2], {}, VectorPlan())
    np.save(tmp_path / "a.rows.npy", np.array([{"x": 1}] * 3, dtype=object), allow_pickle=True)
    with pytest.raises(RunStateError, match="not an array of rows"):
        open_base(tmp_path, "a", facts)


def test_a_search_goes_on_after_the_files_are_gone(tmp_path):
    folder = tmp_path / "build"
    folder.mkdir()
    rows = clustered(3000, 16, 0)
    facts = write_side(folder, "a", ArrayRows(rows), np.arange(3000), {}, PLAN)
    view = SideView(open_base(folder, "a", facts))
    shutil.rmtree(folder)
    assert view.search(rows[7:8], 1)[0].numbers.tolist() == [7]
    assert len(view.search(rows[7:8], 3000)[0]) == 3000
