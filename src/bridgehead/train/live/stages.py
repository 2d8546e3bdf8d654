"""Which weights of two encoders and their heads are trained from which epoch on, and at which rate.

This module is not about the course of a rate within the epochs (`optimiser`).
"""

from typing import Any

from torch import nn

from bridgehead.align.layers import encoder_groups, train_last_layers
from bridgehead.train.config import TrainConfig
from bridgehead.train.live.config import LiveConfig
from bridgehead.train.task import ParameterGroup


def staged_groups(
    model: nn.Module, aligner: Any, config: TrainConfig, live: LiveConfig, unused: set[str]
) -> list[ParameterGroup]:
    """Return the groups of all weights that are ever trained: heads and what else is no encoder's, then the stages.

    `model` holds `aligner` (with `encoder_a`, `encoder_b`) and what the loss learns; names are those in `model`. Each
    weight belongs to the first stage that names it. Within a stage layers may have rates of their own
    (`live.layer_decay`); matrices decay by `config.weight_decay`, weights of one dimension do not. `unused` are names
    of weights without influence on any row, which are left out. Raises `ArgumentError` where an encoder has fewer
    layers than a stage names. Which weights require a gradient is another thing afterwards: see `train_epoch`.
    """
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    encoders = {side: getattr(aligner, f"encoder_{side}") for side in "ab"}
    taken = {id(parameter) for encoder in encoders.values() for parameter in encoder.parameters()}
    learned = [(name, p) for name, p in model.named_parameters() if id(p) not in taken and p.requires_grad]
    groups = [
        ParameterGroup("heads", [(n, p) for n, p in learned if p.ndim >= 2], config.learning_rate, config.weight_decay),
        ParameterGroup("heads.no_decay", [(n, p) for n, p in learned if p.ndim < 2], config.learning_rate, 0.0),
    ]
    owned: set[int] = set()
    for stage in sorted(live.stages, key=lambda stage: stage.from_epoch):
        encoder, name = encoders[stage.side], f"encoder_{stage.side}"
        train_last_layers(encoder, stage.last, name)
        rate = live.encoder_learning_rate if stage.learning_rate is None else stage.learning_rate
        for group in encoder_groups(encoder, name, rate, live.layer_decay, config.weight_decay):
            own = [(names[id(p)], p) for p in group["params"] if id(p) not in owned and names[id(p)] not in unused]
            owned |= {id(parameter) for _, parameter in own}
            label = f"{group['name']}@{stage.from_epoch}"
            groups.append(ParameterGroup(label, own, group["lr"], group["weight_decay"], stage.from_epoch))
    return [group for group in groups if group.parameters]


def train_epoch(model: nn.Module, groups: list[ParameterGroup], epoch: int) -> None:
    """Let the weights whose epoch has come require a gradient and no others, and put `model` into training mode.

    What is frozen stays in evaluation mode, where the model's `train` sees to it (`DualEncoderAligner`).
    """
    model.requires_grad_(False)
    for group in groups:
        for _, parameter in group.parameters:
            parameter.requires_grad_(epoch >= group.from_epoch)
    model.train()
