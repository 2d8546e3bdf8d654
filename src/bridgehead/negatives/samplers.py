"""The batches of an epoch as samplers: what a torch `DataLoader` takes as `batch_sampler`.

Each yields lists of link numbers, which index `pairs`, the matches of the links. Nothing here needs torch. The batches
themselves are made in `ordering`, `anchored` and `disjoint`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from bridgehead.errors import ArgumentError
from bridgehead.links import Links
from bridgehead.negatives.anchored import HardEpoch, LinkNeighbours, hard_batches, repeated_hard_batches
from bridgehead.negatives.arguments import only_links, whole
from bridgehead.negatives.disjoint import DistinctEpoch, distinct_batches
from bridgehead.negatives.mining import MinedNegatives, mine_sides
from bridgehead.negatives.ordering import random_batches
from bridgehead.vectors import IntArray, check_rows


class EpochSampler(ABC):
    """Batches that depend on (seed, epoch) alone, another order each epoch.

    `len` is the number of batches that the epoch yields. `set_epoch` chooses the epoch (from 0); without it each new
    iteration is the epoch after the one before, so forgetting it does not repeat an order.
    """

    def __init__(self, batch_size: int, seed: int = 0) -> None:
        self.batch_size = whole("batch_size", batch_size, 2, ", or there is no negative")
        self.seed = whole("seed", seed, 0)
        self.epoch = 0
        self._begun = False
        self._made: tuple[int, list[IntArray]] | None = None

    def set_epoch(self, epoch: int) -> None:
        """Let the next iteration be this epoch. Raises `ArgumentError` under 0."""
        self.epoch, self._begun = whole("epoch", epoch, 0), False

    def __len__(self) -> int:
        return len(self._of_epoch())

    def __iter__(self) -> Iterator[list[int]]:
        if self._begun:
            self.epoch += 1
        self._begun = True
        for batch in self._of_epoch():
            yield batch.tolist()

    def _of_epoch(self) -> list[IntArray]:
        if self._made is None or self._made[0] != self.epoch:
            self._made = (self.epoch, self.batches(self.epoch))
        return self._made[1]

    @abstractmethod
    def batches(self, epoch: int) -> list[IntArray]:
        """Return the batches of an epoch as numbers."""


class RandomBatches(EpochSampler):
    """Every link once an epoch, in a drawn order (`random_batches`)."""

    def __init__(self, links: Links, batch_size: int, seed: int = 0) -> None:
        super().__init__(batch_size, seed)
        self.pairs: IntArray = only_links(links).expanded().pairs

    def batches(self, epoch: int) -> list[IntArray]:
        """Return the batches of an epoch as link numbers."""
        return random_batches(self.pairs, self.batch_size, self.seed, epoch)


class DistinctBatches(EpochSampler):
    """Batches without duplicates and without links that match across (`distinct_batches`).

    `left_out` holds the links that no batch of the epoch could take.
    """

    def __init__(self, links: Links, batch_size: int, seed: int = 0) -> None:
        super().__init__(batch_size, seed)
        self.links = links
        self.pairs: IntArray = only_links(links).expanded().pairs

    def drawn(self, epoch: int) -> DistinctEpoch:
        """Return the batches of an epoch with the links that were left out."""
        return distinct_batches(self.links, self.batch_size, self.seed, epoch)

    def batches(self, epoch: int) -> list[IntArray]:
        """Return the batches of an epoch as link numbers."""
        return self.drawn(epoch).batches


class HardBatches(EpochSampler):
    """Anchors with their hardest non-matching neighbours and a random fill.

    `mined` are the hard negatives of the rows of a and of b, as `mine_sides` returns them with the same `across`. Each
    link is an anchor exactly once an epoch. With `repeat_neighbours` an anchor has all its `k_hard` neighbours (as far
    as they were found), and a link is in about 1 + k_hard batches of an epoch; without, each link is in one batch and
    an anchor has those of its neighbours that no earlier batch took. Raises `ArgumentError` unless batch_size >
    k_hard + 1.
    """

    def __init__(
        self,
        links: Links,
        batch_size: int,
        mined: tuple[MinedNegatives, MinedNegatives],
        *,
        across: bool = True,
        k_hard: int = 4,
        repeat_neighbours: bool = True,
        seed: int = 0,
    ) -> None:
        super().__init__(batch_size, seed)
        check_sizes(batch_size, k_hard)
        self.pairs: IntArray = only_links(links).expanded().pairs
        self.k_hard, self.repeat_neighbours, self.across = int(k_hard), repeat_neighbours, across
        self.mined = mined

    @classmethod
    def from_rows(
        cls,
        rows_a: Any,
        rows_b: Any,
        links: Any = None,
        *,
        batch_size: int = 32,
        k_hard: int = 4,
        across: bool = True,
        repeat_neighbours: bool = True,
        seed: int = 0,
        **mining: Any,
    ) -> "HardBatches":
        """Mine and return the sampler; `mining` are options of `mine_across` or `mine_within`."""
        rows_a, rows_b = check_rows(rows_a, "rows_a"), check_rows(rows_b, "rows_b")
        truth = Links.of(links, rows_a.shape[0], rows_b.shape[0])
        mined = mine_sides(rows_a, rows_b, truth, across=across, k=k_hard, seed=seed, **mining)
        return cls(
            truth, batch_size, mined, across=across, k_hard=k_hard, repeat_neighbours=repeat_neighbours, seed=seed
        )

    def drawn(self, epoch: int) -> HardEpoch:
        """Return the batches of an epoch with the number of hard neighbours that they hold."""
        found_a, found_b = (side.neighbours for side in self.mined)
        return hard_epoch(
            self.pairs, (found_a, found_b), self.across, self.batch_size, self.k_hard, self.k_hard,
            self.repeat_neighbours, self.seed, epoch,
        )  # fmt: skip

    def batches(self, epoch: int) -> list[IntArray]:
        """Return the batches of an epoch as link numbers."""
        return self.drawn(epoch).batches


def hard_epoch(
    pairs: IntArray,
    found: tuple[IntArray, IntArray],
    across: bool,
    batch_size: int,
    k: int,
    k_hard: int,
    repeat: bool,
    seed: int,
    epoch: int,
) -> HardEpoch:
    """Return an epoch with `k` of at most `k_hard` neighbours; how many anchors a batch has depends on `k_hard` alone.

    `found` are the neighbours of the rows of a and of b, -1 for none.
    """
    neighbours = LinkNeighbours.drawn(pairs, *found, across, seed, epoch)
    if not repeat:
        return hard_batches(pairs, neighbours, batch_size, k, seed, epoch)
    anchors = anchors_per_batch(batch_size, k_hard)
    return repeated_hard_batches(len(pairs), neighbours, batch_size, k, seed, epoch, anchors)


def anchors_per_batch(batch_size: int, k_hard: int) -> int:
    """Return how many anchors fit into a batch with their neighbours."""
    return max(1, batch_size // (1 + k_hard))


def check_sizes(batch_size: int, k_hard: int) -> None:
    """Raise `ArgumentError` unless an anchor, its hard neighbours and a random one fit into a batch."""
    k_hard = whole("k_hard", k_hard, 1, ", the hard negatives of each anchor")
    if whole("batch_size", batch_size, 2, ", or there is no negative") <= k_hard + 1:
        raise ArgumentError(
            f"batch_size = {batch_size} and k_hard = {k_hard}; batch_size must be greater than k_hard + 1, so that the "
            "anchor, its hard negatives and at least one random negative fit"
        )
