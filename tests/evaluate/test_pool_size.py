"""Recall by the size of the pool: against drawing pools, enumeration of all of them, and closed forms."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from bridgehead.errors import ArgumentError
from bridgehead.evaluate import report_from_scores, retrieval_report
from bridgehead.evaluate.pool_size import expected_recall_in_pool, recall_by_pool
from bridgehead.evaluate.ties import TieLevels, expected_recall
from bridgehead.links import Links


def tied_problem(seed: int, n: int, n_candidates: int) -> tuple[np.ndarray, np.ndarray, Links]:
    """Whole-number scores, so that many candidates tie, and a few true ones for each query."""
    rng = np.random.default_rng(seed)
    truth = rng.random((n, n_candidates)) < 2.5 / n_candidates
    truth[:, 0] |= ~truth.any(axis=1)
    return rng.integers(0, 4, size=(n, n_candidates)).astype(float), truth, Links(np.argwhere(truth), n, n_candidates)


def recall_of(scores: np.ndarray, truth: np.ndarray, links: Links, k: int) -> np.ndarray:
    return report_from_scores(scores.__getitem__, links=links, ks=(k,), n_resamples=0).a_to_b.per_query[f"recall@{k}"]


def test_it_is_the_mean_over_all_pools_that_keep_the_true_candidates() -> None:
    scores, truth, links = tied_problem(0, 6, 8)
    report = report_from_scores(scores.__getitem__, links=links, n_resamples=0).a_to_b
    for k, size in ((1, 4), (2, 5), (3, 8), (2, 7)):
        found = expected_recall_in_pool(report.levels, k, size)
        for i in range(6):
            true, others = np.flatnonzero(truth[i]), np.flatnonzero(~truth[i])
            if len(true) > size:
                assert np.isnan(found[i])
                continue
            values = []
            for drawn in combinations(others.tolist(), size - len(true)):
                kept = np.append(true, np.array(drawn, dtype=int))
                own = Links([[0, c] for c in range(len(true))], 1, size)
                values.append(recall_of(scores[i : i + 1, kept], truth, own, k)[0])
            assert found[i] == pytest.approx(np.mean(values), abs=1e-12)


def test_it_equals_drawing_pools_at_random() -> None:
    rng = np.random.default_rng(1)
    z_a = rng.normal(size=(300, 8))
    z_b = z_a + 1.2 * rng.normal(size=(300, 8))
    report = retrieval_report(z_a, z_b, n_resamples=0).a_to_b
    scores = (z_a / np.linalg.norm(z_a, axis=1)[:, None]) @ (z_b / np.linalg.norm(z_b, axis=1)[:, None]).T
    found = expected_recall_in_pool(report.levels, 5, 60)
    hits = np.zeros(300)
    above = scores > np.diag(scores)[:, None]
    for _ in range(400):
        # Every query draws 59 of the 299 others for itself.
        keys = rng.random((300, 300))
        np.fill_diagonal(keys, 2.0)
        drawn = np.argpartition(keys, 59, axis=1)[:, :59]
        hits += np.take_along_axis(above, drawn, axis=1).sum(axis=1) < 5
    assert found.mean() == pytest.approx(hits.mean() / 400, abs=4 * np.sqrt(0.25 / 300 / 400))
    np.testing.assert_allclose(found, hits / 400, atol=4.5 * 0.5 / 20)


@pytest.mark.parametrize(("n", "p", "size", "k"), [(1000, 1, 100, 10), (100_000, 3, 1000, 5), (500, 20, 20, 1)])
def test_a_constant_scorer_is_at_the_smaller_pools_chance(n: int, p: int, size: int, k: int) -> None:
    levels = TieLevels.constant(np.array([p]), n)
    expected = expected_recall(TieLevels.constant(np.array([p]), size), k)
    np.testing.assert_allclose(expected_recall_in_pool(levels, k, size), expected, rtol=1e-11)
    (point,) = recall_by_pool(levels, k, (size,))
    assert point.recall == pytest.approx(point.chance, rel=1e-11)
    assert point.corrected == pytest.approx(0, abs=1e-11)


def test_the_whole_pool_gives_the_measured_recall() -> None:
    scores, _, links = tied_problem(2, 80, 50)
    report = report_from_scores(scores.__getitem__, links=links, ks=(3,), n_resamples=100).a_to_b
    np.testing.assert_allclose(expected_recall_in_pool(report.levels, 3, 50), report.per_query["recall@3"], atol=1e-12)
    whole = report.recall_by_pool(3)[-1]
    assert (whole.whole, whole.size, whole.recall) == (True, 50, report.recall[3])
    assert whole.interval == pytest.approx(report.interval["recall@3"], abs=0.03)
    assert whole.chance == pytest.approx(report.chance_recall[3], abs=1e-15)


def test_a_candidate_with_g_above_of_n_others_is_hypergeometric_by_hand() -> None:
    # 2 of 4 others stand above; a pool of 3 keeps 2 of the 4: none of the two in 1 of 6 pools, both in 1 of 6.
    levels = TieLevels(*(np.array([x]) for x in (0, 2, 1, 1)), n_queries=1, n_candidates=5)
    np.testing.assert_allclose(expected_recall_in_pool(levels, 1, 3), [1 / 6], rtol=1e-15)
    np.testing.assert_allclose(expected_recall_in_pool(levels, 2, 3), [5 / 6], rtol=1e-15)
    np.testing.assert_allclose(expected_recall_in_pool(levels, 1, 1), [1.0], rtol=1e-15)


def test_recall_falls_as_the_pool_grows_and_sizes_beyond_it_are_left_out() -> None:
    rng = np.random.default_rng(3)
    z_a = rng.normal(size=(400, 6))
    report = retrieval_report(z_a, z_a + 2 * rng.normal(size=(400, 6)), n_resamples=50).a_to_b
    points = report.recall_by_pool(1, (10_000, 400, 10, 100, None))
    assert [(point.size, point.whole) for point in points] == [(10, False), (100, False), (400, True)]
    assert points[0].recall > points[1].recall > points[2].recall == report.recall[1]
    for point in points:
        assert point.chance == pytest.approx(1 / point.size, rel=1e-12)
        assert point.interval is not None and point.interval[0] < point.recall < point.interval[1]
        assert point.to_dict()["low"] == point.interval[0]


def test_lists_of_candidates_leave_out_queries_whose_list_is_shorter() -> None:
    lists = [[0, 1], [1, 2, 3, 0], [0, 3], []]
    report = retrieval_report(np.eye(4), np.eye(4), ks=(1,), n_resamples=0, candidates=(lists, None)).a_to_b
    small, whole = report.recall_by_pool(1, (2, 9, None))
    # Query 2 ranks two candidates without its true one; query 3 ranks none.
    assert (small.size, small.n_queries, small.recall) == (2, 3, pytest.approx(2 / 3))
    assert small.chance == pytest.approx((1 / 2 + 1 / 2 + 0) / 3, abs=1e-15)
    assert (whole.whole, whole.n_queries, whole.recall) == (True, 4, 2 / 4)


@pytest.mark.parametrize(
    ("k", "sizes"), [(0, (10,)), (1, (0,)), (True, (10,)), (1, (2.5,)), (1, ("10",)), (1.5, (None,))]
)
def test_a_k_or_a_size_under_one_is_refused(k: Any, sizes: Any) -> None:
    with pytest.raises(ArgumentError, match="expected a whole number of at least 1"):
        retrieval_report(np.eye(3), np.eye(3), n_resamples=0).a_to_b.recall_by_pool(k, sizes)


def test_a_hundred_thousand_queries_take_no_loop_over_pairs() -> None:
    rng = np.random.default_rng(4)
    n = 100_000
    above = rng.integers(0, n - 1, n)
    levels = TieLevels(np.arange(n), above, np.ones(n, dtype=int), np.ones(n, dtype=int), n, n)
    found = expected_recall_in_pool(levels, 10, 1000)
    # Of 999 drawn others about as many stand above as of all: the same recall as at the same share of the pool.
    assert found.mean() == pytest.approx(10 / 1000, abs=0.002)
