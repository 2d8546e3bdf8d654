"""A new index takes the place of one that served: what came by sync stays, and saved queries say what changed."""

import json
import shutil

import numpy as np
import pytest
from small_run import ASPIRIN, QUININE, config, records, write_table

from bridgehead import runs
from bridgehead.encode import load_encoder
from bridgehead.errors import ArgumentError, ConfigError, FormatVersionError, InputFileNotFoundError
from bridgehead.index import open_index
from bridgehead.molecules import identify
from bridgehead.runs.folder import RunFolder
from bridgehead.runs.indexing.saved_queries import First, SavedQuery, change_lines, changes, saved_queries
from bridgehead.runs.indexing.sides import text_entity
from bridgehead.search import open_space
from bridgehead.search.references import References

NEW = [
    ["N1", "CCCCCCCCCCCCCCCCO", "waxy", "Cetyl alcohol"],
    ["N2", "c1ccc2ccccc2c1", "", "Naphthalene"],
    ["aspirin-2", ASPIRIN, "", "Aspirin again"],
]
TRAINED_LONGER = {"train": {"epochs": 6}, "index": {"evaluated": False}}


@pytest.fixture(scope="module")
def synced(finished, tmp_path_factory):
    """A run with three molecules and a text that came by sync, and the index of the refit heads alone; not changed."""
    folder = tmp_path_factory.mktemp("synced")
    shutil.copytree(finished.folder.parent, folder / "copy", ignore=shutil.ignore_patterns("index-evaluated"))
    run = RunFolder(folder / "copy" / "run", finished.config)
    runs.sync(run, write_table(folder / "new.csv", NEW))
    (folder / "texts.jsonl").write_text('{"id": "T1", "text": "kills moths"}\n')
    runs.sync(run, folder / "texts.jsonl", side="text")
    return run


@pytest.fixture
def again(synced, table, tmp_path):
    """A copy of it with a config that trains longer, so that its heads are others when it is indexed."""
    shutil.copytree(synced.folder.parent, tmp_path / "copy")
    return RunFolder.of(config(table, **TRAINED_LONGER), tmp_path / "copy" / "run")


def came_by_sync(folder):
    with open_index(folder / "index") as opened, opened.state() as state:
        items = [item for side in "ab" for item in state.items(side, state.numbers(side).tolist())]
    return [(i.side, i.id, i.item, i.key, i.entity, i.names, dict(i.payload)) for i in items if i.origin == "sync"]


def test_what_came_by_sync_stays_under_new_heads_with_new_rows(synced, again):
    before = came_by_sync(synced.folder)
    record = runs.index(again)
    assert came_by_sync(again.folder) == before and len(before) == 4
    assert record["synced"] == {"refit": {"a": 3, "b": 1}} and record["n_items"]["refit"] == {"a": 131, "b": 40}
    assert any("3 molecule items that came by sync are carried over" in line for line in record["lines"])
    with open_space(again.folder) as space:
        assert space.search("CCCCCCCCCCCCCCCCO", of="molecule", k=1)[0].id == "N1"
        assert space.search("kills moths", of="text", k=1, read_as="text")[0].score == pytest.approx(1, abs=1e-3)
    with open_index(synced.folder / "index") as old, open_index(again.folder / "index") as new:
        assert old.model != new.model
    assert runs.sync(again, synced.folder.parent.parent / "new.csv").unchanged == 3


class Stopped(BaseException):
    """Stands for the end of the process."""


def test_a_build_that_is_killed_loses_nothing_that_came_by_sync(synced, again, monkeypatch):
    from bridgehead.index import build

    def stop(*arguments):
        raise Stopped

    before = came_by_sync(synced.folder)
    with monkeypatch.context() as patch:
        patch.setattr(build, "write_manifest", stop)
        with pytest.raises(Stopped):
            runs.index(again)
    assert came_by_sync(again.folder) == before
    assert runs.index(again)["synced"] == {"refit": {"a": 3, "b": 1}} and came_by_sync(again.folder) == before


def test_an_id_that_the_run_itself_has_now_is_the_runs(synced, again, tmp_path):
    path = write_table(tmp_path / "p.csv", [*records(), ["N1", "CCCCCCCCCCCCCCCCN", "an amine that is waxy", "Amine"]])
    run = RunFolder.of(config(path, **TRAINED_LONGER), again.folder)
    record = runs.index(run)
    assert [id_ for _, id_, *_ in came_by_sync(run.folder)] == ["N2", "aspirin-2", "text:T1"]
    assert any("1 molecule items that came by sync have ids that the run itself has now" in s for s in record["lines"])
    with open_space(run.folder) as space:
        assert space.item("N1").item == "CCCCCCCCCCCCCCCCN"


def scores(space):
    return [(hit.id, hit.score) for hit in space.search("Aspirin", of="molecule", k=5)]


