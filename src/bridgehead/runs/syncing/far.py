"""Which new items lie far from all items that were trained on: there a space says little, whatever it answers.

An item is far when its cosine to the nearest training item of its side is below that of 99 in 100 training items, each
to the nearest of the others. This module is not about whether answers are right (`evaluate`).
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from bridgehead.index import IndexState
from bridgehead.search.references import REFERENCES, References
from bridgehead.vectors import FloatArray, IntArray

PERCENTILE = 1.0
"""Percent of the training items that are as far from the others."""
MOST_TRAINING = 50_000
_MOST_MEASURED = 2_000
_FEWEST = 20
_BLOCK = 512


@dataclass(frozen=True)
class FarItem:
    """An item that lies far: its id and its cosine to the nearest training item."""

    id: str
    nearest: float


@dataclass(frozen=True, eq=False)
class Training:
    """Rows (n, d) of the training items of a side, of unit length, at most 50,000 of them, drawn."""

    rows: FloatArray

    @cached_property
    def threshold(self) -> float:
        """The cosine under which an item is far: the first percentile of those of training items, each to the nearest
        other one, measured with at most 2,000 of them."""
        chosen = np.random.default_rng(0).choice(len(self.rows), min(len(self.rows), _MOST_MEASURED), replace=False)
        return float(np.percentile(self.nearest(self.rows[np.sort(chosen)], np.sort(chosen)), PERCENTILE))

    def nearest(self, rows: FloatArray, own: IntArray | None = None) -> FloatArray:
        """Return the cosine (n,) of each of `rows` to the nearest training item; `own` are the rows' places among
        these, where they are training items, which do not count for themselves."""
        found = np.empty(len(rows), dtype=np.float32)
        for start in range(0, len(rows), _BLOCK):
            cosines = rows[start : start + _BLOCK] @ self.rows.T
            if own is not None:
                cosines[np.arange(len(cosines)), own[start : start + _BLOCK]] = -1
            found[start : start + _BLOCK] = cosines.max(axis=1)
        return found


def training_of(state: IndexState, side: str) -> Training | None:
    """Return the training items of a side of an index, None where it does not say them or they are fewer than 20."""
    folder: Path | None = state.attached(REFERENCES)
    if folder is None:
        return None
    column = 0 if side == "a" else 1
    numbers = np.intersect1d(References.load(folder).training_pairs[:, column], state.numbers(side))
    if len(numbers) > MOST_TRAINING:
        numbers = np.sort(np.random.default_rng(0).choice(numbers, MOST_TRAINING, replace=False))
    rows = state.rows(side, numbers.tolist())
    rows = rows[rows.any(axis=1)]
    return Training(rows) if len(rows) >= _FEWEST else None
