"""Devices that there are, precision where it is asked for, and steps that are left out and counted."""

import importlib.util

import pytest
import torch
from torch import nn

from bridgehead.errors import ArgumentError, MissingExtraError, NonFiniteRowsError, RunStateError
from bridgehead.train.precision import MOST_SKIPPED_IN_A_ROW, Precision, accelerator


def weight_and_optimiser():
    layer = nn.Linear(2, 1, bias=False)
    nn.init.ones_(layer.weight)
    return layer, torch.optim.AdamW(layer.parameters(), lr=0.1, fused=True)


def take_step(precision, layer, optimiser, factor=1.0):
    optimiser.zero_grad(set_to_none=True)
    precision.backward((layer.weight * factor).sum())
    return precision.step(optimiser, layer.named_parameters())


@pytest.mark.parametrize("name", ["cuda", "cuda:7", "mps", "gpu", "no such", "hpu", "meta"])
def test_a_device_that_is_not_there_is_refused_with_those_that_are(name):
    if name.startswith("cuda") and torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(ArgumentError, match=rf"device = '{name}' cannot be used; there is cpu"):
        Precision(name)


def test_an_unknown_precision_is_refused():
    with pytest.raises(ArgumentError, match="precision = 'fp8'; expected one of float32, bf16, fp16"):
        Precision(kind="fp8")  # type: ignore[arg-type]


@pytest.mark.parametrize(("kind", "dtype"), [("float32", torch.float32), ("bf16", torch.bfloat16)])
def test_products_run_in_the_precision_and_weights_stay_float32(kind, dtype):
    precision, (layer, optimiser) = Precision(kind=kind), weight_and_optimiser()
    with precision.autocast():
        assert layer(torch.ones(1, 2)).dtype == dtype
    assert take_step(precision, layer, optimiser)
    assert layer.weight.dtype == torch.float32 and layer.weight.grad.tolist() == [[1, 1]]


def test_fp16_scales_the_loss_and_the_step_sees_gradients_as_they_are():
    precision, (layer, optimiser) = Precision(kind="fp16"), weight_and_optimiser()
    with precision.autocast():
        assert layer(torch.ones(1, 2)).dtype == torch.float16
    precision.backward((layer.weight * 3).sum())
    assert layer.weight.grad.tolist() == [[3 * 65536, 3 * 65536]]
    assert precision.step(optimiser, layer.named_parameters())
    assert layer.weight.grad.tolist() == [[3, 3]] and precision.skipped_steps == 0


def test_an_overflow_in_fp16_is_left_out_and_counted_and_halves_the_scale():
    precision, (layer, optimiser) = Precision(kind="fp16"), weight_and_optimiser()
    assert take_step(precision, layer, optimiser)
    before, moments = layer.weight.detach().clone(), optimiser.state[layer.weight]["exp_avg"].clone()
    assert not take_step(precision, layer, optimiser, float("inf"))
    assert torch.equal(layer.weight, before) and torch.equal(optimiser.state[layer.weight]["exp_avg"], moments)
    assert float(optimiser.state[layer.weight]["step"]) == 1
    assert (precision.skipped_steps, precision.skipped_in_a_row) == (1, 1)
    assert float(precision.state()["loss_scale"]) == 32768
    assert take_step(precision, layer, optimiser)
    assert (precision.skipped_steps, precision.skipped_in_a_row) == (1, 0)


def test_overflows_without_end_are_a_fault_that_names_the_weight():
    precision, (layer, optimiser) = Precision(kind="fp16"), weight_and_optimiser()
    for _ in range(MOST_SKIPPED_IN_A_ROW):
        assert not take_step(precision, layer, optimiser, float("inf"))
    with pytest.raises(NonFiniteRowsError, match=r"gradient of weight .* in 31 steps one after the other \(fp16\)"):
        take_step(precision, layer, optimiser, float("inf"))


@pytest.mark.parametrize("kind", ["float32", "bf16"])
@pytest.mark.parametrize("factor", [float("inf"), float("nan")])
def test_in_another_precision_one_is_a_fault_at_once_and_nothing_is_changed(kind, factor):
    precision, (layer, optimiser) = Precision(kind=kind), weight_and_optimiser()
    with pytest.raises(NonFiniteRowsError, match=rf"the gradient of weight holds NaN or infinity \({kind}\)"):
        take_step(precision, layer, optimiser, factor)
    assert layer.weight.tolist() == [[1, 1]] and not optimiser.state


def test_gradients_whose_sum_overflows_are_finite_all_the_same():
    precision, (layer, optimiser) = Precision(), weight_and_optimiser()
    assert take_step(precision, layer, optimiser, 3e38)


def test_counts_and_scale_come_back_from_a_checkpoint():
    precision, (layer, optimiser) = Precision(kind="fp16"), weight_and_optimiser()
    for factor in (1, float("inf"), float("inf"), 1, 1):
        take_step(precision, layer, optimiser, factor)
    again = Precision(kind="fp16")
    again.load_state(precision.state())
    assert again.state() == precision.state() and again.skipped_steps == 2
    take_step(again, layer, optimiser)
    take_step(precision, layer, optimiser)
    assert again.state() == precision.state() and float(again.state()["loss_scale"]) == 16384
    with pytest.raises(RunStateError, match="lacks growth_tracker, loss_scale"):
        again.load_state(Precision().state())


def test_accelerate_is_asked_only_when_named_and_missed_with_the_line_that_installs_it(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "accelerate" else find(name))
    Precision("cpu")
    with pytest.raises(MissingExtraError, match=r"pip install 'bridgehead\[hub\]'"):
        Precision("accelerate")


@pytest.fixture
def fresh_accelerate():
    state = pytest.importorskip("accelerate.state")
    state.AcceleratorState._reset_state(reset_partial_state=True)
    yield
    state.AcceleratorState._reset_state(reset_partial_state=True)


def test_accelerate_chooses_the_device_and_casts(fresh_accelerate):
    precision, (layer, optimiser) = Precision("accelerate", "bf16"), weight_and_optimiser()
    with precision.autocast():
        assert layer.to(precision.device)(torch.ones(1, 2, device=precision.device)).dtype == torch.bfloat16
    assert take_step(precision, layer, optimiser)


def test_accelerate_holds_one_precision_a_process_and_that_is_said(fresh_accelerate):
    Precision("accelerate", "float32")
    with pytest.raises(ArgumentError, match=r"does not take precision = 'bf16'.*a process of its own"):
        Precision("accelerate", "bf16")


def test_accelerate_without_fp16_on_the_processor_is_refused(fresh_accelerate):
    if accelerator()[1]:
        pytest.skip("there is an accelerator here")
    with pytest.raises(ArgumentError, match="accelerate has no fp16 on cpu; use bf16"):
        Precision("accelerate", "fp16")
