import json
import math

import numpy as np
import pytest
import torch
from scipy import sparse

from bridgehead.align import Head, HeadConfig, HeadsConfig, TwoHeads, csr_batch
from bridgehead.errors import ConfigError, ShapeError


def head(**settings) -> Head:
    torch.manual_seed(0)
    return Head(HeadConfig(**{"input_dim": 3, "embed_dim": 2, "hidden": (4,)} | settings)).eval()


def gelu(x: float) -> float:
    return x * 0.5 * (1 + math.erf(x / math.sqrt(2)))


def test_an_mlp_is_its_formula_worked_in_plain_numbers():
    net = head()
    x = np.array([0.5, -1.0, 2.0])
    w1, b1 = net.first.weight.detach().double().numpy(), net.first.bias.detach().double().numpy()
    w2, b2 = net.rest[0].weight.detach().double().numpy(), net.rest[0].bias.detach().double().numpy()
    hidden = np.array([gelu(v) for v in w1 @ x + b1])
    hidden = (hidden - hidden.mean()) / np.sqrt(hidden.var() + 1e-5)
    assert net(torch.tensor(x[None], dtype=torch.float32))[0].tolist() == pytest.approx(w2 @ hidden + b2, abs=1e-5)


def test_without_hidden_layers_a_head_is_linear():
    net = head(hidden=())
    x, y = torch.randn(2, 1, 3).unbind()
    assert torch.allclose(net(x + y) + net(torch.zeros(1, 3)), net(x) + net(y), atol=1e-6)
    assert len(list(net.parameters())) == 2


def test_a_sparse_head_equals_the_dense_head_with_the_same_weights():
    dense, sparse_head = head(input_dim=30), head(input_dim=30, sparse=True)
    with torch.no_grad():
        sparse_head.first.weight.copy_(dense.first.weight.T)
        sparse_head.first_bias.copy_(dense.first.bias)
    sparse_head.rest.load_state_dict(dense.rest.state_dict())
    rows = sparse.random(6, 30, 0.3, format="csr", dtype=np.float32, random_state=0)
    found = sparse_head(csr_batch(sparse.csr_matrix(rows)))
    assert torch.allclose(found, dense(torch.from_numpy(rows.toarray())), atol=1e-6)


def test_unit_rows_make_the_length_of_the_input_irrelevant():
    net = head(input_norm="unit")
    x = torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
    assert torch.allclose(net(x), net(x * 7), atol=1e-6)
    assert torch.isfinite(net(x)).all()


@pytest.mark.parametrize("factor", [1e-30, 1e30])
def test_unit_rows_are_of_length_one_however_large_or_small_their_numbers_are(factor):
    rows = np.array([[1.0, 2.0, 3.0], [-2.0, 0.0, 1.0]], dtype=np.float32)
    dense, bags = head(input_norm="unit"), head(input_norm="unit", sparse=True)
    far = (rows * factor).astype(np.float32)
    assert torch.allclose(dense(torch.from_numpy(far)), dense(torch.from_numpy(rows)), atol=1e-6)
    csr, csr_far = (csr_batch(sparse.csr_matrix(values)) for values in (rows, far))
    assert torch.allclose(bags(csr_far), bags(csr), atol=1e-6)


def test_standard_takes_mean_and_deviation_of_the_training_rows_and_drops_constant_columns():
    net = head(input_norm="standard", hidden=())
    rows = np.array([[1.0, 100.0, 5.0], [3.0, 300.0, 5.0]])
    net.fit_input(rows)
    assert net.mean.tolist() == [2.0, 200.0, 5.0]
    assert net.inverse_std.tolist() == pytest.approx([1.0, 0.01, 0.0])
    x = torch.tensor([[3.0, 100.0, 999.0]])
    weight, bias = net.first.weight, net.first.bias
    assert torch.allclose(net(x), (weight @ torch.tensor([1.0, -1.0, 0.0]) + bias)[None], atol=1e-5)


def test_residual_adds_the_first_layer_to_the_output():
    net = head(hidden=(2,), residual=True)
    plain = head(hidden=(2,))
    plain.load_state_dict(net.state_dict())
    x = torch.randn(4, 3)
    assert torch.allclose(net(x), plain(x) + net.first(x), atol=1e-6)


def plain_net(net: Head) -> torch.nn.Module:
    """The same head written with torch's own layers and the same weights, dense, without residual."""
    kinds = {"layer": torch.nn.LayerNorm, "batch": torch.nn.BatchNorm1d, "rms": lambda n: torch.nn.RMSNorm(n, eps=1e-5)}
    config, layers = net.config, [net.first]
    for number, layer in enumerate(net.rest):
        layers.append(torch.nn.GELU() if config.activation == "gelu" else torch.nn.ReLU())
        if config.norm != "none":
            norm = kinds[config.norm](config.hidden[number])
            norm.load_state_dict(net.norms[number].state_dict(), strict=False)
            layers.append(norm)
        layers.append(layer)
    return torch.nn.Sequential(*layers)


