import numpy as np
import pytest
import torch
import torch.nn.functional as F

from bridgehead.align.heads import Head
from bridgehead.align.towers import TwoTowers, tower
from bridgehead.errors import ConfigError, ShapeError


def test_the_two_towers_of_the_two_view_study_have_2392_weights():
    # (14 x 40 + 40) + (40 x 16 + 16) = 1,256 and (11 x 40 + 40) + 656 = 1,136.
    assert sum(weight.numel() for weight in TwoTowers(14, 11).parameters()) == 2392


def test_towers_are_plain_perceptrons_with_weights_drawn_in_the_order_of_plain_layers():
    torch.manual_seed(6050)
    model = TwoTowers(14, 11)
    torch.manual_seed(6050)
    nets = [torch.nn.Sequential(torch.nn.Linear(d, 40), torch.nn.ReLU(), torch.nn.Linear(40, 16)) for d in (14, 11)]
    x_a, x_b = torch.randn(7, 14), torch.randn(5, 11)
    for found, net, x in zip(model(x_a, x_b), nets, (x_a, x_b), strict=True):
        assert torch.allclose(found, F.normalize(net(x), dim=-1), atol=1e-6)
        assert torch.allclose(found.norm(dim=1), torch.ones(len(x)), atol=1e-6)


def test_a_tower_is_a_head_that_takes_its_input_as_it_is():
    one = tower(3, 2, (), "gelu")
    assert isinstance(one, Head) and one.config.input_norm == "none" and one.config.norm == "none"
    x = torch.tensor([[100.0, 0.0, -5.0]])
    expected = one.first.weight.detach().numpy() @ x[0].numpy() + one.first.bias.detach().numpy()
    assert np.allclose(one(x).detach().numpy()[0], expected, atol=1e-4)


def test_towers_are_as_deep_as_said_and_keep_their_arguments():
    model = TwoTowers(4, 5, 6, (8, 7), "gelu", norm="batch", dropout=0.2)
    assert [layer.out_features for layer in model.tower_b.rest] == [7, 6]
    again = TwoTowers(**model.config)
    again.load_state_dict(model.state_dict())
    x = torch.ones(2, 4)
    assert torch.equal(again.eval().encode_a(x), model.eval().encode_a(x))


def test_what_cannot_be_is_refused():
    with pytest.raises(ConfigError, match="embed_dim = 0"):
        TwoTowers(4, 5, 0)
    with pytest.raises(ConfigError, match="activation = 'tanh'"):
        tower(4, activation="tanh")
    with pytest.raises(ShapeError, match=r"expected \(n, 11\)"):
        TwoTowers(14, 11)(torch.ones(2, 14), torch.ones(2, 14))


def test_towers_saved_in_a_folder_are_the_same_towers_again(tmp_path):
    model = TwoTowers(4, 5, 6, (8, 7), norm="batch").train()
    model(torch.randn(9, 4), torch.randn(9, 5))
    model.save_pretrained(tmp_path / "towers")
    again = TwoTowers.from_pretrained(tmp_path / "towers")
    x = torch.ones(2, 5)
    assert torch.equal(again.encode_b(x), model.eval().encode_b(x))
