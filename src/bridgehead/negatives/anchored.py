"""Batches of anchors with their hardest neighbours and a random fill.

The neighbours of an anchor come as link numbers, hardest first, from `LinkNeighbours` or a plain table. All draws
depend on (seed, epoch) alone. This module is not about how neighbours are found (`mining`).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bridgehead.negatives.ordering import epoch_order, joined, n_pieces
from bridgehead.vectors import IntArray

_FILL = 11
Neighbours = Callable[[IntArray], IntArray]


@dataclass(frozen=True, eq=False)
class HardEpoch:
    """The batches of an epoch, as link numbers, and how many hard neighbours they hold.

    `wanted`: k for each link that was an anchor; `placed`: how many of these are in the anchor's batch.
    """

    batches: list[IntArray]
    wanted: int
    placed: int


@dataclass(frozen=True, eq=False)
class LinkNeighbours:
    """The hard neighbours of links, from those of their items.

    `a` (n_a, k) and `b` (n_b, k) are row numbers, hardest first, -1 for none: rows of the other side where `across`,
    else of the same side. `link_of_a`, `link_of_b`: one link of each row, -1 where it has none.
    """

    pairs: IntArray
    a: IntArray
    b: IntArray
    across: bool
    link_of_a: IntArray
    link_of_b: IntArray

    @classmethod
    def drawn(cls, pairs: IntArray, a: IntArray, b: IntArray, across: bool, seed: int, epoch: int) -> "LinkNeighbours":
        """Return them with one link of each row drawn for the epoch: the first in its order."""
        last_first = epoch_order(len(pairs), seed, epoch)[::-1]
        link_of_a, link_of_b = np.full(len(a), -1, np.int64), np.full(len(b), -1, np.int64)
        # Of several writes to one place the last stays: the link that comes first in the epoch.
        link_of_a[pairs[last_first, 0]] = last_first
        link_of_b[pairs[last_first, 1]] = last_first
        return cls(pairs, a, b, across, link_of_a, link_of_b)

    def __call__(self, anchors: IntArray) -> IntArray:
        """Return (m, w) link numbers for links `anchors` (m,), the two sides in turns, -1 for none, none twice."""
        of_a, of_b = (self.link_of_b, self.link_of_a) if self.across else (self.link_of_a, self.link_of_b)
        from_a, from_b = self.a[self.pairs[anchors, 0]], self.b[self.pairs[anchors, 1]]
        links = np.stack([_lookup(of_a, from_a), _lookup(of_b, from_b)], axis=2).reshape(
            len(anchors), 2 * from_a.shape[1]
        )
        links[links == anchors[:, None]] = -1
        return _each_once(links)


def hard_batches(pairs: IntArray, neighbours: Neighbours, batch_size: int, k: int, seed: int, epoch: int) -> HardEpoch:
    """Return batches that hold every link, each row of `pairs` (n, 2), exactly once, neighbours together.

    Anchors are taken in an order drawn from (seed, epoch); each brings the first `k` of its neighbours that no batch
    of the epoch holds yet, the nearest of all anchors first; anchors follow until the batch is full, and are random
    negatives to one another. k = 0 gives the random batches. Cost and frequency of a link are those of random batches.
    A last batch with fewer than two distinct items on a side joins the one before.
    """
    n_links = len(pairs)
    order, used = epoch_order(n_links, seed, epoch), np.zeros(n_links, dtype=bool)
    pieces: list[IntArray] = []
    start = wanted = placed = 0
    for _ in range(n_pieces(n_links, batch_size) if n_links else 0):
        piece: list[IntArray] = []
        room = batch_size
        while room > 0 and start < n_links:
            anchors, start = _next_unused(order, used, start, max(1, room // (1 + k)))
            used[anchors] = True
            found = _take(neighbours(anchors), used, min(k, room - 1), room - len(anchors)) if k else anchors[:0]
            used[found] = True
            piece += [anchors, found]
            room -= len(anchors) + len(found)
            wanted, placed = wanted + k * len(anchors), placed + len(found)
        pieces.append(np.concatenate(piece))
    return HardEpoch(joined(pieces, pairs), wanted, placed)


def repeated_hard_batches(
    n_links: int, neighbours: Neighbours, batch_size: int, k: int, seed: int, epoch: int, anchors_per_batch: int
) -> HardEpoch:
    """Return batches in which every link is an anchor exactly once, with its `k` hardest neighbours and a random fill.

    A batch has `anchors_per_batch` anchors, the neighbours of each, each link at most once, and as many others drawn
    from (seed, epoch, batch) as make it `batch_size` (all links where there are fewer). So a link is in about
    batch_size / anchors_per_batch batches of the epoch. The number of batches is ceil(n / anchors_per_batch).
    Anchors stand first, then neighbours, then the fill.
    """
    order = epoch_order(n_links, seed, epoch)
    batches: list[IntArray] = []
    wanted = placed = 0
    for start in range(0, n_links, anchors_per_batch):
        anchors = order[start : start + anchors_per_batch]
        found = neighbours(anchors) if k else np.zeros((len(anchors), 0), np.int64)
        chosen = found[(found >= 0) & (np.cumsum(found >= 0, axis=1) <= k)]
        wanted, placed = wanted + k * len(anchors), placed + len(chosen)
        held = _first_of_each(np.concatenate([anchors, chosen]))
        batches.append(with_fill(held, n_links, batch_size, [seed, _FILL, epoch, len(batches)]))
    return HardEpoch(batches, wanted, placed)


def with_fill(held: IntArray, n: int, size: int, words: list[int]) -> IntArray:
    """Return `held` followed by numbers under `n` drawn without repeat from `words`, until `size` or all are there."""
    rng = np.random.default_rng(words)
    size = min(size, n)
    while len(held) < size:
        lacking = size - len(held)
        # With few numbers to choose from, drawing until all are different would take long.
        drawn = rng.permutation(n) if n <= 4 * size else rng.integers(0, n, 2 * lacking + 8)
        held = _first_of_each(np.concatenate([held, drawn.astype(np.int64)]))[:size]
    return held


def _lookup(link_of: IntArray, rows: IntArray) -> IntArray:
    return np.where(rows >= 0, link_of[np.maximum(rows, 0)], -1)


def _each_once(links: IntArray) -> IntArray:
    """Return (m, w) with all but the first of equal numbers of a row replaced by -1."""
    order = np.argsort(links, axis=1, kind="stable")
    ordered = np.take_along_axis(links, order, axis=1)
    ordered[:, 1:][ordered[:, 1:] == ordered[:, :-1]] = -1
    result = np.empty_like(links)
    np.put_along_axis(result, order, ordered, axis=1)
    return result


def _next_unused(order: IntArray, used: npt.NDArray[np.bool_], start: int, m: int) -> tuple[IntArray, int]:
    """Return the next `m` links of `order` from `start` that are not used, and where to go on."""
    width = 4 * m
    while True:
        window = order[start : start + width]
        free = np.flatnonzero(~used[window])[:m]
        if len(free) == m:
            return window[free], start + int(free[-1]) + 1
        if start + width >= len(order):
            return window[free], len(order)
        width *= 4


def _take(found: IntArray, used: npt.NDArray[np.bool_], k: int, room: int) -> IntArray:
    """Return up to `room` links: of each row of `found` the first `k` that are free, the nearest of all rows first."""
    free = (found >= 0) & ~used[np.maximum(found, 0)]
    chosen = free & (np.cumsum(free, axis=1) <= k)
    return _first_of_each(found.T[chosen.T])[:room]


def _first_of_each(numbers: IntArray) -> IntArray:
    return numbers[np.sort(np.unique(numbers, return_index=True)[1])]
