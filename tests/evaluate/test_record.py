"""The records: flat keys, a table with pool size, interval and chance, access by key."""

import json

import numpy as np
import pytest

from bridgehead.errors import ArgumentError
from bridgehead.evaluate import RetrievalReport, retrieval_report


@pytest.fixture(scope="module")
def report() -> RetrievalReport:
    rng = np.random.default_rng(0)
    z_a = rng.normal(size=(60, 5))
    links = [[i, i] for i in range(50)]
    return retrieval_report(z_a, z_a[:55] + rng.normal(size=(55, 5)), links, names=("molecule", "text"))


def test_to_dict_is_flat_json_with_direction_and_metric(report: RetrievalReport) -> None:
    flat = report.to_dict()
    assert json.loads(json.dumps(flat, allow_nan=False)) == flat
    assert flat["a_to_b.recall@10"] == report.a_to_b.recall[10]
    assert flat["a_to_b.chance_recall@10"] == pytest.approx(10 / 55, abs=1e-12)
    assert flat["b_to_a.n_candidates"] == 60
    assert flat["a_to_b.n_without_truth"] == 10
    assert flat["b_to_a.mrr.low"] < flat["b_to_a.mrr"] < flat["b_to_a.mrr.high"]
    assert flat["a_to_b.chance_mrr"] < flat["a_to_b.chance_mrr.high"] < flat["a_to_b.mrr"]
    assert not any("ranks" in key or "queries." in key for key in flat)


def test_lines_show_names_pool_size_chance_and_what_was_left_out(report: RetrievalReport) -> None:
    lines = report.lines()
    assert lines[0] == "molecule -> text: 50 queries, each ranks 55 candidates"
    assert "10 queries without a true candidate left out" in lines[1]
    row = next(line for line in lines if line.lstrip().startswith("recall@10 "))
    assert f"{report.a_to_b.recall[10]:.3f}" in row and "0.1818" in row and " to " in row
    assert any(line.startswith("text -> molecule") for line in lines)
    assert report.lines(("compound", "caption"))[0].startswith("compound -> caption")
    assert max(map(len, lines)) <= 120


def test_values_are_read_by_key(report: RetrievalReport) -> None:
    assert report.value("b_to_a.mrr") == report.b_to_a.mrr
    assert report.value("a_to_b.median_rank") == report.a_to_b.median_rank
    for key in ("a_to_b.recall@3", "mrr", "c_to_d.mrr"):
        with pytest.raises(ArgumentError, match="this report has no metric"):
            report.value(key)


def test_per_query_arrays_agree_with_the_means(report: RetrievalReport) -> None:
    direction = report.a_to_b
    assert direction.n_queries == len(direction.ranks) == len(direction.true_scores) == len(direction.n_true)
    assert direction.mean_rank == pytest.approx(direction.ranks.mean())
    assert direction.recall[10] == pytest.approx((direction.ranks <= 10).mean())
