import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgehead.align import info_nce, info_nce_parts
from bridgehead.errors import ArgumentError, LinksError, NonFiniteRowsError, ShapeError
from bridgehead.links import Links


def naive(z_a, z_b, scale, matches, form="outside"):
    """The mean of both directions by loops, from the definition: math.exp and math.log alone."""

    def unit(row):
        norm = math.sqrt(sum(x * x for x in row))
        return [x / norm for x in row] if norm else list(row)

    a, b = [unit(row) for row in z_a.tolist()], [unit(row) for row in z_b.tolist()]

    def one_way(queries, candidates, is_match):
        costs = []
        for i, u in enumerate(queries):
            exps = [math.exp(scale * sum(x * y for x, y in zip(u, v, strict=True))) for v in candidates]
            shares = [exps[j] / sum(exps) for j in range(len(candidates)) if is_match(i, j)]
            if shares and form == "outside":
                costs.append(sum(-math.log(share) for share in shares) / len(shares))
            elif shares:
                costs.append(-math.log(sum(shares)))
        return sum(costs) / len(costs)

    return (one_way(a, b, lambda i, j: (i, j) in matches) + one_way(b, a, lambda i, j: (j, i) in matches)) / 2


@st.composite
def batches(draw):
    n_a, n_b, d = draw(st.integers(1, 5)), draw(st.integers(1, 5)), draw(st.integers(1, 4))
    pairs = st.tuples(st.integers(0, n_a - 1), st.integers(0, n_b - 1))
    matches = draw(st.sets(pairs, min_size=1))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 10_000)))
    rows = [torch.randn(n, d, generator=generator, dtype=torch.float64) for n in (n_a, n_b)]
    return *rows, matches, draw(st.sampled_from([0.0, 0.5, 1.0, 14.0]))


@settings(deadline=None)
@given(batches(), st.sampled_from(["outside", "inside"]))
def test_equals_the_definition_written_as_loops(batch, form):
    z_a, z_b, matches, scale = batch
    expected = naive(z_a, z_b, scale, matches, form)
    assert float(info_nce(z_a, z_b, scale, sorted(matches), form)) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@settings(deadline=None)
@given(batches())
def test_inside_is_never_above_outside_and_swapping_the_sides_changes_nothing(batch):
    z_a, z_b, matches, scale = batch
    links = Links(sorted(matches), len(z_a), len(z_b))
    outside, inside = (float(info_nce(z_a, z_b, scale, links, form)) for form in ("outside", "inside"))
    assert inside <= outside + 1e-12
    assert float(info_nce(z_b, z_a, scale, links.swapped())) == pytest.approx(outside, rel=1e-12)


def test_a_batch_of_two_worked_by_hand():
    # Cosines [[1, 0], [0, 1]], s = 2: each anchor costs -log(e^2 / (e^2 + 1)) = log(1 + e^-2) = 0.126928.
    rows = torch.eye(2)
    assert float(info_nce(rows, rows, 2.0)) == pytest.approx(0.126928, abs=1e-6)


def test_two_positives_worked_by_hand_in_both_forms():
    # One anchor with cosines 1, 0, -1 and s = 1; positives are the first two. Z = e + 1 + 1/e = 4.086161.
    z_a = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    z_b = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    links = [(0, 0), (0, 1)]
    z = math.e + 1 + 1 / math.e
    outside = float(info_nce(z_a, z_b, 1.0, links, "outside", "a_to_b"))
    inside = float(info_nce(z_a, z_b, 1.0, links, "inside", "a_to_b"))
    assert outside == pytest.approx(math.log(z) - 0.5, rel=1e-12)
    assert inside == pytest.approx(math.log(z) - math.log(math.e + 1), rel=1e-12)


@pytest.mark.parametrize("n", [1, 2, 7, 100])
def test_identical_rows_give_the_logarithm_of_the_number_of_candidates(n):
    rows = torch.ones(n, 3, dtype=torch.float64)
    assert float(info_nce(rows, rows, 30.0)) == pytest.approx(math.log(n), abs=1e-12)


def test_a_scale_of_zero_is_a_value_and_gives_the_logarithm_of_the_number_of_candidates():
    rows = torch.eye(5)
    assert float(info_nce(rows, rows, 0)) == pytest.approx(math.log(5))


def test_the_directions_average_to_the_whole_and_rows_without_a_positive_are_counted():
    z_a, z_b = torch.randn(4, 3, generator=torch.Generator().manual_seed(0)), torch.eye(3)
    parts = info_nce_parts(z_a, z_b, 5.0, [(0, 1), (1, 1)])
    assert (parts.left_out_a, parts.left_out_b) == (2, 2)
    assert float(parts.loss) == pytest.approx((float(parts.a_to_b) + float(parts.b_to_a)) / 2)
    one = info_nce_parts(z_a, z_b, 5.0, [(0, 1), (1, 1)], direction="b_to_a")
    assert one.a_to_b is None
    assert float(one.loss) == pytest.approx(float(parts.b_to_a))


def test_a_row_without_a_positive_stays_a_candidate():
    z_a = torch.eye(2)
    with_it = info_nce(z_a, torch.eye(2), 1.0, [(0, 0)], direction="a_to_b")
    without = info_nce(z_a, torch.eye(2)[:1], 1.0, [(0, 0)], direction="a_to_b")
    assert float(with_it) > float(without) == 0.0


