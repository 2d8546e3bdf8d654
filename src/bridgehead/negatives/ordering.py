"""The plain batches of an epoch: links in a drawn order, cut into pieces.

Everything is drawn from (seed, epoch) alone, so a training that is resumed draws what it would have drawn. A batch is
an array of link numbers, which index the rows of `pairs`. This module is not about hard negatives (`anchored`).
"""

import numpy as np

from bridgehead.vectors import IntArray

_ORDER = 1


def epoch_order(n_links: int, seed: int, epoch: int) -> IntArray:
    """Return the link numbers 0 to n_links - 1 in the order of the epoch, drawn from (seed, epoch)."""
    return np.random.default_rng([seed, _ORDER, epoch]).permutation(n_links).astype(np.int64)


def random_batches(pairs: IntArray, batch_size: int, seed: int, epoch: int) -> list[IntArray]:
    """Return the batches of an epoch as link numbers: `pairs` (n, 2) in a drawn order, cut into `batch_size`.

    A last piece with fewer than two distinct items on a side (a batch of one link, say) joins the piece before it, for
    it would have nothing to tell apart. Every link is in exactly one batch; fewer links than a batch are one batch, and
    no link is no batch.
    """
    order = epoch_order(len(pairs), seed, epoch)
    return joined([order[start : start + batch_size] for start in range(0, len(order), batch_size)], pairs)


def joined(pieces: list[IntArray], pairs: IntArray) -> list[IntArray]:
    """Return `pieces` after a last one with fewer than two distinct items on a side has joined the one before."""
    pieces = list(pieces)
    while len(pieces) > 1 and n_distinct(pairs[pieces[-1]]) < 2:
        last = pieces.pop()
        pieces[-1] = np.concatenate([pieces[-1], last])
    return pieces


def n_distinct(links: IntArray) -> int:
    """Return the number of distinct items that `links` (n, 2) name on the side where they are fewer."""
    return min(len(np.unique(links[:, 0])), len(np.unique(links[:, 1])))


def n_pieces(n_links: int, size: int) -> int:
    """Return how many pieces of `size` hold `n_links`, at least 1, before a too small last one is joined."""
    return max(1, -(-n_links // size))
