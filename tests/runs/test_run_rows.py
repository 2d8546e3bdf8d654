"""Rows that somebody else computed, on both sides, through the whole flow."""

import csv

import numpy as np
import pytest
from small_run import config, write_table

from bridgehead import runs
from bridgehead.align.twin import NumpyHeads
from bridgehead.errors import ConfigError, EncoderError, MismatchError, ShapeError
from bridgehead.runs.folder import RECORDS, RunFolder
from bridgehead.search import open_space

N, N_ITEMS = 60, 48
rng = np.random.default_rng(0)
CAUSES = rng.normal(size=(N, 6))
LEFT = (CAUSES @ rng.normal(size=(6, 20)) + 0.05 * rng.normal(size=(N, 20))).astype(np.float32)
RIGHT = (CAUSES @ rng.normal(size=(6, 12)) + 0.05 * rng.normal(size=(N, 12))).astype(np.float32)
SETTINGS = {
    "pairs": {"a": "spectrum", "b": "image", "kind_a": "rows", "kind_b": "rows", "names": ["label"]},
    "split": {"test": []},
    "train": {"epochs": 6, "embed_dim": 8, "hidden": [16], "batch_size": 16},
    "evaluate": {"n_resamples": 0, "shuffled": 0},
}


def table(folder, rows=None):
    rows = [[f"r{n}", f"spectrum {n}", f"image {n}", f"label {n}"] for n in range(N)] if rows is None else rows
    return write_table(folder / "pairs.csv", rows, ["id", "spectrum", "image", "label"])


def by_id(folder, name, rows, ids=None):
    np.savez(folder / name, ids=np.array([f"r{n}" for n in range(len(rows))] if ids is None else ids), rows=rows)
    return folder / name


def settings(left, right, **more):
    return {**SETTINGS, "encode": {"a": f"rows:{left}", "b": f"rows:{right}", "settings_a": {}}, **more}


def row_of(run, side, id_):
    with open_space(run.folder, "evaluated") as space:
        item = next(item for item in space.index.by_id(id_) if item.side == side)
        return space.index.row(side, item.number)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    left, right = by_id(folder, "a.npz", LEFT), by_id(folder, "b.npz", RIGHT)
    return runs.run(config(table(folder), **settings(left, right)), folder / "run")


def test_rows_of_both_sides_are_aligned_and_searched_by_id_and_name(run):
    assert run.record("evaluate")["all"]["a_to_b.mrr"] > 0.6
    with open_space(run.folder) as space:
        assert space.names == {"a": "spectrum", "b": "image"}
        found = space.answer("r7", of="image", k=3)
        assert found.reading.kind == "id" and len(found.hits) == 3
        assert space.answer("label 7", of="image", k=3).hits == found.hits or found.hits[0].item


def test_its_pages_hold_no_folder_of_the_machine(run):
    for name in ("report.html", "card.md"):
        assert str(run.folder.parent) not in run.path(name).read_text(encoding="utf-8")


def test_each_row_goes_to_its_own_item(run):
    heads = NumpyHeads.load(run.path("heads.safetensors"))
    for n in (0, 31, 59):
        assert row_of(run, "a", f"r{n}") == pytest.approx(heads.project_a(LEFT[[n]])[0], abs=2e-3)
        assert row_of(run, "b", f"image:r{n}") == pytest.approx(heads.project_b(RIGHT[[n]])[0], abs=2e-3)


def test_a_bare_npy_is_joined_by_the_number_of_the_record(run, tmp_path):
    np.save(tmp_path / "a.npy", LEFT)
    np.save(tmp_path / "b.npy", RIGHT)
    bare = settings(tmp_path / "a.npy", tmp_path / "b.npy")
    other = runs.run(config(table(tmp_path), **bare), tmp_path / "run")
    assert other.path("heads.safetensors").read_bytes() == run.path("heads.safetensors").read_bytes()


def test_a_record_with_one_side_missing_shifts_no_row_of_a_bare_npy(tmp_path):
    rows = [[f"r{n}", f"spectrum {n}" if n != 3 else "", f"image {n}" if n not in (3, 5) else "", ""] for n in range(N)]
    np.save(tmp_path / "a.npy", LEFT)
    np.save(tmp_path / "b.npy", RIGHT)
    made = runs.run(config(table(tmp_path, rows), **settings(tmp_path / "a.npy", tmp_path / "b.npy")), tmp_path / "run")
    heads = NumpyHeads.load(made.path("heads.safetensors"))
    for n in (2, 4, 5, 40):
        assert row_of(made, "a", f"r{n}") == pytest.approx(heads.project_a(LEFT[[n]])[0], abs=2e-3)
    assert row_of(made, "b", "image:r40") == pytest.approx(heads.project_b(RIGHT[[40]])[0], abs=2e-3)


def test_further_candidates_that_a_bare_npy_has_no_rows_for_are_refused_before_anything_is_trained(tmp_path):
    np.save(tmp_path / "left.npy", LEFT)
    files = tmp_path / "left.npy", by_id(tmp_path, "right.npz", RIGHT)
    evaluate = SETTINGS["evaluate"] | {"pool_a": "unpaired"}
    run = RunFolder.of(config(table(tmp_path), **settings(*files, evaluate=evaluate)), tmp_path / "run")
    with pytest.raises(ConfigError, match=r"pool_a names further candidates.*expected rows with ids"):
        runs.evaluate(run)
    assert not run.path("trained.json").exists()


