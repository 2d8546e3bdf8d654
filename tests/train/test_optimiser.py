import pytest
import torch
from torch import nn

from bridgehead.align import HeadConfig, HeadsConfig, TwoHeads
from bridgehead.errors import RunStateError
from bridgehead.train import TrainConfig
from bridgehead.train.optimiser import (
    FusedAdamW,
    group_rate,
    learning_rate,
    make_optimiser,
    optimiser_tensors,
    restore_optimiser,
)
from bridgehead.train.task import ParameterGroup


def test_the_rate_rises_linearly_then_falls_as_half_a_cosine_to_zero():
    rates = [learning_rate(step, 10, 2, 0.4) for step in range(12)]
    assert rates[:3] == pytest.approx([0.2, 0.4, 0.4])
    assert rates[6] == pytest.approx(0.2)
    assert rates[2:10] == sorted(rates[2:10], reverse=True)
    assert 0 < rates[9] < 0.02
    assert rates[10:] == [0.0, 0.0]


def test_without_warm_up_it_starts_at_the_peak():
    assert learning_rate(0, 1, 0, 0.1) == pytest.approx(0.1)


def test_a_group_that_is_unfrozen_later_warms_up_by_itself_and_then_follows_the_cosine_of_all():
    rates = [group_rate(step, 6, 20, 2, 1.0) for step in range(20)]
    together = [learning_rate(step, 20, 2, 1.0) for step in range(20)]
    assert rates[:6] == [0.0] * 6
    assert rates[6:8] == pytest.approx([together[6] / 2, together[7]])
    assert rates[8:] == together[8:]


def a_model() -> TwoHeads:
    torch.manual_seed(0)
    return TwoHeads(HeadsConfig(HeadConfig(6, 4, (5,), sparse=True), HeadConfig(3, 4, (5,))))


def groups(model: nn.Module, decay: float = 0.01) -> list[ParameterGroup]:
    named = list(model.named_parameters())
    return [
        ParameterGroup("matrices", [item for item in named if item[1].ndim >= 2], 1e-3, decay),
        ParameterGroup("rest", [item for item in named if item[1].ndim < 2], 1e-3, 0.0),
    ]


def of(model: nn.Module) -> FusedAdamW:
    return make_optimiser(groups(model), TrainConfig.of())


def take_steps(model, optimiser, n, seed):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(n):
        for parameter in model.parameters():
            parameter.grad = torch.randn(parameter.shape, generator=generator)
        optimiser.step()


def same(left: nn.Module, right: nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(left.parameters(), right.parameters(), strict=True))


def test_its_steps_are_those_of_torchs_own_fused_adamw_bit_for_bit():
    ours, theirs = a_model(), a_model()
    reference = torch.optim.AdamW(
        [{"params": [p for _, p in g.parameters], "weight_decay": g.weight_decay} for g in groups(theirs, 0.5)],
        lr=1e-3,
        betas=TrainConfig.of().betas,
        fused=True,
    )
    take_steps(ours, make_optimiser(groups(ours, 0.5), TrainConfig.of()), 20, seed=3)
    take_steps(theirs, reference, 20, seed=3)
    assert same(ours, theirs)


def test_weights_without_a_gradient_are_passed_over():
    model = a_model()
    before = model.head_a.first_bias.clone()
    optimiser = of(model)
    for name, parameter in model.named_parameters():
        parameter.grad = None if name == "head_a.first_bias" else torch.ones_like(parameter)
    optimiser.step()
    assert torch.equal(model.head_a.first_bias, before)
    assert model.head_a.first_bias not in optimiser.state


def test_a_restored_optimiser_goes_on_bit_for_bit():
    model = a_model()
    optimiser = of(model)
    take_steps(model, optimiser, 3, seed=1)
    again = a_model()
    again.load_state_dict(model.state_dict())
    stored = {name: tensor.clone() for name, tensor in optimiser_tensors(optimiser, model).items()}
    fresh = of(again)
    restore_optimiser(fresh, again, stored)
    take_steps(model, optimiser, 2, seed=2)
    take_steps(again, fresh, 2, seed=2)
    assert same(model, again)


def test_moments_that_are_missing_are_an_error():
    model = a_model()
    optimiser = of(model)
    take_steps(model, optimiser, 1, seed=1)
    stored = optimiser_tensors(optimiser, model)
    del stored["exp_avg.head_a.first.weight"]
    with pytest.raises(RunStateError, match=r"lacks the optimiser's state of head_a\.first"):
        restore_optimiser(of(model), model, stored)
