"""Two runs compared: the same queries, or a refusal that says what differs."""

import json
import shutil

import numpy as np
import polars as pl
import pytest
from small_run import config, records, write_table
from typer.testing import CliRunner

from bridgehead import runs
from bridgehead.cli.commands import app
from bridgehead.errors import MismatchError, RunStateError
from bridgehead.evaluate.folds import corrected_difference
from bridgehead.evaluate.paired import paired_difference
from bridgehead.runs.folds.store import Training, load_training, read_folds
from bridgehead.runs.per_query import item_key, queries_hash, read_queries

FOLDS = {"folds": 2, "seeds": 2, "n_resamples": 50, "shuffled": 0, "closed_form": "none"}


def evaluated(table, folder, **sections):
    given = {"train": {"epochs": 4, "embed_dim": 8}, "split": {"test": []}, "evaluate": FOLDS, **sections}
    run = runs.RunFolder.of(config(table, **given), folder)
    runs.evaluate(run)
    return run


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("compared") / "pairs.csv", records()[:50])


@pytest.fixture(scope="module")
def pair(small, tmp_path_factory):
    """A run, and one that trained for one epoch: both on the same pairs, split and folds."""
    folder = tmp_path_factory.mktemp("runs")
    return evaluated(small, folder / "long"), evaluated(
        small, folder / "short", train={"epochs": 1, "embed_dim": 8, "learning_rate": 1e-4}
    )


def test_the_difference_is_that_of_the_queries(pair):
    found = runs.compare_runs(*pair)
    x, y = (read_queries(run).filter(pl.col("direction") == "a_to_b").sort("id") for run in pair)
    for name in ("mrr", "recall@5"):
        expected = paired_difference(x[name], y[name], x["entity"], n_resamples=50)
        entry = found["differences"][f"a_to_b.{name}"]
        assert entry["value"] == pytest.approx(x[name].mean() - y[name].mean())
        assert (entry["p_value"], entry["low"]) == (expected.p_value, pytest.approx(expected.interval[0]))
    metrics = [run.record("evaluate")["all"] for run in pair]
    key = "b_to_a.mean_rank"
    assert found["differences"][key]["value"] == pytest.approx(metrics[0][key] - metrics[1][key])
    assert found["model"] == ["heads", "training", "epoch"]


def test_the_same_folds_are_compared_by_entity_and_by_fold(pair):
    found = runs.compare_runs(*pair)["out_of_fold"]
    assert (found["n_folds"], found["n_repeats"], found["n_seeds"]) == (2, 1, [2, 2])
    tables = []
    for run in pair:
        trainings = [Training(**one) for one in read_folds(run)["trainings"]]
        tables.append([load_training(run, one).queries.filter(pl.col("direction") == "a_to_b") for one in trainings])
    folds = [[np.mean([own[2 * fold + seed]["mrr"].mean() for seed in (0, 1)]) for fold in (0, 1)] for own in tables]
    entry = found["differences"]["a_to_b.mrr"]
    expected = corrected_difference(np.subtract(*folds), found["ratio"])
    assert entry["corrected"]["value"] == pytest.approx(expected.value)
    assert entry["corrected"]["p_value"] == pytest.approx(expected.p_value)
    # Two folds: as many links are held out as the others have.
    assert found["ratio"] == pytest.approx(1, abs=0.1)
    assert entry["n_queries"] == 50 and entry["first"] > entry["second"]


def test_the_lines_hold_both_tables_and_how_to_read_them(pair):
    text = "\n".join(runs.compare_runs(*pair)["lines"])
    for said in ("molecule to text", "text to molecule", "could show", "permutation", "one in twenty", "out of fold",
                 "what differs in the model: heads, training, epoch", "Nadeau and Bengio"):  # fmt: skip
        assert said in text
    assert max(map(len, text.splitlines())) <= 120 + len(str(pair[0].folder))


def test_the_command_prints_the_lines_or_the_whole_record(pair):
    names = [str(run.folder) for run in pair]
    expected = runs.compare_runs(*pair)
    assert CliRunner().invoke(app, ["compare", *names]).stdout.splitlines() == expected["lines"]
    assert json.loads(CliRunner().invoke(app, ["compare", *names, "--json"]).stdout) == json.loads(json.dumps(expected))


