"""Cross-validation of a run: nothing held out is seen, nothing is trained twice, and figures follow from the folds."""

import csv
import json
import math

import numpy as np
import polars as pl
import pytest
from small_run import config, records, write_table
from typer.testing import CliRunner

from bridgehead import runs
from bridgehead.cli.commands import app
from bridgehead.errors import ArgumentError, ConfigError, FormatVersionError
from bridgehead.evaluate.detectable import detectable_difference
from bridgehead.evaluate.paired import paired_difference
from bridgehead.runs.folds import cross_validation, plan
from bridgehead.runs.folds.cross_validation import cross_validate
from bridgehead.runs.folds.store import load_training, read_folds
from bridgehead.runs.folds.summary import all_queries
from bridgehead.runs.work import Work

ASKED = {"folds": 3, "seeds": 2, "n_resamples": 50, "shuffled": 0, "closed_form": "none"}


class Stopped(BaseException):
    """Stands for the end of the process."""


def silent(*_):
    return


def encoded_run(table, folder, evaluate=None, **sections):
    """Return a run whose stage encode is done."""
    changes = {"train": {"epochs": 2, "embed_dim": 8}, "split": {"test": []}, **sections}
    run = runs.RunFolder.of(config(table, evaluate={**ASKED, **(evaluate or {})}, **changes), folder)
    runs.encode(run)
    return run


def again(run, **evaluate):
    """Return the same run with other settings of its evaluation."""
    changed = run.config.evaluate.model_copy(update=evaluate)
    return runs.RunFolder(run.folder, run.config.model_copy(update={"evaluate": changed}))


@pytest.fixture(scope="module")
def spied(table, tmp_path_factory):
    """A cross-validated run with its record and, of each training, the items that it trained, validated and asked."""
    run = encoded_run(table, tmp_path_factory.mktemp("folds") / "run")
    work, seen = Work(run, silent), []
    fit, project = cross_validation.fit_model, cross_validation.projecting

    def spy_fit(settings, start, part, folder, **options):
        encoders = {side: encoder.fingerprint() for side, encoder in start.encoders.items()}
        seen.append({"train": part, "valid": options["valid"], "seed": options["train"].seed, "encoders": encoders})
        return fit(settings, start, part, folder, **options)

    def spy_project(settings, folder, table, test):
        seen[-1]["test"] = test
        return project(settings, folder, table, test)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cross_validation, "fit_model", spy_fit)
        patch.setattr(cross_validation, "projecting", spy_project)
        record = cross_validate(work)
    return run, work, record, seen


@pytest.fixture
def counted(monkeypatch):
    """Count the trainings from here on; `stop_at` ends the process before that one."""
    state = {"n": 0, "stop_at": None}
    fit = cross_validation.fit_model

    def fit_counted(*arguments, **options):
        if state["n"] == state["stop_at"]:
            raise Stopped
        state["n"] += 1
        return fit(*arguments, **options)

    monkeypatch.setattr(cross_validation, "fit_model", fit_counted)
    return state


def entities(work, part):
    return {work.prepared.identities["a"][item].skeleton for item in part.items_a.tolist()}


def test_no_training_saw_an_entity_of_its_fold_and_none_validates_what_it_trains(spied):
    _, work, _, seen = spied
    assert len(seen) == 6
    for one in seen:
        train, valid, test = (entities(work, one[name]) for name in ("train", "valid", "test"))
        assert train and valid and test
        assert not train & test and not valid & test and not train & valid


def test_every_link_is_asked_about_once_and_each_fold_twice(spied):
    _, work, _, seen = spied
    asked = [
        (int(one["test"].items_a[a]), int(one["test"].items_b[b]))
        for one in seen[::2]
        for a, b in one["test"].links.pairs
    ]
    assert sorted(asked) == [tuple(pair) for pair in work.prepared.table.links.pairs.tolist()]
    assert [one["seed"] for one in seen] == [0, 1] * 3


def test_encoders_are_fitted_anew_without_the_fold(spied):
    run, _, _, seen = spied
    fitted = {one["encoders"]["b"] for one in seen}
    assert len(fitted) == 3 and run.record("encode")["b"]["fingerprint"] not in fitted


