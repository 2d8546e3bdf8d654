import pytest
import torch

from bridgehead.align import HeadConfig, HeadsConfig, TwoHeads
from bridgehead.errors import RunStateError
from bridgehead.train import TrainConfig
from bridgehead.train.optimiser import learning_rate, make_optimiser, optimiser_tensors, restore_optimiser


def test_the_rate_rises_linearly_then_falls_as_half_a_cosine_to_zero():
    rates = [learning_rate(step, 10, 2, 0.4) for step in range(12)]
    assert rates[:3] == pytest.approx([0.2, 0.4, 0.4])
    assert rates[6] == pytest.approx(0.2)
    assert rates[2:10] == sorted(rates[2:10], reverse=True)
    assert 0 < rates[9] < 0.02
    assert rates[10:] == [0.0, 0.0]


def test_without_warm_up_it_starts_at_the_peak():
    assert learning_rate(0, 1, 0, 0.1) == pytest.approx(0.1)


def a_model() -> TwoHeads:
    torch.manual_seed(0)
    return TwoHeads(HeadsConfig(HeadConfig(6, 4, (5,), sparse=True), HeadConfig(3, 4, (5,))))


def take_steps(model, optimiser, n, seed):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(n):
        for parameter in model.parameters():
            parameter.grad = torch.randn(parameter.shape, generator=generator)
        optimiser.step()


def test_only_matrices_decay():
    optimiser = make_optimiser(a_model(), TrainConfig.of(weight_decay=0.5))
    decaying, others = optimiser.param_groups
    assert {p.ndim for p in decaying["params"]} == {2} and decaying["weight_decay"] == 0.5
    assert {p.ndim for p in others["params"]} == {0, 1} and others["weight_decay"] == 0.0


def test_a_restored_optimiser_goes_on_bit_for_bit():
    model = a_model()
    optimiser = make_optimiser(model, TrainConfig.of())
    take_steps(model, optimiser, 3, seed=1)
    again = a_model()
    again.load_state_dict(model.state_dict())
    stored = {name: tensor.clone() for name, tensor in optimiser_tensors(optimiser, model).items()}
    fresh = make_optimiser(again, TrainConfig.of())
    restore_optimiser(fresh, again, stored)
    take_steps(model, optimiser, 2, seed=2)
    take_steps(again, fresh, 2, seed=2)
    assert all(torch.equal(left, right) for left, right in zip(model.parameters(), again.parameters(), strict=True))


def test_moments_that_are_missing_are_an_error():
    model = a_model()
    with pytest.raises(RunStateError, match=r"lacks the optimiser's state of head_a\.first"):
        restore_optimiser(make_optimiser(model, TrainConfig.of()), model, {})