def test_a_space_that_is_open_answers_from_its_own_model_until_it_is_opened_anew(again):
    with open_space(again.folder) as space:
        before = scores(space)
        assert space.reopened() is None
        runs.index(again)
        assert scores(space) == before
        with space.reopened() as after:
            assert after.reopened() is None and after.model_note == ""
            assert scores(after) != before
            assert after.index.size("a") == 131


def test_heads_that_are_trained_and_not_indexed_do_not_disturb_who_searches(again, tmp_path):
    with open_space(again.folder) as space:
        before = space.search("Aspirin", of="molecule", k=5)
    runs.refit(again)
    with open_space(again.folder) as space:
        assert space.search("Aspirin", of="molecule", k=5) == before and "another model" in space.model_note
        encoder = load_encoder(space.index.attached("model") / "encoders" / "a")
        assert encoder.fingerprint() == space.encoders["a"].fingerprint()
    report = runs.sync(again, write_table(tmp_path / "more.csv", [["N7", "OCCCCCCCCCCCCO", "", ""]]))
    assert len(report.notes) == 1 and any("another model" in line for line in report.lines())
    with open_space(again.folder) as space:
        row = space.encode(["OCCCCCCCCCCCCO"], "a")[0][0]
        assert space.index.row("a", space.item("N7").number) @ row == pytest.approx(1, abs=1e-3)


def test_a_damaged_index_is_left_behind_with_a_word(again):
    next(again.path("index").glob("build-*/items.sqlite")).unlink()
    lines = runs.index(again)["lines"]
    assert any("nothing that came by sync is kept" in line for line in lines)


def test_an_index_that_is_damaged_or_new_takes_what_came_by_sync_from_the_other_one_of_the_run(synced, table, tmp_path):
    shutil.copytree(synced.folder.parent, tmp_path / "copy")
    both = RunFolder.of(config(table, **{**TRAINED_LONGER, "index": {"evaluated": True}}), tmp_path / "copy" / "run")
    assert runs.index(both)["synced"] == {"refit": {"a": 3, "b": 1}, "evaluated": {"a": 3, "b": 1}}
    next(both.path("index").glob("build-*/items.sqlite")).unlink()
    record = runs.index(both)
    assert record["synced"]["refit"] == {"a": 3, "b": 1} and came_by_sync(both.folder) == came_by_sync(synced.folder)
    assert any("the index before cannot be read" in line for line in record["lines"])


def test_an_index_of_a_newer_release_is_not_written_over(again):
    manifest = json.loads(again.path("index/index.json").read_text())
    again.path("index/index.json").write_text(json.dumps(manifest | {"version": 99}))
    with pytest.raises(FormatVersionError, match="version 99"):
        runs.index(again)
    again.path("index/index.json").write_text(json.dumps(manifest | {"version": 1}))
    assert runs.index(again)["synced"] == {"refit": {"a": 0, "b": 0}}


def test_saved_queries_say_what_changed(again, table, tmp_path):
    file = tmp_path / "saved.csv"
    file.write_text("query,of\nan amine that takes a proton,molecule\nAspirin,\n,\nAspirin,\n")
    asked = [{"query": "inhibits cyclooxygenase", "of": "molecule"}]
    settings = {**TRAINED_LONGER, "index": {"evaluated": False, "saved_queries": str(file)}, "examples": asked}
    run = RunFolder.of(config(table, **settings), again.folder)
    before = {}
    with open_space(run.folder) as space:
        for query, of in (("inhibits cyclooxygenase", "molecule"), ("Aspirin", None)):
            before[query] = [hit.id for hit in space.search(query, of=of)]
    record = runs.index(run)
    found = record["saved_queries"]["refit"]
    assert [one["query"] for one in found] == ["inhibits cyclooxygenase", "an amine that takes a proton", "Aspirin"]
    with open_space(run.folder) as space:
        for one in (found[0], found[2]):
            after = [hit.id for hit in space.search(one["query"], of=one["of"])]
            assert one["before"] == before[one["query"]] and one["after"] == after
            assert set(one["kept"]) == set(after) & set(one["before"]) and set(one["new"]) == set(after) - set(
                one["kept"]
            )
            assert set(one["gone"]) == set(one["before"]) - set(after)
            assert one["overlap"] == pytest.approx(len(set(one["kept"])) / 10)
    assert any(line.startswith("saved queries with the refit heads: ") for line in record["lines"])
    file.write_text("query\nanother\n")
    assert runs.index(run) == record, "which queries are compared changes nothing in an index"


def test_the_first_index_has_nothing_to_be_compared_with(finished):
    record = finished.record("index")
    assert record["saved_queries"] == {} and record["synced"] == {
        "refit": {"a": 0, "b": 0},
        "evaluated": {"a": 0, "b": 0},
    }


