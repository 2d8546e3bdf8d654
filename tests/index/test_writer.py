"""Adding, replacing, deleting: what is there afterwards, what is refused, and what it costs."""

import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bridgehead.errors import (
    ArgumentError,
    DataError,
    DuplicateIdError,
    InputFileNotFoundError,
    MismatchError,
    NonFiniteRowsError,
    RunBusyError,
    RunStateError,
    ShapeError,
)
from bridgehead.index import IndexSide, IndexWriter, Written, build_index, item_hash, open_index
from written_items import DIM, assert_holds, row_of, side_of

FIRST = {f"i{number}": 1 for number in range(12)}


@pytest.fixture
def folder(tmp_path):
    build_index(tmp_path / "index", {"b": side_of(FIRST, "run")}, "m")
    return tmp_path / "index"


@pytest.fixture
def writer(folder):
    with IndexWriter(folder) as opened:
        yield opened


def store_of(folder):
    return next(folder.glob("build-*/items.sqlite"))


def test_items_are_added_replaced_and_left_alone_by_id_and_content(folder, writer):
    assert writer.put("text", side_of({"i0": 1, "i1": 2, "new": 1})) == Written(added=1, replaced=1, unchanged=1)
    with open_index(folder) as index, index.state() as state:
        assert_holds(state, {**FIRST, "i1": 2, "new": 1})
        assert [state.by_id(one)[0].origin for one in ("i0", "i1", "new")] == ["run", "sync", "sync"]
        assert [state.by_id(one)[0].number for one in ("i0", "i1", "new")] == [0, 12, 13]
    assert writer.put("b", side_of({"i0": 1, "i1": 2, "new": 1})) == Written(0, 0, 3)


def test_what_holds_the_same_changes_nothing_at_all(folder, writer):
    with open_index(folder) as index:
        writer.put("b", side_of(FIRST))
        assert writer.delete("b", ["no such id"]) == 0
        with index.state() as state:
            assert state.change == 0


def test_a_deleted_item_is_never_found_again_and_its_number_never_given_again(folder, writer):
    assert writer.delete("text", ["i3", "i4", "i3", "nobody"]) == 2
    left = {one: 1 for one in FIRST if one not in ("i3", "i4")}
    with open_index(folder) as index:
        with index.state() as state:
            assert_holds(state, left)
            assert state.by_id("i3") == [] == state.by_name("name of i3") == state.by_key("KEYi3")
            assert state.words("i3", "b") == []
            with pytest.raises(ArgumentError, match="no item of number 3"):
                state.row("b", 3)
            with pytest.raises(ArgumentError, match="no item of number 3"):
                state.item("b", 3)
        writer.put("b", side_of({"i3": 1}))
        assert index.by_id("i3")[0].number == 12
        writer.delete("b", ["i3"])
        writer.put("b", side_of({"i3": 1}))
        assert index.by_id("i3")[0].number == 13
        with index.state() as state:
            assert_holds(state, {**left, "i3": 1})


def test_both_sides_are_written_apart(tmp_path):
    build_index(tmp_path, {"a": side_of({"x": 1}), "b": replace(side_of({"x": 2}), name="other")}, "m")
    with IndexWriter(tmp_path) as writer, open_index(tmp_path) as index:
        writer.put("a", side_of({"y": 1, "x": 3}))
        writer.put("b", side_of({"y": 2}))
        writer.delete("other", ["x"])
        assert [(item.side, item.item) for item in index.by_id("y")] == [("a", "thing y word1"), ("b", "thing y word2")]
        with index.state() as state:
            assert_holds(state, {"x": 3, "y": 1}, "a")
            assert_holds(state, {"y": 2}, "b")
        writer.compact()
        with index.state() as state:
            assert_holds(state, {"x": 3, "y": 1}, "a")
            assert_holds(state, {"y": 2}, "b")


def test_a_compaction_keeps_numbers_and_everything_else(folder, writer):
    writer.put("b", side_of({"i0": 1, "i1": 2, "new": 1}))
    writer.delete("b", ["i5"])
    now = {**{one: 1 for one in FIRST if one != "i5"}, "i1": 2, "new": 1}
    with open_index(folder) as index:
        before = {number: index.item("b", number) for number in index.numbers("b").tolist()}
        assert writer.growth("b") == (2 + 2) / 12
        said = []
        facts = writer.compact(progress=said.append)
        assert facts.vectors["b"].n_rows == 12 and facts.lines()[0] in said
        assert {number: index.item("b", number) for number in index.numbers("b").tolist()} == before
        assert writer.growth("b") == 0 and index.fingerprint == facts.fingerprint
        with index.state() as state:
            assert_holds(state, now)
        writer.put("b", side_of({"i1": 3}))
        with index.state() as state:
            assert_holds(state, {**now, "i1": 3})
            assert state.by_id("i1")[0].number == 14
    assert [path.name for path in folder.iterdir() if path.is_dir()] == [writer.build.name]


