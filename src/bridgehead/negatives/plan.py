"""The batches of every epoch of one training, and the mined neighbours that they are made from.

Everything is a function of (seed, epoch) and of the last mining, whose result `state` gives to a checkpoint. This
module is not about the model: whoever trains hands in rows when `wants_rows` says that mining is due.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bridgehead.errors import ArgumentError
from bridgehead.links import Links
from bridgehead.negatives.config import NegativesConfig
from bridgehead.negatives.random_batches import n_pieces, random_batches
from bridgehead.vectors import IntArray


class BatchPlan:
    """Batches of `batch_size` links, epoch by epoch.

    `pairs` (n, 2) are all matches, those shared through groups included; `n_batches` is the planned number an epoch;
    `notes` are sentences for the user.
    """

    def __init__(self, links: Links, batch_size: int, seed: int, config: NegativesConfig) -> None:
        if batch_size < 2:
            raise ArgumentError(f"batch_size = {batch_size}; expected at least 2 links, or there is no negative")
        self.links, self.batch_size, self.seed, self.config = links, batch_size, seed, config
        self.pairs: IntArray = links.expanded().pairs
        self.n_batches = n_pieces(len(self.pairs), batch_size)
        self.notes: list[str] = []

    def wants_rows(self, epoch: int) -> bool:
        """Return whether mining is due before this epoch."""
        return False

    def mine(self, rows_a: Any, rows_b: Any, epoch: int) -> None:
        """Mine from the rows of all items of both sides."""

    def batches(self, epoch: int) -> list[tuple[IntArray, IntArray]]:
        """Return for each batch of the epoch the rows of a and of b that each of its links names, repeats kept."""
        pieces = random_batches(self.pairs, self.batch_size, self.seed, epoch)
        return [(self.pairs[piece, 0], self.pairs[piece, 1]) for piece in pieces]

    def state(self) -> dict[str, np.ndarray]:
        """Return what a checkpoint must hold."""
        return {}

    def load_state(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take up what `state` gave."""
