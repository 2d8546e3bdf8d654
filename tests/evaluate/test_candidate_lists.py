"""Lists of candidates: uniform draws of others, tolerance windows against a loop, how the report takes them."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from bridgehead.errors import ArgumentError, NonFiniteRowsError, ShapeError
from bridgehead.evaluate import retrieval_report
from bridgehead.evaluate.candidate_lists import choose_among, within_tolerance
from bridgehead.links import Links


def lists_of(found: tuple[np.ndarray, np.ndarray]) -> list[list[int]]:
    return [own.tolist() for own in np.split(found[1], found[0][1:-1])]


@pytest.mark.parametrize("t", [1, 2, 5, 17, 30, 99])
def test_a_list_has_all_true_candidates_and_so_many_others(t: int) -> None:
    rng = np.random.default_rng(0)
    truth = rng.random((40, 30)) < 0.15
    truth[3] = False
    truth[4] = True
    lists = lists_of(choose_among(Links(np.argwhere(truth), 40, 30), 30, t, seed=1))
    for own, true in zip(lists, truth, strict=True):
        assert own == sorted(set(own))
        assert set(np.flatnonzero(true)) <= set(own)
        n_true = int(true.sum())
        assert len(own) - n_true == (min(t - 1, 30 - n_true) if n_true else 0)


@pytest.mark.parametrize("t", [3, 5])
def test_each_set_of_others_is_equally_likely(t: int) -> None:
    # Candidates 1 and 3 of 8 are true, which leaves 6 others: 2 of them are drawn by places, 4 by keys.
    n = 6000
    links = Links([[i, j] for i in range(n) for j in (1, 3)], n, 8)
    lists = lists_of(choose_among(links, 8, t, seed=2))
    sets = [tuple(c for c in own if c not in (1, 3)) for own in lists]
    possible = list(combinations([0, 2, 4, 5, 6, 7], t - 1))
    counts = np.array([sets.count(one) for one in possible])
    assert counts.sum() == n
    expected = n / len(possible)
    # Pearson's statistic has len - 1 = 14 degrees of freedom; 36 is its 99.9th percentile.
    assert ((counts - expected) ** 2 / expected).sum() < 36.1


def test_a_seed_repeats_its_lists_and_another_draws_others() -> None:
    links = Links.identity(200)
    one, again, other = (choose_among(links, 500, 20, seed)[1] for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)
    assert one.max() > 200


def test_choosing_among_four_random_rows_is_right_a_quarter_of_the_time() -> None:
    rng = np.random.default_rng(3)
    z_a, z_b = rng.normal(size=(800, 16)), rng.normal(size=(800, 16))
    lists = choose_among(Links.identity(800), 800, 4), choose_among(Links.identity(800).swapped(), 800, 4)
    report = retrieval_report(z_a, z_b, ks=(1, 4), candidates=lists, n_resamples=0)
    for direction in (report.a_to_b, report.b_to_a):
        assert direction.chance_recall == {1: 0.25, 4: 1.0}
        assert direction.recall[4] == 1.0
        low, high = direction.chance_interval("recall@1")
        assert low - 0.02 < direction.recall[1] < high + 0.02


@pytest.mark.parametrize(("relative", "tolerance"), [(False, 0.5), (True, 0.01), (False, 0.0)])
def test_tolerance_lists_equal_a_loop(relative: bool, tolerance: float) -> None:
    rng = np.random.default_rng(4)
    queries, candidates = rng.uniform(-50, 150, 60).round(1), rng.uniform(-50, 150, 200).round(1)
    found = lists_of(within_tolerance(queries, candidates, tolerance, relative))
    for value, own in zip(queries, found, strict=True):
        width = tolerance * abs(value) if relative else tolerance
        assert own == np.flatnonzero(np.abs(candidates - value) <= width + 1e-12).tolist()


def test_a_value_exactly_at_the_tolerance_is_inside() -> None:
    assert lists_of(within_tolerance([100.1], [100.4, 99.8, 100.41], 0.3)) == [[0, 1]]


def test_true_items_outside_the_tolerance_are_counted_as_missing() -> None:
    masses = np.array([100.0, 100.2, 300.0, 500.0])
    lists = within_tolerance([100.1, 100.1, 300.1, 700.0], masses, 0.5)
    report = retrieval_report(np.eye(4), np.eye(4), ks=(1,), candidates=(lists, None), n_resamples=0).a_to_b
    assert report.pool.tolist() == [2, 2, 1, 0]
    assert (report.n_true_missing, report.recall[1]) == (1, 3 / 4)


def test_a_hundred_thousand_queries_make_no_square() -> None:
    rng = np.random.default_rng(5)
    masses = rng.uniform(100, 1000, 100_000)
    indptr, indices = within_tolerance(masses, masses, 10e-6, relative=True)
    assert 1e5 <= len(indices) < 3e5
    assert (np.diff(indptr) >= 1).all()


@pytest.mark.parametrize(("t", "n"), [(0, 5), (True, 5), (2.5, 5), (2, 4)])
def test_counts_out_of_range_are_refused(t: Any, n: Any) -> None:
    with pytest.raises(ArgumentError, match="expected a whole number of at least"):
        choose_among(Links.identity(5), n, t)


def test_values_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(NonFiniteRowsError, match=r"values_queries is NaN or infinite for 1 items \(rows 1\)"):
        within_tolerance([1.0, np.nan], [1.0], 0.1)
    with pytest.raises(ShapeError, match=r"values_candidates has shape \(1, 1\)"):
        within_tolerance([1.0], [[1.0]], 0.1)
    with pytest.raises(ArgumentError, match="values_queries has dtype"):
        within_tolerance(["1.0"], [1.0], 0.1)
    for tolerance in (-0.1, np.nan, "0.1", True):
        with pytest.raises(ArgumentError, match="expected a number of 0 or more"):
            within_tolerance([1.0], [1.0], tolerance)


def test_no_queries_and_no_candidates_make_empty_lists() -> None:
    assert [part.tolist() for part in within_tolerance([], [], 1.0)] == [[0], []]
    assert [part.tolist() for part in choose_among(Links(np.zeros((0, 2), dtype=int), 2, 3), 3, 2)] == [[0, 0, 0], []]
