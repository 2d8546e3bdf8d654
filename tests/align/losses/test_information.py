import math

import pytest
import torch

from bridgehead.align.losses.contrast import Positives
from bridgehead.align.losses.infonce import info_nce
from bridgehead.align.losses.information import (
    check_readable,
    is_readable,
    mutual_information_bound,
    no_signal,
    no_signal_warning,
)
from bridgehead.errors import ArgumentError


def test_the_readout_is_the_logarithm_of_the_candidates_minus_the_loss():
    found = mutual_information_bound(1.0, 512)
    assert found.nats == pytest.approx(math.log(512) - 1)
    assert found.n_candidates == 512 and not found.saturated and found.warning() is None


def test_rows_without_signal_read_0_and_perfect_ones_read_all_there_is():
    alike = torch.ones(8, 3, dtype=torch.float64)
    assert mutual_information_bound(float(info_nce(alike, alike, 10.0)), 8).nats == pytest.approx(0.0, abs=1e-12)
    told = torch.eye(8, dtype=torch.float64)
    assert mutual_information_bound(float(info_nce(told, told, 100.0)), 8).nats == pytest.approx(math.log(8))


def test_the_readout_is_below_the_true_information_of_a_discrete_source():
    # 4 kinds, each with its own direction, drawn at random: the information is log 4 however many candidates there are.
    kinds = torch.eye(4, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    read = []
    for _ in range(200):
        rows = kinds[torch.randint(4, (16,), generator=generator)]
        read.append(mutual_information_bound(float(info_nce(rows, rows, 30.0)), 16).nats)
    assert 0.8 * math.log(4) < sum(read) / len(read) <= math.log(4)


@pytest.mark.parametrize(("loss", "saturated"), [(0.049, True), (0.051, False)])
def test_within_5_percent_of_the_highest_it_is_saturated_and_says_so(loss, saturated):
    found = mutual_information_bound(loss * math.log(100), 100)
    assert found.saturated is saturated
    assert (found.warning() is None) is not saturated
    if saturated:
        assert "cannot read above 4.61" in found.warning() and "larger batch" in found.warning()


def test_a_loss_above_chance_reads_under_0():
    assert mutual_information_bound(10.0, 8).nats < 0


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((math.nan, 8), "loss = nan; expected a finite number"),
        ((1.0, 1), "n_candidates = 1; expected at least 2"),
        ((1.0, math.inf), "n_candidates = inf"),
    ],
)
def test_numbers_that_cannot_be_read_are_refused(arguments, match):
    with pytest.raises(ArgumentError, match=match):
        mutual_information_bound(*arguments)


@pytest.mark.parametrize(
    ("name", "positives", "match"),
    [
        ("hard_negative", Positives.diagonal(4), "the loss is 'hard_negative'; .* plain InfoNCE"),
        ("info_nce", Positives.of([(0, 0), (0, 1), (1, 1)], 2, 2), "several positives"),
        ("info_nce", Positives.of([(0, 0), (1, 0)], 2, 2), "several positives"),
        ("info_nce", Positives.diagonal(1), "1 x 1 rows; expected at least two"),
    ],
)
def test_what_has_no_reading_is_refused(name, positives, match):
    assert not is_readable(name, positives)
    with pytest.raises(ArgumentError, match=match):
        check_readable(name, positives)


def test_single_positive_info_nce_is_readable_also_with_rows_left_out():
    assert is_readable("info_nce", Positives.diagonal(4))
    assert is_readable("info_nce", Positives.of([(0, 2), (1, 0)], 3, 5))


@pytest.mark.parametrize(
    ("loss", "chance", "expected"),
    [(0.981 * 5, 5.0, True), (0.979 * 5, 5.0, False), (7.0, 5.0, True), (0.0, 0.0, False), (1.0, -0.5, False)],
)
def test_from_098_of_chance_on_nothing_was_learnt(loss, chance, expected):
    assert no_signal(loss, chance) is expected
    assert (no_signal_warning(loss, chance) is not None) is expected


def test_the_warning_gives_both_numbers():
    assert "the loss is 6.200 after warm-up, and rows without any have 6.238" in no_signal_warning(6.2, math.log(512))
