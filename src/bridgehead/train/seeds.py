"""The seeds of all that a training draws.

Everything random is drawn from (seed, epoch) or (seed, epoch, batch) alone, so a training that is resumed at any step
draws what it would have drawn. This module is not about the order of batches, which has a stream of its own
(`negatives.ordering`).
"""

import numpy as np
import torch

from bridgehead.train.precision import accelerator

# One stream for each use, so that none repeats another's draws; 1 is the order of batches.
_STEP, _START = 2, 3


def start_seed(seed: int) -> int:
    """Return the seed of the first weights."""
    return _torch_seed([seed, _START])


def step_seed(seed: int, epoch: int, batch: int) -> int:
    """Return the seed of what a step draws (dropout, augmentation)."""
    return _torch_seed([seed, _STEP, epoch, batch])


def seed_draws(seed: int) -> None:
    """Seed torch's default generators.

    On the CPU alone that is done directly: `torch.manual_seed` asks every kind of device first, which takes most of a
    millisecond, a tenth of a small step.
    """
    if accelerator()[1]:
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


def _torch_seed(words: list[int]) -> int:
    # torch takes 64 bits, of which the sign is not to be touched.
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0] >> np.uint64(1))