def test_a_run_does_not_differ_from_itself(pair):
    found = runs.compare_runs(pair[0], pair[0].folder)
    assert {entry["value"] for entry in found["differences"].values()} == {0.0}
    assert {entry["p_value"] for entry in found["differences"].values()} == {1.0}
    assert {entry["corrected"]["p_value"] for entry in found["out_of_fold"]["differences"].values()} == {1.0}
    # Two that answer alike do not tell how much two others would have to differ.
    assert {entry["detectable"] for entry in found["differences"].values()} == {None}
    assert "both runs hold the same model" in found["notes"] and "both are the same folder" in found["notes"]


@pytest.mark.parametrize("id_column", ["id", None])
def test_another_order_of_the_records_is_no_other_measurement_and_pairs_the_same_items(pair, tmp_path, id_column):
    # The id of a text is that of its first record, and without a column all ids are the records' numbers.
    table = write_table(tmp_path / "pairs.csv", records()[:50][::-1])
    given = {"pairs": {"id": id_column}, "evaluate": {**FOLDS, "folds": 0}}
    other = evaluated(table, tmp_path / "run", **given)
    found = runs.compare_runs(pair[0], other)
    values = {item_key(row[1]): row[0] for row in records()}
    x, y = (read_queries(run).filter(pl.col("direction") == "a_to_b") for run in (pair[0], other))
    assert [values[item] for item in x["item"]] == x["id"].to_list()
    joined = x.join(y, on="item", suffix="_2")
    difference = (joined["mrr"] - joined["mrr_2"]).abs().sum() > 0
    entry = found["differences"]["a_to_b.mrr"]
    assert (entry["n_differing"] > 0) == difference and entry["n_queries"] == len(joined) == len(x)
    assert "has none; run: bridgehead evaluate" in found["notes"][-1]


@pytest.fixture
def copied(pair, tmp_path):
    shutil.copytree(pair[0].folder.parent, tmp_path / "copy")
    return [runs.RunFolder(tmp_path / "copy" / run.folder.name, run.config) for run in pair]


def test_runs_on_another_split_are_refused_with_what_differs(pair, small, tmp_path):
    other = evaluated(small, tmp_path / "run", split={"test": [], "seed": 5}, evaluate={**FOLDS, "folds": 0})
    with pytest.raises(MismatchError) as refused:
        runs.compare_runs(pair[0], other)
    for words in ("did not measure the same thing", str(other.folder), "truth: ", "training links: ",
                  "they were trained on other pairs"):  # fmt: skip
        assert words in str(refused.value)
    done = CliRunner().invoke(app, ["compare", str(pair[0].folder), str(other.folder)])
    assert done.exit_code == 1 and "training links: " in done.stderr and done.stdout == ""


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("ks", [1, 3], r"ks: [1, 5, 10] and [1, 3] (other k of recall@k were asked for"),
        ("pool", 64 * "f", "and ffffffffffff (the candidates differ, and recall falls with each further one)"),
        ("held out", "both", "held out: a and both"),
        ("candidate lists", 64 * "e", "candidate lists: null and eeeeeeeeeeee"),
        ("something new", 3, "something new: null and 3"),
    ],
)
def test_each_entry_of_the_contract_that_differs_is_printed(copied, name, value, said):
    path = copied[1].path("contract.json")
    contract = json.loads(path.read_text())
    contract["measurement"][name] = value
    path.write_text(json.dumps(contract))
    with pytest.raises(MismatchError) as refused:
        runs.compare_runs(*copied)
    assert said in str(refused.value) and len(str(refused.value).splitlines()) == 3


def test_a_run_that_is_not_evaluated_says_which_stage_to_run(copied, small, tmp_path):
    copied[1].path("metrics.json").unlink()
    with pytest.raises(RunStateError, match="no results of the stage evaluate yet; run: bridgehead evaluate"):
        runs.compare_runs(*copied)


def test_an_evaluation_of_other_heads_than_the_run_holds_is_refused(copied):
    changed = copied[1].config.train.model_copy(update={"epochs": 2})
    run = runs.RunFolder(copied[1].folder, copied[1].config.model_copy(update={"train": changed}))
    runs.train(run)
    with pytest.raises(RunStateError, match=r"the evaluation in .* is of other heads or settings than the run now has"):
        runs.compare_runs(copied[0], run)


def test_a_config_that_was_changed_since_the_training_is_said(copied):
    changed = copied[1].config.train.model_copy(update={"epochs": 2})
    run = runs.RunFolder(copied[1].folder, copied[1].config.model_copy(update={"train": changed}))
    notes = runs.compare_runs(copied[0], run)["notes"]
    assert any("has other settings of training than its model was trained with" in note for note in notes)


