import numpy as np
import polars as pl
import pytest

from bridgehead.audits import shuffled_control
from bridgehead.evaluate import retrieval_report
from bridgehead.links import Links
from bridgehead.pairs import check_table, read_pairs
from bridgehead.report import Measure, controls_of, curves_of, data_check_of, direction_of, stored_measures


def test_a_direction_of_a_retrieval_report_becomes_content():
    rows = np.eye(8, dtype=np.float32)
    measured = retrieval_report(rows, rows, ks=(1, 4), n_resamples=50)
    constant = retrieval_report(np.ones((8, 2)), np.ones((8, 2)), ks=(1, 4), n_resamples=50)
    found = direction_of(measured.a_to_b, "text", "molecule", baseline=stored_measures(constant.to_dict(), "a_to_b"))
    assert found.measures["recall@4"] == Measure(1.0, 1.0, 1.0, 0.5)
    assert found.baseline["recall@1"].value == 1 / 8
    assert found.measures["median_rank"].value == 1.0
    assert not any(name.startswith(("ndcg", "recall_all")) for name in found.measures)
    assert (found.query, found.candidate, found.n_queries, found.n_candidates) == ("text", "molecule", 8, 8)
    assert list(found.ranks) == [1.0] * 8
    assert direction_of(measured.b_to_a, "a", "b").baseline == {}


def test_curves_keep_what_every_epoch_has():
    history = [{"epoch": e, "loss": 1.0 / e, "logit_scale": 14.0, "seconds": 1} for e in (1, 2)]
    history[1]["valid_mrr"] = 0.5
    for line, recall in zip(history, (0.3, 0.6), strict=True):
        line["valid_recall@10"] = recall
    curves = curves_of(history, best_epoch=2)
    assert list(curves.valid_recall) == [0.3, 0.6]
    assert (list(curves.epoch), list(curves.loss), list(curves.valid_mrr)) == ([1, 2], [1.0, 0.5], [])
    assert curves.best_epoch == 2
    assert list(curves_of([]).epoch) == []


def test_each_metric_of_the_control_stands_beside_the_real_value():
    rows = np.eye(9, dtype=np.float32)
    rng = np.random.default_rng(0)
    observed = retrieval_report(rows, rows, names=("molecule", "text"), ks=(1,))
    control = shuffled_control(
        lambda links, seed: retrieval_report(rng.normal(size=(9, 3)), rng.normal(size=(9, 3)), ks=(1,)),
        Links.identity(9),
        seeds=(0, 1),
    )
    found = controls_of(control, observed)
    assert [(c.title, c.metric) for c in found] == [
        ("molecule to text", "recall@1"),
        ("molecule to text", "mrr"),
        ("text to molecule", "recall@1"),
        ("text to molecule", "mrr"),
    ]
    assert all(c.observed == 1.0 and len(c.runs) == 2 for c in found)
    assert found[0].mean == pytest.approx(control.mean["a_to_b.recall@1"])


@pytest.fixture
def check(tmp_path):
    table = {"id": ["p", "q", "r", "s"], "m": ["C", "C", "N", ""], "t": ["It lowers pressure.", "Drug", "", ""]}
    pl.DataFrame(table).write_csv(tmp_path / "x.csv")
    return check_table(read_pairs(tmp_path / "x.csv", a="m", b="t", id="id"))


def test_the_data_check_counts_and_lists_what_was_left_out(check):
    found = data_check_of(check.to_dict())
    counts = dict(found.counts)
    assert counts["records"] == "4" and counts["links"] == "2"
    assert counts["m"].startswith("2 items; ") and "1 repeated values" in counts["m"]
    assert "generic or too short" in counts["t"]
    left_out, unpaired = found.tables[:2]
    assert [row[:2] for row in left_out.rows] == [(3, "s")]
    assert [row[1] for row in unpaired.rows] == ["r"] and unpaired.total == 1


def test_the_data_check_lists_what_the_encoders_met(check):
    report = {
        "n_items": 200, "n_rows": 199, "n_truncated": 60, "truncated_ids": [str(i) for i in range(60)],
        "unknown_share": 0.1, "empty_ids": ["e"], "identical_groups": [["x", "y"]], "notes": ["a note"],
    }  # fmt: skip
    found = data_check_of(check.to_dict(), {"t": report}, {"m": [("q", "does not parse")]})
    tables = {table.title: table for table in found.tables}
    assert tables["t: truncated"].total == 60 and len(tables["t: truncated"].rows) == 50
    assert tables["t: truncated"].note.startswith("30.0%")
    assert tables["t: empty rows"].rows == [("e",)]
    assert tables["t: groups of identical rows"].rows == [("2", "x, y")]
    assert tables["m: items without a row"].rows == [("q", "does not parse")]
    assert "a note" in found.notes