def test_the_record_is_the_mean_over_queries_and_tells_seeds_from_folds(spied):
    run, _, record, _ = spied
    trained = [load_training(run, cross_validation.Training(**one)) for one in record["trainings"]]
    queries = all_queries(trained).filter(pl.col("direction") == "a_to_b")
    entry = record["measures"]["a_to_b.mrr"]
    assert entry["value"] == pytest.approx(queries["mrr"].mean())
    assert entry["n_queries"] == len(queries) / 2 == run.record("check")["check"]["a"]["n_items"] - 1
    assert entry["low"] < entry["value"] < entry["high"]
    values = np.array([one.facts["values"]["a_to_b.mrr"] for one in trained]).reshape(3, 2)
    assert entry["sd_seeds"] == pytest.approx(math.sqrt(np.mean(np.var(values, axis=1, ddof=1))))
    assert entry["sd_folds"] == pytest.approx(np.std(values.mean(axis=1), ddof=1))
    pools = [fold["pool"]["a_to_b"] for fold in record["per_fold"]]
    n = [fold["n_queries"]["a_to_b"] for fold in record["per_fold"]]
    hit = record["measures"]["a_to_b.recall@1"]
    assert hit["chance"] == pytest.approx(np.average([1 / pool for pool in pools], weights=n))
    assert hit["corrected"] == pytest.approx((hit["value"] - hit["chance"]) / (1 - hit["chance"]))


def test_what_could_be_shown_follows_from_how_two_seeds_differ_by_entity(spied):
    run, _, record, _ = spied
    trained = [load_training(run, cross_validation.Training(**one)) for one in record["trainings"]]
    queries = all_queries(trained).filter(pl.col("direction") == "b_to_a").sort("fold", "id", "seed")
    pairs = queries["recall@5"].to_numpy().reshape(-1, 2)
    labels = queries["entity"].to_numpy().reshape(-1, 2)[:, 0]
    found = paired_difference(pairs[:, 0], pairs[:, 1], labels, n_resamples=0)
    expected = detectable_difference(found.sd, found.n_entities)
    assert record["measures"]["b_to_a.recall@5"]["detectable"] == pytest.approx(expected)
    assert record["measures"]["b_to_a.median_rank"]["detectable"] is None


def test_queries_with_a_text_that_training_saw_are_told_from_the_others(spied):
    run, work, record, seen = spied
    texts = work.prepared.table.b
    trained = load_training(run, cross_validation.Training(**record["trainings"][0])).queries
    known = {texts.ids[item] for item in seen[0]["train"].items_b.tolist()}
    own = trained.filter(pl.col("direction") == "b_to_a")
    assert own["unseen"].to_list() == [id_ not in known for id_ in own["id"]]
    assert trained.filter(pl.col("direction") == "a_to_b")["unseen"].null_count() > 0
    unseen = record["unseen_text"]["b_to_a.recall@5"]
    assert 0 < unseen["n_queries"] < record["measures"]["b_to_a.recall@5"]["n_queries"]
    assert 0 < unseen["chance"] < 1


def test_it_learns_what_the_fold_needs(spied):
    record = spied[2]
    entry = record["measures"]["a_to_b.recall@5"]
    assert entry["low"] > entry["chance"]


def test_the_lines_say_pools_chance_and_both_spreads(spied):
    record = spied[2]
    text = "\n".join(record["lines"])
    assert "cross-validation: 3 folds of entities of molecule, 2 seeds each (6 trainings)" in text
    assert "each ranks" in text and "SD seeds" in text and "SD folds" in text and "could show" in text


