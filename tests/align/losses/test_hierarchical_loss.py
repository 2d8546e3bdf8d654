import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_losses as naive
from bridgehead.align.losses.hierarchical import hierarchical_loss, hierarchical_parts
from bridgehead.align.losses.infonce import info_nce
from bridgehead.errors import ArgumentError, LinksError, ShapeError


@settings(deadline=None)
@given(
    naive.batches(),
    st.data(),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.sampled_from(["outside", "inside"]),
    st.sampled_from(["both", "a_to_b", "b_to_a"]),
)
def test_equals_the_definition_written_as_loops(batch, data, weight, form, direction):
    z_a, z_b, matches, scale = batch
    classes = [data.draw(st.lists(st.integers(-1, 2), min_size=len(z), max_size=len(z))) for z in (z_a, z_b)]
    coarse = matches | {(i, j) for i, a in enumerate(classes[0]) for j, b in enumerate(classes[1]) if a == b >= 0}
    cost = naive.info_nce_cost(scale, form)
    fine_loss, coarse_loss = (naive.loss(z_a, z_b, pairs, cost, direction=direction) for pairs in (matches, coarse))
    parts = hierarchical_parts(
        z_a,
        z_b,
        scale,
        sorted(matches),
        classes_a=classes[0],
        classes_b=np.array(classes[1]),
        coarse_weight=weight,
        form=form,
        direction=direction,
    )
    assert float(parts.terms["fine"]) == pytest.approx(fine_loss, rel=1e-9, abs=1e-12)
    assert float(parts.terms["coarse"]) == pytest.approx(coarse_loss, rel=1e-9, abs=1e-12)
    assert float(parts.loss) == pytest.approx((1 - weight) * fine_loss + weight * coarse_loss, rel=1e-9, abs=1e-12)


def test_a_batch_of_three_worked_by_hand():
    # Cosines are the identity, s = 1, classes 0, 0, 1. Z = e + 2. Fine: log Z - 1 each. Coarse: rows 0 and 1 have two
    # positives with scores 1 and 0, so log Z - 1/2; row 2 has log Z - 1: the mean is log Z - 2/3.
    rows = torch.eye(3, dtype=torch.float64)
    parts = hierarchical_parts(rows, rows, 1.0, classes_a=[0, 0, 1], classes_b=[0, 0, 1], coarse_weight=0.25)
    z = math.log(math.e + 2)
    assert float(parts.terms["fine"]) == pytest.approx(z - 1)
    assert float(parts.terms["coarse"]) == pytest.approx(z - 2 / 3)
    assert float(parts.loss) == pytest.approx(0.75 * (z - 1) + 0.25 * (z - 2 / 3))


@pytest.mark.parametrize("weight", [0.0, 0.4, 1.0])
def test_identical_rows_give_the_logarithm_of_the_number_of_candidates(weight):
    rows = torch.ones(6, 2, dtype=torch.float64)
    classes = {"classes_a": [0, 0, 1, 1, -1, -1], "classes_b": [0, 1, 1, 2, 2, -1]}
    loss = hierarchical_loss(rows, rows, 9.0, coarse_weight=weight, **classes)
    assert float(loss) == pytest.approx(math.log(6), abs=1e-12)


def test_classes_never_become_links():
    # Rows of one class stay negatives in the fine part, and -1 is no class.
    generator = torch.Generator().manual_seed(0)
    z_a, z_b = (torch.randn(4, 3, generator=generator, dtype=torch.float64) for _ in range(2))
    one_class = torch.zeros(4, dtype=torch.int64)
    only_fine = hierarchical_loss(z_a, z_b, 3.0, classes_a=one_class, classes_b=one_class, coarse_weight=0.0)
    assert float(only_fine) == pytest.approx(float(info_nce(z_a, z_b, 3.0)), rel=1e-12)
    none = torch.full((4,), -1)
    without = hierarchical_loss(z_a, z_b, 3.0, classes_a=none, classes_b=none, coarse_weight=1.0)
    assert float(without) == pytest.approx(float(info_nce(z_a, z_b, 3.0)), rel=1e-12)
    with pytest.raises(LinksError, match="none of the 4 x 4 rows are linked"):
        hierarchical_loss(z_a, z_b, 3.0, [], classes_a=one_class, classes_b=one_class)


def test_a_row_with_a_class_and_no_link_is_an_anchor_of_the_coarse_part_alone():
    rows = torch.eye(2)
    parts = hierarchical_parts(rows, rows, 2.0, [(0, 0)], classes_a=[0, 7], classes_b=[0, 7])
    assert (parts.left_out_a, parts.left_out_b) == (1, 1)
    both = math.log1p(math.exp(-2))
    assert float(parts.terms["fine"]) == pytest.approx(both) and float(parts.terms["coarse"]) == pytest.approx(both)


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"classes_a": None}, ArgumentError, "classes_a is None; expected 2 integers"),
        ({"classes_a": [0.0, 1.0]}, ArgumentError, "classes_a has dtype torch.float32; expected integers"),
        ({"classes_b": [True, False]}, ArgumentError, "classes_b has dtype torch.bool"),
        ({"classes_b": [0, 1, 2]}, ShapeError, r"classes_b has shape \(3,\); expected \(2,\)"),
        ({"coarse_weight": 1.5}, ArgumentError, r"coarse_weight = 1.5; expected a weight in \[0, 1\]"),
        ({"coarse_weight": -0.5}, ArgumentError, "coarse_weight = -0.5"),
        ({"form": "between"}, ArgumentError, "form = 'between'"),
    ],
)
def test_classes_and_weights_out_of_range_are_refused(change, error, match):
    arguments = {"classes_a": [0, 1], "classes_b": [0, 1]} | change
    with pytest.raises(error, match=match):
        hierarchical_loss(torch.eye(2), torch.eye(2), 1.0, **arguments)
