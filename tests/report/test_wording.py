import math

import pytest

from bridgehead.report import Direction, Measure, wording


@pytest.mark.parametrize(
    ("value", "name", "shown"),
    [
        (0.6842, "recall@10", "0.684"),
        (0.0, "mrr", "0.000"),
        (0.00012, "recall@10", "1.2e-04"),
        (1363.0, "median_rank", "1,363"),
        (2.5, "median_rank", "2.5"),
        (None, "mrr", "–"),
        (math.nan, "mrr", "–"),
        (math.inf, "mean_rank", "–"),
    ],
)
def test_a_number_is_written_as_its_measure_asks(value, name, shown):
    assert wording.number(value, name) == shown


def test_an_interval_needs_both_ends():
    assert wording.interval(Measure(0.5, 0.4, 0.6)) == "0.400 to 0.600"
    assert wording.interval(Measure(0.5, 0.4)) == "–"


def test_measures_are_named_and_explained():
    assert wording.measure_label("mrr") == "MRR"
    assert wording.measure_explained("recall@5") == "share of queries with a true item among the first 5"
    assert wording.measure_explained("recall_all@5") == "share of a query's true items among the first 5"
    assert wording.measure_explained("something") == ""
    assert wording.count(12345) == "12,345" and wording.count(None) == "–"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.0, "under 0.1 s"), (3.14, "3.1 s"), (9.96, "10 s"), (59.7, "1 min 00 s"), (245.0, "4 min 05 s"),
        (3599.7, "1 h 00 min"), (7380.0, "2 h 03 min"), (None, "–"), (math.nan, "–"), (-1.0, "–"),
    ],
)  # fmt: skip
def test_a_time_is_written_in_the_unit_that_reads_well(seconds, shown):
    assert wording.seconds(seconds) == shown


def test_memory_is_in_powers_of_ten():
    assert wording.memory(812_000_000) == "812 MB"
    assert wording.memory(1_930_000_000) == "1.9 GB"
    assert wording.memory(None) == "–"


@pytest.mark.parametrize(
    ("value", "shown"),
    [(100.0, "100"), (12345.0, "12,345"), (0.12, "0.12"), (0.123456, "0.1235"), (1234.5, "1,234"), (0.00012, "1.2e-04"),
     (0.0, "0"), (math.inf, "–"), (None, "–")],
)  # fmt: skip
def test_a_figure_of_any_kind_has_four_digits(value, shown):
    assert wording.figure(value) == shown


def test_a_difference_has_its_sign():
    assert wording.signed(0.0123) == "+0.012"
    assert wording.signed(-0.0123) == "-0.012"
    assert wording.signed(0.0) == "+0.000"
    assert wording.signed(None) == "–"


def test_a_p_value_below_a_thousandth_is_a_bound():
    assert wording.chance(0.0004) == "< 0.001" and wording.chance(0.0312) == "0.031" and wording.chance(None) == "–"


def test_cells_are_texts_numbers_or_nothing():
    assert [wording.cell(value) for value in ("x", 12345, 0.5, None, True)] == ["x", "12345", "0.5", "", "yes"]


def test_how_often_is_whole_from_ten_on():
    assert [wording.times(value) for value in (151.2, 9.96, 6.0, None)] == ["151", "10", "6", "–"]


def test_only_shares_are_drawn_as_bars():
    assert wording.is_share("recall@10") and wording.is_share("mrr") and not wording.is_share("median_rank")


def test_what_each_query_ranked_is_one_pool_or_lists_of_their_own():
    same = Direction("a", "b", 3, 812, {}, pool=[812, 812, 812])
    assert wording.candidates(same) == "812 candidates"
    own = Direction("a", "b", 3, 9000, {}, pool=[2, 7, 9000])
    assert wording.candidates(own) == "a list of its own (2 to 9,000 candidates, median 7)"
