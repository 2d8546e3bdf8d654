"""What a training carries along beside its weights, for a checkpoint: precision, mined neighbours, the memory bank.

This module is not about the file (`checkpoint`) or the optimiser's moments (`optimiser`).
"""

import numpy as np
import torch

from bridgehead.train.task import Task


def carried_state(task: Task) -> dict[str, torch.Tensor]:
    """Return counts and scale of the precision, what was mined, and the bank."""
    state = {f"precision.{name}": tensor for name, tensor in task.precision.state().items()}
    state |= {f"plan.{name}": torch.from_numpy(np.asarray(array)) for name, array in task.plan.state().items()}
    return state | {f"bank.{name}": tensor for name, tensor in task.loss.state().items()}


def restore_carried(task: Task, tensors: dict[str, torch.Tensor]) -> None:
    """Put back what `carried_state` gave. Raises `RunStateError` where it is of another training."""
    task.precision.load_state(under("precision.", tensors))
    task.plan.load_state({name: tensor.numpy() for name, tensor in under("plan.", tensors).items()})
    task.loss.load_state(under("bank.", tensors))


def under(prefix: str, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the tensors whose names begin with `prefix`, under the rest of their names."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
