"""The closed form beside the trained heads: fitted on the training part alone, measured on the same queries."""

import json
import shutil

import numpy as np
import pytest
from small_run import config, stamps

from bridgehead import runs
from bridgehead.align.closed_form import fit_closed_form
from bridgehead.errors import ArgumentError
from bridgehead.evaluate import retrieval_report
from bridgehead.links import Links
from bridgehead.runs import evaluation, stages
from bridgehead.runs.encoded import PartRows
from bridgehead.runs.folder import RunFolder, stage_key
from bridgehead.runs.pools import Asked
from bridgehead.runs.wording import closed_form_name

KEYS = ("closed_form", "closed_form_unseen_text")


def silent(*_args):
    return


def again(copied, table, **evaluate):
    """Evaluate a copied run with other settings of the evaluation; nothing is trained but what they ask for."""
    settings = {"shuffled": 0, "n_resamples": 0, **evaluate}
    run = RunFolder.of(config(table, evaluate=settings), copied.folder)
    runs.evaluate(run)
    return run


def figures(stored):
    return {key: value for key, value in stored.items() if key not in ("method", "embed_dim", "notes")}


def shown(run):
    """Return all that people read of an evaluation: its lines, the page and the card."""
    lines = "\n".join(run.record("evaluate")["lines"])
    return lines, run.path("report.html").read_text("utf-8"), run.path("card.md").read_text("utf-8")


def test_the_figures_are_those_of_a_fit_to_the_training_part_on_the_test_part(finished):
    work = stages.Work(finished, silent)
    train, test = work.part("train"), work.part("test")
    fitted = fit_closed_form(train.rows_a, train.rows_b, train.links, "cca", 16)
    expected = retrieval_report(fitted.transform_a(test.rows_a), fitted.transform_b(test.rows_b), test.links,
                                names=("molecule", "text"), n_resamples=20, entities_a=work.entities[0],
                                entities_b=work.entities[1]).to_dict()  # fmt: skip
    found = finished.record("evaluate")["closed_form"]
    assert (found["method"], found["embed_dim"], found["notes"]) == ("cca", 16, [])
    assert figures(found) == pytest.approx(expected, abs=1e-9)


def test_both_are_measured_on_the_same_queries_and_pool(finished):
    stored = finished.record("evaluate")
    for ours, trained in (("closed_form", "all"), ("closed_form_unseen_text", "unseen_text")):
        assert figures(stored[ours]).keys() == stored[trained].keys()
        same = [name for name in stored[trained] if "chance" in name or name.endswith(("n_queries", "n_candidates"))]
        assert len(same) > 20 and all(stored[ours][name] == stored[trained][name] for name in same)


def test_the_closed_form_changes_no_other_figure(finished, copied, table):
    without = RunFolder.of(config(table, evaluate={"closed_form": "none"}), copied.folder)
    found, before = runs.evaluate(without), finished.record("evaluate")
    assert found.keys() == before.keys() and all(found[name] is None for name in KEYS)
    for name in found.keys() - {*KEYS, "against", "key", "lines"}:
        assert found[name] == before[name], name
    for text in shown(without):
        assert "closed form" not in text and "closed-form" not in text


@pytest.mark.parametrize(
    "method, name", [("ridge", "ridge regression"), ("procrustes", "orthogonal Procrustes"), ("cca", "CCA")]
)
def test_what_people_read_names_the_method(copied, table, method, name):
    assert closed_form_name(method) == f"{name}, no training"
    run = again(copied, table, closed_form=method, ks=[1, 5, 10, 20])
    assert run.record("evaluate")["closed_form"]["method"] == method
    lines, page, card = shown(run)
    assert f"closed form: {name}, no training" in lines
    assert f"Closed form: {name}, no training." in page and f"closed-form baseline ({name}, no training)" in page
    assert f"| closed-form baseline ({name}, no training) |" in card


