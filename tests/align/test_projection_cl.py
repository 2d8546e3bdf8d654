import inspect
import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgehead.align.projection_cl import ProjectionCL
from bridgehead.errors import ArgumentError, BridgeheadError, ConfigError, LinksError, NonFiniteRowsError


def small(**changes) -> ProjectionCL:
    torch.manual_seed(0)
    return ProjectionCL(**{"embed_dim": 4, "modality_dims": (6, 5)} | changes)


def batch(n_a: int = 7, n_b: int = 7) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(n_a, 6, generator=generator), torch.randn(n_b, 5, generator=generator)


def set_scale(model: ProjectionCL, s: float) -> None:
    with torch.no_grad():
        model.logit_scale.fill_(math.log(s))


def test_the_arguments_and_their_defaults():
    parameters = inspect.signature(ProjectionCL).parameters
    assert {name: parameter.default for name, parameter in parameters.items()} == {
        "embed_dim": 512,
        "modality_dims": (1280, 768),
        "bias": False,
        "logit_scale_init": 1.0,
        "num_layers": 1,
        "hidden_dim": None,
        "dropout": 0.0,
        "max_logit_scale": 10.0,
        "min_logit_scale": None,
    }
    by_name = [name for name, p in parameters.items() if p.kind is inspect.Parameter.KEYWORD_ONLY]
    assert by_name == list(parameters)[2:]
    assert list(inspect.signature(ProjectionCL.forward).parameters)[:4] == [
        "self", "features_a", "features_b", "return_loss",
    ]  # fmt: skip


def test_the_default_is_one_matrix_for_each_side_and_a_scale_that_starts_at_1():
    model = ProjectionCL()
    shapes = {name: tuple(weight.shape) for name, weight in model.named_parameters()}
    assert shapes == {"logit_scale": (), "proj_a.0.weight": (512, 1280), "proj_b.0.weight": (512, 768)}
    assert model.hidden_dim == 512
    assert (model.init_value, float(model.logit_scale.detach()), model.current_logit_scale()) == (0.0, 0.0, 1.0)


def test_the_scale_is_kept_as_its_logarithm():
    model = small(logit_scale_init=5.0)
    assert isinstance(model.init_value, float) and model.init_value == pytest.approx(math.log(5))
    assert isinstance(model.logit_scale, torch.nn.Parameter)
    assert float(model.logit_scale.detach()) == pytest.approx(math.log(5))
    assert isinstance(model.current_logit_scale(), float)
    assert model.current_logit_scale() == pytest.approx(5)


@pytest.mark.parametrize(("layers", "hidden", "bias"), [(1, None, True), (2, None, False), (3, 9, True), (4, 3, False)])
def test_a_head_is_a_chain_of_linear_layers_with_gelu_between_them(layers, hidden, bias):
    model = small(num_layers=layers, hidden_dim=hidden, bias=bias)
    x, _ = batch()
    linear = [layer for layer in model.proj_a if isinstance(layer, torch.nn.Linear)]
    assert len(linear) == layers
    assert [layer.out_features for layer in linear] == [hidden or 4] * (layers - 1) + [4]
    assert all((layer.bias is not None) == bias for layer in linear)
    units = x
    for number, layer in enumerate(linear):
        units = F.linear(F.gelu(units) if number else units, layer.weight, layer.bias)
    assert torch.equal(model.encode_a(x), units)