@pytest.mark.parametrize("depth", range(5))
@pytest.mark.parametrize("norm", ["layer", "batch", "rms", "none"])
def test_a_head_of_any_depth_and_norm_is_the_same_chain_of_torch_layers(norm, depth):
    net = head(norm=norm, hidden=(4, 5, 5, 6)[:depth]).train()
    plain = plain_net(net).train()
    x = torch.randn(7, 3) * 3
    for _ in range(3):
        assert torch.allclose(net(x), plain(x), atol=1e-6)
    assert torch.allclose(net.eval()(x), plain.eval()(x), atol=1e-6)


@pytest.mark.parametrize("norm", ["layer", "batch", "rms", "none"])
def test_the_gradient_of_every_norm_is_that_of_its_formula(norm):
    net = head(norm=norm, hidden=(4, 4), residual="layers", activation="gelu").double().train()
    x = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(net, (x,))


def test_skips_around_layers_add_what_the_layer_below_gave_where_the_widths_are_equal():
    net = head(hidden=(3, 3, 4, 4), residual="layers", norm="none", activation="relu")
    x = torch.randn(6, 3)
    h1 = torch.relu(net.first(x))  # no skip around the first layer, though it is as wide as the input
    h2 = h1 + torch.relu(net.rest[0](h1))
    h3 = torch.relu(net.rest[1](h2))  # 3 -> 4: no skip
    h4 = h3 + torch.relu(net.rest[2](h3))
    assert torch.allclose(net(x), net.rest[3](h4), atol=1e-6)


def test_a_head_without_two_layers_of_one_width_has_no_skip():
    for hidden in ((), (4,), (4, 5)):
        net, plain = head(hidden=hidden, residual="layers"), head(hidden=hidden)
        x = torch.randn(6, 3)
        assert torch.equal(net(x), plain(x))


def test_batch_norm_worked_by_hand_with_its_running_averages():
    net = head(hidden=(1,), norm="batch", activation="relu", input_dim=1, embed_dim=1)
    with torch.no_grad():
        for layer in (net.first, net.rest[0]):
            layer.weight.fill_(1.0)
            layer.bias.fill_(0.0)
    x = torch.tensor([[1.0], [3.0]])
    # Mean 2, variance 1 by n and 2 by n - 1; the averages move a tenth from 0 and 1.
    assert net.train()(x).flatten().tolist() == pytest.approx([-1, 1], abs=1e-4)
    assert net.norms[0].running_mean.item() == pytest.approx(0.2)
    assert net.norms[0].running_var.item() == pytest.approx(0.9 * 1 + 0.1 * 2)
    assert net.eval()(x).flatten().tolist() == pytest.approx([0.8 / 1.1**0.5, 2.8 / 1.1**0.5], abs=1e-4)


def test_a_batch_of_one_row_goes_through_batch_norm_in_training_by_the_running_averages():
    net = head(norm="batch", hidden=(4, 4)).train()
    net(torch.randn(16, 3))
    before = {name: value.clone() for name, value in net.state_dict().items()}
    x = torch.randn(1, 3)
    found = net(x)
    found.sum().backward()
    assert torch.equal(found, net.eval()(x))
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert float(net.first.weight.grad.abs().sum()) > 0


def test_root_mean_square_norm_worked_by_hand():
    net = head(hidden=(2,), norm="rms", activation="relu", input_dim=2, embed_dim=2)
    with torch.no_grad():
        for layer in (net.first, net.rest[0]):
            layer.weight.copy_(torch.eye(2))
            layer.bias.fill_(0.0)
    # The root of (9 + 16) / 2 is 3.5355.
    assert net(torch.tensor([[3.0, 4.0]]))[0].tolist() == pytest.approx([0.84853, 1.13137], abs=1e-5)


@pytest.mark.parametrize(("old", "new"), [(True, "layer"), (False, "none")])
def test_true_and_false_are_still_read_for_norm(old, new):
    assert HeadConfig(3, norm=old) == HeadConfig(3, norm=new)


@pytest.mark.parametrize(("old", "new"), [(True, "output"), (False, "none")])
def test_true_and_false_are_still_read_for_residual(old, new):
    assert HeadConfig(3, 512, residual=old) == HeadConfig(3, 512, residual=new)


