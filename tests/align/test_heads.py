import math

import numpy as np
import pytest
import torch
from scipy import sparse

from bridgehead.align import Head, HeadConfig, HeadsConfig, csr_batch
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
        (head(), torch.ones(2, 4), r"rows have shape \(2, 4\); expected \(n, 3\)"),
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
