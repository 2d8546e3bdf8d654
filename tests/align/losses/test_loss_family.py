"""What every loss of the family has in common, tried on each of them."""

import math

import numpy as np
import pytest
import torch

from bridgehead.align.losses.decoupled import decoupled_parts
from bridgehead.align.losses.guided import guided_parts
from bridgehead.align.losses.hard_negative import hard_negative_parts
from bridgehead.align.losses.hierarchical import hierarchical_parts
from bridgehead.align.losses.infonce import info_nce_parts
from bridgehead.align.losses.sigmoid import sigmoid_parts
from bridgehead.errors import ArgumentError, LinksError, NonFiniteRowsError, ShapeError
from bridgehead.links import Links

N_A, N_B = 5, 6
LINKS = [(0, 0), (0, 2), (1, 0), (2, 3), (3, 5), (3, 1)]
"""Rows with several positives on either side; row 4 of a and row 4 of b have none."""


class Family:
    """One loss as `parts(z_a, z_b, scale, links, direction)`, with what belongs to the rows taken along."""

    def __init__(self, name, n_a=N_A, n_b=N_B):
        generator = torch.Generator().manual_seed(9)
        self.name = name
        self.classes = [torch.randint(-1, 2, (n,), generator=generator) for n in (n_a, n_b)]
        self.guide = [torch.randn(n, 2, generator=generator, dtype=torch.float64) for n in (n_a, n_b)]

    def parts(self, z_a, z_b, scale, links, direction="both"):
        rows, (classes_a, classes_b), (guide_a, guide_b) = (z_a, z_b, scale), self.classes, self.guide
        guide = {"guide_a": guide_a, "guide_b": guide_b, "margin": 0.3, "direction": direction}
        match self.name:
            case "info_nce" | "info_nce inside":
                return info_nce_parts(*rows, links, "inside" if "inside" in self.name else "outside", direction)
            case "decoupled":
                return decoupled_parts(*rows, links, direction=direction)
            case "hard_negative":
                return hard_negative_parts(*rows, links, beta=0.7, direction=direction)
            case "hard_negative debiased":
                return hard_negative_parts(*rows, links, beta=0.7, tau_plus=0.05, form="inside", direction=direction)
            case "sigmoid":
                return sigmoid_parts(*rows, -2.0, links, direction=direction)
            case "guided":
                return guided_parts(*rows, links, **guide)
            case "guided shared":
                return guided_parts(*rows, links, guide_space="shared", kind="relative", **guide)
            case "hierarchical":
                return hierarchical_parts(
                    *rows, links, classes_a=classes_a, classes_b=classes_b, coarse_weight=0.3, direction=direction
                )

    def loss(self, *arguments):
        return self.parts(*arguments).loss

    def reordered(self, order_a, order_b):
        other = Family(self.name)
        other.classes = [self.classes[0][order_a], self.classes[1][order_b]]
        other.guide = [self.guide[0][order_a], self.guide[1][order_b]]
        return other

    def swapped(self):
        other = Family(self.name)
        other.classes, other.guide = self.classes[::-1], self.guide[::-1]
        return other


NAMES = [
    "info_nce",
    "info_nce inside",
    "decoupled",
    "hard_negative",
    "hard_negative debiased",
    "sigmoid",
    "guided",
    "guided shared",
    "hierarchical",
]
every_loss = pytest.mark.parametrize("name", NAMES)


def rows(seed=0, n_a=N_A, n_b=N_B, d=4):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(n, d, generator=generator, dtype=torch.float64, requires_grad=True) for n in (n_a, n_b)]


@every_loss
@pytest.mark.parametrize("direction", ["both", "a_to_b", "b_to_a"])
def test_the_gradient_is_that_of_finite_differences(name, direction):
    family, (z_a, z_b) = Family(name), rows(1)
    scale = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda *inputs: family.loss(*inputs, LINKS, direction), (z_a, z_b, scale))


