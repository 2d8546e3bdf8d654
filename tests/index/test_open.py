"""Building, opening, and everything that must be refused."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bridgehead
from bridgehead.errors import (
    ArgumentError,
    DuplicateIdError,
    FormatVersionError,
    InputFileNotFoundError,
    MismatchError,
    NonFiniteRowsError,
    RunBusyError,
    RunStateError,
    ShapeError,
)
from bridgehead.files import folder_lock
from bridgehead.index import IndexSide, VectorPlan, build_index, open_index
from bridgehead.index.layout import sampled_hash


def sides(n=20, seed=0):
    rng = np.random.default_rng(seed)
    names = [[f"compound {i}", f"synonym {i}"] for i in range(n)]
    a = IndexSide("molecule", rng.standard_normal((n, 8)), ["C" * (i + 1) for i in range(n)],
                  [f"m{i}" for i in range(n)], kind="molecule", names=names)  # fmt: skip
    b = IndexSide("text", rng.standard_normal((3, 8)), ["one", "two", "three"], ["t0", "t1", "t2"])
    return {"a": a, "b": b}


@pytest.fixture
def folder(tmp_path):
    build_index(tmp_path / "index", sides(), "model-1")
    return tmp_path / "index"


def build_folder(folder: Path) -> Path:
    return folder / json.loads((folder / "index.json").read_text())["folder"]


def test_every_item_finds_itself_first_in_an_opened_index(folder):
    given = sides()
    with open_index(folder, "model-1") as index:
        for side in ("a", "b"):
            numbers = index.numbers(side).tolist()
            for row, ranked in enumerate(index.search(side, given[side].rows, 1)):
                assert ranked.numbers.tolist() == [numbers[row]]
                assert ranked.scores[0] == pytest.approx(1, abs=1e-5)
                assert index.item(side, numbers[row]).id == given[side].ids[row]
        assert index.size("molecule") == 20 and index.sides["a"].kind == "molecule"
        assert index.by_name("Synonym 7")[0].number == 7 and index.by_id("t1")[0].item == "two"
        assert [hit.number for hit in index.words("compound 5", "molecule")] == [5]
        assert np.linalg.norm(index.row("a", 4)) == pytest.approx(1, abs=1e-6)


def test_sides_go_by_shown_name_or_letter_and_others_are_refused_with_the_list(folder):
    with open_index(folder) as index:
        assert [index.side_named(name) for name in ("molecule", "text", "a", "b")] == ["a", "b", "a", "b"]
        with pytest.raises(ArgumentError, match=r"no side 'protein'.*'molecule' \(a\), 'text' \(b\)"):
            index.search("protein", np.ones((1, 8)))


def test_one_side_alone_and_empty_sides_are_fine(tmp_path):
    build_index(tmp_path, {"b": IndexSide("text", np.zeros((0, 4)), [], [])}, "m")
    with open_index(tmp_path, "m") as index:
        assert len(index.search("b", np.ones((1, 4)), 5)[0]) == 0
        assert index.words("x", "b") == [] and index.by_id("x") == []


def test_the_facts_name_method_and_recall(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((1500, 8)).astype(np.float32)
    content = {"a": IndexSide("molecule", rows, ["C"] * 1500, [str(i) for i in range(1500)])}
    said: list[str] = []
    facts = build_index(tmp_path, content, "m", {"a": rng.standard_normal((30, 8))}, VectorPlan(flat_below=1000),
                        said.append)  # fmt: skip
    assert min(facts.vectors["a"].recall.values()) >= 0.98
    assert facts.lines()[0].startswith("molecule: 1,500 rows x 8, ivf-sq8, ")
    assert facts.lines()[0] in said
    with open_index(tmp_path) as index:
        assert index.sides["a"].vectors == facts.vectors["a"]
        assert index.search("a", rows[7:8], 1)[0].numbers.tolist() == [7]


def test_another_model_is_refused(folder):
    with pytest.raises(MismatchError, match=r"another model \(fingerprint model-1, expected model-2\)"):
        open_index(folder, "model-2")


def test_no_index_is_a_file_not_found(tmp_path):
    with pytest.raises(InputFileNotFoundError, match="holds no index"):
        open_index(tmp_path)


def test_an_unknown_format_version_is_refused(folder):
    manifest = json.loads((folder / "index.json").read_text())
    (folder / "index.json").write_text(json.dumps({**manifest, "version": 99}))
    with pytest.raises(FormatVersionError, match="version 99"):
        open_index(folder)


@pytest.mark.parametrize("damage", ['{"format": "bridgehead index", "version": 2}', "[1]", "{"])
def test_a_damaged_manifest_is_refused(folder, damage):
    (folder / "index.json").write_text(damage)
    with pytest.raises(RunStateError):
        open_index(folder)


@pytest.mark.parametrize(
    "change",
    [
        {"sides": "a"},
        {"sides": {"a": 3}},
        {"sides": {"a": {}}},
        {"sides": None},
        {"files": []},
        {"files": {"a.faiss": 1}},
    ],
)
def test_a_manifest_that_was_edited_is_refused(folder, change):
    manifest = json.loads((folder / "index.json").read_text())
    (folder / "index.json").write_text(json.dumps({**manifest, **change}))
    with pytest.raises(RunStateError, match="build the index again"):
        open_index(folder)


@pytest.mark.parametrize("nprobe", ["x", -1, 0, 3, [], {}])
def test_lists_to_look_at_that_the_vectors_do_not_have_are_refused(folder, nprobe):
    manifest = json.loads((folder / "index.json").read_text())
    manifest["sides"]["b"]["vectors"]["nprobe"] = nprobe
    (folder / "index.json").write_text(json.dumps(manifest))
    with pytest.raises(RunStateError, match=r"side b .*nprobe"):
        open_index(folder)


def test_a_manifest_that_points_elsewhere_is_refused(folder):
    manifest = json.loads((folder / "index.json").read_text())
    (folder / "index.json").write_text(json.dumps({**manifest, "folder": "../../etc"}))
    with pytest.raises(RunStateError, match="not a whole manifest"):
        open_index(folder)


@pytest.mark.parametrize("name", ["a.faiss", "a.rows.npy", "items.sqlite"])
def test_a_cut_off_file_is_refused(folder, name):
    path = build_folder(folder) / name
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(RunStateError, match=f"{name} has .* bytes; expected|{name} is damaged"):
        open_index(folder)


@pytest.mark.parametrize("name", ["b.faiss", "b.rows.npy", "items.sqlite"])
def test_a_missing_file_is_refused(folder, name):
    (build_folder(folder) / name).unlink()
    with pytest.raises(RunStateError, match=f"{name} is missing"):
        open_index(folder)


def test_a_faiss_file_with_one_changed_byte_is_refused(folder):
    path = build_folder(folder) / "a.faiss"
    content = bytearray(path.read_bytes())
    content[30] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(RunStateError, match="damaged"):
        open_index(folder)


@pytest.mark.parametrize("name", ["a.rows.npy", "items.sqlite"])
def test_a_file_of_another_build_of_the_same_size_is_refused(folder, tmp_path, name):
    other = sides(seed=1)
    build_index(tmp_path / "other", {**other, "b": replace(other["b"], items=["eno", "two", "three"])}, "model-1")
    shutil.copy(build_folder(tmp_path / "other") / name, build_folder(folder) / name)
    with pytest.raises(RunStateError, match=r"build"):
        open_index(folder)


def test_a_thorough_opening_looks_at_every_page_of_the_item_file(folder):
    path = build_folder(folder) / "items.sqlite"
    content = bytearray(path.read_bytes())
    # Not the first pages, which every opening reads.
    for page in range(5 * 4096, len(content), 4096):
        content[page : page + 64] = b"\xff" * 64
    path.write_bytes(content)
    open_index(folder).close()
    with pytest.raises(RunStateError, match=r"items\.sqlite is damaged"):
        open_index(folder, thorough=True)


def test_rows_with_objects_are_refused_and_not_executed(folder):
    path = build_folder(folder) / "a.rows.npy"
    np.save(path, np.array([{"x": 1}] * 20, dtype=object), allow_pickle=True)
    manifest = json.loads((folder / "index.json").read_text())
    manifest["files"]["a.rows.npy"] = {"size": path.stat().st_size, "sampled": sampled_hash(path), "sha256": ""}
    (folder / "index.json").write_text(json.dumps(manifest))
    with pytest.raises(RunStateError, match="not an array of rows"):
        open_index(folder)


def test_opening_and_searching_write_nothing_and_need_no_permission(folder):
    for path in [folder, build_folder(folder), *build_folder(folder).iterdir(), folder / "index.json"]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = sorted((str(p), p.stat().st_mtime_ns) for p in folder.rglob("*"))
    with open_index(folder, "model-1") as index:
        index.search("a", np.ones((1, 8)), 5)
        index.words("compound", "a")
    assert sorted((str(p), p.stat().st_mtime_ns) for p in folder.rglob("*")) == before
    for path in (folder, build_folder(folder)):
        path.chmod(0o755)


def test_a_build_that_fails_leaves_the_old_index_and_no_rest(folder, monkeypatch):
    def failing(*arguments, **options):
        raise OSError("no space left")

    monkeypatch.setattr("bridgehead.index.build.write_store", failing)
    with pytest.raises(OSError, match="no space"):
        build_index(folder, sides(n=5), "model-2")
    assert len(list(folder.glob("build-*"))) == 1
    with open_index(folder, "model-1") as index:
        assert index.size("a") == 20


def test_a_killed_build_leaves_the_old_index_and_the_next_one_cleans_up(folder):
    program = textwrap.dedent(
        f"""
        import os, numpy as np
        import bridgehead.index.build as build
        build.write_json = lambda *arguments: os._exit(9)
        side = build.IndexSide("molecule", np.eye(3), ["C", "N", "O"], ["1", "2", "3"])
        build.build_index({str(folder)!r}, {{"a": side}}, "model-2")
        """
    )
    path = str(Path(bridgehead.__file__).parent.parent)
    ended = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": path}, check=False)
    assert ended.returncode == 9
    assert len(list(folder.glob("build-*"))) == 2
    open_index(folder, "model-1").close()
    build_index(folder, sides(n=4), "model-3")
    assert len(list(folder.glob("build-*"))) == 1
    with open_index(folder, "model-3") as index:
        assert index.size("a") == 4


def test_an_open_index_goes_on_after_it_was_rebuilt(folder):
    with open_index(folder) as old:
        build_index(folder, sides(n=4, seed=3), "model-2")
        assert len(old.search("a", np.ones((1, 8)), 100)[0]) == 20
        assert old.item("a", 19).id == "m19"


def test_two_builds_at_once_are_refused(folder):
    with folder_lock(folder), pytest.raises(RunBusyError, match="another process"):
        build_index(folder, sides(), "model-1")


def test_threads_share_an_index(folder):
    given = sides()["a"]
    wrong: list[int] = []
    with open_index(folder) as index:

        def work(start: int) -> None:
            for row in range(start, 20):
                found = index.search("a", given.rows[row : row + 1], 1)[0].numbers[0]
                if index.item("a", int(found)).id != f"m{row}":
                    wrong.append(row)

        threads = [threading.Thread(target=work, args=(start,)) for start in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"ids": ["m0"] * 20}, DuplicateIdError, "1 ids more than once"),
        ({"items": ["C"]}, ShapeError, "20 rows and 1 items"),
        ({"names": [[]]}, ShapeError, "20 rows and 1 names"),
        ({"rows": np.full((20, 8), np.nan)}, NonFiniteRowsError, "rows of side a"),
        ({"rows": np.ones((20, 5))}, ShapeError, "one space"),
    ],
)
def test_sides_that_do_not_fit_together_are_refused_before_anything_is_written(tmp_path, change, error, message):
    given = sides()
    broken = IndexSide(**{**given["a"].__dict__, **change})
    with pytest.raises(error, match=message):
        build_index(tmp_path / "index", {"a": broken, "b": given["b"]}, "m")
    assert not (tmp_path / "index").exists()


def test_sides_other_than_a_and_b_and_floors_outside_a_share_are_refused(tmp_path):
    with pytest.raises(ArgumentError, match="expected 'a', 'b' or both"):
        build_index(tmp_path, {"molecule": sides()["a"]}, "m")
    with pytest.raises(ArgumentError, match="recall_floor"):
        build_index(tmp_path, sides(), "m", plan=VectorPlan(recall_floor=98))


def test_attachments_travel_with_the_build_and_are_checked(tmp_path):
    def write(target: Path) -> None:
        target.mkdir(parents=True)
        (target / "note.txt").write_text("kept")

    build_index(tmp_path, sides(), "m", attachments={"notes": write})
    with open_index(tmp_path) as index:
        attached = index.attached("notes")
        assert attached is not None and (attached / "note.txt").read_text() == "kept"
        assert index.attached("other") is None
    (attached / "note.txt").write_text("longer than it was")
    with pytest.raises(RunStateError, match=r"note\.txt has 18 bytes; expected 4"):
        open_index(tmp_path)


def test_an_item_file_with_the_same_items_is_copied_and_works_for_the_new_build(folder, tmp_path):
    said: list[str] = []
    given = sides()
    turned = {side: replace(content, rows=-np.asarray(content.rows)) for side, content in given.items()}
    build_index(tmp_path / "second", turned, "model-2", progress=said.append, reuse=folder)
    assert any("copied 23 items" in line for line in said)
    build_index(folder, turned, "model-3", progress=said.append)
    assert sum("copied 23 items" in line for line in said) == 2
    for place, model in ((tmp_path / "second", "model-2"), (folder, "model-3")):
        with open_index(place, model, thorough=True) as index:
            assert index.by_name("synonym 3")[0].id == "m3"
            assert [hit.number for hit in index.words("compound 5", "a")] == [5]
            assert index.search("a", turned["a"].rows[2:3], 1)[0].numbers.tolist() == [2]


@pytest.mark.parametrize("field", ["ids", "items", "names", "payload", "keys", "kind", "word_columns"])
def test_an_item_file_that_differs_in_anything_is_not_copied(folder, tmp_path, field):
    n = 20
    changed: dict[str, Any] = {
        "ids": [f"x{i}" for i in range(n)],
        "items": ["N"] * n,
        "names": [["other"]] * n,
        "payload": [{"mass": "1"}] * n,
        "keys": ["K"] * n,
        "kind": "text",
        "word_columns": ("mass",),
    }
    given = sides()
    said: list[str] = []
    other = {"a": replace(given["a"], **{field: changed[field]}), "b": given["b"]}
    build_index(tmp_path / "second", other, "m", progress=said.append, reuse=folder)
    assert not any("copied" in line for line in said)


@pytest.mark.parametrize("damage", ["missing", "cut", "changed"])
def test_a_damaged_item_file_is_written_anew_and_not_copied(folder, tmp_path, damage):
    path = build_folder(folder) / "items.sqlite"
    content = bytearray(path.read_bytes())
    content[-1] ^= 0xFF
    path.write_bytes(content if damage == "changed" else content[:-9])
    if damage == "missing":
        path.unlink()
    said: list[str] = []
    build_index(tmp_path / "second", sides(), "m", progress=said.append, reuse=folder)
    assert not any("copied" in line for line in said)
    open_index(tmp_path / "second", thorough=True).close()


def test_rows_are_stored_as_float16_beside_a_small_manifest(folder):
    assert np.load(build_folder(folder) / "a.rows.npy").dtype == np.float16
    assert {path.name for path in build_folder(folder).iterdir()} == {
        "a.faiss", "a.numbers.npy", "a.rows.npy", "a.structures.npy", "b.faiss", "b.numbers.npy", "b.rows.npy",
        "items.sqlite",
    }  # fmt: skip


def test_damaged_structure_bits_are_told_where_the_sizes_fit(tmp_path, monkeypatch):
    side = IndexSide("molecule", np.eye(3, dtype=np.float32), ["CCO", "CCN", "CCC"], ["1", "2", "3"], "molecule")
    build_index(tmp_path, {"a": side}, "m")
    path = next(tmp_path.glob("build-*/a.structures.npy"))
    content = bytearray(path.read_bytes())
    content[20:24] = b"((((("[:4]
    path.write_bytes(content)
    # As when the file changes after it was looked at.
    monkeypatch.setattr("bridgehead.index.opened.check_files", lambda *_: None)
    with pytest.raises(RunStateError, match="is not an array of rows"):
        open_index(tmp_path)
