"""Bootstrap intervals: known spread, resampling of entities, invariances."""

import numpy as np
import pytest

from bridgehead.evaluate import intervals, retrieval_report
from bridgehead.evaluate.intervals import bootstrap_intervals


def interval(values: np.ndarray, entities: np.ndarray | None = None, n: int = 4000) -> tuple[float, float]:
    numbers = np.arange(len(values)) if entities is None else entities
    return bootstrap_intervals({"mrr": values, "rank": 1 / np.maximum(values, 0.1)}, numbers, n, 0)["mrr"]


def test_width_of_a_share_equals_the_binomial_one() -> None:
    values = np.array([1.0] * 120 + [0.0] * 280)
    low, high = interval(values)
    half = 1.96 * np.sqrt(0.3 * 0.7 / 400)
    assert low == pytest.approx(0.3 - half, abs=0.006)
    assert high == pytest.approx(0.3 + half, abs=0.006)


def test_five_views_of_one_entity_count_as_one_piece_of_evidence() -> None:
    values = np.array([1.0] * 30 + [0.0] * 70)
    repeated, entities = np.repeat(values, 5), np.repeat(np.arange(100), 5)
    np.testing.assert_allclose(interval(repeated, entities), interval(values), atol=1e-12)
    assert np.diff(interval(repeated))[0] < 0.6 * np.diff(interval(values))[0]


def test_entities_of_different_sizes_weigh_by_their_queries() -> None:
    values, entities = np.array([1.0, 0.0, 0.0, 0.0]), np.array([0, 1, 1, 1])
    # Two entities: both of one (mean 1 or 0) a quarter of the time each, else the mean of all, 1/4.
    assert interval(values, entities) == (0.0, 1.0)


def test_median_and_mean_rank_equal_a_loop_over_resamples() -> None:
    rng = np.random.default_rng(0)
    ranks = np.sort(rng.integers(1, 50, size=31).astype(float))
    found = bootstrap_intervals({"rank": ranks}, np.arange(31), 3000, 1)
    draws = ranks[rng.integers(0, 31, size=(3000, 31))]
    for name, values in (("median_rank", np.median(draws, axis=1)), ("mean_rank", draws.mean(axis=1))):
        np.testing.assert_allclose(found[name], np.percentile(values, [2.5, 97.5]), atol=2.0)


def test_medians_of_even_and_odd_resamples_are_exact() -> None:
    # Entities of one and of two queries: resamples have 2, 3 or 4 queries.
    ranks, entities = np.array([1.0, 4.0, 10.0]), np.array([0, 1, 1])
    low, high = bootstrap_intervals({"rank": ranks}, entities, 400, 0)["median_rank"]
    assert (low, high) == (1.0, 7.0)


@pytest.mark.parametrize("queries_each", [1, 3])
@pytest.mark.parametrize("n", [1, 511, 512, 513, 3000])
def test_medians_of_many_queries_equal_those_of_the_queries_drawn(n: int, queries_each: int) -> None:
    rng = np.random.default_rng(n)
    ranks = rng.integers(1, 60, size=n * queries_each).astype(float)
    entities = np.repeat(np.arange(n), queries_each)
    if queries_each == 1:
        ranks.sort()
    weights = rng.multinomial(n, np.full(n, 1 / n), size=20).astype(float)
    # A resample of one entity over and over: its ranks alone.
    weights[0] = np.where(np.arange(n) == n // 2, n, 0)
    expected = [np.median(np.repeat(ranks, row[entities].astype(int))) for row in weights]
    np.testing.assert_array_equal(intervals._Medians(ranks, entities).of(weights), expected)


def test_without_ranks_there_are_means_alone() -> None:
    values = np.random.default_rng(5).random(50)
    found = bootstrap_intervals({"gain": values, "zero": np.zeros(50)}, np.arange(50), 100, 0)
    assert found.keys() == {"gain", "zero"}
    assert found["zero"] == (0.0, 0.0) and found["gain"][0] < values.mean() < found["gain"][1]


def test_the_same_seed_gives_the_same_interval_in_any_order_of_queries() -> None:
    rng = np.random.default_rng(2)
    values, entities = rng.random(60), rng.integers(0, 25, 60)
    _, entities = np.unique(entities, return_inverse=True)
    order = rng.permutation(60)
    relabelled = rng.permutation(entities.max() + 1)[entities]
    np.testing.assert_allclose(interval(values, entities), interval(values[order], relabelled[order]), atol=1e-12)


def test_no_resamples_or_one_entity_give_no_interval() -> None:
    assert bootstrap_intervals({"rank": np.ones(3)}, np.arange(3), 0, 0) == {}
    assert bootstrap_intervals({"rank": np.ones(3)}, np.zeros(3, dtype=int), 100, 0) == {}


def test_reports_resample_the_entities_of_their_queries() -> None:
    rng = np.random.default_rng(3)
    z_a = np.repeat(rng.normal(size=(40, 6)), 4, axis=0)
    z_b = rng.normal(size=(40, 6)) + z_a[::4]
    links = np.stack([np.arange(160), np.repeat(np.arange(40), 4)], axis=1)
    labels = np.repeat([f"m{i}" for i in range(40)], 4)
    by_row = retrieval_report(z_a, z_b, links, n_resamples=500).a_to_b
    by_entity = retrieval_report(z_a, z_b, links, entities_a=labels, n_resamples=500).a_to_b
    assert (by_row.n_entities, by_entity.n_entities) == (160, 40)
    assert by_entity.mrr == by_row.mrr
    width = {
        name: report.interval["mrr"][1] - report.interval["mrr"][0]
        for name, report in (("row", by_row), ("entity", by_entity))
    }
    assert width["entity"] == pytest.approx(2 * width["row"], rel=0.25)
