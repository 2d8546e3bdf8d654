import json
from dataclasses import asdict

import numpy as np
import pytest

from bridgehead.audits import Finding
from bridgehead.evaluate import retrieval_report
from bridgehead.evaluate.geometry import gap_correction, geometry_report
from bridgehead.evaluate.slices import slice_report
from bridgehead.report import (
    Item,
    Measure,
    audits_of,
    contract_of,
    costs_of,
    differences_of,
    direction_of,
    folds_of,
    geometry_of,
    measures_of,
    pools_of,
    slices_of,
)

NAMES = ("molecule", "text")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    z_a = rng.normal(size=(60, 8))
    return z_a, z_a + 0.5 * rng.normal(size=(60, 8)) + 0.3


def through_json(value):
    return json.loads(json.dumps(value))


def test_the_contract_keeps_question_answers_and_who_gave_them():
    stored = {
        "questions": [
            {
                "key": "unit",
                "question": "What is one pair?",
                "known": "a record",
                "said": "a ligand",
                "source": "config",
            },
            {"key": "pool", "question": "Which candidates?", "known": "12 items", "said": "", "source": "missing"},
        ],
        "measurement": {"truth": "ab" * 32, "ks": [1, 5, 1000], "candidate lists": None, "held out": "a"},
        "model": {"encoders": {"a": "molecule:fingerprints", "b": "text:ngram"}},
        "measurement_hash": "cd" * 32,
    }
    contract = contract_of(through_json(stored))
    assert [answer.source for answer in contract.answers] == ["config", "missing"]
    assert contract.answers[0].said == "a ligand" and contract.answers[0].known == "a record"
    assert contract.n_missing == 1
    assert list(contract.hashes) == [
        ("measurement", "cd" * 8), ("truth", "ab" * 8), ("ks", "1, 5, 1,000"), ("held out", "a"),
        ("encoders", "a: molecule:fingerprints, b: text:ngram"),
    ]  # fmt: skip


@pytest.mark.parametrize("skipped", [[{"name": "column", "reason": "none"}], [["column", "none"]], {"column": "none"}])
def test_audits_come_back_as_they_were_found(skipped):
    finding = Finding("near text", 0.1, "0", "warn", "why", "leakage", 2.0)
    findings, left_out = audits_of(through_json({"findings": [finding.to_dict()], "skipped": skipped}))
    assert findings == [finding]
    assert [asdict(audit) for audit in left_out] == [{"name": "column", "reason": "none"}]
    assert audits_of({}) == ([], [])


def test_figures_of_a_stored_direction_are_those_of_its_report(rows):
    report = retrieval_report(*rows, n_resamples=20).a_to_b
    measures = measures_of(through_json(report.to_dict()))
    assert list(measures) == list(direction_of(report, *NAMES).measures)
    assert measures["recall@10"] == Measure(
        report.values["recall@10"], *report.interval["recall@10"], report.chance["recall@10"]
    )
    assert "recall_all@10" not in measures and "ndcg@10" not in measures


def test_a_direction_has_corrected_recall_and_the_curve_by_pool(rows):
    report = retrieval_report(*rows, n_resamples=0).a_to_b
    points = [point for k in (1, 10) for point in report.recall_by_pool(k, (20, None))]
    shown = direction_of(report, *NAMES, pools=pools_of(points))
    assert shown.corrected["recall@1"] == pytest.approx((report.values["recall@1"] - 1 / 60) / (1 - 1 / 60))
    assert [curve.k for curve in shown.pools] == [1, 10]
    assert [point.size for point in shown.pools[0].points] == [20, 60]
    assert shown.pools[0].points[1].value == pytest.approx(report.values["recall@1"])
    assert shown.pool_sizes is None
    stored = through_json([point.to_dict() for point in points])
    assert pools_of(stored) == pools_of({"1": stored[:2], "10": stored[2:]}) == list(shown.pools)


def test_slices_have_their_label_counts_and_figures_stored_or_not(rows):
    report = retrieval_report(*rows, ks=(10,), n_resamples=20).a_to_b
    slices = slice_report(report, ["short"] * 40 + ["long"] * 20, "length", least=1)
    table = slices_of(slices, "length", *NAMES, whole=measures_of(report.to_dict()), note="by characters")
    counts = [(part.name, part.n_queries, part.n_entities) for part in table.slices]
    assert counts == [("short", 40, 40), ("long", 20, 20)]
    short = slices[0].report
    assert table.slices[0].measures["recall@10"] == Measure(
        short.values["recall@10"], *short.interval["recall@10"], short.chance["recall@10"]
    )
    assert table.whole["mrr"].value == report.values["mrr"]
    assert slices_of(through_json([one.to_dict() for one in slices]), "length", *NAMES).slices == table.slices


