import math

import pytest
import torch

from bridgehead.align import LogitScale
from bridgehead.errors import ArgumentError


def value(scale: LogitScale) -> float:
    return float(scale().detach())


def test_it_starts_at_one_over_seven_hundredths_and_says_the_temperature():
    scale = LogitScale()
    assert value(scale) == pytest.approx(1 / 0.07)
    assert scale.temperature == pytest.approx(0.07)
    assert scale.log_logit_scale.item() == pytest.approx(math.log(1 / 0.07))


@pytest.mark.parametrize(("start", "low", "high"), [(1.0, 1.0, 100.0), (100.0, 1.0, 100.0), (0.3, 0.1, 0.3)])
def test_at_a_bound_s_is_within_it_and_can_still_learn_inwards_and_outwards(start, low, high):
    scale = LogitScale(start, (low, high))
    scale().backward()
    assert low <= value(scale) <= high
    assert scale.log_logit_scale.grad.item() > 0


def test_a_parameter_pushed_outside_is_clamped_in_forward_and_brought_back_by_projection():
    scale = LogitScale()
    with torch.no_grad():
        scale.log_logit_scale.fill_(50.0)
    assert value(scale) <= 100.0
    scale.project_()
    assert scale.log_logit_scale.item() == pytest.approx(math.log(100), abs=1e-6)
    scale().backward()
    assert scale.log_logit_scale.grad.item() > 0


def test_gradient_steps_that_overshoot_never_make_it_stick():
    scale = LogitScale(99.0)
    optimiser = torch.optim.SGD(scale.parameters(), lr=1.0)
    for wish in [-1.0] * 3 + [1.0] * 3:
        optimiser.zero_grad()
        (wish * scale.log_logit_scale.clamp(scale._low, scale._high)).backward()
        optimiser.step()
        scale.project_()
    assert value(scale) < 10


@pytest.mark.parametrize("bounds", [(0, 3e38), (2e-38, 100.0), (2e-38, 3e38), None])
@pytest.mark.parametrize("start", [2e-38, 1.0, 90.0])
def test_bounds_at_the_ends_of_float32_are_bounds_like_any(bounds, start):
    scale = LogitScale(start, bounds)
    assert value(scale) == pytest.approx(start, rel=1e-4)
    assert scale.temperature == pytest.approx(1 / start, rel=1e-4)


def test_none_is_unbounded_and_zero_is_a_value():
    assert value(LogitScale(1e6, None)) == pytest.approx(1e6, rel=1e-5)
    assert value(LogitScale(1e-6, (0, 100))) == pytest.approx(1e-6, rel=1e-5)
    assert LogitScale(1.0, (0, 1.0)).log_logit_scale.item() == 0.0


def test_a_fixed_scale_has_no_gradient():
    assert not LogitScale(learnable=False).log_logit_scale.requires_grad


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"init": 0.0}, "expected a finite number over 0"),
        ({"init": float("inf"), "bounds": None}, "expected a finite number over 0"),
        ({"bounds": (5.0, 2.0)}, "lowest <= highest"),
        ({"bounds": (-1.0, 20.0)}, "lowest <= highest"),
        ({"bounds": (0, 0)}, "lowest <= highest"),
        ({"init": 200.0}, r"starts at 200.0, outside its bounds"),
        ({"bounds": (0, 1e300)}, "float32"),
        ({"bounds": (1e-320, 100.0)}, "float32"),
        ({"init": 1e-300, "bounds": None}, "float32"),
        ({"init": 1e300, "bounds": None}, "float32"),
    ],
)
def test_starts_and_bounds_that_make_no_sense_are_refused(arguments, match):
    with pytest.raises(ArgumentError, match=match):
        LogitScale(**arguments)
