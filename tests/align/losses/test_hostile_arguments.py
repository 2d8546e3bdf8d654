"""What a loss makes of arguments that no batch should have: refused in a sentence, never a number that is wrong."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from bridgehead.align import (
    LossConfig,
    Objective,
    alignment_term,
    decoupled_loss,
    guided_loss,
    hard_negative_loss,
    hierarchical_loss,
    info_nce,
    mutual_information_bound,
    sigmoid_loss,
    uniformity_term,
)
from bridgehead.errors import ArgumentError, ConfigError, NonFiniteRowsError, ShapeError

CLASSES = torch.tensor([0, 0, 1, -1])

LOSSES: dict[str, Callable[..., torch.Tensor]] = {
    "info_nce": info_nce,
    "info_nce, small": lambda *rows, **options: info_nce(*rows, tile="auto", **options),
    "info_nce, tiled": lambda *rows, **options: info_nce(*rows, tile=2, **options),
    "decoupled": decoupled_loss,
    "hard_negative": hard_negative_loss,
    "sigmoid": sigmoid_loss,
    "sigmoid, tiled": lambda *rows, **options: sigmoid_loss(*rows, tile=2, **options),
    "guided": lambda *rows, **options: guided_loss(*rows, guide_a=torch.eye(4), **options),
    "hierarchical": lambda *rows, **options: hierarchical_loss(*rows, classes_a=CLASSES, classes_b=CLASSES, **options),
    "alignment": lambda z_a, z_b, s, links, direction: alignment_term(z_a, z_b, links),
}


def rows(seed: int = 0) -> torch.Tensor:
    return torch.randn(4, 3, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("direction", ["a_to_b", "b_to_a"])
def test_a_row_that_is_not_finite_is_named_even_where_the_loss_leaves_it_out(
    loss: Callable[..., torch.Tensor], bad: float, direction: str
) -> None:
    sides = [rows(0), rows(1)]
    sides[direction == "b_to_a"][3, 1] = bad
    with pytest.raises(NonFiniteRowsError, match="rows 3 of z_"):
        loss(*sides, 10.0, links=[(0, 0), (1, 1), (2, 2)], direction=direction)


@pytest.mark.parametrize(
    "loss",
    [
        lambda a, b: info_nce(a, b, 3.0, tile="auto"),
        lambda a, b: info_nce(a, b, 3.0, tile=2),
        lambda a, b: sigmoid_loss(a, b, 3.0, tile=2),
        lambda a, b: uniformity_term(a),
        lambda a, b: Objective()(a, b, 3.0).loss,
    ],
)
def test_second_derivatives_that_a_loss_does_not_have_are_refused_rather_than_wrong(loss: Any) -> None:
    z_a = rows(0).requires_grad_()
    with pytest.raises(ArgumentError, match="no second derivatives"):
        torch.autograd.grad(loss(z_a, rows(1)), z_a, create_graph=True)


def test_sparse_rows_are_told_to_be_made_dense() -> None:
    with pytest.raises(ArgumentError, match=r"z_a is a sparse tensor .*; expected dense rows: call to_dense\(\)"):
        info_nce(rows().to_sparse(), rows(), 1.0)


def test_numbers_beyond_all_floats_are_refused_like_any_number_out_of_range() -> None:
    huge = 10**400
    with pytest.raises(ArgumentError, match="logit_scale = inf"):
        info_nce(rows(), rows(), huge)
    with pytest.raises(ArgumentError, match="expected one finite number"):
        sigmoid_loss(rows(), rows(), 1.0, bias=-huge)
    with pytest.raises(ArgumentError, match="beta = 1000"):
        hard_negative_loss(rows(), rows(), 1.0, beta=huge)
    with pytest.raises(ArgumentError, match="expected two numbers"):
        mutual_information_bound(1.0, huge)


def test_a_complex_scale_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"dtype torch\.complex64; expected one real number"):
        info_nce(rows(), rows(), torch.tensor(1 + 1j))


def test_a_bias_may_be_a_number_of_numpy() -> None:
    expected = sigmoid_loss(rows(0), rows(1), 2.0, bias=-3.0)
    assert torch.equal(sigmoid_loss(rows(0), rows(1), 2.0, bias=np.float32(-3)), expected)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (["a", "b", "a", "b"], "classes_a is no array of numbers"),
        ([2**70, 0, 0, 1], "classes_a is no array of numbers"),
        (np.array([2**63, 1, 0, 1], dtype=np.uint64), "expected integers of int64"),
    ],
)
def test_classes_that_are_no_integers_are_refused(classes: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        hierarchical_loss(rows(0), rows(1), 2.0, classes_a=classes, classes_b=CLASSES)


def test_unsigned_classes_are_classes() -> None:
    signed = np.array([0, 1, 0, 1])
    expected = hierarchical_loss(rows(0), rows(1), 2.0, classes_a=signed, classes_b=signed)
    unsigned = signed.astype(np.uint32)
    assert torch.equal(hierarchical_loss(rows(0), rows(1), 2.0, classes_a=unsigned, classes_b=unsigned), expected)


@pytest.mark.parametrize("number", [None, "x"])
def test_a_mutual_information_of_no_number_is_refused(number: Any) -> None:
    with pytest.raises(ArgumentError, match="expected two numbers"):
        mutual_information_bound(number, 8)


def test_an_objective_may_be_named_like_the_settings_of_a_loss() -> None:
    expected = Objective(LossConfig(name="hard_negative", beta=0.5))(rows(0), rows(1), 2.0).loss
    assert torch.equal(Objective({"name": "hard_negative", "beta": 0.5})(rows(0), rows(1), 2.0).loss, expected)
    assert Objective("decoupled").config == LossConfig(name="decoupled")
    with pytest.raises(ConfigError, match="loss is a int"):
        Objective(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("z_a", "error", "message"),
    [
        (None, ArgumentError, "z_a is a NoneType; expected a torch tensor"),
        ([[1.0]], ArgumentError, "z_a is a list; expected a torch tensor"),
        (torch.tensor(1.0), ShapeError, r"z_a has shape \(\); expected \(n, d\)"),
    ],
)
@pytest.mark.parametrize("loss", [Objective(), decoupled_loss, alignment_term], ids=["objective", "loss", "term"])
def test_what_is_no_rows_is_refused_before_its_length_is_asked(
    loss: Any, z_a: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        loss(z_a, rows(), None if loss is alignment_term else 1.0)


def test_classes_and_guide_come_in_pairs() -> None:
    with pytest.raises(ArgumentError, match=r"guide is a Tensor; expected a pair, \(of a, of b\)"):
        Objective("guided")(rows(), rows(), 1.0, guide=rows())  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"classes is a Tensor; expected a pair, \(of a, of b\)"):
        Objective("hierarchical")(rows(), rows(), 1.0, classes=CLASSES)  # type: ignore[arg-type]


def test_no_rows_have_no_loss_by_chance() -> None:
    with pytest.raises(ArgumentError, match="n_a = 0, n_b = 3; expected at least one row on each side"):
        Objective().chance(0, 3)