@every_loss
def test_the_order_of_rows_changes_neither_value_nor_gradients(name):
    family, (z_a, z_b) = Family(name), rows(2)
    order_a, order_b = torch.tensor([3, 0, 4, 2, 1]), torch.tensor([5, 1, 0, 4, 2, 3])
    place_a, place_b = order_a.argsort().tolist(), order_b.argsort().tolist()
    moved = [(place_a[i], place_b[j]) for i, j in LINKS]
    base = family.loss(z_a, z_b, 6.0, LINKS)
    other = family.reordered(order_a, order_b).loss(z_a[order_a], z_b[order_b], 6.0, moved)
    assert other.item() == pytest.approx(base.item(), rel=1e-12)
    # Gradients with respect to the same rows, through the new order.
    for one, two in zip(torch.autograd.grad(base, (z_a, z_b)), torch.autograd.grad(other, (z_a, z_b)), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-9, atol=1e-12)


@every_loss
def test_swapping_the_sides_swaps_the_directions_and_changes_no_gradient(name):
    family, (z_a, z_b) = Family(name), rows(3)
    base = family.parts(z_a, z_b, 6.0, LINKS)
    other = family.swapped().parts(z_b, z_a, 6.0, [(b, a) for a, b in LINKS])
    assert other.loss.item() == pytest.approx(base.loss.item(), rel=1e-12)
    assert other.a_to_b.item() == pytest.approx(base.b_to_a.item(), rel=1e-12)
    assert (other.left_out_a, other.left_out_b) == (base.left_out_b, base.left_out_a)
    found = zip(torch.autograd.grad(base.loss, (z_a, z_b)), torch.autograd.grad(other.loss, (z_a, z_b)), strict=True)
    for one, two in found:
        torch.testing.assert_close(one, two, rtol=1e-9, atol=1e-12)


@every_loss
def test_both_is_the_mean_of_the_directions_and_one_alone_leaves_the_other_out(name):
    family, (z_a, z_b) = Family(name), rows(4)
    both = family.parts(z_a, z_b, 6.0, LINKS)
    forth, back = (family.parts(z_a, z_b, 6.0, LINKS, direction) for direction in ("a_to_b", "b_to_a"))
    assert forth.b_to_a is None and back.a_to_b is None
    assert forth.loss.item() == pytest.approx(both.a_to_b.item(), rel=1e-12)
    assert back.loss.item() == pytest.approx(both.b_to_a.item(), rel=1e-12)
    assert both.loss.item() == pytest.approx((forth.loss.item() + back.loss.item()) / 2, rel=1e-12)
    assert (both.left_out_a, both.left_out_b) == (1, 1)


@every_loss
def test_a_number_as_scale_is_a_fixed_temperature_and_a_tensor_is_learned(name):
    family, (z_a, z_b) = Family(name), rows(5)
    fixed = family.loss(z_a, z_b, 1 / 0.1, LINKS)
    scale = torch.tensor(10.0, dtype=torch.float64, requires_grad=True)
    learned = family.loss(z_a, z_b, scale, LINKS)
    assert learned.item() == pytest.approx(fixed.item(), rel=1e-12)
    learned.backward()
    assert scale.grad is not None and torch.isfinite(scale.grad)


@every_loss
def test_items_of_one_identity_group_are_positives_of_each_others_links(name):
    family, (z_a, z_b) = Family(name), rows(6)
    grouped = Links(LINKS, N_A, N_B, groups_a=np.array([5, 5, -1, -1, -1]))
    spelt_out = [*LINKS, (1, 2)]
    assert family.loss(z_a, z_b, 6.0, grouped).item() == family.loss(z_a, z_b, 6.0, spelt_out).item()


@every_loss
def test_lengths_of_rows_do_not_matter(name):
    family, (z_a, z_b) = Family(name), rows(7)
    lengths = torch.tensor([1e-30, 1e-5, 1.0, 1e8, 1e200], dtype=torch.float64)[:, None]
    base = family.loss(z_a, z_b, 6.0, LINKS).item()
    assert family.loss(z_a * lengths, z_b, 6.0, LINKS).item() == pytest.approx(base, rel=1e-11)