def test_encoding_is_not_normalised_and_logits_are_the_scaled_cosines_both_ways():
    model = small(logit_scale_init=3.0)
    x_a, x_b = batch(3, 5)
    z_a, z_b = model.encode_a(x_a), model.encode_b(x_b)
    expected = 3 * F.cosine_similarity(z_a[:, None], z_b[None], dim=2)
    logits_ab, logits_ba = model(x_a, x_b)
    assert torch.allclose(logits_ab, expected, atol=1e-6)
    assert torch.equal(logits_ba, logits_ab.T)
    assert not torch.allclose(z_a.norm(dim=1), torch.ones(3), atol=1e-2)


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 9), scale=st.floats(0.01, 50), most=st.floats(0.5, 30), seed=st.integers(0, 99))
def test_the_loss_is_the_mean_of_two_cross_entropies_over_the_logits_it_returns(n, scale, most, seed):
    model = small(logit_scale_init=scale, max_logit_scale=most)
    generator = torch.Generator().manual_seed(seed)
    x_a, x_b = torch.randn(n, 6, generator=generator), torch.randn(n, 5, generator=generator)
    logits_ab, logits_ba, loss = model(x_a, x_b, return_loss=True)
    labels = torch.arange(n)
    expected = (F.cross_entropy(logits_ab, labels) + F.cross_entropy(logits_ba, labels)) / 2
    assert float(loss.detach()) == pytest.approx(float(expected.detach()), abs=2e-5)
    assert loss.ndim == 0


