"""AdamW over groups of weights, their learning rates by step, and its state as named tensors.

This module is not about the loop that calls it.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from bridgehead.errors import RunStateError
from bridgehead.train.config import TrainConfig
from bridgehead.train.task import ParameterGroup

_MOMENTS = ("exp_avg", "exp_avg_sq", "step")
_EPSILON = 1e-8


class FusedAdamW:
    """AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101) through torch's fused kernel, and nothing around it.

    `param_groups` are dicts with params, lr and weight_decay; weights without a gradient are passed over. The kernel
    and so every bit of the result are those of `torch.optim.AdamW(fused=True)`. That class is left out for what it
    brings: its wrapper takes as long as the kernel where batches are small, and making one imports torch's compiler, a
    second and a half in each process.
    """

    def __init__(self, groups: list[dict[str, Any]], betas: tuple[float, float]) -> None:
        self.param_groups = groups
        self.betas = betas
        self.state: dict[nn.Parameter, dict[str, torch.Tensor]] = {}

    def zero_grad(self) -> None:
        """Let go of all gradients."""
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Move the weights that have a gradient."""
        for group in self.param_groups:
            moved = [parameter for parameter in group["params"] if parameter.grad is not None]
            if not moved:
                continue
            means, squares, steps = self._moments(moved)
            torch._foreach_add_(steps, 1)
            torch._fused_adamw_(
                moved,
                [parameter.grad for parameter in moved],
                means,
                squares,
                [],
                steps,
                lr=group["lr"],
                beta1=self.betas[0],
                beta2=self.betas[1],
                weight_decay=group["weight_decay"],
                eps=_EPSILON,
                amsgrad=False,
                maximize=False,
            )

    def _moments(self, moved: list[nn.Parameter]) -> list[list[torch.Tensor]]:
        """Return the moments and step counts of these weights, a list for each kind."""
        states = [self.state.get(parameter) or self._begin(parameter) for parameter in moved]
        return [[state[kind] for state in states] for kind in _MOMENTS]

    def _begin(self, parameter: nn.Parameter) -> dict[str, torch.Tensor]:
        self.state[parameter] = {
            "exp_avg": torch.zeros_like(parameter),
            "exp_avg_sq": torch.zeros_like(parameter),
            "step": torch.zeros((), device=parameter.device),
        }
        return self.state[parameter]


def make_optimiser(groups: Sequence[ParameterGroup], config: TrainConfig) -> FusedAdamW:
    """Return AdamW with one group of its own for each of `groups`, in their order.

    One pass over memory is what the step of a large embedding bag consists of. Frozen weights have no gradient.
    """
    own = [
        {"params": [p for _, p in group.parameters], "weight_decay": group.weight_decay, "lr": group.learning_rate}
        for group in groups
    ]
    return FusedAdamW(own, config.betas)


def learning_rate(step: float, planned: int, warmup: int, peak: float) -> float:
    """Return the rate of step 0, 1, ... `planned` - 1, or between two of them.

    It rises linearly over `warmup` steps to `peak`, then falls as half a cosine to 0 at `planned`; later steps have 0.
    """
    if step < warmup:
        return peak * (step + 1) / warmup
    if step >= planned:
        return 0.0
    return peak * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (planned - warmup)))


def group_rate(step: float, first: int, planned: int, warmup: int, peak: float) -> float:
    """Return the rate of a group that is trained from the step `first` on: 0 before it.

    It follows the cosine of all (`learning_rate`), and rises to it over `warmup` steps of its own: moments that are
    still empty would otherwise take full steps.
    """
    if step < first:
        return 0.0
    rate = learning_rate(step, planned, warmup, peak)
    if first == 0 or step >= first + warmup:
        return rate
    return rate * (step - first + 1) / warmup


def set_group_rates(optimiser: FusedAdamW, rates: Sequence[float]) -> None:
    """Give each group its rate."""
    for group, rate in zip(optimiser.param_groups, rates, strict=True):
        group["lr"] = rate


def set_learning_rate(optimiser: FusedAdamW, rate: float) -> None:
    """Give all groups this rate."""
    set_group_rates(optimiser, [rate] * len(optimiser.param_groups))


def optimiser_tensors(optimiser: FusedAdamW, model: nn.Module) -> dict[str, torch.Tensor]:
    """Return the moments and step counts as "<kind>.<name of the weight>"; empty before the first step."""
    found = {}
    for name, parameter in model.named_parameters():
        for kind in _MOMENTS:
            if parameter in optimiser.state:
                found[f"{kind}.{name}"] = optimiser.state[parameter][kind]
    return found


def restore_optimiser(optimiser: FusedAdamW, model: nn.Module, tensors: dict[str, torch.Tensor]) -> None:
    """Put back what `optimiser_tensors` gave; a weight that had no step yet (frozen, or all left out) has no moments.

    Raises `RunStateError` when a weight has some of its moments and not all.
    """
    for name, parameter in model.named_parameters():
        state = {kind: tensors[f"{kind}.{name}"] for kind in _MOMENTS if f"{kind}.{name}" in tensors}
        if not state:
            continue
        if len(state) < len(_MOMENTS):
            raise RunStateError(f"the checkpoint lacks the optimiser's state of {name}; remove it and train again")
        device = parameter.device
        optimiser.state[parameter] = {kind: tensor.to(device) for kind, tensor in state.items()}
