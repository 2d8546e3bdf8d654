"""Small parts of a run: lines that are said, identities that are kept, configs of the demo, names loaded late."""

import json
import subprocess
import sys

import polars as pl
import pytest
from small_run import ASPIRIN, ASPIRIN_SODIUM, BAD

from bridgehead import runs
from bridgehead.runs import identities
from bridgehead.runs.demonstration import ASPIRIN_ID, demo_config
from bridgehead.runs.folder import RECORDS


@pytest.mark.parametrize("stage", sorted(set(RECORDS) - {"report"}))
def test_each_stage_leaves_lines_for_people(finished, stage):
    lines = finished.record(stage)["lines"]
    assert lines and all(isinstance(line, str) and "\n" not in line for line in lines)


def test_the_lines_say_what_was_left_out_kept_and_held_out(finished):
    text = "\n".join(finished.record("check")["lines"])
    assert "3 records have one valid side" in text and "(no-text)" in text and "(no-molecule)" in text
    assert "split by entities of molecule, seed 0" in text and "Mixtures: 1 (mixture)" in text
    encoded = "\n".join(finished.record("encode")["lines"])
    assert "molecule: molecule:fingerprints, 128 of 128 items have a row" in encoded
    assert "kept epoch" in finished.record("train")["lines"][0]


def test_the_report_shows_figures_control_data_and_that_a_refit_exists(finished):
    page = finished.path("report.html").read_text(encoding="utf-8")
    for shown in ("molecule", "text unseen in training", "untrained", "shuffled", "refit", "fingerprint of the text"):
        assert shown in page
    assert "http://" not in page.replace("http://www.w3.org", "") and "<script src" not in page


def test_the_report_is_drawn_anew_once_the_index_answers(copied):
    before = copied.path("report.html").stat().st_mtime_ns
    copied.path("indexed.json").unlink()
    runs.evaluate(copied)
    assert copied.path("report.html").stat().st_mtime_ns != before


def test_identities_are_read_back_as_they_were(tmp_path, monkeypatch):
    items = [ASPIRIN, BAD, ASPIRIN_SODIUM, "*CC*"]
    first, failures = identities.identities_of(items, tmp_path)
    assert [one is None for one in first] == [False, True, False, False] and failures[0][0] == 1
    assert first[0].skeleton == first[2].skeleton and first[3].fallback
    monkeypatch.setattr(identities, "identify_all", lambda *_a, **_k: pytest.fail("identified again"))
    assert identities.identities_of(items, tmp_path) == (first, failures)


@pytest.mark.parametrize("damage", ["cut", "other columns", "fewer rows"])
def test_damaged_identities_are_made_again(tmp_path, damage):
    items = [ASPIRIN, BAD]
    expected = identities.identities_of(items, tmp_path)
    path = next((tmp_path / "identities").iterdir())
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:200])
    else:
        frame = pl.read_parquet(path)
        (frame.head(1) if damage == "fewer rows" else frame.drop("exact")).write_parquet(path)
    assert identities.identities_of(items, tmp_path) == expected


def test_other_items_have_other_identities(tmp_path):
    identities.identities_of([ASPIRIN], tmp_path)
    assert identities.identities_of([ASPIRIN_SODIUM], tmp_path)[0][0].formula != "C9H8O4"
    assert identities.identities_of([], tmp_path) == ([], [])


def test_the_demo_holds_aspirin_out_and_asks_for_it():
    made = demo_config(seed=3)
    assert (made.split.test, made.split.seed, made.train.seed) == ((ASPIRIN,), 3, 3)
    assert made.examples[0].expect == ASPIRIN_ID and made.pairs.shown == ("molecule", "text")
    assert made.index.extra_a == ("chemicals",) and not made.online


def test_the_expected_id_of_the_demo_is_aspirin_in_the_packaged_table():
    from bridgehead.runs.prepare import read_table

    table = read_table(demo_config().pairs)
    item = table.a.items[table.a.ids.index(ASPIRIN_ID)]
    from bridgehead.molecules import identify

    assert identify(item).skeleton == identify(ASPIRIN).skeleton


def test_names_of_the_folder_are_loaded_when_they_are_used():
    program = "import sys, json, bridgehead.runs as r\nprint(json.dumps(sorted(m for m in sys.modules if m in "
    program += "('torch', 'rdkit', 'faiss', 'polars', 'pydantic'))))\nassert callable(r.run)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        runs.nothing  # noqa: B018


def test_a_run_leaves_a_model_card_with_its_figures_and_limits(finished):
    card = finished.path("card.md").read_text(encoding="utf-8")
    assert "## How well it retrieves" in card
    assert "A hit is a reason to look" in card
