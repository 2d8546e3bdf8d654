import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_losses as naive
from bridgehead.align.losses.decoupled import decoupled_loss, decoupled_parts
from bridgehead.align.losses.infonce import info_nce
from bridgehead.errors import ArgumentError, NonFiniteRowsError


@settings(deadline=None)
@given(naive.batches(), st.sampled_from(["outside", "inside"]), st.sampled_from(["both", "a_to_b", "b_to_a"]))
def test_equals_the_definition_written_as_loops(batch, form, direction):
    z_a, z_b, matches, scale = batch
    expected = naive.loss(z_a, z_b, matches, naive.decoupled_cost(scale, form), direction=direction)
    found = float(decoupled_loss(z_a, z_b, scale, sorted(matches), form=form, direction=direction))
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-11)


def test_a_batch_of_two_worked_by_hand():
    # Cosines [[1, 0.6], [0, 0.8]], s = 2. a to b: -2 + 1.2 and -1.6 + 0; b to a: -2 + 0 and -1.6 + 1.2.
    z_a = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    z_b = torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    parts = decoupled_parts(z_a, z_b, 2.0)
    assert float(parts.a_to_b) == pytest.approx((-0.8 - 1.6) / 2, abs=1e-6)
    assert float(parts.b_to_a) == pytest.approx((-2.0 - 0.4) / 2, abs=1e-6)
    assert float(parts.loss) == pytest.approx(-1.2, abs=1e-6)


def test_all_linked_items_are_out_of_the_denominator():
    # Cosines 1, 0, -1 and s = 1; the first two are linked, so each is told from the third alone.
    z_a = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    z_b = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    links = [(0, 0), (0, 1)]
    outside = float(decoupled_loss(z_a, z_b, 1.0, links, direction="a_to_b"))
    inside = float(decoupled_loss(z_a, z_b, 1.0, links, form="inside", direction="a_to_b"))
    assert outside == pytest.approx(-1 - 0.5, rel=1e-12)
    assert inside == pytest.approx(-1 - math.log(math.e + 1), rel=1e-12)


@pytest.mark.parametrize("n", [2, 3, 100])
def test_identical_rows_give_the_logarithm_of_the_number_of_negatives(n):
    rows = torch.ones(n, 3, dtype=torch.float64)
    assert float(decoupled_loss(rows, rows, 30.0)) == pytest.approx(math.log(n - 1), abs=1e-12)


def test_info_nce_is_the_soft_maximum_of_0_and_the_decoupled_cost_for_one_anchor():
    # -log(P / (P + N)) = log(1 + N / P), and log(N / P) is the decoupled cost.
    generator = torch.Generator().manual_seed(0)
    z_a, z_b = (torch.randn(n, 3, generator=generator, dtype=torch.float64) for n in (1, 6))
    cost = float(decoupled_loss(z_a, z_b, 4.0, [(0, 2)], direction="a_to_b"))
    expected = float(info_nce(z_a, z_b, 4.0, [(0, 2)], direction="a_to_b"))
    assert math.log1p(math.exp(cost)) == pytest.approx(expected, rel=1e-12)


def test_an_anchor_without_a_negative_is_left_out_and_counted():
    generator = torch.Generator().manual_seed(1)
    z_a, z_b = (torch.randn(n, 3, generator=generator, dtype=torch.float64) for n in (3, 2))
    # Row 0 of a matches all of b, row 2 nothing: row 1 alone is an anchor.
    links = [(0, 0), (0, 1), (1, 0)]
    parts = decoupled_parts(z_a, z_b, 3.0, links)
    assert (parts.left_out_a, parts.left_out_b) == (2, 0)
    alone = decoupled_loss(z_a[1:2], z_b, 3.0, [(0, 0)], direction="a_to_b")
    assert float(parts.a_to_b) == pytest.approx(float(alone), rel=1e-12)


def test_where_no_anchor_has_a_negative_the_loss_is_0_without_gradient():
    z_a, z_b = (torch.randn(n, 3, requires_grad=True) for n in (1, 2))
    loss = decoupled_loss(z_a, z_b, 3.0, [(0, 0), (0, 1)], direction="a_to_b")
    loss.backward()
    assert loss.item() == 0.0
    assert torch.equal(z_a.grad, torch.zeros(1, 3)) and torch.equal(z_b.grad, torch.zeros(2, 3))


def test_rows_that_are_not_finite_are_named_even_where_no_anchor_is_left():
    with pytest.raises(NonFiniteRowsError, match="rows 0 of z_a"):
        decoupled_loss(torch.tensor([[float("nan"), 1.0]]), torch.eye(2)[:1], 3.0)


def test_a_form_that_there_is_not_is_refused():
    with pytest.raises(ArgumentError, match="form = 'between'"):
        decoupled_loss(torch.eye(2), torch.eye(2), 1.0, form="between")
