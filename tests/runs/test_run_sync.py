"""Sync: what a file adds to a run, changes in it and takes from it, and all that it must not touch."""

import json
import shutil
import threading

import numpy as np
import polars as pl
import pytest
from small_run import ASPIRIN, HEADER, QUININE, config, records, stamps, write_table

from bridgehead import runs
from bridgehead.encode.fingerprints import FingerprintEncoder
from bridgehead.errors import ArgumentError, ColumnError, InputFileNotFoundError, RunBusyError
from bridgehead.index import open_index
from bridgehead.runs.folder import RunFolder
from bridgehead.search import open_space

KEKULE = "O=C(O)C1=CC=CC=C1OC(C)=O"
NEW = [
    ["N1", "CCCCCCCCCCCCCCCCO", "waxy", "Cetyl alcohol"],
    ["N2", "c1ccc2ccccc2c1", "", "Naphthalene"],
    ["N3", "NCCc1ccccc1Cl", "a heavy amine", "Chlorinated"],
]


@pytest.fixture
def single(finished, tmp_path):
    """A copy of the finished run with the index of the refit heads alone."""
    shutil.copytree(finished.folder.parent, tmp_path / "single", ignore=shutil.ignore_patterns("index-evaluated"))
    return RunFolder(tmp_path / "single" / "run", finished.config)


@pytest.fixture
def synced(single, tmp_path):
    """The same after a sync of `NEW`."""
    runs.sync(single, write_table(tmp_path / "new.csv", NEW))
    return single


@pytest.fixture
def nothing_is_encoded(monkeypatch):
    def refuse(self, items, *arguments):
        raise AssertionError(f"{len(items)} items were encoded")

    return lambda: monkeypatch.setattr(FingerprintEncoder, "raw_rows", refuse)


def counts(report):
    return {name: getattr(report, name) for name in ("added", "changed", "unchanged", "removed")}


def written(folder):
    """Return time and size of every file but those by which SQLite's readers know of each other."""
    return {name: stamp for name, stamp in stamps(folder).items() if not name.endswith("-shm")}


def content(folder, name="index"):
    """Return side -> {id: (item, names, payload, key, entity, origin, row)} of an index, whatever its numbers."""
    with open_index(folder / name) as opened, opened.state() as state:
        found = {}
        for side in state.sides:
            items = state.items(side, state.numbers(side).tolist())
            rows = state.rows(side, [item.number for item in items])
            found[side] = {
                item.id: (item.item, item.names, json.dumps(item.payload, sort_keys=True), item.key, item.entity,
                          item.origin, row.tobytes())
                for item, row in zip(items, rows, strict=True)
            }  # fmt: skip
        return found


def test_new_items_are_found_by_id_name_words_and_structure(synced):
    with open_space(synced.folder) as space:
        assert space.search("N1", of="molecule", k=1)[0].item == NEW[0][1]
        assert space.search("Cetyl alcohol", of="molecule", k=1)[0].id == "N1"
        assert space.search("CCCCCCCCCCCCCCCCO", of="molecule", k=1)[0].id == "N1"
        assert [hit.number for hit in space.index.words("waxy", "a")] == [space.item("N1").number]
        hit = space.search("naphthalene", of="molecule", k=1)[0]
        assert hit.id == "N2" and hit.payload == {"text": [], "name": "Naphthalene", "names": ["Naphthalene"]}


def test_the_row_of_a_synced_item_is_that_of_its_query(synced):
    with open_space(synced.folder) as space:
        for id_, smiles, *_ in NEW:
            found = [hit for hit in space.search(smiles, of="molecule", k=3, read_as="smiles") if hit.id == id_]
            assert found and found[0].score == pytest.approx(1, abs=1e-3)


def test_a_second_sync_does_nothing_and_encodes_nothing(synced, tmp_path, nothing_is_encoded):
    before = content(synced.folder)
    nothing_is_encoded()
    report = runs.sync(synced, tmp_path / "new.csv")
    assert counts(report) == {"added": 0, "changed": 0, "unchanged": 3, "removed": 0}
    assert not report.indexes[0].wrote and report.failed == ()
    assert content(synced.folder) == before


def test_the_file_of_the_pairs_itself_changes_nothing(copied, table, nothing_is_encoded):
    nothing_is_encoded()
    report = runs.sync(copied, table)
    assert counts(report) == {"added": 0, "changed": 0, "unchanged": 128, "removed": 0} and report.own == 128
    assert [one.id for one in report.failed] == ["no-molecule", "bad"]
    report = runs.sync(copied, table, side="text")
    assert report.unchanged == report.own == 129 and report.added == 0