def test_the_gradients_are_those_of_the_plain_formula():
    model = small(num_layers=2, logit_scale_init=4.0, bias=True).double()
    x_a, x_b = (x.double() for x in batch())
    names, weights = zip(*model.named_parameters(), strict=True)
    ours = torch.autograd.grad(model(x_a, x_b, return_loss=True)[2], weights)
    logits = model.logit_scale.exp() * F.normalize(model.proj_a(x_a)) @ F.normalize(model.proj_b(x_b)).T
    labels = torch.arange(7)
    theirs = torch.autograd.grad((F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2, weights)
    for name, one, other in zip(names, ours, theirs, strict=True):
        assert torch.allclose(one, other, atol=1e-12), name


@pytest.mark.parametrize(("s", "used"), [(0.5, 2.0), (2.0, 2.0), (3.0, 3.0), (10.0, 10.0), (1e30, 10.0)])
def test_the_scale_is_cut_to_its_bounds(s, used):
    model = small(min_logit_scale=2.0, logit_scale_init=3.0)
    set_scale(model, s)
    x_a, x_b = batch()
    assert model.current_logit_scale() == pytest.approx(used, rel=1e-6)
    cosines = F.normalize(model.encode_a(x_a)) @ F.normalize(model.encode_b(x_b)).T
    assert torch.allclose(model(x_a, x_b)[0], used * cosines, atol=1e-5)


def test_without_a_lower_bound_the_scale_may_be_as_small_as_it_likes():
    model = small()
    set_scale(model, 1e-6)
    assert model.current_logit_scale() == pytest.approx(1e-6, rel=1e-4)


def test_a_start_outside_the_bounds_is_cut_as_any_value_is():
    model = small(logit_scale_init=50.0)
    assert model.init_value == pytest.approx(math.log(50))
    assert model.current_logit_scale() == 10.0


@pytest.mark.parametrize(("s", "pull", "passes"), [(20, -1, False), (20, 1, True), (0.1, -1, True), (0.1, 1, False)])
def test_outside_the_bounds_only_a_gradient_that_leads_back_passes(s, pull, passes):
    model = small(min_logit_scale=1.0)
    set_scale(model, s)
    (pull * model._scale()).backward()
    # ds / dlog s = s where it passes.
    assert float(model.logit_scale.grad) == pytest.approx(pull * s if passes else 0.0, rel=1e-5)


def test_a_scale_beyond_its_bound_comes_back_when_the_pairs_are_wrong():
    model = small(logit_scale_init=100.0)
    x, _ = batch()
    with torch.no_grad():
        model.proj_b = model.proj_a
    model.modality_dims = (6, 6)
    optimiser = torch.optim.SGD([model.logit_scale], lr=0.5)
    for _ in range(40):
        optimiser.zero_grad()
        model(x, x.roll(1, 0), return_loss=True)[2].backward()
        optimiser.step()
    assert model.current_logit_scale() < 9


def test_two_forward_passes_before_one_backward_pass_are_allowed():
    model = small(logit_scale_init=100.0)
    x_a, x_b = batch()
    (model(x_a, x_b, return_loss=True)[2] + model(x_b.new_ones(2, 6), x_b[:2], return_loss=True)[2]).backward()
    assert torch.isfinite(model.proj_a[0].weight.grad).all()


def test_dropout_acts_on_hidden_layers_in_training_and_may_be_0_or_1():
    x, _ = batch()
    assert torch.equal(small(num_layers=2, dropout=1.0).train().encode_a(x), torch.zeros(7, 4))
    none = small(num_layers=1, dropout=1.0)
    assert torch.equal(none.train().encode_a(x), none.eval().encode_a(x))
    half = small(num_layers=2, dropout=0.5)
    assert not torch.equal(half.train().encode_a(x), half.encode_a(x))
    assert torch.equal(half.eval().encode_a(x), half.encode_a(x))


def test_rows_of_length_one_come_out_about_as_long_whatever_the_width():
    torch.manual_seed(0)
    model = ProjectionCL(256, (1024, 64))
    for encode, width in ((model.encode_a, 1024), (model.encode_b, 64)):
        assert float(encode(torch.randn(200, width)).std().detach()) == pytest.approx(1, abs=0.05)


def test_logits_and_loss_are_in_float32_under_autocast_and_in_half_precision():
    x_a, x_b = batch()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = small()(x_a, x_b, return_loss=True)
    assert {tensor.dtype for tensor in found} == {torch.float32}
    found = small().bfloat16()(x_a.bfloat16(), x_b.bfloat16(), return_loss=True)
    assert {tensor.dtype for tensor in found} == {torch.float32}


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"modality_dims": (6,)}, r"modality_dims = \(6,\); expected exactly two widths"),
        ({"modality_dims": (6, 5, 4)}, "exactly two widths"),
        ({"modality_dims": 6}, "modality_dims = 6; expected exactly two widths"),
        ({"num_layers": 0}, "num_layers = 0; expected a whole number of at least 1"),
        ({"num_layers": 1.5}, "num_layers = 1.5"),
        ({"dropout": -0.1}, r"dropout = -0.1; expected a share in \[0, 1\]"),
        ({"dropout": 1.1}, r"dropout = 1.1; expected a share in \[0, 1\]"),
        ({"dropout": math.nan}, "dropout = nan"),
        ({"logit_scale_init": 0.0}, "logit_scale_init = 0.0; expected a finite number over 0"),
        ({"logit_scale_init": -1.0}, "logit_scale_init = -1.0"),
        ({"logit_scale_init": math.inf}, "logit_scale_init = inf"),
        ({"max_logit_scale": 0.0}, "max_logit_scale = 0.0; expected a number over 0"),
        ({"max_logit_scale": -1.0}, "max_logit_scale = -1.0"),
        ({"max_logit_scale": math.nan}, "max_logit_scale = nan"),
        ({"min_logit_scale": 0.0}, r"min_logit_scale = 0.0; expected None or a number in \(0, 10.0\]"),
        ({"min_logit_scale": 10.5}, r"min_logit_scale = 10.5; expected None or a number in \(0, 10.0\]"),
    ],
)
def test_arguments_that_cannot_be_are_a_value_error(arguments, match):
    with pytest.raises(ValueError, match=match) as caught:
        small(**arguments)
    assert isinstance(caught.value, ArgumentError)


@pytest.mark.parametrize("arguments", [{"embed_dim": 0}, {"hidden_dim": 0}, {"modality_dims": (0, 5)}])
def test_a_width_of_0_is_a_value_error(arguments):
    with pytest.raises(ValueError, match="= 0; expected a whole number of dimensions") as caught:
        small(**arguments)
    assert isinstance(caught.value, ConfigError)


