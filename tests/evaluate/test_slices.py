"""Slices of queries: counts, metrics of each, bins of numbers, small and missing labels."""

import json
from typing import Any

import numpy as np
import pytest

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.evaluate import DirectionReport, retrieval_report
from bridgehead.evaluate.slices import UNKNOWN, length_bins, quintiles, slice_report


@pytest.fixture(scope="module")
def direction() -> DirectionReport:
    rng = np.random.default_rng(0)
    z_a = rng.normal(size=(200, 6))
    # Rows of the second half are much nearer to their matches.
    noise = np.where(np.arange(200) < 100, 2.0, 0.2)[:, None]
    links = [[i, i] for i in range(200) if i % 10]
    return retrieval_report(z_a, z_a + noise * rng.normal(size=(200, 6)), links, n_resamples=200).a_to_b


def test_a_planted_easy_part_shows_and_the_slices_make_the_whole(direction: DirectionReport) -> None:
    labels = np.where(np.arange(200) < 100, "hard", "easy")
    found = {one.label: one for one in slice_report(direction, labels, "part")}
    assert found["hard"].report.recall[1] + 0.4 < found["easy"].report.recall[1]
    assert found["hard"].report.interval["recall@1"][1] < found["easy"].report.interval["recall@1"][0]
    assert sum(one.n_queries for one in found.values()) == direction.n_queries == 180
    mean = sum(one.n_queries * one.report.mrr for one in found.values()) / 180
    assert mean == pytest.approx(direction.mrr, abs=1e-12)
    for one in found.values():
        assert one.report.n_candidates == 200
        assert one.report.chance == pytest.approx(direction.chance, abs=1e-12)


def test_a_slice_equals_the_report_of_its_queries_alone(direction: DirectionReport) -> None:
    rng = np.random.default_rng(0)
    z_a = rng.normal(size=(200, 6))
    noise = np.where(np.arange(200) < 100, 2.0, 0.2)[:, None]
    z_b = z_a + noise * rng.normal(size=(200, 6))
    links = [[i, i] for i in range(200) if i % 10]
    alone = retrieval_report(z_a, z_b, links, n_resamples=200, queries_a=np.arange(200) < 60).a_to_b
    one = slice_report(direction, ["x"] * 60 + ["y"] * 140, "part")[1]
    found, expected = one.report.to_dict(), alone.to_dict()
    # Its rows 0, 10, .. are no queries of the whole, so the slice cannot count them.
    assert (found.pop("n_without_truth"), expected.pop("n_without_truth")) == (0, 6)
    assert found == pytest.approx(expected, abs=1e-12)
    assert json.loads(json.dumps(one.to_dict(), allow_nan=False)) == one.to_dict()


def test_largest_come_first_then_the_small_ones_together_and_those_without_a_label(direction: DirectionReport) -> None:
    labels = ["b"] * 90 + ["a"] * 50 + ["c"] * 8 + ["d"] * 7 + [None] * 15 + [""] * 15 + [float("nan")] * 15
    found = [(one.label, one.n_labels, one.n_queries) for one in slice_report(direction, labels, "source", least=10)]
    assert found == [("b", 1, 81), ("a", 1, 45), (UNKNOWN, 1, 41), ("(2 smaller ones)", 2, 13)]
    few = slice_report(direction, labels, "source", least=1, most=1)
    assert [(one.label, one.n_queries) for one in few] == [("b", 81), ("(4 smaller ones)", 99)]


def test_one_small_label_keeps_its_name(direction: DirectionReport) -> None:
    found = slice_report(direction, ["big"] * 195 + ["tiny"] * 5, "source")
    assert [(one.label, one.n_queries) for one in found] == [("big", 175), ("tiny", 5)]