def test_a_description_from_before_norms_had_names_is_read_as_what_it_meant():
    side = {"input_dim": 3, "embed_dim": 4, "hidden": [4], "norm": True, "residual": True}
    content = {"a": side, "b": side | {"norm": False, "residual": False}}
    config = HeadsConfig.from_dict(json.loads(json.dumps(content)))
    assert (config.a.norm, config.a.residual) == ("layer", "output")
    assert (config.b.norm, config.b.residual) == ("none", "none")


def test_a_description_holds_plain_values_whatever_numbers_made_it():
    side = HeadConfig(np.int64(5), np.int32(8), (np.int64(8),), dropout=np.float32(0.5), sparse=np.bool_(True))
    config = HeadsConfig(side, side, np.float32(2.0), (np.float64(1.0), 4))
    plain = config.to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert HeadsConfig.from_dict(plain) == config


def test_the_weights_of_the_default_heads_are_drawn_in_the_order_of_plain_layers():
    torch.manual_seed(5)
    model = TwoHeads(HeadsConfig(HeadConfig(6, 4, (5, 7)), HeadConfig(9, 4, sparse=True, hidden=(5,))))
    torch.manual_seed(5)
    expected = [torch.nn.Linear(6, 5), torch.nn.Linear(5, 7), torch.nn.Linear(7, 4), torch.nn.EmbeddingBag(9, 5)]
    torch.nn.init.normal_(expected[3].weight, std=1 / 5**0.5)
    expected.append(torch.nn.Linear(5, 4))
    found = [model.head_a.first, *model.head_a.rest, model.head_b.first, *model.head_b.rest]
    assert all(torch.equal(one.weight, other.weight) for one, other in zip(found, expected, strict=True))


def test_dropout_acts_in_training_only():
    for net in (head(dropout=0.5), head(input_dropout=0.5)):
        x = torch.ones(1, 3)
        assert torch.equal(net(x), net(x))
        net.train()
        torch.manual_seed(1)
        assert len({tuple(net(x)[0].tolist()) for _ in range(8)}) > 1


def test_input_dropout_drops_entries_of_csr_rows_in_training():
    net = head(input_dim=50, sparse=True, input_dropout=0.5).train()
    batch = csr_batch(sparse.csr_matrix(np.ones((1, 50), dtype=np.float32)))
    torch.manual_seed(1)
    assert len({tuple(net(batch)[0].tolist()) for _ in range(8)}) > 1


@pytest.mark.parametrize(
    ("net", "x", "match"),
    [
        (head(), torch.ones(2, 4), r"x has shape \(2, 4\); expected \(n, 3\)"),
        (head(), csr_batch(sparse.csr_matrix(np.eye(3, dtype=np.float32))), "reads dense rows"),
        (head(sparse=True), torch.ones(2, 3), "reads CSR rows"),
        (head(sparse=True), csr_batch(sparse.csr_matrix(np.eye(4, dtype=np.float32))), "4 columns; expected 3"),
    ],
)
def test_rows_of_the_wrong_kind_or_width_are_refused(net, x, match):
    with pytest.raises(ShapeError, match=match):
        net(x)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"input_dim": 0}, "widths of at least 1"),
        ({"hidden": (0,)}, "widths of at least 1"),
        ({"hidden": (65_537,)}, "at most 65,536"),
        ({"embed_dim": 10**12}, "at most 65,536"),
        ({"activation": "sine"}, "activation = 'sine'; expected one of gelu, relu"),
        ({"dropout": 1.0}, r"dropout = 1.0; expected a share in \[0, 1\)"),
        ({"sparse": True, "input_norm": "standard"}, "would make CSR rows dense"),
        ({"residual": True}, "residual needs a first hidden layer as wide as the space"),
        ({"residual": "output", "hidden": ()}, "residual needs a first hidden layer"),
        ({"norm": "group"}, "norm = 'group'; expected one of layer, batch, rms, none"),
        ({"norm": None}, "norm = None; expected one of layer"),
        ({"residual": "all"}, "residual = 'all'; expected one of none, output, layers"),
        ({"hidden": 4}, "hidden = 4"),
        ({"input_dim": 3.5}, "input_dim = 3.5"),
        ({"dropout": "half"}, "dropout = 'half'"),
    ],
)
def test_an_architecture_that_cannot_be_is_refused(settings, match):
    with pytest.raises(ConfigError, match=match):
        head(**settings)


def test_two_heads_must_end_in_one_space_and_their_description_survives_json():
    a = HeadConfig(5, 8)
    with pytest.raises(ConfigError, match="both must be the same"):
        HeadsConfig(a, HeadConfig(5, 9))
    config = HeadsConfig(a, HeadConfig(7, 8, (), sparse=True), bounds=None)
    assert HeadsConfig.from_dict(config.to_dict()) == config
    with pytest.raises(ConfigError, match="not understood"):
        HeadsConfig.from_dict({"a": {}, "b": {}})
