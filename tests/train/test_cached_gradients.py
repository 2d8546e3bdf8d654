"""The gradients of a batch in chunks are those of the batch whole, at the memory of a chunk."""

import copy

import pytest
import torch
from torch import nn

from bridgehead.align.losses.infonce import info_nce_parts
from bridgehead.errors import ArgumentError, ConfigError, ShapeError
from bridgehead.links import Links
from bridgehead.train.live import cached_gradients as module
from bridgehead.train.live.cached_gradients import cached_gradients, refuse_batch_statistics, whole_gradients

N, LENGTH = 64, 7


class Towers(nn.Module):
    """Two small transformers over tokens with heads, a scale and a bias that the loss uses itself."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.embed = nn.Embedding(30, 16)
        self.layer_a, self.layer_b = (
            nn.TransformerEncoderLayer(16, 2, 32, dropout=dropout, batch_first=True) for _ in range(2)
        )
        self.head_a, self.head_b = nn.Linear(16, 8), nn.Linear(16, 8)
        self.scale = nn.Parameter(torch.tensor(10.0))
        self.bias = nn.Parameter(torch.tensor(0.5))

    def encode_a(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head_a(self.layer_a(self.embed(ids)).mean(dim=1))

    def encode_b(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head_b(self.layer_b(self.embed(ids)).mean(dim=1))


def towers(dropout: float) -> Towers:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return Towers(dropout).train()


def tokens(seed: int) -> torch.Tensor:
    return torch.randint(0, 30, (N, LENGTH), generator=torch.Generator().manual_seed(seed))


LINKS = Links([(i, i) for i in range(N)] + [(i, (i + 1) % N) for i in range(0, N, 5)], N, N)


def loss_of(model: Towers):
    def loss(z_a: torch.Tensor, z_b: torch.Tensor) -> torch.Tensor:
        return info_nce_parts(z_a, z_b, model.scale, LINKS, "outside", "both").loss + (model.bias * z_a).mean()

    return loss


def gradients(how, model: Towers, size: int, **more):
    model.zero_grad(set_to_none=True)
    chunks = [list(tokens(seed).split(size)) for seed in (0, 1)]
    loss = how(model.encode_a, model.encode_b, *chunks, loss_of(model), 5, **more)
    return loss, {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def largest_difference(left, right) -> float:
    assert left.keys() == right.keys()
    return max(float((left[name] - right[name]).abs().max()) for name in left)


@pytest.mark.parametrize("size", [1, 7, 64])
def test_without_dropout_chunks_of_any_size_give_the_gradients_of_the_big_batch(size):
    model = towers(0.0)
    a, b = tokens(0), tokens(1)
    expected_loss = loss_of(model)(model.encode_a(a), model.encode_b(b))
    expected_loss.backward()
    expected = {name: p.grad.clone() for name, p in model.named_parameters()}
    loss, found = gradients(cached_gradients, model, size)
    assert float(loss) == pytest.approx(float(expected_loss.detach()), abs=1e-5) and not loss.requires_grad
    assert largest_difference(found, expected) < 1e-5
    assert all(float(gradient.abs().max()) > 1e-4 for gradient in (found["scale"], found["bias"]))


@pytest.mark.parametrize("size", [1, 7, 64])
def test_with_dropout_they_are_those_of_the_same_chunks_with_their_graphs_kept_and_the_same_draws(size):
    model = towers(0.3)
    loss, found = gradients(cached_gradients, model, size)
    kept_loss, kept = gradients(whole_gradients, model, size)
    assert torch.equal(loss, kept_loss)
    assert largest_difference(found, kept) < 1e-6
    without = gradients(cached_gradients, towers(0.0), size)[1]
    assert largest_difference(found, without) > 1e-3


def test_in_float64_chunks_agree_to_rounding():
    model = towers(0.2).double()
    found, kept = (gradients(how, model, 5)[1] for how in (cached_gradients, whole_gradients))
    assert largest_difference(found, kept) < 1e-14


def test_the_same_seed_draws_the_same_and_another_seed_others():
    model = towers(0.3)
    chunks = [list(tokens(seed).split(8)) for seed in (0, 1)]
    losses = [
        float(cached_gradients(model.encode_a, model.encode_b, *chunks, loss_of(model), seed)) for seed in (1, 1, 2)
    ]
    assert losses[0] == losses[1] != losses[2]


def test_torchs_own_generator_is_left_where_it_was():
    model = towers(0.3)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    gradients(cached_gradients, model, 8)
    gradients(whole_gradients, model, 8)
    assert torch.equal(torch.rand(3), expected)


def test_the_one_generator_of_an_accelerator_without_numbers_is_put_back_too(monkeypatch):
    state = {"now": 7}
    monkeypatch.setattr(module, "accelerator", lambda: ("mps", 1))
    monkeypatch.setattr(torch.mps, "get_rng_state", lambda: state["now"])
    monkeypatch.setattr(torch.mps, "set_rng_state", lambda found: state.update(now=found))
    model = towers(0.0)

    def moved(ids):
        state["now"] += 1
        return model.encode_a(ids)

    cached_gradients(moved, model.encode_b, [tokens(0)], [tokens(1)], loss_of(model), 0)
    assert state["now"] == 7


class Alive:
    """Counts the bytes that autograd holds for a backward, at this instant and at the most."""

    def __init__(self) -> None:
        self.now = self.most = 0

    def pack(self, tensor: torch.Tensor):
        size = tensor.numel() * tensor.element_size()
        self.now += size
        self.most = max(self.most, self.now)
        return Held(self, tensor, size)

    @staticmethod
    def unpack(held: "Held") -> torch.Tensor:
        return held.tensor


class Held:
    def __init__(self, alive: Alive, tensor: torch.Tensor, size: int) -> None:
        self.alive, self.tensor, self.size = alive, tensor, size

    def __del__(self) -> None:
        self.alive.now -= self.size


def most_alive(how, size: int) -> int:
    alive, model = Alive(), towers(0.1)
    with torch.autograd.graph.saved_tensors_hooks(alive.pack, alive.unpack):
        gradients(how, model, size)
    assert alive.now == 0
    return alive.most


def test_the_graph_of_one_chunk_is_alive_at_once_or_that_of_the_loss():
    # The same weights are saved by each graph; without them memory goes with the items.
    weights = sum(p.numel() * p.element_size() for p in towers(0.1).parameters())
    whole = most_alive(whole_gradients, N)
    eighth = most_alive(cached_gradients, N // 8)
    assert eighth < whole / 8 + 2 * weights
    assert most_alive(whole_gradients, N // 8) > 0.95 * whole


def test_a_factor_on_the_loss_scales_all_gradients_once():
    model = towers(0.2)
    plain = gradients(cached_gradients, model, 9)[1]
    scaled = gradients(cached_gradients, model, 9, backward=lambda loss: (loss * 1024).backward())[1]
    assert largest_difference({name: value / 1024 for name, value in scaled.items()}, plain) < 1e-7


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_under_autocast_around_or_within_the_encoders_no_gradient_is_lost(dtype):
    model = towers(0.0)
    exact = gradients(cached_gradients, model, 16)[1]
    with torch.autocast("cpu", dtype):
        around = gradients(cached_gradients, model, 16)[1]

    def within(encode):
        def encoded(ids):
            with torch.autocast("cpu", dtype):
                return encode(ids)

        return encoded

    model.zero_grad(set_to_none=True)
    chunks = [list(tokens(seed).split(16)) for seed in (0, 1)]
    cached_gradients(within(model.encode_a), within(model.encode_b), *chunks, loss_of(model), 5)
    inside = {name: p.grad for name, p in model.named_parameters()}
    for found in (around, inside):
        assert found.keys() == exact.keys()
        for name, gradient in found.items():
            assert float((gradient - exact[name]).norm()) < 0.1 * float(exact[name].norm()) + 1e-4, name


def test_sides_may_have_other_numbers_of_chunks_and_a_side_without_weights_is_no_fault():
    model = towers(0.1)
    model.layer_b.requires_grad_(False), model.head_b.requires_grad_(False), model.embed.requires_grad_(False)
    chunks = list(tokens(0).split([1, 40, 23])), list(tokens(1).split(64))
    cached_gradients(model.encode_a, model.encode_b, *chunks, loss_of(model), 0)
    names = {name for name, p in model.named_parameters() if p.grad is not None}
    assert "head_a.weight" in names and not any(name.startswith(("layer_b", "head_b", "embed")) for name in names)


def test_a_loss_of_one_side_alone_leaves_the_other_without_gradients():
    model = towers(0.0)
    chunks = [list(tokens(seed).split(8)) for seed in (0, 1)]
    cached_gradients(model.encode_a, model.encode_b, *chunks, lambda z_a, z_b: z_a.square().mean(), 0)
    assert model.head_a.weight.grad is not None and model.head_b.weight.grad is None


def test_gradients_are_added_to_those_that_are_there():
    model = towers(0.0)
    once = gradients(cached_gradients, model, 8)[1]
    chunks = [list(tokens(seed).split(8)) for seed in (0, 1)]
    cached_gradients(model.encode_a, model.encode_b, *chunks, loss_of(model), 5)
    assert torch.allclose(model.head_a.weight.grad, 2 * once["head_a.weight"])


def test_batch_normalisation_in_training_is_refused_by_name_and_frozen_it_is_not():
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    with pytest.raises(ConfigError, match=r"1 is a BatchNorm1d in training.*set mini_batch to none"):
        refuse_batch_statistics(model.train())
    refuse_batch_statistics(copy.deepcopy(model).eval())


def test_no_chunks_or_rows_of_another_shape_are_refused():
    model = towers(0.0)
    with pytest.raises(ArgumentError, match="0 chunks of a and 1 of b"):
        cached_gradients(model.encode_a, model.encode_b, [], [tokens(0)], loss_of(model), 0)
    with pytest.raises(ShapeError, match=r"shape \(64, 7, 16\)"):
        cached_gradients(model.embed, model.encode_b, [tokens(0)], [tokens(0)], loss_of(model), 0)