def test_records_that_the_run_merged_are_known_again(table, tmp_path):
    twin = ["kekule", "OC1=CC=CC=C1", "burns the skin", "Carbolic acid"]
    path = write_table(tmp_path / "p.csv", [*records()[:30], twin])
    run = RunFolder.of(config(path, index={"evaluated": False}, split={"test": []}), tmp_path / "run")
    runs.index(run)
    report = runs.sync(run, path)
    assert counts(report) == {"added": 0, "changed": 0, "unchanged": 31, "removed": 0}
    moved = write_table(tmp_path / "p.csv", [["kekule", "OCCCCCCCCCCO", "", ""]])
    assert counts(runs.sync(run, moved)) == {"added": 1, "changed": 0, "unchanged": 0, "removed": 0}


@pytest.mark.parametrize("place", [1, 2, 3])
def test_a_change_of_item_text_or_name_is_one_change(synced, tmp_path, place):
    rows = [list(row) for row in NEW]
    rows[1][place] = {1: "c1ccc2cc3ccccc3cc2c1", 2: "mothballs", 3: "Tar camphor"}[place]
    report = runs.sync(synced, write_table(tmp_path / "new.csv", rows))
    assert counts(report) == {"added": 0, "changed": 1, "unchanged": 2, "removed": 0}
    with open_space(synced.folder) as space:
        item = space.item("N2")
        assert [item.id, item.item, (item.payload["text"] or [""])[0], item.names[0]] == rows[1]
        assert space.index.size("a") == 131
        assert space.search("c1ccc2ccccc2c1" if place != 1 else rows[1][1], of="molecule", k=1)[0].id == "N2"


def test_bad_records_are_listed_with_their_reasons_and_shift_no_other(single, tmp_path):
    rows = [["B1", "C1CC(", "", ""], NEW[0], ["B2", "", "x", ""], ["", "CCN", "", ""], ["N1", "CCO", "", ""], NEW[1]]
    report = runs.sync(single, write_table(tmp_path / "new.csv", rows))
    assert counts(report) == {"added": 2, "changed": 0, "unchanged": 0, "removed": 0}
    assert [(one.record, one.id) for one in report.failed] == [(0, "B1"), (2, "B2"), (3, ""), (4, "N1")]
    reasons = [one.reason for one in report.failed]
    for reason, part in zip(
        reasons, ("not a valid SMILES", "smiles is empty", "no id", "record 1 already"), strict=True
    ):
        assert part in reason
    assert "failed 4, of 6 records" in report.lines()[0] and any("record 3: it has no id" in s for s in report.lines())
    with open_space(single.folder) as space:
        assert [space.item(id_).item for id_ in ("N1", "N2")] == [NEW[0][1], NEW[1][1]]
        assert space.search("Naphthalene", of="molecule", k=1)[0].score == pytest.approx(1, abs=1e-6)


def test_a_record_that_is_bad_now_leaves_what_was_there(synced, tmp_path):
    rows = [NEW[0], ["N2", "C1CC(", "", ""], NEW[2]]
    report = runs.sync(synced, write_table(tmp_path / "new.csv", rows), delete_missing=True)
    assert counts(report) == {"added": 0, "changed": 0, "unchanged": 2, "removed": 0} and len(report.failed) == 1
    with open_space(synced.folder) as space:
        assert space.item("N2").item == NEW[1][1]


def test_an_item_of_the_run_stays_what_its_pairs_say(single, tmp_path):
    before = content(single.folder)
    rows = [["aspirin", KEKULE, "another text", "Another name"], ["quinine", "CCO", "", ""]]
    report = runs.sync(single, write_table(tmp_path / "new.csv", rows))
    assert counts(report) == {"added": 0, "changed": 0, "unchanged": 1, "removed": 0} and report.own == 1
    assert [one.id for one in report.failed] == ["quinine"] and "belongs to the run" in report.failed[0].reason
    assert content(single.folder) == before


def test_the_same_structure_under_another_id_is_added_and_said(single, tmp_path):
    rows = [["Q", QUININE, "", ""], ["M1", "CCCCCCCCCCCC", "", ""], ["M2", "C(CCCCCCCCCCC)", "", ""]]
    report = runs.sync(single, write_table(tmp_path / "new.csv", rows))
    assert report.added == 3 and dict(report.same_as) == {"Q": "quinine", "M2": "M1"}
    assert "  Q = quinine" in report.lines()
    with open_space(single.folder) as space:
        both = [space.item(id_) for id_ in ("Q", "quinine")]
        assert both[0].entity == both[1].entity and both[0].key == both[1].key