def test_the_bounds_may_be_equal():
    assert small(min_logit_scale=10.0).current_logit_scale() == 10.0


def test_a_head_without_a_linear_layer_is_a_runtime_error():
    class Empty(ProjectionCL):
        def make_head(self, input_dim: int) -> torch.nn.Module:
            return torch.nn.Identity() if input_dim == 5 else super().make_head(input_dim)

    with pytest.raises(RuntimeError, match="proj_b is a Identity without a linear layer") as caught:
        Empty(4, (6, 5))
    assert isinstance(caught.value, BridgeheadError)
    model = small()
    model.proj_a = torch.nn.Identity()
    with pytest.raises(RuntimeError, match="proj_a is a Identity"):
        model.reset_parameters()


def test_weights_drawn_anew_are_others_and_the_scale_is_at_its_start():
    model = small(bias=True, logit_scale_init=2.0)
    before = model.proj_a[0].weight.detach().clone()
    set_scale(model, 9.0)
    model.reset_parameters()
    assert not torch.equal(model.proj_a[0].weight, before)
    assert torch.equal(model.proj_a[0].bias, torch.zeros(4))
    assert model.current_logit_scale() == pytest.approx(2)


def test_batches_of_unequal_size_are_an_error_only_where_a_loss_is_asked_for():
    model = small()
    assert [logits.shape for logits in model(*batch(3, 5))] == [(3, 5), (5, 3)]
    with pytest.raises(ValueError, match="3 rows of a and 5 of b"):
        model(*batch(3, 5), return_loss=True)
    loss = model(*batch(3, 5), return_loss=True, links=[(0, 0), (0, 4), (2, 1)])[2]
    assert float(loss.detach()) > 0
    with pytest.raises(LinksError, match="outside side b"):
        model(*batch(3, 5), return_loss=True, links=[(0, 5)])


def test_features_that_do_not_fit_are_a_value_error():
    model = small()
    x_a, x_b = batch()
    with pytest.raises(ValueError, match=r"features_a has shape \(7, 5\); expected \(B, 6\)"):
        model(x_b, x_b)
    with pytest.raises(ValueError, match=r"features_b has shape \(7, 6\); expected \(B, 5\)"):
        model.encode_b(x_a)
    with pytest.raises(ValueError, match=r"features have shapes \(6,\) and \(5,\)"):
        model(x_a[0], x_b[0])
    with pytest.raises(NonFiniteRowsError, match="rows 2 of z_a"):
        model(x_a.index_fill(0, torch.tensor([2]), math.nan), x_b, return_loss=True)


def test_the_kept_arguments_make_the_same_model_again():
    model = small(num_layers=3, hidden_dim=8, bias=True, min_logit_scale=0.5, dropout=0.25)
    again = ProjectionCL(**model.config)
    again.load_state_dict(model.state_dict())
    assert all(torch.equal(a, b) for a, b in zip(model.eval()(*batch()), again.eval()(*batch()), strict=True))


def test_a_model_saved_in_a_folder_is_the_same_model_again(tmp_path):
    model = small(num_layers=2, hidden_dim=8, min_logit_scale=0.5, logit_scale_init=3.0)
    set_scale(model, 7.0)
    model.save_pretrained(tmp_path / "model")
    again = ProjectionCL.from_pretrained(tmp_path / "model")
    assert again.config == model.config and again.init_value == model.init_value
    assert all(torch.equal(a, b) for a, b in zip(model(*batch()), again(*batch()), strict=True))


def test_a_scale_far_beyond_its_bounds_still_has_a_finite_gradient():
    model = ProjectionCL(4, (3, 5))
    model.logit_scale.data.fill_(200.0)
    loss = model(torch.randn(6, 3), torch.randn(6, 5), return_loss=True)[2]
    loss.backward()
    assert bool(torch.isfinite(loss)) and bool(torch.isfinite(model.logit_scale.grad))
