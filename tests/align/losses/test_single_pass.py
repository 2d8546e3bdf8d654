"""The loss of small batches in one operation, against the same loss by autograd."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgehead.align.losses.contrast import Positives, contrast
from bridgehead.align.losses.infonce import info_nce, info_nce_parts
from bridgehead.align.losses.single_pass import info_nce_single_pass


@st.composite
def batches(draw):
    n_a, n_b, d = draw(st.integers(1, 6)), draw(st.integers(1, 6)), draw(st.integers(1, 5))
    matches = draw(st.sets(st.tuples(st.integers(0, n_a - 1), st.integers(0, n_b - 1)), min_size=1))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 10_000)))
    rows = [torch.randn(n, d, generator=generator, dtype=torch.float64) for n in (n_a, n_b)]
    scale = torch.tensor(draw(st.sampled_from([0.0, 1.0, 14.0, 100.0])), dtype=torch.float64)
    return *rows, scale, sorted(matches), draw(st.sampled_from(["both", "a_to_b", "b_to_a"]))


def gradients(loss, *inputs):
    return torch.autograd.grad(loss, inputs, allow_unused=True)


@settings(deadline=None)
@given(batches())
def test_value_and_gradients_are_those_of_the_definition(batch):
    z_a, z_b, scale, links, direction = batch
    inputs = [x.clone().requires_grad_() for x in (z_a, z_b, scale)]
    plain = info_nce(*inputs, links, direction=direction)
    single = info_nce(*inputs, links, direction=direction, tile="auto")
    torch.testing.assert_close(single, plain, rtol=1e-10, atol=1e-10)
    for left, right in zip(gradients(single, *inputs), gradients(plain, *inputs), strict=True):
        torch.testing.assert_close(left, right, rtol=1e-9, atol=1e-9)


def test_the_gradients_are_those_of_finite_differences():
    generator = torch.Generator().manual_seed(0)
    z_a, z_b = (torch.randn(n, 3, generator=generator, dtype=torch.float64, requires_grad=True) for n in (4, 5))
    scale = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    links = Positives.of([(0, 0), (0, 1), (1, 1), (2, 4)], 4, 5)

    def loss(a, b, s):
        forth, back = info_nce_single_pass(contrast(a, b, s, links), "both")
        return 0.3 * forth + 0.7 * back

    assert torch.autograd.gradcheck(loss, (z_a, z_b, scale))


def test_identical_rows_give_the_logarithm_of_their_number_and_no_gradient():
    rows = torch.ones(6, 3, requires_grad=True)
    loss = info_nce(rows, rows.detach(), 20.0, tile="auto")
    loss.backward()
    assert loss.item() == pytest.approx(math.log(6), rel=1e-6)
    assert torch.all(rows.grad.abs() < 1e-6)


def test_large_rows_and_a_zero_row_at_a_large_scale_stay_finite():
    generator = torch.Generator().manual_seed(1)
    rows = [1e4 * torch.randn(8, 4, generator=generator) for _ in range(2)]
    rows[0][3] = 0
    inputs = [x.requires_grad_() for x in rows]
    parts = info_nce_parts(*inputs, 100.0, tile="auto")
    parts.loss.backward()
    assert math.isfinite(parts.loss.item())
    assert all(bool(torch.isfinite(x.grad).all()) for x in inputs)


def test_half_precision_rows_get_gradients_of_their_own_kind():
    rows = torch.eye(4, dtype=torch.bfloat16, requires_grad=True)
    info_nce(rows, torch.eye(4), 5.0, tile="auto").backward()
    assert rows.grad.dtype == torch.bfloat16