def test_changes_are_sets_of_hits_and_their_overlap():
    queries = [SavedQuery("q"), SavedQuery("r"), SavedQuery("s", "text")]
    before = [First((("1", "one"), ("2", "two"))), First(), First(refused="no")]
    after = [First((("2", "two"), ("3", "three"), ("4", "four"))), First(), First((("1", "one"),))]
    found = changes(queries, before, after)
    assert [(one["kept"], one["new"], one["gone"], one["overlap"]) for one in found] == [
        (["2"], ["3", "4"], ["1"], pytest.approx(1 / 3)), ([], [], [], 1.0), ([], ["1"], [], 0.0)
    ]  # fmt: skip
    lines = change_lines("refit", found)
    assert lines[0] == "saved queries with the refit heads: 44% of the first 10 hits kept, over 3"
    assert lines[1] == '  "q": 1 of 3 kept; new: three, four; gone: one' and len(lines) == 3
    assert (
        changes(queries, None, after)[0]["overlap"] is None
        and change_lines("refit", changes(queries, None, after)) == []
    )


def test_a_file_of_saved_queries_is_looked_at_before_anything_is_trained(table, tmp_path):
    file = tmp_path / "saved.csv"
    file.write_text("query,of\nAspirin,picture\n")
    settings = config(table, index={"saved_queries": str(file)})
    with pytest.raises(ConfigError, match="'picture'; expected one of the sides molecule, text"):
        saved_queries(settings)
    missing = config(table, index={"saved_queries": str(tmp_path / "none.csv")})
    with pytest.raises(InputFileNotFoundError, match=r"none\.csv"):
        runs.check(RunFolder.of(missing, tmp_path / "run"))


def test_items_of_one_entity_share_it_and_training_pairs_point_to_what_was_trained(finished, table):
    with open_index(finished.path("index")) as opened, opened.state() as state:

        def entity(id_):
            return state.by_id(id_)[0].entity

        assert entity("aspirin") == entity("aspirin-na") == identify(ASPIRIN).skeleton
        assert entity("quinine") == entity("quinidine") == identify(QUININE).skeleton != entity("aspirin")
        text = state.by_id("text:aspirin")[0]
        assert text.entity == text_entity(text.item) == text_entity(text.item.upper().replace(" ", "  "))
        pairs = References.load(state.attached("references")).training_pairs
        found = {
            (a.item, b.item)
            for a, b in zip(state.items("a", pairs[:, 0].tolist()), state.items("b", pairs[:, 1].tolist()), strict=True)
        }
    known = {(smiles, text) for _, smiles, text, _ in records() if text and smiles and smiles != "C1CC(C"}
    assert found == known
    with open_index(finished.path("index-evaluated")) as opened, opened.state() as state:
        pairs = References.load(state.attached("references")).training_pairs
        trained = {item.item for item in state.items("a", np.unique(pairs[:, 0]).tolist())}
    assert ASPIRIN not in trained and len(trained) < len({smiles for smiles, _ in known})


def test_a_snapshot_searches_by_itself_and_stays_as_it_was(synced, tmp_path):
    target = runs.snapshot(synced, tmp_path / "snapshots" / "monday")
    with open_space(target) as space:
        before = space.search("Aspirin", of="molecule", k=5)
        assert space.item("N1").item == NEW[0][1] and space.index.size("a") == 131
    assert (target / "report.html").is_file() and (target / "config.toml").is_file()
    with pytest.raises(ArgumentError, match="is there already"):
        runs.snapshot(synced, target)
    shutil.copytree(synced.folder.parent, tmp_path / "other")
    run = RunFolder(tmp_path / "other" / "run", synced.config)
    target = runs.snapshot(run, tmp_path / "snapshots" / "tuesday")
    runs.sync(run, write_table(tmp_path / "new.csv", [["N7", "OCCCCCCCCCCCCO", "", ""]]), delete_missing=True)
    shutil.rmtree(run.folder)
    with open_space(target) as space:
        assert (
            space.search("Aspirin", of="molecule", k=5) == before and space.item("N1") and not space.index.by_id("N7")
        )


def test_compaction_keeps_numbers_and_takes_up_what_was_added(copied, tmp_path):
    record = copied.record("index")
    runs.sync(copied, write_table(tmp_path / "new.csv", NEW))
    with open_space(copied.folder) as space:
        numbers = {id_: space.item(id_).number for id_ in ("N1", "aspirin")}
        done = runs.compact(copied)
        assert done["refit"][0].startswith("molecule: 131 rows x 16, flat (exact)") and set(done) > {"evaluated"}
        assert {id_: space.item(id_).number for id_ in numbers} == numbers and space.reopened() is None
    assert runs.index(copied) == record, "an index that was compacted is still that of its heads"