def test_a_bare_npy_of_another_length_is_refused(tmp_path):
    np.save(tmp_path / "a.npy", LEFT[:-1])
    right = by_id(tmp_path, "b.npz", RIGHT)
    with pytest.raises(ShapeError, match="has 59 rows and the file of pairs 60 records"):
        runs.run(config(table(tmp_path), **settings(tmp_path / "a.npy", right)), tmp_path / "run")


def test_rows_with_nan_and_items_without_a_row_are_listed_and_left_out(tmp_path):
    broken = LEFT.copy()
    broken[4, 2], broken[9, 0] = np.nan, np.inf
    left = by_id(tmp_path, "a.npz", broken)
    right = by_id(tmp_path, "b.npz", RIGHT[:-1])
    made = runs.run(config(table(tmp_path), **settings(left, right)), tmp_path / "run")
    record = made.record("encode")
    assert [id_ for id_, _ in record["a"]["failures"]] == ["r4", "r9"]
    assert all("NaN or infinity" in reason for _, reason in record["a"]["failures"])
    assert [id_ for id_, _ in record["b"]["failures"]] == ["r59"] and "no row with id" in record["b"]["failures"][0][1]
    assert any("2 without a row (r4: the row holds NaN" in line for line in record["lines"])
    with open_space(made.folder) as space:
        assert (space.index.size("a"), space.index.size("b")) == (58, 59) and not space.index.by_id("r4")


def test_a_side_without_any_row_is_an_error(tmp_path):
    left = by_id(tmp_path, "a.npz", LEFT, [f"other {n}" for n in range(N)])
    with pytest.raises(
        EncoderError, match=r"none of the 60 items of spectrum has a row .the first: no row with id 'r0'"
    ):
        runs.run(config(table(tmp_path), **settings(left, by_id(tmp_path, "b.npz", RIGHT))), tmp_path / "run")


def test_changed_rows_train_again(tmp_path):
    left, right = by_id(tmp_path, "a.npz", LEFT), by_id(tmp_path, "b.npz", RIGHT)
    made = runs.run(config(table(tmp_path), **settings(left, right)), tmp_path / "run")
    before = {stage: made.record(stage)["key"] for stage in RECORDS}
    heads = made.path("heads.safetensors").read_bytes()
    by_id(tmp_path, "a.npz", LEFT[:, ::-1].copy())
    with pytest.raises(MismatchError, match="has changed"):
        open_space(made.folder)
    runs.run(made)
    again = {stage for stage in RECORDS if made.record(stage)["key"] != before[stage]}
    assert again == set(RECORDS) - {"check"} and made.path("heads.safetensors").read_bytes() != heads
    open_space(made.folder).close()


def test_changed_ids_join_other_rows_and_train_again(tmp_path):
    left, right = by_id(tmp_path, "a.npz", LEFT), by_id(tmp_path, "b.npz", RIGHT)
    path = table(tmp_path)
    made = runs.run(config(path, **settings(left, right)), tmp_path / "run")
    heads = made.path("heads.safetensors").read_bytes()
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    write_table(path, [[f"r{(n + 1) % N}", *row[1:]] for n, row in enumerate(rows)], header)
    runs.run(made)
    assert made.path("heads.safetensors").read_bytes() != heads
    stored = NumpyHeads.load(made.path("heads.safetensors"))
    assert row_of(made, "a", "r1") == pytest.approx(stored.project_a(LEFT[[1]])[0], abs=2e-3)


def test_rows_beside_fingerprints_on_one_side(tmp_path):
    chains = [[f"r{n}", "C" * (n + 1) + "O", f"image {n}", ""] for n in range(N)]
    left, right = by_id(tmp_path, "a.npz", LEFT), by_id(tmp_path, "b.npz", RIGHT)
    made = config(
        table(tmp_path, chains),
        **{**settings(left, right), "pairs": {**SETTINGS["pairs"], "kind_a": "molecule"}, "encode": {
            "a": f"rows:{left} + molecule:fingerprints", "b": f"rows:{right}",
            "settings_a": {"parts": [{}, {"processes": 1}]}}},
    )  # fmt: skip
    run = RunFolder.of(made, tmp_path / "run")
    assert runs.run(run).record("encode")["a"]["n_columns"] > 20


def test_new_items_find_their_rows_in_the_file_by_the_ids_of_the_file(tmp_path):
    left, right = by_id(tmp_path, "a.npz", LEFT), by_id(tmp_path, "b.npz", RIGHT)
    rows = [[f"r{n}", f"spectrum {n}", f"image {n}", f"label {n}"] for n in range(N)]
    run = RunFolder.of(config(table(tmp_path, rows[:N_ITEMS]), **settings(left, right)), tmp_path / "run")
    runs.index(run)
    more = [*rows[N_ITEMS:], ["r99", "spectrum 99", "image 99", "label 99"]]
    file = write_table(tmp_path / "more.csv", more, ["id", "spectrum", "image", "label"])
    for side, prefix in (("a", ""), ("b", "image:")):
        report = runs.sync(run, file, side=side)
        assert (report.added, [one.id for one in report.failed]) == (12, [f"{prefix}r99"])
        heads = NumpyHeads.load(run.path("heads.safetensors"))
        expected = heads.project_a(LEFT[[50]]) if side == "a" else heads.project_b(RIGHT[[50]])
        assert row_of(run, side, f"{prefix}r50") == pytest.approx(expected[0], abs=2e-3)
    before = row_of(run, "b", "image:r50")
    run = RunFolder.of(config(table(tmp_path, rows[: N_ITEMS - 1]), **settings(left, right)), run.folder)
    assert runs.index(run)["synced"]["evaluated"] == {"a": 12, "b": 12}
    assert row_of(run, "b", "image:r50").any() and not (row_of(run, "b", "image:r50") == before).all()
