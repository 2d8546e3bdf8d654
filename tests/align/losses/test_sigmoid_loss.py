import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_losses as naive
from bridgehead.align.losses.sigmoid import sigmoid_loss, sigmoid_parts
from bridgehead.errors import ArgumentError


@settings(deadline=None)
@given(naive.batches(), st.sampled_from([-10.0, -1.0, 0.0, 2.5]), st.sampled_from(["both", "a_to_b", "b_to_a"]))
def test_equals_the_definition_written_as_loops(batch, bias, direction):
    z_a, z_b, matches, scale = batch
    expected = naive.loss(z_a, z_b, matches, naive.sigmoid_cost(scale, bias), direction=direction)
    found = float(sigmoid_loss(z_a, z_b, scale, bias, sorted(matches), direction=direction))
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_a_batch_of_two_worked_by_hand():
    # Cosines [[1, 0], [0, 1]], s = 2, bias = -1: linked logits 1 cost log(1 + e^-1) = 0.313262, the others -1 as much.
    assert float(sigmoid_loss(torch.eye(2), torch.eye(2), 2.0, -1.0)) == pytest.approx(2 * 0.313262, abs=1e-6)


def test_square_batches_by_order_give_the_papers_sum_over_pairs_by_n_in_either_direction():
    generator = torch.Generator().manual_seed(0)
    z_a, z_b = (torch.nn.functional.normalize(torch.randn(5, 3, generator=generator).double()) for _ in range(2))
    signs = 2 * torch.eye(5, dtype=torch.float64) - 1
    expected = -torch.nn.functional.logsigmoid(signs * (z_a @ z_b.T * 10 - 4)).sum() / 5
    parts = sigmoid_parts(z_a, z_b, 10.0, -4.0)
    for found in (parts.loss, parts.a_to_b, parts.b_to_a):
        assert float(found) == pytest.approx(float(expected), rel=1e-10)


def test_a_row_without_a_positive_is_no_anchor_and_stays_a_candidate():
    # All cosines 0 and bias 0: each pair costs log 2. a to b: one anchor with 3 candidates; b to a: one with 2.
    z_a, z_b = torch.eye(5)[:2], torch.eye(5)[2:]
    parts = sigmoid_parts(z_a, z_b, 1.0, 0.0, [(0, 0)])
    assert (parts.left_out_a, parts.left_out_b) == (1, 2)
    assert float(parts.a_to_b) == pytest.approx(3 * math.log(2))
    assert float(parts.b_to_a) == pytest.approx(2 * math.log(2))


def test_logits_that_are_all_alike_cost_least_where_the_sigmoid_is_the_share_of_positives():
    n, rows = 6, torch.ones(6, 2, dtype=torch.float64)
    best = math.log(n) + (n - 1) * math.log(n / (n - 1))
    costs = {shift: float(sigmoid_loss(rows, rows, 0.0, math.log(1 / (n - 1)) + shift)) for shift in (-0.1, 0.0, 0.1)}
    assert costs[0.0] == pytest.approx(best, rel=1e-12)
    assert min(costs, key=costs.get) == 0.0


@pytest.mark.parametrize("links", [None, [(0, 0), (0, 2), (1, 0), (3, 4), (4, 4)], [(5, 0), (2, 5)]])
@pytest.mark.parametrize("direction", ["both", "a_to_b", "b_to_a"])
@pytest.mark.parametrize("tile", [1, 4, 100, "auto"])
def test_tiles_give_the_same_value_and_gradients(links, direction, tile):
    generator = torch.Generator().manual_seed(1)
    z_a, z_b = (torch.randn(6, 3, generator=generator, dtype=torch.float64, requires_grad=True) for _ in range(2))
    scale, bias = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (7.0, -3.0))
    inputs = (z_a, z_b, scale, bias)
    plain = sigmoid_parts(*inputs, links, direction=direction)
    tiled = sigmoid_parts(*inputs, links, direction=direction, tile=tile)
    for name in ("loss", "a_to_b", "b_to_a"):
        one, other = getattr(plain, name), getattr(tiled, name)
        assert (one is None) == (other is None)
        if one is not None:
            assert one.item() == pytest.approx(other.item(), rel=1e-12)
    for one, other in zip(
        torch.autograd.grad(plain.loss, inputs), torch.autograd.grad(tiled.loss, inputs), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def test_the_bias_may_be_learned():
    bias = torch.tensor([-10.0], requires_grad=True)
    sigmoid_loss(torch.eye(2), torch.eye(2), 10.0, bias).backward()
    # Linked logits are 0 (gradient -1/2 each), the others -10 (gradient sigmoid(-10)); by n = 2.
    assert float(bias.grad) == pytest.approx(-0.5 + 1 / (1 + math.exp(10)), abs=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("tile", [None, 8])
def test_half_precision_rows_of_norm_1e4_at_scale_100_under_autocast_stay_finite(dtype, tile):
    generator = torch.Generator().manual_seed(4)
    rows = [torch.nn.functional.normalize(torch.randn(32, 64, generator=generator)) * 1e4 for _ in range(2)]
    z_a, z_b = (part.to(dtype).requires_grad_() for part in rows)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = sigmoid_loss(z_a, z_b, 100.0, -10.0, tile=tile)
    loss.backward()
    assert loss.dtype == torch.float32 and torch.isfinite(loss)
    assert torch.isfinite(z_a.grad).all() and torch.isfinite(z_b.grad).all()
    assert loss.item() == pytest.approx(sigmoid_loss(z_a.double(), z_b.double(), 100.0, -10.0).item(), rel=1e-4)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"bias": math.nan}, "bias = nan; expected one finite number"),
        ({"bias": torch.zeros(2)}, "expected one finite number"),
        ({"bias": "-10"}, "bias is a str"),
        ({"bias": None}, "bias is a NoneType"),
        ({"products": "bf16"}, "products = 'bf16' needs tiles"),
        ({"products": "int8"}, "products = 'int8'"),
        ({"tile": 0}, "tile = 0"),
    ],
)
def test_options_out_of_range_are_refused(change, match):
    with pytest.raises(ArgumentError, match=match):
        sigmoid_loss(torch.eye(2), torch.eye(2), 1.0, **change)
