"""Expectations over ties: against enumeration of all orders, closed forms, and numbers worked by hand."""

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgehead.evaluate.ties import TieLevels, expected_metrics, first_place_odds
from reference import enumerated_metrics

KS = (1, 2, 3, 5, 9)


def levels_of(scores: list[int], true: set[int]) -> TieLevels:
    """Tie levels of one query with whole-number scores, from the definition."""
    found = sorted({scores[i] for i in true}, reverse=True)
    columns = [
        (0, sum(s > level for s in scores), scores.count(level), sum(scores[i] == level for i in true))
        for level in found
    ]
    query, above, tied, n_true = np.array(columns, dtype=np.int64).T
    return TieLevels(query, above, tied, n_true, 1, len(scores))


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=7))
@settings(max_examples=150, deadline=None)
def test_every_metric_is_its_mean_over_all_orders_of_tied_candidates(candidates: list[tuple[int, bool]]) -> None:
    scores = [score for score, _ in candidates]
    true = {i for i, (_, is_true) in enumerate(candidates) if is_true} or {0}
    expected = enumerated_metrics(scores, true, KS)
    found = expected_metrics(levels_of(scores, true), KS)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name][0] == pytest.approx(value, abs=1e-12), name


def test_a_tie_of_four_with_two_true_below_one_other_by_hand() -> None:
    levels = levels_of([9, 5, 5, 5, 5, 1], {1, 2})
    found = expected_metrics(levels, (1, 2, 3))
    # First true one at place 1, 2, 3 of the tie with 3/6, 2/6, 1/6.
    np.testing.assert_allclose(first_place_odds(4, 2), [3 / 6, 2 / 6, 1 / 6], rtol=1e-15)
    assert found["mrr"][0] == pytest.approx(3 / 6 / 2 + 2 / 6 / 3 + 1 / 6 / 4, rel=1e-15)
    assert found["recall@1"][0] == 0
    assert found["recall@2"][0] == pytest.approx(1 / 2, rel=1e-15)
    assert found["recall@3"][0] == pytest.approx(5 / 6, rel=1e-15)
    assert found["recall_all@2"][0] == pytest.approx(1 / 4, rel=1e-15)
    assert found["rank"][0] == pytest.approx(1 + 5 / 3, rel=1e-15)


@pytest.mark.parametrize("n", [1, 2, 10, 1000, 100_000])
def test_a_constant_scorer_has_recall_k_over_n_and_mrr_harmonic_over_n(n: int) -> None:
    found = expected_metrics(TieLevels.constant(np.array([1]), n), (1, 10, 10 * n))
    harmonic = sum(1 / np.longdouble(j) for j in range(1, n + 1))
    assert found["recall@1"][0] == pytest.approx(1 / n, rel=1e-14)
    assert found["recall@10"][0] == pytest.approx(min(10, n) / n, rel=1e-14)
    assert found[f"recall@{10 * n}"][0] == 1
    assert found["mrr"][0] == pytest.approx(float(harmonic / n), rel=1e-14)
    assert found["map"][0] == pytest.approx(float(harmonic / n), rel=1e-14)
    assert found["rank"][0] == (n + 1) / 2


@pytest.mark.parametrize(("n", "p", "k"), [(50, 3, 10), (400, 37, 25), (2000, 900, 4), (30, 30, 1)])
def test_chance_recall_is_hypergeometric(n: int, p: int, k: int) -> None:
    found = expected_metrics(TieLevels.constant(np.array([p]), n), (k,))
    assert found[f"recall@{k}"][0] == pytest.approx(1 - comb(n - p, k) / comb(n, k), rel=1e-12)
    assert found[f"recall_all@{k}"][0] == pytest.approx(k / n, rel=1e-14)
    assert found["rank"][0] == pytest.approx((n + 1) / (p + 1), rel=1e-14)


def test_precision_holds_for_a_small_tie_deep_in_a_large_pool() -> None:
    above, tied, true, n = 99_990, 3, 2, 100_000
    levels = TieLevels(*(np.array([x]) for x in (0, above, tied, true)), n_queries=1, n_candidates=n)
    found = expected_metrics(levels, (1,))
    pairs = [(1, 2), (1, 3), (2, 3)]
    expected = sum((1 / (above + i) + 2 / (above + j)) / 2 for i, j in pairs) / 3
    assert found["map"][0] == pytest.approx(expected, rel=1e-8, abs=1e-13)


def test_untied_rankings_equal_scikit_learn() -> None:
    from sklearn.metrics import average_precision_score, ndcg_score

    rng = np.random.default_rng(3)
    scores = rng.permutation(60).tolist()
    true = set(rng.choice(60, size=9, replace=False).tolist())
    labels = np.array([i in true for i in range(60)])
    found = expected_metrics(levels_of(scores, true), (10, 60))
    assert found["map"][0] == pytest.approx(average_precision_score(labels, scores), abs=1e-12)
    for k in (10, 60):
        expected = ndcg_score(labels[None].astype(float), np.array([scores], dtype=float), k=k)
        assert found[f"ndcg@{k}"][0] == pytest.approx(expected, abs=1e-12)


def test_tied_ndcg_equals_scikit_learns_average_over_ties() -> None:
    from sklearn.metrics import ndcg_score

    rng = np.random.default_rng(4)
    scores = rng.integers(0, 6, size=40).tolist()
    true = set(rng.choice(40, size=7, replace=False).tolist())
    labels = np.array([[float(i in true) for i in range(40)]])
    found = expected_metrics(levels_of(scores, true), (5, 20))
    for k in (5, 20):
        expected = ndcg_score(labels, np.array([scores], dtype=float), k=k, ignore_ties=False)
        assert found[f"ndcg@{k}"][0] == pytest.approx(expected, abs=1e-12)


def test_undecided_counts_only_ties_between_true_and_other_candidates() -> None:
    assert levels_of([3, 3, 1], {0, 1}).undecided.tolist() == [False]
    assert levels_of([3, 3, 1], {0}).undecided.tolist() == [True]