@every_loss
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_rows_of_norm_1e4_at_scale_100_under_autocast_stay_finite_and_exact(name, dtype):
    family = Family(name, 32, 32)
    generator = torch.Generator().manual_seed(8)
    # Half the linked rows are alike, so that positives and negatives reach both ends of the scores.
    raw_a, raw_b = (torch.nn.functional.normalize(torch.randn(32, 16, generator=generator)) * 1e4 for _ in range(2))
    raw_b[:16] = raw_a[:16]
    z_a, z_b = raw_a.to(dtype).requires_grad_(), raw_b.to(dtype).requires_grad_()
    scale = torch.tensor(100.0, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = family.loss(z_a, z_b, scale, None)
    loss.backward()
    assert loss.dtype == torch.float32 and torch.isfinite(loss)
    assert all(torch.isfinite(x.grad).all() for x in (z_a, z_b, scale))
    exact = family.loss(z_a.detach().double(), z_b.detach().double(), 100.0, None)
    assert loss.item() == pytest.approx(exact.item(), rel=1e-4, abs=1e-4)


@every_loss
def test_opposed_and_collapsed_rows_at_scale_100_have_finite_gradients(name):
    family = Family(name)
    for towards in (1.0, -1.0):
        z_a = torch.ones(N_A, 3, requires_grad=True)
        z_b = (towards * torch.ones(N_B, 3)).requires_grad_()
        loss = family.loss(z_a, z_b, 100.0, LINKS)
        loss.backward()
        assert torch.isfinite(loss) and torch.isfinite(z_a.grad).all() and torch.isfinite(z_b.grad).all()


@every_loss
def test_a_batch_of_one_pair_has_a_finite_loss_and_gradient(name):
    family, (z_a, z_b) = Family(name, 1, 1), rows(9, 1, 1)
    loss = family.loss(z_a, z_b, 6.0, None)
    loss.backward()
    assert torch.isfinite(z_a.grad).all() and torch.isfinite(z_b.grad).all()
    # Nothing to be told from: 0, but for the sigmoid, which judges the pair by itself.
    cosine = torch.cosine_similarity(z_a.detach(), z_b.detach()).item()
    expected = math.log1p(math.exp(-(6.0 * cosine - 2.0))) if name == "sigmoid" else 0.0
    assert loss.item() == pytest.approx(expected, abs=1e-12)


@every_loss
def test_a_zero_row_has_a_finite_gradient(name):
    family, (z_a, z_b) = Family(name), rows(10)
    with torch.no_grad():
        z_a[0], z_b[3] = 0, 0
    family.loss(z_a, z_b, 6.0, LINKS).backward()
    assert torch.isfinite(z_a.grad).all() and torch.isfinite(z_b.grad).all()


@every_loss
def test_what_no_loss_takes_is_refused(name):
    family, (z_a, z_b) = Family(name), [z.detach() for z in rows(11)]
    with pytest.raises(LinksError, match="none of the 5 x 6 rows are linked"):
        family.loss(z_a, z_b, 6.0, [])
    with pytest.raises(LinksError, match="needs equal numbers"):
        family.loss(z_a, z_b, 6.0, None)
    with pytest.raises(ArgumentError, match="direction = 'up'"):
        family.loss(z_a, z_b, 6.0, LINKS, "up")
    with pytest.raises(ArgumentError, match=r"logit_scale = -1\.0"):
        family.loss(z_a, z_b, -1.0, LINKS)
    with pytest.raises(ShapeError, match="one space"):
        family.loss(z_a[:, :2], z_b, 6.0, LINKS)
    with pytest.raises(ArgumentError, match="z_a is a ndarray"):
        family.loss(z_a.numpy(), z_b, 6.0, LINKS)
    z_a[2, 0] = math.nan
    with pytest.raises(NonFiniteRowsError, match="rows 2 of z_a hold NaN"):
        family.loss(z_a, z_b, 6.0, LINKS)
