import math

import pytest

from bridgehead.report import Measure, wording


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
