"""The spread of random ranking: against simulation, exact small cases and known limits."""

from itertools import combinations

import numpy as np
import pytest

from bridgehead.errors import ArgumentError
from bridgehead.evaluate import retrieval_report
from bridgehead.evaluate.chance import chance_interval, chance_variance
from bridgehead.evaluate.ties import TieLevels, expected_metrics
from reference import metrics_of_order

METRICS = ("recall@1", "recall@3", "recall_all@3", "ndcg@3", "ndcg@6", "mrr", "r_precision", "mean_rank")


@pytest.mark.parametrize("n_true", [1, 2, 5, 6])
@pytest.mark.parametrize("metric", METRICS)
def test_variance_equals_that_over_all_placements_of_the_true_ones(metric: str, n_true: int) -> None:
    found = [metrics_of_order(range(6), set(places), (1, 3, 6)) for places in combinations(range(6), n_true)]
    values = [one["rank" if metric == "mean_rank" else metric] for one in found]
    assert chance_variance(metric, np.array([n_true]), 6)[0] == pytest.approx(np.var(values), abs=1e-14)


@pytest.mark.parametrize("metric", METRICS)
def test_with_a_true_item_out_of_reach_it_is_that_over_all_placements_of_the_others(metric: str) -> None:
    # Two true ones among five candidates, and a third that is not there.
    found = [metrics_of_order(range(5), {*places, 99}, (1, 3, 6)) for places in combinations(range(5), 2)]
    values = [one["rank" if metric == "mean_rank" else metric] for one in found]
    variance = chance_variance(metric, np.array([3]), np.array([5]), np.array([1]))
    assert variance[0] == pytest.approx(np.var(values), abs=1e-14)
    mean = expected_metrics(TieLevels.constant(np.array([3]), np.array([5]), np.array([1])), (1, 3, 6))
    assert mean["rank" if metric == "mean_rank" else metric][0] == pytest.approx(np.mean(values), abs=1e-14)


def test_queries_with_unlike_pools_have_each_their_own() -> None:
    n_true, pool, missing = np.array([1, 2, 1, 3]), np.array([4, 9, 4, 0]), np.array([0, 0, 1, 3])
    for metric in METRICS:
        found = chance_variance(metric, n_true, pool, missing)
        assert found[0] == chance_variance(metric, np.array([1]), 4)[0]
        assert found[1] == chance_variance(metric, np.array([2]), 9)[0]
        # Nothing is random where no true item can be found.
        assert found[2] == found[3] == 0


def test_k_beyond_the_pool_and_one_candidate_leave_nothing_to_chance() -> None:
    assert chance_variance("recall_all@50", np.array([3]), 10)[0] == 0
    assert all(chance_variance(metric, np.array([1]), 1)[0] == 0 for metric in METRICS)


def test_interval_is_the_normal_one_for_independent_queries() -> None:
    low, high = chance_interval("recall@10", 0.1, np.ones(400, dtype=int), 100, np.arange(400))
    half = 1.96 * np.sqrt(0.1 * 0.9 / 400)
    assert (low, high) == pytest.approx((0.1 - half, 0.1 + half), abs=1e-5)


def test_queries_of_one_entity_widen_it_as_one_query_would() -> None:
    whole = chance_interval("mrr", 0.1, np.ones(100, dtype=int), 50, np.arange(100))
    views = chance_interval("mrr", 0.1, np.ones(500, dtype=int), 50, np.repeat(np.arange(100), 5))
    assert views == pytest.approx(whole, rel=1e-12)


def test_it_is_cut_to_what_the_metric_can_be() -> None:
    assert chance_interval("recall@1", 0.01, np.array([1]), 100, np.array([0]))[0] == 0.0
    assert chance_interval("mean_rank", 1.5, np.array([1]), 2, np.array([0])) == (1.0, 2.0)


def test_a_metric_without_a_spread_is_an_error() -> None:
    report = retrieval_report(np.eye(3), np.eye(3), n_resamples=0).a_to_b
    with pytest.raises(ArgumentError, match="no chance interval for the metric 'map'"):
        report.chance_interval("map")
    with pytest.raises(ArgumentError, match="has no metric 'recall@7'"):
        report.chance_interval("recall@7")
