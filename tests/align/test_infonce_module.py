import math

import pytest
import torch
import torch.nn.functional as F

from bridgehead.align.infonce_module import InfoNCELoss
from bridgehead.errors import ArgumentError, LinksError


def plain(z_a, z_b, log_temperature):
    logits = F.normalize(z_a, dim=-1) @ F.normalize(z_b, dim=-1).T / log_temperature.exp()
    labels = torch.arange(len(z_a))
    return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2


@pytest.mark.parametrize("temperature", [0.01, 0.07, 1.0, 5.0])
def test_value_and_gradients_are_those_of_two_cross_entropies_over_the_diagonal(temperature):
    torch.manual_seed(0)
    loss = InfoNCELoss(temperature).double()
    z_a, z_b = torch.randn(2, 9, 5, dtype=torch.float64).requires_grad_().unbind()
    z_a.retain_grad(), z_b.retain_grad()
    loss(z_a, z_b).backward()
    ours = [loss.log_temperature.grad.clone(), z_a.grad.clone(), z_b.grad.clone()]
    log_temperature = loss.log_temperature.detach().clone().requires_grad_()
    theirs = torch.autograd.grad(plain(z_a, z_b, log_temperature), [log_temperature, z_a, z_b])
    assert torch.allclose(loss(z_a, z_b), plain(z_a, z_b, log_temperature), rtol=1e-12)
    assert all(torch.allclose(a, b, atol=1e-12) for a, b in zip(ours, theirs, strict=True))


def test_two_pairs_worked_by_hand():
    # Scores 1/tau = 2 on the diagonal, 0 beside it: log(1 + e^-2) in either direction.
    loss = InfoNCELoss(0.5)(torch.eye(2), torch.eye(2))
    assert float(loss.detach()) == pytest.approx(math.log(1 + math.exp(-2)))


def test_the_parameter_is_the_logarithm_of_the_temperature_and_learns():
    loss = InfoNCELoss()
    assert float(loss.log_temperature.detach()) == pytest.approx(math.log(0.07))
    assert loss.temperature == pytest.approx(0.07)
    assert [name for name, _ in loss.named_parameters()] == ["log_temperature"]
    assert loss.config == {"initial_temperature": 0.07}
    loss(torch.eye(3), torch.eye(3)).backward()
    assert float(loss.log_temperature.grad) > 0  # all is right already: colder is better


def test_links_say_what_matches_and_then_the_sides_may_differ_in_size():
    z_a, z_b = torch.eye(3)[:2], torch.eye(3)
    # Row 0 matches 0 and 1, row 1 matches 2; s = 1.
    found = float(InfoNCELoss(1.0)(z_a, z_b, links=[(0, 0), (0, 1), (1, 2)]).detach())
    e = math.e
    forth = ((math.log(e + 2) - 1 / 2) + math.log(e + 2)) / 2
    back = ((math.log(e + 1) - 1) + math.log(1 + e) + math.log(2)) / 3
    assert found == pytest.approx((forth + back) / 2, rel=1e-6)
    with pytest.raises(LinksError, match="2 rows and side b 3"):
        InfoNCELoss()(z_a, z_b)


@pytest.mark.parametrize("temperature", [0.0, -0.07, math.nan, math.inf, 1e-40])
def test_a_temperature_that_is_not_over_0_is_refused(temperature):
    with pytest.raises(ArgumentError, match=r"initial_temperature = .*; expected a finite number over 0"):
        InfoNCELoss(temperature)


def test_a_temperature_that_left_float32_is_an_error_not_nan():
    loss = InfoNCELoss()
    with torch.no_grad():
        loss.log_temperature.fill_(-200.0)
    with pytest.raises(ArgumentError, match="expected a finite number of 0 or more"):
        loss(torch.eye(2), torch.eye(2))