def test_the_geometry_of_a_space_is_shown_with_its_hubs_and_its_correction(rows):
    stored = through_json(geometry_report(*rows, names=NAMES).to_dict())
    correction = through_json(gap_correction(*rows, n_resamples=20).to_dict())
    shown = geometry_of(stored, item_of=lambda side, row: Item(f"{side}{row}"), correction=correction)
    values = {value.name: value.value for value in shown.values}
    assert values["mean cosine of true pairs"] == stored["alignment_cosine"]
    assert values["effective rank of text"] == stored["spread"]["b"]["effective_rank"]
    assert values["a linear classifier tells the sides apart"] == stored["gap"]["separability"]
    assert sum(shown.similarities.counts["across, true"]) == 60
    top = stored["hubness"]["a_to_b"]
    assert shown.hubs[0].item.id == f"b{top['top_rows'][0]}" and shown.hubs[0].side == "text"
    assert shown.hubs[0].times == top["top_times"][0]
    assert shown.hubs[0].expected == pytest.approx(10.0)
    first = shown.corrections[0]
    assert (first.title, first.metric) == ("molecule to text", "recall@1")
    assert first.after == correction["differences"]["a_to_b.recall@1"]["first"]
    assert geometry_of(stored).hubs == []


def test_a_record_of_less_gives_less():
    assert geometry_of({}).values == []
    assert geometry_of({"uniformity": {"a": None, "b": -2.0}}).values[0].value == -2.0


def test_differences_say_direction_and_what_they_are_against():
    stored = {"b_to_a.mrr": {"first": 0.5, "second": 0.4, "low": 0.05, "high": 0.15, "p_value": 0.01}}
    (found,) = differences_of(stored, NAMES, "against CCA")
    assert (found.title, found.metric) == ("text to molecule, against CCA", "mrr")
    assert (found.before, found.after, found.low, found.p_value) == (0.4, 0.5, 0.05, 0.01)


def test_folds_keep_spreads_pools_and_what_could_be_told():
    measure = {
        "value": 0.5,
        "low": 0.4,
        "high": 0.6,
        "chance": 0.1,
        "sd_seeds": 0.01,
        "sd_folds": 0.04,
        "detectable": 0.03,
    }
    unseen = {"value": 0.2, "low": None, "high": None, "chance": 0.1, "n_queries": 9}
    values = {"a_to_b.recall@10": 0.5, "b_to_a.recall@10": 0.4, "a_to_b.ndcg@10": 0.3}
    stored = {
        "n_folds": 2,
        "n_repeats": 2,
        "n_seeds": 2,
        "measures": {"a_to_b.recall@10": measure, "a_to_b.ndcg@10": measure, "b_to_a.recall@10": measure},
        "unseen_text": {"b_to_a.recall@10": unseen},
        "per_fold": [
            {"repeat": r, "fold": f, "n_queries": {"a_to_b": 10, "b_to_a": 8}, "pool": {"a_to_b": 8, "b_to_a": 10},
             "values": values}
            for r in range(2) for f in range(2)
        ],
        "lines": ["cross-validation: ..."],
    }  # fmt: skip
    found = folds_of(through_json(stored), NAMES)
    assert [(m.query, m.name) for m in found.measures] == [
        ("molecule", "recall@10"), ("text", "recall@10"), ("text (text unseen in training)", "recall@10"),
    ]  # fmt: skip
    assert (found.measures[0].sd_seeds, found.measures[0].sd_folds, found.measures[0].detectable) == (0.01, 0.04, 0.03)
    assert [fold.name for fold in found.per_fold[:4]] == ["1.1", "1.2", "2.1", "2.2"]
    assert (found.per_fold[0].n_queries, found.per_fold[0].n_candidates) == (10, 8)
    assert found.per_fold[0].values == {"recall@10": 0.5}
    assert len(found.lines) == 2 and "0.030 cannot be told apart" in found.lines[0]


def test_costs_are_those_of_the_stages():
    (cost,) = costs_of({"train": {"seconds": 3.2, "peak_bytes": 10}})
    assert (cost.stage, cost.seconds, cost.peak_bytes) == ("train", 3.2, 10)