def test_what_is_missing_goes_only_when_asked_and_never_what_is_the_runs_own(synced, tmp_path):
    file = write_table(tmp_path / "new.csv", NEW[:1])
    assert counts(runs.sync(synced, file)) == {"added": 0, "changed": 0, "unchanged": 1, "removed": 0}
    assert counts(runs.sync(synced, file, delete_missing=True)) == {
        "added": 0,
        "changed": 0,
        "unchanged": 1,
        "removed": 2,
    }
    with open_space(synced.folder) as space:
        assert space.index.size("a") == 129 and space.index.by_id("N2") == [] and space.index.by_id("aspirin")
    again = runs.sync(synced, write_table(tmp_path / "new.csv", NEW), delete_missing=True)
    assert counts(again) == {"added": 2, "changed": 0, "unchanged": 1, "removed": 0}


def test_a_dry_run_says_what_would_be_and_writes_nothing(synced, tmp_path):
    rows = [["N1", "CCCCCCCCCCCCCCO", "", ""], NEW[1], ["N9", "OCCCCCCCCCCCCCCO", "", ""], ["B", "C1CC(", "", ""]]
    file = write_table(tmp_path / "new.csv", rows)
    before = written(tmp_path)
    planned = runs.sync(synced, file, delete_missing=True, dry_run=True)
    assert written(tmp_path) == before and planned.lines()[0].startswith("molecule: would be added 1, changed 1")
    done = runs.sync(synced, file, delete_missing=True)
    assert counts(planned) == counts(done) == {"added": 1, "changed": 1, "unchanged": 1, "removed": 1}
    assert (planned.failed, planned.far, planned.same_as) == (done.failed, done.far, done.same_as)


