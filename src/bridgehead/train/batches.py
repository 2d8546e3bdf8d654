"""Which links go into which batch of an epoch, and the seeds of all that is random.

Everything random is drawn from (seed, epoch) or (seed, step) alone, so a training that is resumed at any step draws
what it would have drawn. This module is not about mining hard negatives.
"""

import numpy as np

from bridgehead.vectors import IntArray

# One stream for each use, so that none repeats another's draws.
_ORDER, _STEP, _START = 1, 2, 3


def epoch_batches(pairs: IntArray, batch_size: int, seed: int, epoch: int) -> list[tuple[IntArray, IntArray]]:
    """Return the batches of an epoch: for each the rows of a (n,) and of b (n,) that its n links name, repeats kept.

    The links are put in an order drawn from (seed, epoch) and cut into pieces of `batch_size`; a last piece with fewer
    than two distinct items on a side (a batch of one link, say) joins the piece before it. Every link is in exactly
    one piece, and fewer links than a batch are one piece.
    """
    order = np.random.default_rng([seed, _ORDER, epoch]).permutation(len(pairs))
    pieces = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
    while len(pieces) > 1 and min(len(rows) for rows in _distinct(pairs[pieces[-1]])) < 2:
        last = pieces.pop()
        pieces[-1] = np.concatenate([pieces[-1], last])
    return [(pairs[piece, 0], pairs[piece, 1]) for piece in pieces]


def n_batches(n_links: int, batch_size: int) -> int:
    """Return the planned number of batches an epoch, before a too small last one is merged."""
    return max(1, -(-n_links // batch_size))


def start_seed(seed: int) -> int:
    """Return the seed of the first weights."""
    return _torch_seed([seed, _START])


def step_seed(seed: int, epoch: int, batch: int) -> int:
    """Return the seed of what a step draws (dropout)."""
    return _torch_seed([seed, _STEP, epoch, batch])


def _torch_seed(words: list[int]) -> int:
    # torch takes 64 bits, of which the sign is not to be touched.
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0] >> np.uint64(1))


def _distinct(links: IntArray) -> tuple[IntArray, IntArray]:
    return np.unique(links[:, 0]), np.unique(links[:, 1])