def test_a_second_call_trains_nothing_and_changes_no_file(spied, counted):
    run, _, record, _ = spied
    before = {path: path.stat().st_mtime_ns for path in run.path("folds").iterdir()}
    assert cross_validate(Work(run, silent)) == record == read_folds(run)
    assert counted["n"] == 0
    assert before == {path: path.stat().st_mtime_ns for path in run.path("folds").iterdir()}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A table of forty molecules, which trains in no time."""
    return write_table(tmp_path_factory.mktemp("small folds") / "pairs.csv", records()[:40])


def test_a_killed_one_goes_on_where_it_stopped_and_ends_in_the_same_figures(small, tmp_path, counted):
    whole = cross_validate(Work(encoded_run(small, tmp_path / "whole"), silent))
    run = encoded_run(small, tmp_path / "killed")
    counted.update(n=0, stop_at=4)
    with pytest.raises(Stopped):
        cross_validate(Work(run, silent))
    assert read_folds(run) is None
    (run.path("folds") / ".0-0-0.json.x.part").write_text("half")
    (run.path("folds") / "training-of another time").mkdir()
    counted.update(n=0, stop_at=None)
    found = cross_validate(Work(run, silent))
    assert counted["n"] == 2
    assert found["measures"] == whole["measures"] and found["folds_hash"] == whole["folds_hash"]
    names = {f"0-{fold}-{seed}.{end}" for fold in range(3) for seed in range(2) for end in ("json", "parquet")}
    assert {path.name for path in run.path("folds").iterdir()} == names


def test_more_seeds_and_repeats_train_only_what_is_new_and_damage_is_made_good(small, tmp_path, counted):
    run = encoded_run(small, tmp_path / "run", evaluate={"seeds": 1, "folds": 2})
    first = cross_validate(Work(run, silent))
    assert counted["n"] == 2
    assert first["measures"]["a_to_b.mrr"]["sd_seeds"] is None
    assert first["measures"]["a_to_b.mrr"]["detectable"] is None
    counted["n"] = 0
    more = cross_validate(Work(again(run, seeds=2, repeats=2), silent))
    assert counted["n"] == 6 and (more["n_repeats"], more["n_seeds"], len(more["per_fold"])) == (2, 2, 4)
    assert first["folds_hash"] != more["folds_hash"]
    counted["n"] = 0
    table = run.path("folds", "1-1-0.parquet")
    table.write_bytes(table.read_bytes()[:-7])
    run.path("folds", "0-0-1.json").write_text("{")
    run.path("folds.json").unlink()
    repaired = cross_validate(Work(again(run, seeds=2, repeats=2), silent))
    assert counted["n"] == 2 and repaired["measures"] == more["measures"]
    # Fewer again: what is not of the plan goes.
    counted["n"] = 0
    assert cross_validate(Work(run, silent))["measures"] == first["measures"]
    assert counted["n"] == 0 and len(list(run.path("folds").iterdir())) == 4


def test_other_settings_of_training_train_anew(small, tmp_path, counted):
    run = encoded_run(small, tmp_path / "run", evaluate={"seeds": 1, "folds": 2})
    cross_validate(Work(run, silent))
    changed = encoded_run(small, tmp_path / "run", {"seeds": 1, "folds": 2}, train={"epochs": 1, "embed_dim": 8})
    counted["n"] = 0
    cross_validate(Work(changed, silent))
    assert counted["n"] == 2


def test_a_record_of_other_settings_goes_and_one_of_these_stays_where_it_is_not_due(small, tmp_path):
    run = encoded_run(small, tmp_path / "run", evaluate={"seeds": 1, "folds": 2})
    record = cross_validate(Work(run, silent))
    assert cross_validate(Work(again(run, folds=0), silent)) is None and read_folds(run) == record
    changed = encoded_run(small, tmp_path / "run", {"folds": 0}, train={"epochs": 1, "embed_dim": 8})
    assert cross_validate(Work(changed, silent)) is None and not run.path("folds.json").exists()
    run.path("folds.json").write_text("{")
    assert cross_validate(Work(again(run, folds=0), silent)) is None and not run.path("folds.json").exists()


def test_what_a_newer_release_wrote_is_not_written_over(small, tmp_path):
    run = encoded_run(small, tmp_path / "run", evaluate={"seeds": 1, "folds": 2})
    for kind, *name in (("bridgehead-fold", "folds", "0-0-0.json"), ("bridgehead-folds", "folds.json")):
        path = run.path(*name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"format": kind, "version": 2}))
        with pytest.raises(FormatVersionError):
            cross_validate(Work(run, silent))
        assert json.loads(path.read_text())["version"] == 2


@pytest.mark.parametrize("hold_out", ["b", "both"])
def test_folds_follow_what_the_split_holds_out(small, tmp_path, hold_out):
    # With both sides, texts that molecules share tie them together: every molecule has a text of its own here.
    rows = [[id_, smiles, f"{text} Sample {id_}." if hold_out == "both" else text, name]
            for id_, smiles, text, name in records()[:40]]  # fmt: skip
    table = write_table(tmp_path / "pairs.csv", rows)
    run = encoded_run(table, tmp_path / "run", {"seeds": 1, "folds": 2}, split={"hold_out": hold_out, "test": []})
    work = Work(run, silent)
    record = cross_validate(work)
    assert record["hold_out"] == hold_out
    asked = [set(), set()]
    for one in record["trainings"]:
        queries = load_training(run, cross_validation.Training(**one)).queries
        asked[one["fold"]] = set(queries.filter(pl.col("direction") == "b_to_a")["id"])
    assert not asked[0] & asked[1]
    # No text of a fold was trained on, so that there are no others to tell apart.
    assert record["unseen_text"] is None


def test_group_columns_never_cross_folds(tmp_path):
    path = tmp_path / "pairs.csv"
    with path.open("w", newline="") as file:
        rows = [[*row, f"plate {number % 7}"] for number, row in enumerate(records()[:42])]
        csv.writer(file).writerows([["id", "smiles", "text", "name", "plate"], *rows])
    run = encoded_run(path, tmp_path / "run", {"seeds": 1, "folds": 3}, pairs={"group": ["plate"]})
    record = cross_validate(Work(run, silent))
    plates = {}
    for one in record["trainings"]:
        queries = load_training(run, cross_validation.Training(**one)).queries
        ids = queries.filter(pl.col("direction") == "a_to_b")["id"]
        plates[one["fold"]] = {int(id_[1:]) % 7 for id_ in ids}
    assert sorted(plate for own in plates.values() for plate in own) == list(range(7))


def test_without_a_validation_share_the_last_epoch_is_kept(small, tmp_path):
    run = encoded_run(small, tmp_path / "run", {"seeds": 1, "folds": 2}, split={"fractions": [0.8, 0, 0.2], "test": []})
    record = cross_validate(Work(run, silent))
    assert [fold["best_epochs"] for fold in record["per_fold"]] == [[2], [2]]
    assert all(fold["links"]["valid"] == 0 for fold in record["per_fold"])


def test_the_order_of_the_records_does_not_change_the_folds(small, tmp_path):
    hashes = []
    for name, rows in (("forth", records()[:40]), ("back", records()[:40][::-1])):
        table = write_table(tmp_path / f"{name}.csv", rows)
        work = Work(encoded_run(table, tmp_path / name), silent)
        deals, _ = cross_validation._trainings(work, plan.plan_of(work))
        hashes.append(cross_validation._hash_of(work, deals))
    assert hashes[0] == hashes[1]


def planned(work, **evaluate):
    work.run = again(work.run, **evaluate)
    return plan.plan_of(work)


def test_it_is_due_below_three_thousand_entities_unless_the_config_says_otherwise(spied, monkeypatch):
    work = Work(spied[0], silent)
    assert planned(work, folds=None) == plan.FoldPlan(5, 1, 2, False)
    assert planned(work, folds=7) == plan.FoldPlan(7, 1, 2, True)
    assert planned(work, folds=0) is None and cross_validate(work) is None
    with pytest.raises(ConfigError, match=r"evaluate\.folds = 1; expected 2 or more, or 0"):
        planned(work, folds=1)
    n = sum(work.prepared.split.n_entities.values())
    monkeypatch.setattr(plan, "FEW_ENTITIES", n)
    assert planned(work, folds=None) is None and planned(work, folds=2) is not None
    monkeypatch.setattr(plan, "FEW_ENTITIES", n + 1)
    monkeypatch.setattr(plan, "LEAST_UNITS", n + 1)
    assert planned(work, folds=None) is None


def test_encoders_that_train_are_cross_validated_only_when_asked_for(live_settings, tmp_path):
    said = []
    run = runs.RunFolder.of(live_settings(evaluate={"folds": None}), tmp_path / "run")
    work = Work(run, lambda *message: said.append(message[1]))
    assert plan.plan_of(work) is None
    assert "ask for it with evaluate.folds = 5" in said[-1]


@pytest.mark.slow
def test_encoders_are_trained_in_each_fold_where_asked_for(live_settings, tmp_path, counted):
    run = runs.RunFolder.of(live_settings(evaluate={"folds": 2, "seeds": 1}), tmp_path / "run")
    runs.encode(run)
    record = cross_validate(Work(run, silent))
    assert counted["n"] == 2 and record["measures"]["a_to_b.mrr"]["value"] > 0
    assert {path.suffix for path in run.path("folds").iterdir()} == {".json", ".parquet"}


def test_what_cannot_be_dealt_is_an_error_where_asked_for_and_else_said(small, tmp_path, monkeypatch):
    said = []
    work = Work(encoded_run(small, tmp_path / "run", {"folds": 90}), lambda *message: said.append(message[1]))
    with pytest.raises(ArgumentError, match="40 separate entities with a link, and 90 folds"):
        cross_validate(work)
    monkeypatch.setattr(plan, "FOLDS", 90)
    work.run = again(work.run, folds=None)
    assert cross_validate(work) is None
    assert said[-1].startswith("no cross-validation: 40 separate entities with a link, and 90 folds")


def test_options_of_the_command_line_stay_in_the_config_of_the_folder(small, tmp_path):
    run = encoded_run(small, tmp_path / "run", {"folds": 0})
    changed = runs.with_folds(run, folds=2, seeds=1)
    assert (changed.config.evaluate.folds, changed.config.evaluate.repeats, changed.config.evaluate.seeds) == (2, 1, 1)
    assert runs.with_folds(run) is run
    with pytest.raises(ConfigError, match=r"evaluate\.folds = 1"):
        runs.with_folds(run, folds=1)
    done = CliRunner().invoke(app, ["evaluate", str(run.folder), "--folds", "2", "--seeds", "1", "--json"])
    record = json.loads(done.stdout)
    assert record == json.loads(json.dumps(runs.evaluate(changed)))
    assert json.loads(run.path("folds.json").read_text())["n_folds"] == 2
    assert record["folds"]["n_folds"] == 2 and "cross-validation: 2 folds" in "\n".join(record["lines"])
    assert runs.RunFolder.of(run.folder).config.evaluate.folds == 2