def test_a_dry_run_needs_no_write_permission(synced, tmp_path):
    file = write_table(tmp_path / "new.csv", [["N9", "OCCCCCCCCCCCCCCO", "", ""]])
    for path in [synced.folder, *synced.folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert runs.sync(synced, file, dry_run=True).added == 1
    finally:
        for path in [synced.folder, *synced.folder.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)


def _as_tsv(path):
    return write_tsv(path, NEW)


def write_tsv(path, rows):
    path.write_text("\n".join("\t".join(row) for row in [HEADER, *rows]) + "\n")
    return path


def _as_jsonl(path):
    lines = [json.dumps({"id": 7 + n, "smiles": row[1], "text": row[2] or None}) for n, row in enumerate(NEW)]
    path.write_text("\n".join(lines) + "\n")
    return path


def _as_parquet(path):
    pl.DataFrame({"id": [7, 8, 9], "smiles": [row[1] for row in NEW], "ic50": [1.5, 20.0, None]}).write_parquet(path)
    return path


@pytest.mark.parametrize(("name", "write"), [("n.tsv", _as_tsv), ("n.jsonl", _as_jsonl), ("n.parquet", _as_parquet)])
def test_any_format_that_pairs_are_read_from_is_read_and_ids_are_text(single, tmp_path, name, write):
    file = write(tmp_path / name)
    assert counts(runs.sync(single, file)) == {"added": 3, "changed": 0, "unchanged": 0, "removed": 0}
    assert counts(runs.sync(single, file)) == {"added": 0, "changed": 0, "unchanged": 3, "removed": 0}
    with open_space(single.folder) as space:
        first = space.item("N1" if name.endswith("tsv") else "7")
        assert first.item == NEW[0][1]
        if name.endswith("parquet"):
            assert first.payload == {"ic50": "1.5"} and space.item("9").payload == {}
            assert space.index.matching("a", "ic50 < 3").tolist() == [first.number]


def test_texts_are_synced_too_and_list_cells_hold_several(single, tmp_path):
    file = tmp_path / "texts.jsonl"
    file.write_text('{"id": "T1", "text": ["a very bitter taste", "kills moths"]}\n{"id": "T2", "text": "smells"}\n')
    report = runs.sync(single, file, side="text")
    assert report.side == "text" and report.added == 3
    with open_space(single.folder) as space:
        assert space.item("text:T1#2").item == "kills moths" and space.item("text:T2").item == "smells"
        assert space.index.size("b") == 42 and space.index.size("a") == 128
    assert runs.sync(single, file, side="b").unchanged == 3
    with pytest.raises(ArgumentError, match="expected one of molecule, text, a, b"):
        runs.sync(single, file, side="picture")


def test_the_column_of_ids_can_be_named_and_has_to_be_there(single, tmp_path):
    file = write_table(tmp_path / "new.csv", NEW, ["code", *HEADER[1:]])
    with pytest.raises(ColumnError, match="no column 'id' of ids"):
        runs.sync(single, file)
    assert runs.sync(single, file, id="code").added == 3
    with pytest.raises(ColumnError, match="smiles"):
        runs.sync(single, write_table(tmp_path / "new.csv", NEW, ["id", "structure", "text", "name"]))


def test_a_run_without_an_index_is_told_to_make_one(single, tmp_path):
    shutil.rmtree(single.path("index"))
    with pytest.raises(InputFileNotFoundError, match="bridgehead index"):
        runs.sync(single, write_table(tmp_path / "new.csv", NEW))


def test_far_items_are_those_beyond_what_training_items_are_to_each_other(single, tmp_path):
    smiles = ["[Na+].[Cl-]", "C1CCCCC1C1CCCCC1", "FC(F)(F)C(F)(F)C(F)(F)C(F)(F)F", "O=P(O)(O)OP(=O)(O)O", "Nc1ccccc1C"]
    rows = [[f"F{n}", one, "", ""] for n, one in enumerate(smiles)]
    report = runs.sync(single, write_table(tmp_path / "new.csv", rows))
    with open_space(single.folder) as space:
        from bridgehead.search.references import References

        pairs = References.load(space.index.attached("references")).training_pairs
        trained = space.index.rows("a", np.unique(pairs[:, 0]).tolist())
        new = space.index.rows("a", [space.item(row[0]).number for row in rows])
    among = trained @ trained.T
    np.fill_diagonal(among, -1)
    threshold = np.percentile(among.max(axis=1), 1)
    nearest = (new @ trained.T).max(axis=1)
    assert report.far_below == pytest.approx(threshold, abs=2e-3)
    clear = np.abs(nearest - threshold) > 2e-3
    expected = {row[0] for row, near, sure in zip(rows, nearest, clear, strict=True) if near < threshold and sure}
    assert expected and expected <= {one.id for one in report.far}
    assert {one.id for one in report.far} <= expected | {r[0] for r, sure in zip(rows, clear, strict=True) if not sure}
    assert any(f"{len(report.far)} new items far from all training items" in line for line in report.lines())


def test_an_item_of_which_the_encoder_knows_nothing_has_no_place_in_the_space(single, tmp_path):
    file = tmp_path / "texts.jsonl"
    file.write_text('{"id": "T1", "text": "头痛药很有效"}\n')
    report = runs.sync(single, file, side="text")
    assert report.unknown == ("text:T1",) and report.added == 1 and report.far == ()
    with open_space(single.folder) as space:
        assert not space.index.row("b", space.item("text:T1").number).any()
        assert space.search("头痛药", of="text", k=1)[0].id == "text:T1"


def test_growth_is_said_and_at_ten_percent_recall_is_measured_again(single, tmp_path):
    rows = [[f"G{n}", "C" * (n + 12) + "O", "", ""] for n in range(14)]
    report = runs.sync(single, write_table(tmp_path / "new.csv", rows[:6]))
    assert report.indexes[0].growth == pytest.approx(6 / 128) and not report.indexes[0].compacted
    assert "grown by 4.7% since recall was measured" in report.lines()[-1]
    report = runs.sync(single, write_table(tmp_path / "new.csv", rows))
    assert report.indexes[0].growth == pytest.approx(14 / 128)
    assert report.indexes[0].compacted[0].startswith("molecule: 142 rows x 16, flat (exact)")
    assert any("recall measured again" in line for line in report.lines())
    with open_space(single.folder) as space:
        assert space.index.size("a") == 142 and space.index.sides["a"].vectors.n_rows == 142
        assert space.search("G13", of="molecule", k=1)[0].id == "G13"
    assert runs.sync(single, tmp_path / "new.csv").indexes[0].growth == 0


def test_a_reader_that_is_open_sees_what_a_sync_wrote(single, tmp_path):
    with open_space(single.folder) as space:
        before = space.item("aspirin").number
        runs.sync(single, write_table(tmp_path / "new.csv", NEW))
        assert space.search("Cetyl alcohol", of="molecule", k=1)[0].id == "N1"
        rows = [[f"G{n}", "C" * (n + 12) + "N", "", ""] for n in range(14)]
        assert runs.sync(single, write_table(tmp_path / "new.csv", rows)).indexes[0].compacted
        assert space.search("G13", of="molecule", k=1)[0].id == "G13" and space.reopened() is None
        assert space.item("aspirin").number == before


def test_a_build_that_fails_keeps_what_was_written_and_the_other_index_has_its_turn(copied, tmp_path, monkeypatch):
    from bridgehead.index import IndexWriter

    def refuse(self, *arguments, **options):
        raise ArgumentError("recall@10 0.91 is under the floor")

    file = write_table(tmp_path / "new.csv", [[f"G{n}", "C" * (n + 12) + "O", "", ""] for n in range(14)])
    with monkeypatch.context() as patch:
        patch.setattr(IndexWriter, "compact", refuse)
        report = runs.sync(copied, file)
    assert [one.added for one in report.indexes] == [14, 14] and not report.indexes[0].compacted
    assert report.lines()[-1].endswith("recall was not measured again: recall@10 0.91 is under the floor")
    with open_space(copied.folder) as space:
        assert space.search("G13", of="molecule", k=1)[0].id == "G13"
    assert all(one.compacted for one in runs.sync(copied, file).indexes)


def test_searches_that_go_on_during_a_sync_are_answered_from_one_state_each(single, tmp_path):
    file = write_table(tmp_path / "new.csv", [[f"G{n}", "C" * (n + 12) + "O", "", f"G name {n}"] for n in range(40)])
    found, faults, ended = [], [], threading.Event()

    def search(space):
        try:
            while not ended.is_set():
                hits = space.search("Aspirin", of="molecule", k=200)
                found.append((len(hits), len({hit.id for hit in hits}), hits[0].id))
        except BaseException as error:
            faults.append(error)

    with open_space(single.folder) as space:
        reader = threading.Thread(target=search, args=(space,))
        reader.start()
        try:
            assert runs.sync(single, file).indexes[0].compacted
        finally:
            ended.set()
            reader.join()
        assert not faults and len(space.search("Aspirin", of="molecule", k=200)) == 168
    assert {size for size, *_ in found} <= {128, 168} and all(n == ids and id_ == "aspirin" for n, ids, id_ in found)


def test_the_command_says_what_the_library_says(single, tmp_path):
    from typer.testing import CliRunner

    from bridgehead.cli.commands import app

    file = write_table(tmp_path / "new.csv", [*NEW, ["B1", "C1CC(", "", ""]])
    planned = runs.sync(single, file, dry_run=True)
    dry = CliRunner().invoke(app, ["sync", str(single.folder), str(file), "--dry-run", "--json"])
    assert dry.exit_code == 0 and json.loads(dry.stdout) == json.loads(json.dumps(planned.to_dict()))
    done = CliRunner().invoke(app, ["sync", str(single.folder), str(file)])
    assert done.exit_code == 0 and done.stdout.startswith(
        "molecule: added 3, changed 0, unchanged 0, removed 0, failed 1"
    )
    wrong = CliRunner().invoke(app, ["sync", str(single.folder), str(tmp_path / "none.csv")])
    assert wrong.exit_code == 1 and "none.csv does not exist" in wrong.stderr


def test_both_indexes_are_brought_up_and_one_that_fell_behind_is_finished(copied, tmp_path):
    file = write_table(tmp_path / "new.csv", NEW)
    report = runs.sync(copied, file)
    assert [one.heads for one in report.indexes] == ["refit", "evaluated"]
    assert [one.added for one in report.indexes] == [3, 3]
    whole = content(copied.folder, "index-evaluated")
    from bridgehead.index import IndexWriter

    with IndexWriter(copied.path("index-evaluated")) as writer:
        writer.delete("a", ["N2", "N3"])
    report = runs.sync(copied, file)
    assert report.added == 0 and [one.added for one in report.indexes] == [0, 2]
    assert any("index with the evaluated heads: added 2" in line for line in report.lines())
    assert content(copied.folder, "index-evaluated") == whole


def test_a_run_that_is_being_written_is_busy(single, tmp_path):
    file = write_table(tmp_path / "new.csv", NEW)
    with single.writing(), pytest.raises(RunBusyError):
        runs.sync(single, file)
    with single.writing():
        assert runs.sync(single, file, dry_run=True).added == 3


def test_the_report_is_plain_values(single, tmp_path):
    rows = [*NEW, ["B1", "C1CC(", "", ""], ["Q", ASPIRIN, "", ""]]
    report = runs.sync(single, write_table(tmp_path / "new.csv", rows))
    found = json.loads(json.dumps(report.to_dict()))
    assert found["added"] == 4 and found["failed"][0]["id"] == "B1" and found["same_as"] == {"Q": "aspirin"}
    assert found["indexes"][0]["heads"] == "refit" and found["far_below"] < 1
