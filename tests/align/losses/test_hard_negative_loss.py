import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_losses as naive
from bridgehead.align.losses.hard_negative import hard_negative_loss, hard_negative_parts
from bridgehead.align.losses.infonce import info_nce
from bridgehead.errors import ArgumentError


@settings(deadline=None)
@given(
    naive.batches(scales=(0.0, 0.5, 3.0)),
    st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    st.sampled_from([0.0, 0.1, 0.6]),
    st.sampled_from(["outside", "inside"]),
)
def test_equals_the_definition_written_as_loops(batch, beta, tau_plus, form):
    z_a, z_b, matches, scale = batch
    expected = naive.loss(z_a, z_b, matches, naive.hard_negative_cost(scale, beta, tau_plus, form))
    found = float(hard_negative_loss(z_a, z_b, scale, sorted(matches), beta=beta, tau_plus=tau_plus, form=form))
    assert found == pytest.approx(expected, rel=1e-8, abs=1e-10)


@settings(deadline=None)
@given(naive.batches(), st.sampled_from(["outside", "inside"]), st.sampled_from(["both", "a_to_b", "b_to_a"]))
def test_a_concentration_of_0_is_info_nce(batch, form, direction):
    z_a, z_b, matches, scale = batch
    found = hard_negative_loss(z_a, z_b, scale, sorted(matches), beta=0.0, form=form, direction=direction)
    expected = info_nce(z_a, z_b, scale, sorted(matches), form, direction)
    assert float(found) == pytest.approx(float(expected), rel=1e-10, abs=1e-11)


def three_candidates():
    """Cosines 1, 0.6, 0 of one anchor; the first is its positive."""
    z_a = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    return z_a, torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]], dtype=torch.float64)


def test_a_batch_worked_by_hand():
    # s = 1, beta = 1: negatives e^0.6 = 1.822119 and 1 have weights 1.822119 / 1.411059 and 1 / 1.411059, so
    # R = (3.320117 + 1) / 1.411059 = 3.061613, and the cost is log(1 + 3.061613 / e) = log 2.126304 = 0.754385.
    z_a, z_b = three_candidates()
    loss = hard_negative_loss(z_a, z_b, 1.0, [(0, 0)], beta=1.0, direction="a_to_b")
    assert float(loss) == pytest.approx(0.754385, abs=1e-6)


def test_the_share_of_hidden_positives_is_taken_off_worked_by_hand():
    # As above with tau_plus = 0.1: N = (3.061613 - 0.1 x 2 x e) / 0.9 = 2.797730, cost log(1 + 2.797730 / e).
    z_a, z_b = three_candidates()
    loss = hard_negative_loss(z_a, z_b, 1.0, [(0, 0)], beta=1.0, tau_plus=0.1, direction="a_to_b")
    assert float(loss) == pytest.approx(math.log1p(2.797730 / math.e), abs=1e-6)


def test_what_is_taken_off_leaves_at_least_the_least_that_the_scores_can_be():
    # 0.9 x 2 x e is more than all negatives: N is its floor 2 e^-1.
    z_a, z_b = three_candidates()
    loss = hard_negative_loss(z_a, z_b, 1.0, [(0, 0)], beta=0.0, tau_plus=0.9, direction="a_to_b")
    assert float(loss) == pytest.approx(math.log1p(2 * math.exp(-2)), rel=1e-12)


def test_the_more_concentrated_the_more_it_costs_up_to_all_negatives_as_hard_as_the_hardest():
    z_a, z_b = three_candidates()
    costs = [float(hard_negative_loss(z_a, z_b, 1.0, [(0, 0)], beta=b, direction="a_to_b")) for b in (0, 1, 5, 1e6)]
    assert costs == sorted(costs)
    assert costs[-1] == pytest.approx(math.log1p(2 * math.exp(0.6 - 1)), rel=1e-9)


@pytest.mark.parametrize("beta", [0.0, 1.0, 50.0])
@pytest.mark.parametrize("tau_plus", [0.0, 0.3])
def test_identical_rows_give_the_logarithm_of_the_number_of_candidates(beta, tau_plus):
    rows = torch.ones(7, 3, dtype=torch.float64)
    loss = hard_negative_loss(rows, rows, 20.0, beta=beta, tau_plus=tau_plus)
    assert float(loss) == pytest.approx(math.log(7), abs=1e-10)


def test_equals_the_released_formulation_for_one_positive_a_row():
    # reweighted = sum(imp * neg) / mean(imp) with imp = exp(beta log neg), as in the paper's code.
    generator = torch.Generator().manual_seed(0)
    z_a, z_b = (torch.nn.functional.normalize(torch.randn(6, 4, generator=generator)).double() for _ in range(2))
    temperature, beta, tau_plus = 0.5, 1.5, 0.1
    scores = torch.exp(z_a @ z_b.T / temperature)
    positives, negatives = scores.diagonal(), scores[~torch.eye(6, dtype=torch.bool)].view(6, 5)
    importance = (beta * negatives.log()).exp()
    reweighted = (importance * negatives).sum(dim=1) / importance.mean(dim=1)
    ng = ((-tau_plus * 5 * positives + reweighted) / (1 - tau_plus)).clamp(min=5 * math.exp(-1 / temperature))
    expected = (-(positives / (positives + ng)).log()).mean()
    found = hard_negative_parts(z_a, z_b, 1 / temperature, beta=beta, tau_plus=tau_plus)
    assert float(found.a_to_b) == pytest.approx(float(expected), rel=1e-6)


@pytest.mark.parametrize("tau_plus", [0.05, 0.9])
def test_gradients_stay_finite_with_the_correction_at_a_scale_of_100(tau_plus):
    rows = torch.randn(8, 4, generator=torch.Generator().manual_seed(3)) * 1e4
    # The positives as good as the negatives, better, and worse: on either side of the floor.
    z_a, z_b = rows.clone().requires_grad_(), rows.roll(1, 0).contiguous().requires_grad_()
    for links in (None, [(i, (i + 1) % 8) for i in range(8)], [(0, 0), (0, 1), (3, 4)]):
        loss = hard_negative_loss(z_a, z_b, 100.0, links, beta=2.0, tau_plus=tau_plus)
        gradients = torch.autograd.grad(loss, (z_a, z_b))
        assert torch.isfinite(loss) and all(torch.isfinite(g).all() for g in gradients)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"beta": -0.1}, r"beta = -0.1; expected a finite concentration of 0 or more"),
        ({"beta": math.inf}, "beta = inf"),
        ({"beta": math.nan}, "beta = nan"),
        ({"beta": "1"}, "beta = '1'"),
        ({"tau_plus": 1.0}, r"tau_plus = 1.0; expected a share in \[0, 1\)"),
        ({"tau_plus": -0.1}, "tau_plus = -0.1"),
    ],
)
def test_options_out_of_range_are_refused(change, match):
    with pytest.raises(ArgumentError, match=match):
        hard_negative_loss(torch.eye(2), torch.eye(2), 1.0, **change)
