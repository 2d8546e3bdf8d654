"""Figures per query, parts of a report, recall corrected for chance, R-precision."""

from typing import Any

import numpy as np
import pytest

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.evaluate import DirectionReport, RetrievalReport, report_from_scores, retrieval_report
from bridgehead.evaluate.ties import TieLevels, expected_r_precision
from bridgehead.links import Links

KEYS = ("recall@{}", "recall_all@{}", "ndcg@{}")


@pytest.fixture(scope="module")
def report() -> RetrievalReport:
    rng = np.random.default_rng(0)
    z_a, z_b = rng.integers(-2, 3, size=(90, 3)).astype(float), rng.integers(-2, 3, size=(70, 3)).astype(float)
    links = Links(np.argwhere(rng.random((90, 70)) < 0.04), 90, 70)
    return retrieval_report(z_a, z_b, links, ks=(1, 5), entities_a=np.arange(90) // 3, n_resamples=100, seed=4)


def test_every_mean_is_that_of_its_queries(report: RetrievalReport) -> None:
    for direction in (report.a_to_b, report.b_to_a):
        names = [key.format(k) for k in (1, 5) for key in KEYS] + ["mrr", "map", "r_precision", "rank"]
        assert set(direction.per_query) == set(names)
        for name, values in direction.per_query.items():
            assert values.shape == (direction.n_queries,) and values.dtype == np.float64
            assert values.mean() == pytest.approx(direction.values["mean_rank" if name == "rank" else name], abs=1e-13)
        assert direction.pool.dtype == np.int64
        assert set(direction.pool.tolist()) == {direction.n_candidates}
        assert direction.n_true_missing == direction.n_out_of_reach == 0


def test_r_precision_by_hand() -> None:
    # Ranks 1, 2 and 4 of the three true ones: two of the first three.
    scores = np.array([[9.0, 8.0, 7.0, 6.0, 5.0]])
    found = report_from_scores(scores.__getitem__, links=Links([[0, 0], [0, 1], [0, 3]], 1, 5), n_resamples=0).a_to_b
    assert found.r_precision == pytest.approx(2 / 3, abs=1e-15)
    # The third place goes to one of three tied candidates, of which one is true.
    scores = np.array([[9.0, 8.0, 5.0, 5.0, 5.0]])
    found = report_from_scores(scores.__getitem__, links=Links([[0, 0], [0, 1], [0, 3]], 1, 5), n_resamples=0).a_to_b
    assert found.r_precision == pytest.approx((2 + 1 / 3) / 3, abs=1e-15)


def test_r_precision_with_one_true_candidate_is_recall_at_one(report: RetrievalReport) -> None:
    rng = np.random.default_rng(1)
    found = retrieval_report(rng.normal(size=(50, 4)), rng.normal(size=(50, 4)), ks=(1,), n_resamples=0).a_to_b
    np.testing.assert_array_equal(found.per_query["r_precision"], found.per_query["recall@1"])


def test_chance_of_r_precision_is_the_share_of_true_candidates() -> None:
    np.testing.assert_allclose(
        expected_r_precision(TieLevels.constant(np.array([1, 3, 20]), 20)), [1 / 20, 3 / 20, 1], rtol=1e-15
    )


def test_corrected_recall_is_zero_at_chance_and_one_when_perfect() -> None:
    perfect = retrieval_report(np.eye(20), np.eye(20), ks=(1, 20), n_resamples=50).a_to_b
    assert perfect.corrected == {"recall@1": 1.0, "recall@20": 0.0}
    assert perfect.corrected_interval == {"recall@1": (1.0, 1.0), "recall@20": (0.0, 0.0)}
    constant = retrieval_report(np.ones((20, 2)), np.ones((20, 2)), ks=(1, 5), n_resamples=0).a_to_b
    assert constant.corrected == pytest.approx({"recall@1": 0.0, "recall@5": 0.0}, abs=1e-12)
    assert constant.corrected_interval == {}


def test_corrected_recall_by_hand(report: RetrievalReport) -> None:
    direction = report.a_to_b
    value, chance = direction.values["recall@5"], direction.chance["recall@5"]
    expected = (value - chance) / (1 - chance)
    assert direction.corrected["recall@5"] == expected
    flat = report.to_dict()
    assert flat["a_to_b.corrected_recall@5"] == expected
    low = direction.interval["recall@5"][0]
    assert flat["a_to_b.corrected_recall@5.low"] == pytest.approx((low - chance) / (1 - chance), abs=1e-15)
    row = next(line for line in direction.lines("a", "b") if line.lstrip().startswith("recall@5 "))
    assert row.endswith(f"{expected:.3f}")


def test_a_subset_is_the_report_of_these_queries_in_the_same_pool(report: RetrievalReport) -> None:
    rng = np.random.default_rng(0)
    z_a, z_b = rng.integers(-2, 3, size=(90, 3)).astype(float), rng.integers(-2, 3, size=(70, 3)).astype(float)
    links = Links(np.argwhere(rng.random((90, 70)) < 0.04), 90, 70)
    rows = np.arange(90) % 3 > 0
    direct = retrieval_report(
        z_a, z_b, links, ks=(1, 5), entities_a=np.arange(90) // 3, n_resamples=100, seed=4, queries_a=rows
    ).a_to_b
    part = report.a_to_b.subset(rows[report.a_to_b.queries])
    found, expected = part.to_dict(), direct.to_dict()
    del found["n_without_truth"], expected["n_without_truth"]
    assert found == pytest.approx(expected, abs=1e-12)
    for name in ("queries", "ranks", "true_scores", "n_true", "entities", "pool", "n_missing"):
        np.testing.assert_array_equal(getattr(part, name), getattr(direct, name))


def test_a_subset_of_everything_changes_nothing_and_one_of_one_query_has_no_interval(report: RetrievalReport) -> None:
    direction = report.b_to_a
    everything = direction.subset(np.ones(direction.n_queries, dtype=bool))
    assert everything.to_dict() == {**direction.to_dict(), "n_without_truth": 0}
    one = direction.subset(np.arange(direction.n_queries) == 5)
    assert (one.n_queries, one.n_entities, one.interval) == (1, 1, {})
    assert one.subset(np.array([True])).to_dict() == one.to_dict()
    assert direction.subset(np.ones(direction.n_queries, dtype=bool), n_resamples=0).interval == {}


def test_subsets_of_lists_keep_each_querys_list() -> None:
    lists = [[0, 1], [1, 2, 3], [2], [0]]
    whole = retrieval_report(np.eye(4), np.eye(4), ks=(1,), n_resamples=0, candidates=(lists, None)).a_to_b
    part = whole.subset([False, True, False, True])
    assert (part.pool.tolist(), part.n_missing.tolist()) == ([3, 1], [0, 1])
    assert part.chance["recall@1"] == pytest.approx((1 / 3 + 0) / 2, abs=1e-15)
    assert part.recall[1] == 0.5


@pytest.mark.parametrize("mask", [[True], np.ones(86), [0, 1], np.ones((86, 1), dtype=bool), None])
def test_a_mask_has_one_boolean_a_query(report: RetrievalReport, mask: Any) -> None:
    with pytest.raises(ShapeError, match="expected booleans"):
        report.a_to_b.subset(mask)


def test_an_empty_subset_is_refused(report: RetrievalReport) -> None:
    with pytest.raises(ArgumentError, match="the mask holds no query"):
        report.a_to_b.subset(np.zeros(report.a_to_b.n_queries, dtype=bool))


def test_a_report_of_levels_needs_nothing_else() -> None:
    levels = TieLevels.constant(np.array([1, 2]), 10)
    found = DirectionReport.from_levels(levels, (1,), 10, np.array([0, 1]), np.zeros(2), np.array([0, 1]))
    assert found.values == pytest.approx(found.chance, abs=1e-12)
