"""Paired differences: the permutation test against full enumeration and McNemar, intervals, invariances, bad input."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy import stats

from bridgehead.errors import ArgumentError, NonFiniteRowsError, ShapeError
from bridgehead.evaluate import retrieval_report
from bridgehead.evaluate.paired import PairedDifference, compare_reports, paired_difference


def naive_p(differences: np.ndarray, entities: np.ndarray) -> float:
    """Go through every sign pattern over all entities, those without a difference included."""
    sums = [differences[entities == entity].sum() for entity in np.unique(entities)]
    patterns = list(itertools.product((-1, 1), repeat=len(sums)))
    hits = sum(abs(np.dot(signs, sums)) >= abs(sum(sums)) - 1e-9 for signs in patterns)
    return hits / len(patterns)


def test_the_difference_is_that_of_the_means() -> None:
    found = paired_difference([1.0, 0.5, 0.0], [0.0, 0.5, 0.25])
    assert (found.first, found.second) == (0.5, 0.25)
    assert found.value == pytest.approx(0.25)
    assert (found.n_queries, found.n_entities, found.n_differing) == (3, 3, 2)


def test_p_equals_the_enumeration_of_all_sign_patterns() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random(9), rng.random(9)
    found = paired_difference(x, y)
    assert found.exact
    assert found.p_value == pytest.approx(naive_p(x - y, np.arange(9)), abs=1e-12)


def test_p_by_entity_equals_the_enumeration_over_entities() -> None:
    rng = np.random.default_rng(1)
    x, y, entities = rng.random(30), rng.random(30), rng.integers(0, 8, 30)
    assert paired_difference(x, y, entities).p_value == pytest.approx(naive_p(x - y, entities), abs=1e-12)


def test_hits_at_one_give_the_exact_test_of_mcnemar() -> None:
    x = np.array([1] * 9 + [0] * 2 + [1] * 40 + [0] * 40)
    y = np.array([0] * 9 + [1] * 2 + [1] * 40 + [0] * 40)
    found = paired_difference(x, y)
    assert found.exact and found.n_differing == 11
    assert found.p_value == pytest.approx(stats.binomtest(9, 11).pvalue, abs=1e-12)


def test_many_equal_differences_follow_the_binomial() -> None:
    # 400 entities that differ: drawn as one binomial, since a value that many have needs no sign of its own.
    x, y = np.array([1.0] * 225 + [0.0] * 175), np.array([0.0] * 225 + [1.0] * 175)
    found = paired_difference(x, y, n_permutations=200_000)
    assert not found.exact
    assert found.p_value == pytest.approx(stats.binomtest(225, 400).pvalue, abs=0.001)


def test_random_signs_come_close_to_all_of_them() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.random(12) + 0.2, rng.random(12)
    exact = paired_difference(x, y)
    drawn = paired_difference(x, y, n_permutations=4000)
    assert exact.exact and not drawn.exact
    assert drawn.p_value == pytest.approx(exact.p_value, abs=4 * math.sqrt(exact.p_value / 4000))


def test_a_drawn_p_is_never_zero() -> None:
    found = paired_difference(np.ones(500), np.zeros(500), n_permutations=999)
    assert found.p_value == pytest.approx(1 / 1000)


def test_under_no_difference_p_is_uniform() -> None:
    rng = np.random.default_rng(4)
    p = [
        paired_difference(rng.random(25), rng.random(25), n_resamples=0, n_permutations=499).p_value for _ in range(400)
    ]
    assert stats.kstest(p, "uniform").pvalue > 0.01
    assert 0.02 < np.mean(np.array(p) <= 0.05) < 0.09


def test_the_interval_is_as_wide_as_the_normal_one() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.random(2000), rng.random(2000)
    found = paired_difference(x, y, n_resamples=4000)
    assert found.interval is not None and found.standard_error is not None
    assert found.standard_error == pytest.approx(np.std(x - y, ddof=1) / math.sqrt(2000), rel=1e-9)
    assert found.sd == pytest.approx(np.std(x - y, ddof=1), rel=1e-9)
    assert found.interval[0] == pytest.approx(found.value - 1.96 * found.standard_error, abs=0.001)
    assert found.interval[1] == pytest.approx(found.value + 1.96 * found.standard_error, abs=0.001)


def test_the_interval_covers_the_true_difference_nineteen_times_in_twenty() -> None:
    rng = np.random.default_rng(6)
    inside = 0
    for _ in range(300):
        shared = rng.random(60)
        found = paired_difference(shared + 0.3 + 0.2 * rng.standard_normal(60), shared, n_permutations=1)
        assert found.interval is not None
        inside += found.interval[0] <= 0.3 <= found.interval[1]
    assert inside / 300 > 0.9


def test_views_of_one_entity_count_as_one_piece_of_evidence() -> None:
    rng = np.random.default_rng(7)
    x, y = rng.random(40), rng.random(40)
    single = paired_difference(x, y)
    copied = paired_difference(np.repeat(x, 5), np.repeat(y, 5), np.repeat(np.arange(40), 5))
    assert copied.interval == pytest.approx(single.interval)
    assert copied.p_value == single.p_value
    assert copied.sd == pytest.approx(single.sd)


def test_an_exchange_of_the_two_changes_signs_only() -> None:
    rng = np.random.default_rng(8)
    x, y, entities = rng.random(90), rng.random(90) + 0.05, rng.integers(0, 40, 90)
    one, other = paired_difference(x, y, entities), paired_difference(y, x, entities)
    assert one.interval is not None and other.interval is not None
    assert other.interval == pytest.approx((-one.interval[1], -one.interval[0]), abs=1e-15)
    assert (one.p_value, one.standard_error) == (other.p_value, other.standard_error)
    assert one.value == pytest.approx(-other.value, abs=1e-15)


def test_neither_the_order_of_queries_nor_the_names_of_entities_matter() -> None:
    rng = np.random.default_rng(9)
    x, y, entities = rng.random(200), rng.random(200), rng.integers(0, 60, 200)
    order = rng.permutation(200)
    names = np.array([f"entity {997 * entity % 61}" for entity in entities])
    one, other = paired_difference(x, y, entities), paired_difference(x[order], y[order], names[order])
    assert one.p_value == other.p_value
    assert other.interval == pytest.approx(one.interval, abs=1e-12)


def test_models_that_are_equal_do_not_differ() -> None:
    found = paired_difference(np.full(50, 0.3), np.full(50, 0.3))
    assert (found.value, found.interval, found.p_value, found.exact, found.sd) == (0.0, (0.0, 0.0), 1.0, True, 0.0)


def test_one_entity_says_nothing() -> None:
    found = paired_difference([1.0, 1.0, 1.0], [0.0, 0.0, 0.0], ["x", "x", "x"])
    assert (found.value, found.interval, found.p_value, found.standard_error, found.sd) == (1.0, None, 1.0, None, None)


def test_without_resamples_there_is_no_interval() -> None:
    assert paired_difference([1.0, 0.0, 1.0], [0.0, 0.0, 1.0], n_resamples=0).interval is None


def test_tensors_and_truth_values_are_taken_as_they_are() -> None:
    x, y = [True, True, False, True], [False, True, False, False]
    assert paired_difference(torch.tensor(x), np.array(y)) == paired_difference([1.0, 1, 0, 1], [0.0, 1, 0, 0])
    half = paired_difference(torch.tensor([0.5, 0.25], dtype=torch.float16), [0.0, 0.0])
    assert half.value == pytest.approx(0.375)


def test_the_entries_are_plain_and_the_line_can_be_read() -> None:
    found = PairedDifference(0.5, 0.25, 0.25, (0.1, 0.4), 0.0004, False, 0.05, 100, 90, 30)
    assert found.to_dict()["low"] == 0.1 and found.to_dict()["sd"] == pytest.approx(0.05 * math.sqrt(90))
    assert found.line("mrr") == (
        "mrr: 0.500 and 0.250, difference +0.250 (+0.100 to +0.400), p < 0.001; 30 of 90 entities differ"
    )


@pytest.mark.parametrize(
    ("x", "y", "options", "error", "message"),
    [
        ([1.0, 2.0], [1.0], {}, ShapeError, "metric_x is of 2 queries and metric_y of 1"),
        ([], [], {}, ArgumentError, "metric_x is of no queries"),
        ([[1.0]], [[1.0]], {}, ShapeError, r"metric_x has shape \(1, 1\); expected one dimension"),
        ([1.0, math.nan, math.inf], [1.0, 1.0, 1.0], {}, NonFiniteRowsError, r"metric_x .* 2 queries \(rows 1, 2\)"),
        ([1.0], [-math.inf], {}, NonFiniteRowsError, r"metric_y .* \(rows 0\)"),
        (["a"], ["b"], {}, ArgumentError, "metric_x has dtype .*; expected numbers"),
        ([None], [1.0], {}, ArgumentError, "metric_x has dtype object"),
        ([1.0, 2.0], [1.0, 2.0], {"entities": ["x"]}, ShapeError, r"entities has shape \(1,\); expected \(2,\)"),
        ([1.0, 2.0], [1.0, 2.0], {"entities": np.array(["x", 1], dtype=object)}, ArgumentError, "several types"),
        ([1.0], [1.0], {"n_resamples": -1}, ArgumentError, "n_resamples = -1"),
        ([1.0], [1.0], {"n_permutations": 0}, ArgumentError, "n_permutations = 0"),
        ([1.0], [1.0], {"n_permutations": True}, ArgumentError, "n_permutations = True"),
    ],
)
def test_bad_input_is_refused(x, y, options, error, message) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=message):
        paired_difference(x, y, **options)


def reports(noise: float = 0.6, n: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    z = rng.standard_normal((n, 8))
    return z, z + noise * rng.standard_normal((n, 8)), z + 2 * noise * rng.standard_normal((n, 8))


def test_reports_on_the_same_queries_are_compared_metric_by_metric() -> None:
    z, near, far = reports()
    first, second = (retrieval_report(z, other, n_resamples=0) for other in (near, far))
    found = compare_reports(first, second)
    assert set(found) == {f"{side}.{n}" for side in ("a_to_b", "b_to_a") for n in first.a_to_b.values} - {
        "a_to_b.median_rank",
        "b_to_a.median_rank",
    }
    for key, difference in found.items():
        assert difference.value == pytest.approx(first.value(key) - second.value(key), abs=1e-12)
    assert found["a_to_b.mrr"].p_value < 0.01 and found["a_to_b.mean_rank"].value < 0


def test_one_direction_is_compared_by_itself_and_only_where_asked() -> None:
    z, near, far = reports()
    first, second = (retrieval_report(z, other, n_resamples=0).a_to_b for other in (near, far))
    found = compare_reports(first, second, metrics=["mrr"])
    assert list(found) == ["mrr"]
    assert found["mrr"] == paired_difference(first.per_query["mrr"], second.per_query["mrr"])


def test_views_of_entities_are_resampled_together() -> None:
    z, near, far = reports()
    entities = np.arange(40) // 4
    first, second = (
        retrieval_report(z, other, n_resamples=0, entities_a=entities, entities_b=entities) for other in (near, far)
    )
    assert compare_reports(first, second)["a_to_b.mrr"].n_entities == 10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"queries_a": np.arange(40) < 39}, "a_to_b: the first report has 40 queries and the second 39"),
        ({"entities_a": np.arange(40) // 2}, r"a_to_b: the entities of the queries differ \(39 of 40\)"),
        ({"links": np.stack([np.arange(40)[::-1]] * 2, axis=1)[:39]}, "the first report has 40 queries"),
        ({"links": [*([i, i] for i in range(40)), [0, 1]]}, r"numbers of true candidates differ \(1 of 40\)"),
    ],
)
def test_reports_on_other_queries_are_refused(change: dict, message: str) -> None:  # type: ignore[type-arg]
    z, near, far = reports()
    with pytest.raises(ArgumentError, match=message):
        compare_reports(retrieval_report(z, near, n_resamples=0), retrieval_report(z, far, n_resamples=0, **change))


def test_other_candidates_are_refused_and_so_is_one_direction_beside_two() -> None:
    z, near, far = reports()
    first = retrieval_report(z, near, n_resamples=0)
    more = retrieval_report(z, np.concatenate([far, far[:1]]), np.stack([np.arange(40)] * 2, axis=1), n_resamples=0)
    with pytest.raises(ArgumentError, match=r"numbers of candidates that each query ranked differ \(40 of 40\)"):
        compare_reports(first, more)
    with pytest.raises(ArgumentError, match="expected two of one kind"):
        compare_reports(first, first.a_to_b)
    with pytest.raises(ArgumentError, match=r"do not both have nonsense; both have a_to_b\.recall@1"):
        compare_reports(first, first, metrics=["nonsense"])