def test_an_item_with_several_labels_is_in_several_slices(direction: DirectionReport) -> None:
    labels: list[Any] = [{"x", "y"}] * 100 + [["y"]] * 50 + [()] * 50
    found = {one.label: one.n_queries for one in slice_report(direction, labels, "class")}
    assert found == {"x": 90, "y": 135, UNKNOWN: 45}


def test_intervals_of_a_slice_are_by_its_entities() -> None:
    rng = np.random.default_rng(1)
    z = rng.normal(size=(40, 8))
    z_a = np.repeat(z, 5, axis=0)
    links = np.stack([np.arange(200), np.repeat(np.arange(40), 5)], axis=1)
    report = retrieval_report(
        z_a, z + 1.5 * rng.normal(size=(40, 8)), links, entities_a=np.repeat(np.arange(40) * 7, 5), n_resamples=100
    ).a_to_b
    one = slice_report(report, ["x"] * 100 + ["y"] * 100, "half")[0]
    assert (one.n_queries, one.n_entities) == (100, 20)
    assert one.report.interval["mrr"][0] < one.report.mrr < one.report.interval["mrr"][1]
    assert slice_report(report, ["x"] * 200, "all", n_resamples=0)[0].report.interval == {}


@pytest.mark.parametrize("labels", [["x"] * 100, np.array(3), 5])
def test_labels_are_one_for_each_row(direction: DirectionReport, labels: Any) -> None:
    with pytest.raises(ShapeError, match=r"labels of 'source'.*expected one for each row"):
        slice_report(direction, labels, "source")


def test_counts_under_one_are_refused(direction: DirectionReport) -> None:
    for options in ({"least": 0}, {"most": True}):
        with pytest.raises(ArgumentError, match="expected a whole number of at least 1"):
            slice_report(direction, ["x"] * 200, "source", **options)


def test_quintiles_have_a_fifth_each_and_are_shown_in_order(direction: DirectionReport) -> None:
    values = np.random.default_rng(2).permutation(200) / 200
    bins = quintiles(values)
    # With two digits the bounds 0.195 and 0.200 would read the same, so they have three.
    assert bins.order[:2] == ("0.000 to 0.195", "0.200 to 0.395")
    assert [bins.labels.count(label) for label in bins.order] == [40] * 5
    assert [one.label for one in slice_report(direction, bins, "similarity")] == list(bins.order)
    for label, value in zip(bins.labels, values, strict=True):
        low, high = (float(end) for end in str(label).split(" to "))
        assert low - 1e-9 <= value <= high + 1e-9


def test_equal_values_share_a_bin_and_missing_ones_have_none() -> None:
    bins = length_bins([5, 5, 5, 5, 5, 5, 7, 9, 1200, 3], n_bins=5)
    # The first three fifths all end at 5, and 3 is too few to be a bin by itself.
    assert bins.order == ("3 to 5 characters", "7 characters", "9 to 1,200 characters")
    assert bins.labels[:6] == ("3 to 5 characters",) * 6
    some = quintiles([0.1, np.nan, 0.2, np.nan], n_bins=2)
    assert some.labels == ("0.10", None, "0.20", None)
    assert quintiles([np.nan] * 3).order == ()
    assert quintiles([]).labels == ()
    assert quintiles([4.0] * 7).order == ("4.00",)


def test_bounds_get_digits_until_no_two_bins_share_one() -> None:
    order = quintiles([0.9991, 0.9992, 0.9993, 0.9994], n_bins=2).order
    assert order == ("0.9991 to 0.9992", "0.9993 to 0.9994")


def test_values_that_cannot_be_binned_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"values has shape \(1, 2\)"):
        quintiles([[1, 2]])
    with pytest.raises(ArgumentError, match="expected numbers"):
        quintiles(["a", "b"])
    with pytest.raises(ArgumentError, match=r"infinity \(first in row 1\)"):
        quintiles([1.0, np.inf])
    for n_bins in (1, 2.5, True):
        with pytest.raises(ArgumentError, match="n_bins"):
            quintiles([1.0, 2.0], n_bins)
