import numpy as np
import pytest

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.report import pick_queries


def listed(*args, **options):
    return {kind: found.tolist() for kind, found in pick_queries(*args, **options).items()}


def test_best_worst_and_the_middle_in_the_order_of_showing():
    ranks = [7.0, 1.0, 3.0, 2.0, 6.0, 5.0, 4.0]
    assert listed(ranks, n=3) == {"best": [1, 3, 2], "median": [2, 6, 5], "worst": [0, 4, 5]}


def test_equal_ranks_are_ordered_by_score_and_then_by_place():
    assert listed([1, 1, 1, 1], [0.1, 0.9, 0.1, 0.5], n=4)["best"] == [1, 3, 0, 2]
    assert listed([1, 1, 1, 1], [0.1, 0.9, 0.1, 0.5], n=4)["worst"] == [2, 0, 3, 1]


def test_an_item_out_of_reach_has_no_score_and_is_worst():
    assert listed([9, 9, 9], [np.nan, 0.2, 0.1], n=1)["worst"] == [0]


def test_an_entity_stands_once_in_a_list():
    found = listed([1, 2, 3, 4, 5, 6], entities=["x", "x", "x", "y", "y", "z"], n=3)
    assert found["best"] == [0, 3, 5]
    assert found["worst"] == [5, 4, 2]
    assert found["median"] == [2, 3, 5]


def test_with_few_queries_the_lists_overlap_and_no_more_are_shown():
    assert listed([2.0], n=20) == {"best": [0], "median": [0], "worst": [0]}
    assert listed([], n=20) == {"best": [], "median": [], "worst": []}


def test_the_middle_of_many_is_around_the_median():
    ranks = np.random.default_rng(0).permutation(1001).astype(float)
    middle = ranks[pick_queries(ranks, n=5)["median"]]
    assert middle.tolist() == [498, 499, 500, 501, 502]


def test_infinite_ranks_are_worst():
    assert listed([np.inf, 1, 2], n=1)["worst"] == [0]


@pytest.mark.parametrize(
    ("arguments", "options", "error", "match"),
    [
        (([1.0, np.nan],), {}, ArgumentError, "NaN"),
        (([[1.0]],), {}, ShapeError, "one dimension"),
        (([1.0], [1.0, 2.0]), {}, ShapeError, "scores have shape"),
        (([1.0],), {"entities": ["a", "b"]}, ShapeError, "entities have shape"),
        (([1.0],), {"n": 0}, ArgumentError, "at least 1"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, options, error, match):
    with pytest.raises(error, match=match):
        pick_queries(*arguments, **options)
