import math

import pytest
import torch

from bridgehead.align.losses import geometry
from bridgehead.align.losses.geometry import alignment_term, uniformity_term
from bridgehead.errors import ArgumentError, LinksError, NonFiniteRowsError, ShapeError


def test_alignment_worked_by_hand():
    # Cosines of the links 1, 0 and -1: squared distances 0, 2 and 4.
    z_a = torch.tensor([[3.0, 0.0], [0.0, 1.0]])
    z_b = torch.tensor([[1.0, 0.0], [0.0, -2.0]])
    assert float(alignment_term(z_a, z_b, [(0, 0)])) == 0.0
    assert float(alignment_term(z_a, z_b, [(0, 0), (0, 1), (1, 1)])) == pytest.approx((0 + 2 + 4) / 3)


def test_alignment_equals_two_minus_twice_the_mean_cosine_and_counts_each_link_once():
    generator = torch.Generator().manual_seed(0)
    z_a, z_b = (torch.randn(n, 5, generator=generator, dtype=torch.float64) for n in (4, 3))
    links = [(0, 0), (0, 1), (0, 2), (3, 1)]
    expected = 2 - 2 * sum(float(torch.cosine_similarity(z_a[i], z_b[j], dim=0)) for i, j in links) / 4
    assert float(alignment_term(z_a, z_b, links)) == pytest.approx(expected, rel=1e-10)
    assert float(alignment_term(z_a, z_b, links + links)) == pytest.approx(expected, rel=1e-10)


def test_uniformity_worked_by_hand():
    # Squared distances of the three pairs: 2, 4, 2.
    z = torch.tensor([[1.0, 0.0], [0.0, 5.0], [-1.0, 0.0]])
    t = 0.5
    expected = math.log((2 * math.exp(-2 * t) + math.exp(-4 * t)) / 3)
    assert float(uniformity_term(z, t)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("block", [1, 30, 1 << 22])
def test_uniformity_and_its_gradient_equal_the_papers_pairwise_distances_in_blocks_of_any_size(block, monkeypatch):
    monkeypatch.setattr(geometry, "BLOCK_NUMBERS", block)
    z = torch.randn(11, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64).requires_grad_()
    unit = torch.nn.functional.normalize(z)
    expected = torch.pdist(unit, p=2).pow(2).mul(-2.0).exp().mean().log()
    found = uniformity_term(z, 2.0)
    assert found.item() == pytest.approx(expected.item(), rel=1e-10)
    (ours,), (theirs,) = torch.autograd.grad(found, z), torch.autograd.grad(expected, z)
    torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-12)


def test_uniformity_has_the_gradient_of_finite_differences():
    z = torch.randn(5, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda rows: 3 * uniformity_term(rows, 1.5), (z,))


@pytest.mark.parametrize("n", [1, 2, 9])
def test_identical_rows_have_a_uniformity_of_0_and_a_finite_gradient(n):
    z = torch.ones(n, 3, requires_grad=True)
    term = uniformity_term(z)
    term.backward()
    assert term.item() == pytest.approx(0.0, abs=1e-6)
    assert torch.allclose(z.grad, torch.zeros(n, 3), atol=1e-5)


def test_terms_stay_finite_with_norms_of_1e4_in_half_precision_and_sharp_gaussians():
    generator = torch.Generator().manual_seed(3)
    z_a, z_b = ((torch.randn(16, 8, generator=generator) * 3e3).half().requires_grad_() for _ in range(2))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        term = alignment_term(z_a, z_b) + uniformity_term(z_a, 1e4)
    term.backward()
    assert term.dtype == torch.float32 and torch.isfinite(term)
    assert torch.isfinite(z_a.grad).all() and torch.isfinite(z_b.grad).all()


def test_repeated_rows_are_pairs_at_distance_0():
    # Rows x, x, y with y opposite: pairs at 0, 4, 4.
    z = torch.tensor([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]])
    assert float(uniformity_term(z, 1.0)) == pytest.approx(math.log((1 + 2 * math.exp(-4)) / 3), rel=1e-6)


def test_bad_input_is_refused():
    with pytest.raises(LinksError, match="none of the 2 x 2 rows"):
        alignment_term(torch.eye(2), torch.eye(2), [])
    with pytest.raises(NonFiniteRowsError, match="rows 1 of z_a"):
        alignment_term(torch.tensor([[1.0], [math.nan]]), torch.ones(2, 1))
    with pytest.raises(NonFiniteRowsError, match="rows 1 hold NaN"):
        uniformity_term(torch.tensor([[1.0], [math.nan], [1.0]]))
    with pytest.raises(ArgumentError, match=r"t = 0.0; expected a finite number over 0"):
        uniformity_term(torch.eye(2), 0.0)
    with pytest.raises(ShapeError, match=r"expected \(n, d\)"):
        uniformity_term(torch.ones(3))
