"""AdamW over two groups of weights, its learning rate by step, and its state as named tensors.

This module is not about the loop that calls it.
"""

import math

import torch
from torch import nn

from bridgehead.errors import RunStateError
from bridgehead.train.config import TrainConfig

_MOMENTS = ("exp_avg", "exp_avg_sq", "step")


def make_optimiser(model: nn.Module, config: TrainConfig) -> torch.optim.AdamW:
    """Return AdamW (Loshchilov and Hutter 2019) for the weights that are learned; only matrices decay.

    The fused kernel does one pass over memory, which is what the step of a large embedding bag consists of.
    """
    learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in learned if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in learned if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=config.learning_rate, betas=config.betas, fused=True)


def learning_rate(step: int, planned: int, warmup: int, peak: float) -> float:
    """Return the rate of step 0, 1, ... `planned` - 1.

    It rises linearly over `warmup` steps to `peak`, then falls as half a cosine to 0 at `planned`; later steps have 0.
    """
    if step < warmup:
        return peak * (step + 1) / warmup
    if step >= planned:
        return 0.0
    return peak * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (planned - warmup)))


def set_learning_rate(optimiser: torch.optim.AdamW, rate: float) -> None:
    """Give all groups this rate."""
    for group in optimiser.param_groups:
        group["lr"] = rate


def optimiser_tensors(optimiser: torch.optim.AdamW, model: nn.Module) -> dict[str, torch.Tensor]:
    """Return the moments and step counts as "<kind>.<name of the weight>"; empty before the first step."""
    found = {}
    for name, parameter in model.named_parameters():
        for kind in _MOMENTS:
            if parameter in optimiser.state:
                found[f"{kind}.{name}"] = optimiser.state[parameter][kind]
    return found


def restore_optimiser(optimiser: torch.optim.AdamW, model: nn.Module, tensors: dict[str, torch.Tensor]) -> None:
    """Put back what `optimiser_tensors` gave. Raises `RunStateError` when a learned weight lacks its moments."""
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        state = {kind: tensors.get(f"{kind}.{name}") for kind in _MOMENTS}
        if any(tensor is None for tensor in state.values()):
            raise RunStateError(f"the checkpoint lacks the optimiser's state of {name}; remove it and train again")
        optimiser.state[parameter] = state