def test_everything_may_be_deleted_and_come_back(folder, writer):
    with open_index(folder) as index:
        assert writer.delete("b", list(FIRST)) == 12
        with index.state() as state:
            assert_holds(state, {})
        writer.compact()
        with index.state() as state:
            assert_holds(state, {})
        assert writer.growth("b") == 0
        writer.put("b", side_of({"i1": 5}))
        assert writer.growth("b") == float("inf")
        with index.state() as state:
            assert_holds(state, {"i1": 5})
            assert state.numbers("b").tolist() == [12]


def test_hashes_are_those_of_what_items_hold_by_origin(writer):
    writer.put("b", side_of({"i1": 2, "new": 1}))
    expected = item_hash("thing new word1", ["name of new", "version 1"], {"id length": 3, "version": 1}, "KEYnew")
    assert writer.hashes("b", "sync")["new"] == expected
    assert set(writer.hashes("b", "sync")) == {"i1", "new"} and set(writer.hashes("text", "run")) == {*FIRST} - {"i1"}
    assert len(writer.hashes("b")) == 13


def test_attachments_travel_through_a_compaction(tmp_path):
    def write(target: Path) -> None:
        target.mkdir(parents=True)
        (target / "note.txt").write_text("kept")

    build_index(tmp_path, {"b": side_of(FIRST)}, "m", attachments={"notes": write})
    with IndexWriter(tmp_path) as writer:
        writer.compact()
    with open_index(tmp_path, "m", thorough=True) as index:
        attached = index.attached("notes")
        assert attached is not None and (attached / "note.txt").read_text() == "kept"


def test_structures_are_known_of_what_was_added_and_after_a_compaction(tmp_path):
    pytest.importorskip("rdkit")
    from bridgehead.index.structures import structure_bits

    def molecules(smiles):
        return IndexSide("molecule", np.stack([row_of(s, 0) for s in smiles]), smiles, smiles, kind="molecule")

    build_index(tmp_path, {"a": molecules(["CCO", "c1ccccc1"])}, "m")
    with IndexWriter(tmp_path) as writer, open_index(tmp_path) as index:
        writer.put("a", molecules(["CCN", "no structure("]))
        writer.delete("a", ["CCO"])
        bits = index.structures("a")
        assert bits is not None and bits.removed.tolist() == [0] and bits.added_numbers.tolist() == [2, 3]
        assert (bits.added_bits == structure_bits(["CCN", "no structure("])).all() and not bits.added_bits[1].any()
        writer.compact()
        bits = index.structures("a")
        assert bits is not None and bits.numbers.tolist() == [1, 2, 3] and not len(bits.added_numbers)
        assert (bits.bits == structure_bits(["c1ccccc1", "CCN", "no structure("])).all()


def test_a_snapshot_opens_by_itself_and_does_not_change_with_the_index(folder, writer, tmp_path):
    writer.put("b", side_of({"i1": 2, "new": 1}))
    target = writer.snapshot(tmp_path / "deeper" / "snapshot")
    writer.delete("b", list(FIRST))
    writer.compact()
    with open_index(target, "m", thorough=True) as index, index.state() as state:
        assert_holds(state, {**FIRST, "i1": 2, "new": 1})
    with IndexWriter(target) as other:
        other.put("b", side_of({"only here": 1}))
    with open_index(target) as index, index.state() as state:
        assert_holds(state, {**FIRST, "i1": 2, "new": 1, "only here": 1})
    with open_index(folder) as index, index.state() as state:
        assert_holds(state, {"new": 1})