def test_the_table_has_the_column_and_the_lines_what_training_added(finished):
    stored, lines = finished.record("evaluate"), finished.record("evaluate")["lines"]
    heads = [number for number, line in enumerate(lines) if line.endswith("untrained  closed form   chance")]
    tables = [("closed_form", "a_to_b"), ("closed_form", "b_to_a"), ("closed_form_unseen_text", "b_to_a")]
    for head, (name, side) in zip(heads, tables, strict=True):
        cells = next(line for line in lines[head:] if line.split()[0] == "mrr").split()
        assert cells[-2] == f"{stored[name][f'{side}.mrr']:.3f}"
    start = next(
        number for number, line in enumerate(lines) if line.startswith("what training added to the closed form")
    )
    found = stored["against"]["closed_form"]["a_to_b.mrr"]
    assert found["value"] == pytest.approx(stored["all"]["a_to_b.mrr"] - stored["closed_form"]["a_to_b.mrr"], abs=1e-12)
    said = f"mrr {found['value']:+.3f} ({found['low']:+.3f} to {found['high']:+.3f}), p "
    assert lines[start + 1].startswith("  molecule to text: recall@10 ") and said in lines[start + 1]
    unseen = stored["against"]["closed_form_unseen_text"]["b_to_a.mrr"]["value"]
    value = stored["unseen_text"]["b_to_a.mrr"] - stored["closed_form_unseen_text"]["b_to_a.mrr"]
    assert unseen == pytest.approx(value, abs=1e-12) and f"mrr {value:+.3f}" in lines[start + 4]


@pytest.mark.parametrize(
    "error, why",
    [
        (ArgumentError("1 links; expected at least two"), "not fitted: 1 links; expected at least two"),
        (np.linalg.LinAlgError("SVD did not converge"), "not fitted: SVD did not converge"),
        (MemoryError(), "not fitted: there is not enough memory for it"),
    ],
)
def test_what_cannot_be_fitted_is_said_and_the_run_goes_on(copied, table, monkeypatch, error, why):
    def fail(*_args, **_settings):
        raise error

    monkeypatch.setattr(evaluation, "fit_closed_form", fail)
    run = again(copied, table)
    stored = run.record("evaluate")
    assert stored["closed_form"] == {"method": "cca", "embed_dim": None, "notes": [why]}
    assert stored["closed_form_unseen_text"] is None
    lines, page, card = shown(run)
    assert f"  {why}" in lines and "untrained   chance" in lines and "what training added" not in lines
    assert f"N{why[1:]}." in page and "closed form</th>" not in page and "closed-form" not in page + card


def everybody(part):
    """Return a part of which every row asks and every row may answer."""
    ids = [[str(n) for n in numbers] for numbers in (part.items_a, part.items_b)]
    return Asked(part, None, None, *ids, None, None, {}, ()), tuple(ids)


def test_rows_and_links_too_few_to_fit_are_a_note(table):
    rows = np.eye(3, dtype=np.float32)
    one = PartRows(rows, rows, Links.of([[0, 0]], 3, 3), np.arange(3), np.arange(3))
    test = PartRows(rows, rows, Links.identity(3), np.arange(3), np.arange(3))
    found = evaluation.closed_form(one, *everybody(test), np.zeros(3, dtype=bool), config(table))
    assert (found.all, found.unseen, found.embed_dim) == (None, None, None)
    assert found.notes[0].startswith("not fitted: 1 links;")


def test_fewer_dimensions_than_were_asked_for_are_a_note(table):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20, 3)).astype(np.float32)
    part = PartRows(rows, rows, Links.identity(20), np.arange(20), np.arange(20))
    found = evaluation.closed_form(part, *everybody(part), np.zeros(20, dtype=bool), config(table))
    assert found.embed_dim == 3 and found.notes[0].startswith("the space has 3 dimensions, not 16")
    assert found.unseen is None and found.all.value("a_to_b.recall@1") == 1.0


def test_a_page_drawn_by_another_process_is_the_same_and_fits_nothing(copied, monkeypatch):
    runs.run(copied)
    before = [copied.path(name).read_bytes() for name in ("report.html", "card.md")]
    for name in ("report.html", "card.md", "reported.json"):
        copied.path(name).unlink()
    monkeypatch.setattr(evaluation, "fit_closed_form", lambda *_a, **_s: pytest.fail("fitted again"))
    runs.run(copied)
    assert [copied.path(name).read_bytes() for name in ("report.html", "card.md")] == before


def test_a_record_from_before_the_closed_form_is_measured_again(copied):
    shutil.rmtree(copied.path("shuffled"))
    trained, path = copied.record("train"), copied.path("metrics.json")
    settings = {name: value for name, value in copied.config.evaluate.model_dump().items() if name != "closed_form"}
    record = {name: value for name, value in json.loads(path.read_text()).items() if name not in KEYS}
    record["key"] = stage_key(trained["key"], trained["heads"], settings, copied.config.pairs.shown)
    path.write_text(json.dumps(record))
    before = stamps(copied.folder)["heads.safetensors"]
    assert runs.evaluate(copied)["closed_form"]["method"] == "cca"
    assert stamps(copied.folder)["heads.safetensors"] == before