def test_items_of_one_group_share_their_links():
    z = torch.randn(3, 4, generator=torch.Generator().manual_seed(1))
    grouped = Links([(0, 0), (1, 1), (2, 2)], 3, 3, groups_a=np.array([5, 5, -1]))
    spelt_out = [(0, 0), (1, 1), (2, 2), (0, 1), (1, 0)]
    assert float(info_nce(z, z.flip(1), 3.0, grouped)) == float(info_nce(z, z.flip(1), 3.0, spelt_out))


def test_neither_row_length_nor_row_order_matters():
    generator = torch.Generator().manual_seed(2)
    z_a, z_b = (torch.randn(6, 4, generator=generator, dtype=torch.float64) for _ in range(2))
    base = float(info_nce(z_a, z_b, 8.0))
    lengths = torch.tensor([1e-30, 1e-5, 1.0, 10.0, 1e8, 1e200], dtype=torch.float64)[:, None]
    assert float(info_nce(z_a * lengths, z_b, 8.0)) == pytest.approx(base, rel=1e-12)
    order = torch.tensor([3, 1, 5, 0, 2, 4])
    assert float(info_nce(z_a[order], z_b[order], 8.0)) == pytest.approx(base, rel=1e-12)


@pytest.mark.parametrize("form", ["outside", "inside"])
def test_the_gradient_is_that_of_finite_differences_also_with_anchors_left_out(form):
    generator = torch.Generator().manual_seed(3)
    z_a, z_b = (torch.randn(n, 3, generator=generator, dtype=torch.float64, requires_grad=True) for n in (4, 3))
    scale = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    links = [(0, 0), (0, 2), (1, 0), (2, 1)]
    assert torch.autograd.gradcheck(lambda *inputs: info_nce(*inputs, links, form), (z_a, z_b, scale))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_rows_of_norm_1e4_at_scale_100_under_autocast_stay_finite(dtype):
    generator = torch.Generator().manual_seed(4)
    rows = [torch.nn.functional.normalize(torch.randn(32, 64, generator=generator)) * 1e4 for _ in range(2)]
    z_a, z_b = (part.to(dtype).requires_grad_() for part in rows)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = info_nce(z_a, z_b, 100.0)
    loss.backward()
    assert loss.dtype == torch.float32
    assert torch.isfinite(loss)
    assert torch.isfinite(z_a.grad).all() and torch.isfinite(z_b.grad).all()
    exact = info_nce(z_a.double(), z_b.double(), 100.0)
    assert loss.item() == pytest.approx(exact.item(), rel=1e-4)


def test_sides_of_different_precision_are_compared_in_the_wider_one():
    wide = torch.tensor([[1.0, 2.0], [2.0, 1.0]], dtype=torch.float64)
    mixed = info_nce(wide.half(), wide, 3.0)
    assert mixed.dtype == torch.float64 and float(mixed) == pytest.approx(float(info_nce(wide, wide, 3.0)), rel=1e-6)
    assert info_nce(wide.half(), wide.float(), 3.0).dtype == torch.float32


def test_a_zero_row_scores_0_with_all_and_has_a_finite_gradient():
    z_a = torch.tensor([[0.0, 0.0], [1.0, 0.0]], requires_grad=True)
    loss = info_nce(z_a, torch.eye(2), 5.0, [(0, 0)], direction="a_to_b")
    loss.backward()
    assert loss.item() == pytest.approx(math.log(2))
    assert torch.isfinite(z_a.grad).all()


def test_rows_with_nan_or_infinity_are_named():
    z_a, z_b = torch.eye(4), torch.eye(4)
    z_a[2, 0], z_b[1, 1] = float("nan"), float("inf")
    with pytest.raises(NonFiniteRowsError, match=r"rows 2 of z_a .*; rows 1 of z_b"):
        info_nce(z_a, z_b, 10.0)


def test_no_link_at_all_is_an_error():
    with pytest.raises(LinksError, match=r"none of the 3 x 3 rows are linked"):
        info_nce(torch.eye(3), torch.eye(3), 1.0, [])


def test_without_links_the_sides_must_have_equally_many_rows():
    with pytest.raises(LinksError, match="needs equal numbers"):
        info_nce(torch.eye(3), torch.eye(3)[:2], 1.0)


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"z_a": torch.ones(3)}, ShapeError, r"z_a has shape \(3,\); expected \(n, d\)"),
        ({"z_b": torch.ones(2, 4)}, ShapeError, "one space"),
        ({"z_a": torch.ones(0, 2)}, ShapeError, "at least one row"),
        ({"z_a": torch.ones(2, 2, dtype=torch.int64)}, ArgumentError, "floating point"),
        ({"logit_scale": -1.0}, ArgumentError, r"logit_scale = -1.0; expected a finite number of 0 or more"),
        ({"logit_scale": float("nan")}, ArgumentError, "logit_scale = nan"),
        ({"logit_scale": torch.ones(2)}, ArgumentError, "expected one number"),
        ({"logit_scale": "14"}, ArgumentError, "logit_scale is a str; expected one number"),
        ({"logit_scale": None}, ArgumentError, "logit_scale is a NoneType; expected one number"),
        ({"z_a": np.eye(2)}, ArgumentError, "z_a is a ndarray; expected a torch tensor"),
        ({"z_b": [[1.0, 0.0]]}, ArgumentError, "z_b is a list; expected a torch tensor"),
        ({"form": "between"}, ArgumentError, "form = 'between'"),
        ({"direction": "up"}, ArgumentError, "direction = 'up'"),
    ],
)
def test_arguments_out_of_range_are_refused(change, error, match):
    arguments = {"z_a": torch.eye(2), "z_b": torch.eye(2), "logit_scale": 1.0} | change
    with pytest.raises(error, match=match):
        info_nce(**arguments)