def test_a_snapshot_does_not_go_where_something_is(writer, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("mine")
    for target in (tmp_path / "full", tmp_path / "full" / "x", tmp_path / "index"):
        with pytest.raises(ArgumentError, match="there already"):
            writer.snapshot(target)
    (tmp_path / "empty").mkdir()
    assert writer.snapshot(tmp_path / "empty") == tmp_path / "empty"


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"ids": ["x", "x"]}, DuplicateIdError, "more than once"),
        ({"items": ["one"]}, ShapeError, "2 rows and 1 items"),
        ({"rows": np.full((2, DIM), np.nan)}, NonFiniteRowsError, "NaN"),
        ({"rows": np.ones((2, 3))}, ShapeError, f"3 columns; the index has {DIM}"),
        ({"payload": [{}, {"x": float("inf")}]}, DataError, "payload of item y"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_of_it_is_written(folder, writer, change, error, message):
    with pytest.raises(error, match=message):
        writer.put("b", replace(side_of({"x": 1, "y": 1}), **change))
    with open_index(folder) as index, index.state() as state:
        assert_holds(state, FIRST)


def test_arguments_that_mean_nothing_are_refused(folder, writer, tmp_path):
    with pytest.raises(ArgumentError, match=r"no side 'protein'.*'text' \(b\)"):
        writer.put("protein", side_of({"x": 1}))
    with pytest.raises(ArgumentError, match="expected a list of ids"):
        writer.delete("b", "i1")
    with pytest.raises(InputFileNotFoundError, match="holds no index"), IndexWriter(tmp_path / "none"):
        pass
    assert not (tmp_path / "none").exists()


def test_a_second_writer_is_refused_and_a_build_too(folder, writer):
    with pytest.raises(RunBusyError, match="being written by another process"), IndexWriter(folder):
        pass
    with pytest.raises(RunBusyError, match="being written by another process"):
        build_index(folder, {"b": side_of(FIRST)}, "m")


def test_a_writer_is_of_use_within_its_block_only(folder):
    with IndexWriter(folder) as writer:
        pass
    with pytest.raises(RunStateError, match="within its `with` block"):
        writer.put("b", side_of({"x": 1}))
    with writer:
        assert writer.put("b", side_of({"x": 1})).added == 1


def test_words_cut_by_another_release_are_not_mixed_with_ours(folder):
    with sqlite3.connect(store_of(folder)) as connection:
        connection.execute("UPDATE meta SET value = 'other words' WHERE name = 'words'")
    connection.close()
    with pytest.raises(MismatchError, match="another release"), IndexWriter(folder):
        pass


def test_an_item_file_of_another_build_is_refused(folder):
    with sqlite3.connect(store_of(folder)) as connection:
        connection.execute("UPDATE meta SET value = 'other' WHERE name = 'fingerprint'")
    connection.close()
    with pytest.raises(RunStateError, match="another build"), IndexWriter(folder):
        pass


def test_a_full_disk_is_said_and_leaves_all_as_it_was(folder, writer):
    pages = writer.connection.execute("PRAGMA page_count").fetchone()[0]
    writer.connection.execute(f"PRAGMA max_page_count = {pages + 4}")
    with pytest.raises(OSError, match="No space left"):
        writer.put("b", side_of({f"n{number}": 1 for number in range(500)}))
    with open_index(folder) as index, index.state() as state:
        assert_holds(state, FIRST)
    writer.connection.execute(f"PRAGMA max_page_count = {10 * pages}")
    assert writer.put("b", side_of({"x": 1})).added == 1


def test_a_damaged_item_file_is_said_by_the_writer(folder):
    path = store_of(folder)
    content = bytearray(path.read_bytes())
    for page in range(5 * 4096, len(content), 4096):
        content[page : page + 64] = b"\xff" * 64
    path.write_bytes(content)
    with IndexWriter(folder) as writer, pytest.raises(RunStateError, match=r"items\.sqlite cannot be changed"):
        writer.put("b", side_of({"i1": 2, "x": 1}))


def test_what_killed_writers_and_builds_left_is_removed_but_a_build_that_will_be_gone_on_with(folder):
    for name in ("build-old", "compacting-build-old-abc", "build-unfinished"):
        (folder / name).mkdir()
    (folder / "build-unfinished" / "unfinished.json").write_text("{}")
    with IndexWriter(folder) as writer:
        assert {path.name for path in folder.iterdir() if path.is_dir()} == {writer.build.name, "build-unfinished"}


class Stopped(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), Stopped()])
def test_a_compaction_that_does_not_end_leaves_the_index_as_it_was(folder, writer, monkeypatch, fault):
    def failing(*arguments, **options):
        raise fault

    writer.put("b", side_of({"x": 1}))
    with monkeypatch.context() as patch:
        patch.setattr("bridgehead.index.compaction.copy_items", failing)
        with pytest.raises(type(fault)):
            writer.compact()
    with open_index(folder) as index, index.state() as state:
        assert_holds(state, {**FIRST, "x": 1})
    left = list(folder.glob("compacting-*/b.rows.npy"))
    # A failure leaves nothing, since the disk may be full; after a kill the next one goes on with what was written.
    assert bool(left) is isinstance(fault, Stopped)
    inodes = {path.stat().st_ino for path in left}
    writer.compact()
    assert inodes <= {path.stat().st_ino for path in folder.glob("build-*/b.rows.npy")}
    with open_index(folder) as index, index.state() as state:
        assert_holds(state, {**FIRST, "x": 1})
    assert len([path for path in folder.iterdir() if path.is_dir()]) == 1