def rewritten(run, queries):
    """Put another table of queries into a run folder, its hash into the record."""
    queries.write_parquet(run.path("queries.parquet"))
    record = json.loads(run.path("metrics.json").read_text())
    run.path("metrics.json").write_text(json.dumps(record | {"queries": queries_hash(run)}))


def test_queries_that_do_not_fit_the_contract_are_refused(copied):
    table = read_queries(copied[1])
    rewritten(copied[1], table[1:])
    with pytest.raises(MismatchError, match=r"queries, and \d+ of them are the same; expected the same queries"):
        runs.compare_runs(*copied)
    rewritten(copied[1], table.with_columns(pl.col("pool") + 1))
    with pytest.raises(MismatchError, match="have other numbers of candidates in the two runs"):
        runs.compare_runs(*copied)
    copied[1].path("queries.parquet").unlink()
    with pytest.raises(RunStateError, match="is missing or cannot be read; make it again"):
        runs.compare_runs(*copied)


@pytest.mark.parametrize("damage", ["of another run", "cut", "gone"])
def test_a_table_of_queries_that_the_evaluation_did_not_write_is_refused_and_made_again(copied, damage):
    path = copied[1].path("queries.parquet")
    before = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(before[:300] if damage == "cut" else copied[0].path("queries.parquet").read_bytes())
    with pytest.raises(RunStateError, match="make it again with: bridgehead evaluate"):
        runs.compare_runs(*copied)
    runs.evaluate(copied[1])
    assert path.read_bytes() == before
    runs.compare_runs(*copied)


@pytest.mark.parametrize("content", [{}, {"measurement": [], "model": 3}])
def test_a_contract_that_does_not_say_what_was_measured_is_refused_and_written_again(copied, content):
    path = copied[1].path("contract.json")
    before = path.read_bytes()
    path.write_text(json.dumps({"format": "bridgehead-contract", "version": 1, **content}))
    with pytest.raises(RunStateError, match=r"contract\.json does not say what was measured.* bridgehead evaluate"):
        runs.compare_runs(*copied)
    runs.evaluate(copied[1])
    assert path.read_bytes() == before


@pytest.mark.parametrize("name, entry", [("metrics.json", "key"), ("metrics.json", "gap_correction"),
                                         ("trained.json", "heads")])  # fmt: skip
def test_a_record_that_lacks_an_entry_is_refused_and_made_again(copied, name, entry):
    path = copied[1].path(name)
    record = json.loads(path.read_text())
    path.write_text(json.dumps({key: value for key, value in record.items() if key != entry}))
    for look in (lambda: runs.compare_runs(*copied), lambda: runs.report(copied[1])):
        with pytest.raises(RunStateError, match=rf"lacks {entry}: damaged, or of another release; run: bridgehead"):
            look()
    runs.evaluate(copied[1])
    again = json.loads(path.read_text())
    assert again.keys() == record.keys() and again.get("all") == record.get("all")
    runs.compare_runs(*copied)


def test_folds_that_are_damaged_or_of_other_settings_are_left_out_with_the_reason(copied):
    copied[1].path("folds", "0-0-0.parquet").unlink()
    found = runs.compare_runs(*copied)
    assert found["out_of_fold"] is None and "are missing or damaged; run: bridgehead evaluate" in found["notes"][-1]
    stored = json.loads(copied[1].path("folds.json").read_text())
    copied[1].path("folds.json").write_text(json.dumps(stored | {"settings": "others"}))
    found = runs.compare_runs(*copied)
    assert "are of other settings than it now has" in found["notes"][-1]
    copied[1].path("folds.json").write_text(json.dumps(stored | {"folds_hash": "others", "n_folds": 3}))
    assert "made on other folds (2 x 1 and 3 x 1)" in runs.compare_runs(*copied)["notes"][-1]


def test_folds_that_lack_an_entry_are_none_and_made_again(copied):
    path = copied[1].path("folds.json")
    before = path.read_bytes()
    record = json.loads(before)
    path.write_text(json.dumps({name: value for name, value in record.items() if name != "measures"}))
    assert read_folds(copied[1]) is None
    assert runs.compare_runs(*copied)["out_of_fold"] is None
    runs.report(copied[1])
    runs.evaluate(copied[1])
    assert path.read_bytes() == before
