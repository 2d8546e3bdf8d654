"""Calibration error, coverage curves and thresholds: by hand, against loops, and where they say nothing."""

import numpy as np
import pytest

from bridgehead.errors import ArgumentError, NonFiniteRowsError, ShapeError
from bridgehead.evaluate.zero_shot import calibrate_abstention, calibration_error, coverage_curve


def test_calibration_by_hand():
    # Bins of width 1/2: (0, .5] has .3 and .5, right 1 of 2; (.5, 1] has .9 and .7, right 1 of 2.
    found = calibration_error([0.3, 0.9, 0.5, 0.7], [0, 1, 1, 0], n_bins=2)
    assert [(part.n, part.share, part.accuracy) for part in found.bins] == [(2, 0.4, 0.5), (2, 0.8, 0.5)]
    assert found.error == pytest.approx(0.5 * 0.1 + 0.5 * 0.3)
    assert (found.mean_share, found.accuracy, found.n) == (pytest.approx(0.6), 0.5, 4)


def test_equal_width_bins_are_closed_above_and_the_first_one_holds_zero():
    found = calibration_error(np.arange(11) / 10, np.zeros(11), n_bins=10)
    assert [part.n for part in found.bins] == [2] + [1] * 9
    assert calibration_error([0.0, 1.0], [0, 1]).error == 0


def test_bins_of_equal_numbers_split_a_crowd_that_equal_widths_do_not():
    share = np.concatenate([np.linspace(0.95, 0.97, 500), np.linspace(0.98, 0.99, 500)])
    right = np.concatenate([np.ones(500), np.zeros(500)])
    found = calibration_error(share, right, n_bins=10)
    assert found.error == pytest.approx(abs(share.mean() - 0.5))
    assert found.adaptive_error == pytest.approx(0.5 * (1 - share[:500].mean()) + 0.5 * share[500:].mean(), abs=1e-3)
    assert [part.n for part in found.adaptive_bins] == [100] * 10


def test_equal_shares_stay_in_one_bin_whatever_the_order_of_items():
    draw = np.random.default_rng(0)
    share, right = draw.choice([0.2, 0.5, 0.55, 0.9], 300), draw.random(300) < 0.6
    order = draw.permutation(300)
    found = calibration_error(share, right, 7)
    again = calibration_error(share[order], right[order], 7)
    assert (found.error, found.adaptive_error) == pytest.approx((again.error, again.adaptive_error), abs=1e-12)
    constant = calibration_error(np.full(50, 0.3), right[:50], 15)
    assert len(constant.bins) == len(constant.adaptive_bins) == 1
    assert constant.error == pytest.approx(abs(right[:50].mean() - 0.3))


def test_answers_that_are_right_as_often_as_their_shares_say_are_calibrated():
    draw = np.random.default_rng(1)
    share = draw.random(20_000)
    found = calibration_error(share, draw.random(20_000) < share)
    assert found.error < 0.015 and found.adaptive_error < 0.015
    assert calibration_error(share, draw.random(20_000) < share**3).error > 0.15


def test_the_coverage_curve_by_hand_with_ties_together():
    curve = coverage_curve([0.9, 0.5, 0.5, 0.1], [1, 1, 0, 0])
    assert [(p.threshold, p.coverage, p.accuracy, p.n_answered) for p in curve] == [
        (0.9, 0.25, 1.0, 1), (0.5, 0.75, pytest.approx(2 / 3), 3), (0.1, 1.0, 0.5, 4),
    ]  # fmt: skip


def test_a_long_curve_is_thinned_and_ends_with_all_items():
    draw = np.random.default_rng(0)
    score = draw.random(5000)
    curve = coverage_curve(score, draw.random(5000) < score, n_points=50)
    assert len(curve) == 50 and curve[-1].coverage == 1 and curve[0].accuracy > curve[-1].accuracy
    assert len(coverage_curve(np.ones(5), np.ones(5))) == 1
    assert coverage_curve(score, np.ones(5000), n_points=1)[0].coverage == 1


def test_a_threshold_for_an_accuracy_leaves_as_few_unanswered_as_it_can():
    draw = np.random.default_rng(2)
    score = draw.random(1000)
    right = draw.random(1000) < 0.4 + 0.6 * score
    rule = calibrate_abstention(score, right, accuracy=0.85)
    assert rule.accuracy >= 0.85 and right[score >= rule.threshold].mean() == pytest.approx(rule.accuracy)
    for lower in np.sort(score)[np.sort(score) < rule.threshold]:
        assert right[score >= lower].mean() < 0.85
    assert rule.n_answered == (score >= rule.threshold).sum() and rule.asked == "accuracy of at least 0.85"


def test_a_threshold_for_a_coverage_is_the_highest_that_keeps_it():
    score = np.arange(100) / 100
    rule = calibrate_abstention(score, score > 0.5, coverage=0.3)
    assert (rule.threshold, rule.coverage, rule.n_answered) == (0.7, 0.3, 30)
    assert calibrate_abstention(np.ones(40), np.ones(40), coverage=0.1).coverage == 1.0
    assert calibrate_abstention(score, score > 0.5, coverage=1).threshold == 0.0


def test_a_threshold_that_a_few_lucky_items_would_choose_is_not_taken():
    score, right = np.linspace(1, 0, 100), np.zeros(100)
    right[:5] = 1
    with pytest.raises(ArgumentError, match=r"no threshold reaches an accuracy of 0.9 .* the best is 0.250 with 20"):
        calibrate_abstention(score, right, accuracy=0.9)
    assert calibrate_abstention(score, right, accuracy=0.9, least=5).n_answered == 5


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: calibration_error([], []), ArgumentError, "shares is empty"),
        (lambda: calibration_error([0.5], [1, 0]), ShapeError, "shares has 1 entries and correct 2"),
        (lambda: calibration_error([1.5], [1]), ArgumentError, r"shares\[0\] = 1.5; expected numbers from 0 to 1"),
        (lambda: calibration_error([np.nan], [1]), NonFiniteRowsError, "NaN or infinity at 1 places"),
        (lambda: calibration_error(["a"], [1]), ArgumentError, "dtype"),
        (lambda: calibration_error([[0.5]], [1]), ShapeError, "one dimension"),
        (lambda: coverage_curve([], []), ArgumentError, "scores is empty"),
        (lambda: coverage_curve([1.0], [1], n_points=0), ArgumentError, "n_points = 0"),
        (lambda: coverage_curve([np.inf], [1]), NonFiniteRowsError, "scores holds NaN"),
        (lambda: calibrate_abstention([1.0] * 30, [1] * 30), ArgumentError, "either accuracy= or coverage="),
        (
            lambda: calibrate_abstention([1.0] * 30, [1] * 30, accuracy=1, coverage=1),
            ArgumentError,
            "either accuracy= or coverage=",
        ),
        (lambda: calibrate_abstention([1.0] * 30, [1] * 30, accuracy=95), ArgumentError, "accuracy = 95"),
        (lambda: calibrate_abstention([1.0] * 30, [1] * 30, coverage=0), ArgumentError, "coverage = 0"),
        (lambda: calibrate_abstention([1.0] * 5, [1] * 5, coverage=0.5), ArgumentError, "5 items .* at least 20"),
    ],
)
def test_what_cannot_be_calibrated_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
