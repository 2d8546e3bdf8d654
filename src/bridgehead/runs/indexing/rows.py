"""Rows of the space for the items of an index: what the heads make of an encoder's rows.

An item of which its encoder knows nothing gets a zero row: it is found by its id, names and words alone, and not where
the heads' biases happen to point. This module is not about which items there are (`entries`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridgehead.align.twin import NumpyHeads
from bridgehead.encode import Encoder
from bridgehead.vectors import FloatArray, IntArray


@dataclass(frozen=True)
class Model:
    """Both encoders and their heads."""

    encoders: dict[str, Encoder]
    heads: NumpyHeads

    def project(self, side: str, encoded: Any) -> FloatArray:
        """Return the rows (n, embed_dim) of the space for encoder rows of a side, zero for those that are zero."""
        project: Callable[[Any], FloatArray] = self.heads.project_a if side == "a" else self.heads.project_b
        rows = project(encoded)
        rows[np.asarray(abs(encoded).sum(axis=1)).reshape(-1) == 0] = 0
        return rows


def spread(rows: FloatArray, index: IntArray, n: int) -> FloatArray:
    """Return (n, d) rows with `rows` at the positions `index` and zeros elsewhere."""
    whole = np.zeros((n, rows.shape[1]), dtype=np.float32)
    whole[index] = rows
    return whole


def positions_of(members: Sequence[Sequence[int]], n: int) -> IntArray:
    """Return for each of `n` items of a table the position of the entry that it is a member of, -1 for none."""
    positions = np.full(n, -1, dtype=np.int64)
    for position, own in enumerate(members):
        positions[list(own)] = position
    return positions


def pairs_at(pairs: IntArray, at_a: IntArray, at_b: IntArray) -> IntArray:
    """Return links (n, 2) of table items as positions in a build, without those of which an end is not in it."""
    found = np.stack([at_a[pairs[:, 0]], at_b[pairs[:, 1]]], axis=1)
    return np.unique(found[(found >= 0).all(axis=1)], axis=0)
