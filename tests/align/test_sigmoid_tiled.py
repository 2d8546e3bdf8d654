import pytest
import torch

from bridgehead.align.losses.contrast import Positives, unit
from bridgehead.align.losses.tiled import sigmoid_tiled
from bridgehead.errors import ArgumentError
from tiled_inputs import largest_difference, many_to_many, rows_of, value_and_gradients


def sigmoid_plain(unit_a, unit_b, scale, bias, positives):
    signs = -torch.ones(len(unit_a), len(unit_b), dtype=unit_a.dtype)
    signs[positives.a, positives.b] = 1
    return -torch.nn.functional.logsigmoid(signs * (scale * unit_a @ unit_b.T + bias)).sum()


@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@pytest.mark.parametrize("scale, bias", [(0.0, 0.0), (10.0, -10.0), (100.0, 5.0)])
def test_the_sigmoid_sum_and_its_four_gradients_equal_the_plain_ones(dtype, tolerance, scale, bias):
    z_a, z_b, links = many_to_many(23, 17, dtype)
    positives = Positives.of(links, 23, 17)
    inputs = (unit(z_a), unit(z_b), torch.tensor(scale, dtype=dtype), torch.tensor(bias, dtype=dtype))
    plain = value_and_gradients(lambda *x: sigmoid_plain(*x, positives), *inputs)
    for tile in (1, 7, 23, 40, "auto"):
        tiled = value_and_gradients(lambda *x, t=tile: sigmoid_tiled(*x, positives, t), *inputs)
        assert largest_difference(tiled, plain) < tolerance
    rounded = value_and_gradients(lambda *x: sigmoid_tiled(*x, positives, 7, "bf16"), *inputs)
    assert largest_difference(rounded, plain) < 0.02


def test_a_sigmoid_sum_of_two_rows_worked_by_hand():
    # Cosines [[1, 0], [0, 1]], s = 2, bias = -1: two positives at x = 1 cost log(1 + e^-1) = 0.313262 each, two
    # negatives at x = -1 the same.
    rows = torch.eye(2)
    found = sigmoid_tiled(rows, rows, torch.tensor(2.0), torch.tensor(-1.0), Positives.diagonal(2), tile=1)
    assert float(found) == pytest.approx(4 * 0.313262, abs=1e-5)


def test_the_gradient_of_the_sigmoid_sum_is_that_of_finite_differences():
    z_a, z_b = rows_of((4, 3), (3, 3))
    inputs = [unit(z_a), unit(z_b), torch.tensor(3.0).double(), torch.tensor(-1.0).double()]
    positives = Positives.of([(0, 0), (0, 2), (1, 0), (2, 1)], 4, 3)
    assert torch.autograd.gradcheck(lambda *x: sigmoid_tiled(*x, positives, 2), [x.requires_grad_() for x in inputs])


def test_a_sum_by_tiles_needs_a_tile():
    rows, one = torch.eye(3), torch.tensor(1.0)
    with pytest.raises(ArgumentError, match="tile = None; expected 'auto'"):
        sigmoid_tiled(rows, rows, one, one, Positives.diagonal(3), None)
