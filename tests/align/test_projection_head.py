import pytest
import torch
import torch.nn.functional as F

from bridgehead.align.projection_head import ProjectionHead
from bridgehead.errors import ConfigError, ShapeError


def test_the_net_is_linear_gelu_layer_norm_linear_and_draws_its_weights_in_that_order():
    torch.manual_seed(3)
    head = ProjectionHead(6, 4)
    assert [type(layer).__name__ for layer in head.net] == ["Linear", "GELU", "LayerNorm", "Linear"]
    torch.manual_seed(3)
    first, last = torch.nn.Linear(6, 6), torch.nn.Linear(6, 4)
    x = torch.randn(5, 6)
    assert torch.equal(head(x), last(F.layer_norm(F.gelu(first(x)), (6,))))


def test_the_space_has_512_dimensions_unless_said_and_leading_dimensions_are_kept():
    assert ProjectionHead(3)(torch.ones(2, 7, 3)).shape == (2, 7, 512)
    assert ProjectionHead(3).config == {"input_dim": 3, "projection_dim": 512}


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((0,), "input_dim = 0; expected a whole number of dimensions, 1 to"),
        ((4, 0), "projection_dim = 0; expected"),
        ((4, -2), "projection_dim = -2"),
        ((4, 2.5), "projection_dim = 2.5"),
        ((10**9,), "1 to 65,536"),
    ],
)
def test_an_embedding_size_that_cannot_be_is_refused(arguments, match):
    with pytest.raises(ConfigError, match=match):
        ProjectionHead(*arguments)


def test_rows_of_another_width_are_refused():
    with pytest.raises(ShapeError, match=r"x has shape \(2, 5\); expected \(..., 4\)"):
        ProjectionHead(4)(torch.ones(2, 5))


def test_the_gradient_is_that_of_the_formula():
    torch.manual_seed(0)
    head = ProjectionHead(3, 2).double()
    assert torch.autograd.gradcheck(head, (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),))


def test_a_head_saved_in_a_folder_is_the_same_head_again(tmp_path):
    head = ProjectionHead(6, 4)
    head.save_pretrained(tmp_path / "head")
    again = ProjectionHead.from_pretrained(tmp_path / "head")
    x = torch.ones(2, 6)
    assert again.config == head.config and torch.equal(again(x), head(x))
