"""Spread over seeds and folds, and the corrected resampled t test: by hand, against SciPy, and false alarms."""

import math

import numpy as np
import pytest
from scipy import stats

from bridgehead.errors import ArgumentError, NonFiniteRowsError, ShapeError
from bridgehead.evaluate.folds import corrected_difference, fold_spread


def test_seeds_and_folds_vary_apart() -> None:
    # Within a fold the seeds differ by 0.2 around its mean; the means are 0.3, 0.5 and 0.7.
    found = fold_spread([[0.2, 0.4], [0.4, 0.6], [0.6, 0.8]])
    assert found.mean == pytest.approx(0.5)
    assert found.sd_seeds == pytest.approx(math.sqrt(0.02))
    assert found.sd_folds == pytest.approx(0.2)
    assert (found.n_folds, found.n_seeds) == (3, 2)


def test_seeds_that_change_nothing_leave_the_spread_to_the_folds() -> None:
    found = fold_spread([[0.1, 0.1], [0.5, 0.5]])
    assert found.sd_seeds == 0 and found.sd_folds == pytest.approx(np.std([0.1, 0.5], ddof=1))


def test_one_seed_or_one_fold_says_nothing_of_its_spread() -> None:
    assert fold_spread([[0.1], [0.2]]).sd_seeds is None
    assert fold_spread([[0.1, 0.2]]).sd_folds is None


def test_the_corrected_test_is_the_formula_of_nadeau_and_bengio() -> None:
    d = np.array([0.02, 0.05, -0.01, 0.04, 0.03])
    found = corrected_difference(d, 0.25)
    t = d.mean() / math.sqrt((1 / 5 + 0.25) * d.var(ddof=1))
    assert found.p_value == pytest.approx(2 * stats.t.sf(t, 4))
    half = stats.t.ppf(0.975, 4) * math.sqrt(0.45 * d.var(ddof=1))
    assert found.interval == pytest.approx((d.mean() - half, d.mean() + half))
    assert found.to_dict()["low"] == found.interval[0]  # type: ignore[index]


def test_without_overlap_it_is_the_plain_paired_test() -> None:
    d = np.array([0.3, -0.1, 0.2, 0.4])
    assert corrected_difference(d, 1e-15).p_value == pytest.approx(stats.ttest_1samp(d, 0).pvalue)


def test_it_keeps_false_alarms_down_where_folds_are_correlated() -> None:
    # Folds of ten repeats of five share most of their data: here a common part and one of their own.
    rng = np.random.default_rng(0)
    plain, corrected = 0, 0
    for _ in range(1000):
        d = math.sqrt(0.2) * rng.standard_normal() + math.sqrt(0.8) * rng.standard_normal(50)
        plain += bool(stats.ttest_1samp(d, 0).pvalue <= 0.05)
        corrected += (corrected_difference(d, 0.25).p_value or 0) <= 0.05
    assert plain > 500 and corrected < 80


def test_folds_that_all_differ_alike_and_one_fold_alone() -> None:
    same = corrected_difference([0.1, 0.1, 0.1], 0.5)
    assert (same.p_value, same.interval) == (0.0, pytest.approx((0.1, 0.1)))
    assert corrected_difference([0.0, 0.0], 0.5).p_value == 1.0
    one = corrected_difference([0.1], 0.5)
    assert (one.value, one.sd, one.interval, one.p_value) == (0.1, None, None, None)
    assert one.to_dict()["high"] is None


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fold_spread([0.1, 0.2]), ShapeError, r"values has shape \(2,\); expected \(n_folds, n_seeds\)"),
        (lambda: fold_spread(np.zeros((0, 2))), ShapeError, "one or more of each"),
        (lambda: fold_spread([[0.1, math.nan]]), NonFiniteRowsError, r"NaN or infinity \(fold 0\)"),
        (lambda: corrected_difference([[0.1]], 0.2), ShapeError, "differences has shape"),
        (lambda: corrected_difference([], 0.2), ArgumentError, "of no folds"),
        (lambda: corrected_difference([0.1], 0.0), ArgumentError, r"ratio = 0\.0"),
        (lambda: corrected_difference([0.1, math.inf], 0.2), NonFiniteRowsError, "fold 1"),
        (lambda: corrected_difference(["x"], 0.2), ArgumentError, "expected numbers"),
    ],
)
def test_bad_input_is_refused(call, error, message) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=message):
        call()
