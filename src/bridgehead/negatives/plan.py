"""The batches of every epoch of one training, and the mined neighbours that they are made from.

Everything is a function of (seed, epoch) and of the last mining, whose result `state` gives to a checkpoint. This
module is not about the model: whoever trains hands in rows when `wants_rows` says that mining is due.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from bridgehead.errors import ArgumentError, RunStateError, ShapeError
from bridgehead.links import Links
from bridgehead.negatives.config import NegativesConfig
from bridgehead.negatives.curriculum import hard_count
from bridgehead.negatives.disjoint import distinct_batches
from bridgehead.negatives.ordering import n_pieces, random_batches
from bridgehead.vectors import IntArray

# More neighbours are kept than an anchor brings: those that other anchors took leave the next ones.
_SPARE = 4
_KEPT_AT_LEAST = 16


class BatchPlan:
    """Batches of `batch_size` links, epoch by epoch.

    `pairs` (n, 2) are all matches, those shared through groups included; `n_batches` is the planned number an epoch
    (with distinct batches that of the first epoch; others may have a few more or fewer). Raises `ArgumentError` for a
    batch that is too small, for its hard neighbours too.
    """

    def __init__(self, links: Links, batch_size: int, seed: int, config: NegativesConfig) -> None:
        if batch_size < 2:
            raise ArgumentError(f"batch_size = {batch_size}; expected at least 2 links, or there is no negative")
        self.links, self.batch_size, self.seed, self.config = links, batch_size, seed, config
        self.pairs: IntArray = links.expanded().pairs
        self._found: tuple[IntArray, IntArray] | None = None
        self._mined_for = -1
        self._mining_notes: list[str] = []
        self._epoch_notes: list[str] = []
        self.n_batches = self._planned()

    @property
    def notes(self) -> list[str]:
        """Sentences for the user about the batches, the last mining and the last epoch."""
        alone = self.config.sampling == "random" and len(self.pairs) % self.batch_size == 1 < len(self.pairs)
        merged = [
            "the last link of each epoch is alone in its batch, with nothing to be told from: it joins the one before"
        ]
        return [*(merged if alone else []), *self._mining_notes, *self._epoch_notes]

    def k_hard(self, epoch: int) -> int:
        """Return how many hard neighbours an anchor brings in this epoch."""
        config = self.config
        if config.sampling != "hard":
            return 0
        return hard_count(config.k_hard, epoch, config.start_epoch, config.ramp_epochs, config.ramp)

    def wants_rows(self, epoch: int) -> bool:
        """Return whether mining is due before this epoch (from 0): then call `mine`."""
        due = self._due(epoch)
        return due is not None and due != self._mined_for

    def mine(self, rows_a: Any, rows_b: Any, epoch: int) -> None:
        """Mine from the rows of all items of both sides, dense or CSR, for this epoch and those up to the next mining.

        With `mine_from = "current"` the rows of both sides are in one space, as the heads have it now; with "initial"
        they may be the encoders' own. Raises as `mine_across`; `ShapeError` for another number of rows and
        `ArgumentError` when nothing is mined in this plan.
        """
        from bridgehead.negatives.mining import mine_sides

        config, due = self.config, self._due(epoch)
        if due is None:
            raise ArgumentError(f"no mining is due for epoch {epoch}; call mine when wants_rows(epoch) says so")
        across = config.mine_from == "current"
        names = ["lowest_rank", "highest_rank", "max_score", *(["margin", "relative_margin", "semi_hard"] * across)]
        options = {name: getattr(config, name) for name in names}
        kept = config.highest_rank - config.lowest_rank + 1
        if config.repeat_neighbours:
            kept = config.k_hard
        kept = min(kept, max(_SPARE * config.k_hard, _KEPT_AT_LEAST))
        for side, rows, n in (("a", rows_a, self.links.n_a), ("b", rows_b, self.links.n_b)):
            if rows.shape[0] != n:
                raise ShapeError(f"rows_{side} has {rows.shape[0]} rows; expected {n}, one for each item of the side")
        # A row without a link is in no batch: it is neither an anchor nor anyone's neighbour.
        used_a, used_b = np.unique(self.pairs[:, 0]), np.unique(self.pairs[:, 1])
        links, sizes = self.links, (self.links.n_a, self.links.n_b)
        if (len(used_a), len(used_b)) != sizes:
            links = links.within(used_a, used_b)
            rows_a, rows_b = rows_a[used_a], rows_b[used_b]
        sides = mine_sides(rows_a, rows_b, links, across=across, k=kept, seed=self.seed, **options)
        of_a, of_b = (used_b, used_a) if across else (used_a, used_b)
        self._found = (
            _among_all(sides[0].neighbours, used_a, of_a, sizes[0]),
            _among_all(sides[1].neighbours, used_b, of_b, sizes[1]),
        )
        self._mined_for = due
        self._mining_notes = [
            f"mining for epoch {due + 1}, rows of {name}: {note}"
            for name, side in zip("ab", sides, strict=True)
            for note in side.notes
        ]

    def batches(self, epoch: int) -> list[tuple[IntArray, IntArray]]:
        """Return for each batch of the epoch the rows of a and of b that each of its links names, repeats kept.

        Raises `RunStateError` when hard neighbours are needed and none were mined.
        """
        self._epoch_notes = []
        return [(self.pairs[batch, 0], self.pairs[batch, 1]) for batch in self._numbers(epoch)]

    def state(self) -> dict[str, np.ndarray]:
        """Return what a checkpoint must hold: the mined neighbours; nothing where none are mined."""
        if self._found is None:
            return {}
        notes = np.frombuffer(json.dumps(self._mining_notes).encode(), dtype=np.uint8)
        return {
            "neighbours_a": self._found[0].astype(np.int32),
            "neighbours_b": self._found[1].astype(np.int32),
            "mined_for": np.array([self._mined_for], dtype=np.int64),
            "mining_notes": notes.copy(),
        }

    def load_state(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take up what `state` gave. Raises `RunStateError` when it is of another number of rows."""
        if not arrays:
            return
        found = tuple(np.asarray(arrays[f"neighbours_{side}"]).astype(np.int64) for side in "ab")
        sizes = tuple(len(side) for side in found)
        if sizes != (self.links.n_a, self.links.n_b):
            raise RunStateError(
                f"the checkpoint has neighbours of {sizes[0]} and {sizes[1]} rows, this training has "
                f"{self.links.n_a} and {self.links.n_b}; remove the checkpoint to train from the start"
            )
        self._found = (found[0], found[1])
        self._mined_for = int(np.asarray(arrays["mined_for"])[0])
        self._mining_notes = json.loads(np.asarray(arrays["mining_notes"]).tobytes())

    def _due(self, epoch: int) -> int | None:
        """Return the epoch whose mining serves this one, None where nothing is mined."""
        config = self.config
        if config.sampling != "hard" or not len(self.pairs):
            return None
        if config.mine_from == "initial":
            return 0
        past = epoch - config.start_epoch
        return None if past < 0 else epoch - past % config.mine_every

    def _planned(self) -> int:
        n, config = len(self.pairs), self.config
        if config.sampling == "distinct":
            return max(1, len(distinct_batches(self.links, self.batch_size, self.seed, 0).batches))
        if config.sampling == "hard":
            from bridgehead.negatives.samplers import anchors_per_batch, check_sizes

            check_sizes(self.batch_size, config.k_hard)
            if config.repeat_neighbours:
                return n_pieces(n, anchors_per_batch(self.batch_size, config.k_hard))
        return n_pieces(n, self.batch_size)

    def _numbers(self, epoch: int) -> list[IntArray]:
        if self.config.sampling == "random" or not len(self.pairs):
            return random_batches(self.pairs, self.batch_size, self.seed, epoch)
        return self._distinct(epoch) if self.config.sampling == "distinct" else self._hard(epoch)

    def _distinct(self, epoch: int) -> list[IntArray]:
        drawn = distinct_batches(self.links, self.batch_size, self.seed, epoch)
        if len(drawn.left_out):
            self._epoch_notes = [
                f"epoch {epoch + 1}: {len(drawn.left_out):,} of {len(self.pairs):,} links were in no batch, because "
                "they share items or match across with too many others"
            ]
        return drawn.batches

    def _hard(self, epoch: int) -> list[IntArray]:
        from bridgehead.negatives.samplers import hard_epoch

        config, k = self.config, self.k_hard(epoch)
        if k and self._found is None:
            raise RunStateError(f"epoch {epoch} needs mined neighbours and there are none; call mine first")
        none = (np.zeros((self.links.n_a, 0), np.int64), np.zeros((self.links.n_b, 0), np.int64))
        across = config.mine_from == "current"
        drawn = hard_epoch(
            self.pairs, self._found or none, across, self.batch_size, k, config.k_hard, config.repeat_neighbours,
            self.seed, epoch,
        )  # fmt: skip
        if drawn.placed < drawn.wanted:
            anchors = drawn.wanted // k
            self._epoch_notes = [
                f"epoch {epoch + 1}: an anchor met {drawn.placed / anchors:.2f} of its {k} hard neighbours on average"
            ]
        return drawn.batches


def _among_all(found: IntArray, anchors: IntArray, candidates: IntArray, n: int) -> IntArray:
    """Return neighbours of `anchors` among `candidates` as those of all n rows, -1 for rows that were no anchors."""
    result = np.full((n, found.shape[1]), -1, dtype=np.int64)
    result[anchors] = np.where(found >= 0, candidates[np.maximum(found, 0)], -1)
    return result
