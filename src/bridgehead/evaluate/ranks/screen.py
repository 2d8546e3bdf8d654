"""Comparing a strip of float32 scores with thresholds: how many are surely above, and which are too close to say.

This module is not about which thresholds (`layout`), which strips (`tiles`) or what becomes of close scores
(`undecided`).
"""

import numpy as np
import numpy.typing as npt

from bridgehead.evaluate.ranks.cosine_rows import Float32Array
from bridgehead.evaluate.ranks.levels import count_rows
from bridgehead.evaluate.ties import Float64Array
from bridgehead.vectors import IntArray

BoolArray = npt.NDArray[np.bool_]

MOST_LINES = 255
"""A strip has at most so many lines: the sum of as many bytes of 0 or 1 fits into a byte."""

_BUFFER = 512
_FEW = 1 / 256


class Screen:
    """Compares strips with thresholds, in memory that it uses again; one for each thread."""

    def __init__(self) -> None:
        self._masks: BoolArray = np.empty((2, 0), dtype=np.bool_)

    def compare(
        self, scores: Float32Array, high: Float32Array, low: Float32Array, across: bool, weights: Float64Array | None
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Return (n_above, line, column): scores above `high` for each threshold, and where those in [low, high] are.

        `scores` is (lines, columns) with at most `MOST_LINES` lines. Thresholds are of the lines, or with `across` of
        the columns; the other side are the candidates, and `weights` says how many each stands for (None: one).
        """
        if not across:
            high, low = high[:, None], low[:, None]
        possible = self._compared(np.greater_equal, 0, scores, low)
        n_possible = np.count_nonzero(possible)
        if n_possible <= _FEW * scores.size:
            return _of_few(scores, possible, high, across, weights)
        above = self._compared(np.greater, 1, scores, high)
        n_above = above.view(np.uint8).sum(axis=0, dtype=np.uint8).astype(np.int64) if across else count_rows(above)
        line = column = np.zeros(0, dtype=np.int64)
        if n_above.sum() < n_possible:
            np.not_equal(possible, above, out=possible)
            line, column = np.divmod(np.flatnonzero(possible), scores.shape[1])
        if weights is not None:
            n_above = (weights @ above if across else above @ weights).astype(np.int64)
        return n_above, line, column

    def _compared(self, relation: np.ufunc, which: int, scores: Float32Array, limit: Float32Array) -> BoolArray:
        if self._masks.shape[1] < scores.size:
            self._masks = np.empty((2, scores.size), dtype=np.bool_)
        mask = self._masks[which, : scores.size].reshape(scores.shape)
        # Lines shorter than numpy's buffer are copied into it first, which takes longer than comparing them.
        size = np.setbufsize(_BUFFER)
        try:
            relation(scores, limit, out=mask)
        finally:
            np.setbufsize(size)
        return mask


def _of_few(
    scores: Float32Array, possible: BoolArray, high: Float32Array, across: bool, weights: Float64Array | None
) -> tuple[IntArray, IntArray, IntArray]:
    """Do what `compare` does where few scores are possible: look at these alone."""
    line, column = np.divmod(np.flatnonzero(possible), scores.shape[1])
    asking, candidate = (column, line) if across else (line, column)
    sure = scores[line, column] > high.reshape(-1)[asking]
    found = None if weights is None else weights[candidate[sure]]
    n_above = np.bincount(asking[sure], found, high.size).astype(np.int64)
    return n_above, line[~sure], column[~sure]
