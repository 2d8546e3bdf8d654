"""Losses, negatives and augmentation named in a config, through the stages of a run."""

import json

import pytest
from small_run import HEADER, SPECIAL, config, records, write_table

from bridgehead import runs
from bridgehead.errors import ColumnError, ConfigError
from bridgehead.runs.config import config_of


@pytest.fixture(scope="module")
def with_families(tmp_path_factory):
    """The table with the ring as coarse class of both sides."""
    special = {row[0] for row in SPECIAL}
    rows = [[*row, "" if row[0] in special else row[2].split(",")[0]] for row in records()]
    return write_table(tmp_path_factory.mktemp("families") / "pairs.csv", rows, [*HEADER, "family"])


HIERARCHICAL = {"train": {"loss": {"name": "hierarchical"}, "epochs": 2}}
FAMILY = {"class_a": "family", "class_b": "family"}


def history(folder):
    return [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]


def test_the_hierarchical_loss_takes_its_classes_from_columns(with_families, tmp_path):
    settings = config(with_families, pairs=FAMILY, **HIERARCHICAL)
    runs.train(runs.RunFolder.of(settings, tmp_path / "run"))
    line = history(tmp_path / "run")[0]
    assert {"loss_fine", "loss_coarse"} <= line.keys()


def test_other_classes_are_another_training(with_families, tmp_path):
    folder = runs.RunFolder.of(config(with_families, pairs=FAMILY, **HIERARCHICAL), tmp_path / "run")
    first = runs.train(folder)
    assert runs.train(folder)["key"] == first["key"]
    other = config(with_families, pairs={"class_a": "name", "class_b": "family"}, **HIERARCHICAL)
    assert runs.train(runs.RunFolder.of(other, tmp_path / "run"))["key"] != first["key"]


def test_the_hierarchical_loss_without_columns_is_refused_before_anything_is_read(with_families):
    with pytest.raises(ConfigError, match=r"needs the coarse class of both sides; name .* pairs\.class_a"):
        config(with_families, **HIERARCHICAL)


def test_a_class_column_that_is_not_there_is_named(with_families, tmp_path):
    settings = config(with_families, pairs={"class_a": "famly", "class_b": "family"}, **HIERARCHICAL)
    with pytest.raises(ColumnError, match=r"pairs\.class_a: no further column 'famly'"):
        runs.train(runs.RunFolder.of(settings, tmp_path / "run"))


def test_hard_negatives_a_bank_and_dropped_tokens_train_from_a_config(with_families, tmp_path):
    changes = {
        "negatives": {"sampling": "hard", "k_hard": 2, "start_epoch": 1, "ramp_epochs": 0, "bank_size": 16},
        "augment": {"token_dropout": 0.1},
        "loss": {"tile": 8},
    }
    runs.train(runs.RunFolder.of(config(with_families, train=changes), tmp_path / "run"))
    assert history(tmp_path / "run")[-1]["candidates"] > 32


def test_an_option_of_another_loss_is_refused_with_the_loss_that_has_it(with_families):
    with pytest.raises(ConfigError, match=r"beta = 2\.0 is an option of hard_negative, and the loss is 'info_nce'"):
        config(with_families, train={"loss": {"beta": 2.0}})


def test_a_misspelt_option_of_a_loss_is_mended(with_families):
    settings = {"pairs": {"path": "x", "a": "a", "b": "b"}, "encode": {"a": "text:ngram", "b": "text:ngram"}}
    with pytest.raises(ConfigError, match=r"did you mean 'train\.loss\.beta'"):
        config_of({**settings, "train": {"loss": {"betta": 1}}})


def test_a_run_whose_loss_has_no_value_for_random_rows_goes_through_to_its_report(table, tmp_path):
    settings = config(
        table, train={"loss": {"name": "guided"}, "epochs": 2}, evaluate={"n_resamples": 0, "shuffled": 0}
    )
    folder = runs.RunFolder.of(settings, tmp_path / "run")
    runs.evaluate(folder)
    assert "random rows" not in folder.record("train")["lines"][0] and folder.path("report.html").is_file()
