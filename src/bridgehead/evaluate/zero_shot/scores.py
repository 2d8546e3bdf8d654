"""Cosines of items with classes in float64, block by block, and what follows from one block: ties, shares, answers.

Identical prototypes have identical scores, and scores that differ by at most 1e-12 are tied, so nothing here depends on
blocks or on the order of items.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.evaluate.arguments import finite_number
from bridgehead.evaluate.ranks.levels import TIE
from bridgehead.evaluate.ties import Float64Array
from bridgehead.vectors import IntArray, block_rows, check_rows, unit_rows

DEFAULT_SCALE = 1 / 0.07
_BLOCK_BYTES = 32 << 20


@dataclass(frozen=True, eq=False)
class ScoreBlock:
    """The cosines (b, C) of the items `rows` with all classes, and s, the inverse temperature."""

    rows: slice
    cosines: Float64Array
    scale: float

    @cached_property
    def top(self) -> Float64Array:
        """The highest cosine of each item, (b,)."""
        return np.asarray(self.cosines.max(axis=1))

    @cached_property
    def first(self) -> npt.NDArray[np.bool_]:
        """Whether a class is tied for the first place, (b, C)."""
        return np.asarray(self.cosines >= (self.top - TIE)[:, None])

    @cached_property
    def n_first(self) -> IntArray:
        """How many classes are tied for the first place, (b,)."""
        return np.asarray(np.count_nonzero(self.first, axis=1), dtype=np.int64)

    @cached_property
    def answer(self) -> IntArray:
        """The class in the first place, the lowest number of those tied, (b,)."""
        return np.asarray(self.first.argmax(axis=1), dtype=np.int64)

    @cached_property
    def shares(self) -> Float64Array:
        """softmax(s x cosine) over the classes, (b, C)."""
        powers = np.exp(self.scale * (self.cosines - self.top[:, None]))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))

    def place(self, truth: IntArray) -> tuple[IntArray, IntArray]:
        """Return (above, tied): the classes strictly above the true one of each item, and those tied with it, itself
        among them, (b,) each."""
        score = self.cosines[np.arange(len(truth)), truth][:, None]
        above = np.count_nonzero(self.cosines > score + TIE, axis=1)
        return above, np.count_nonzero(self.cosines >= score - TIE, axis=1) - above


class Classes:
    """Unit rows of the classes (C, d) in float64, identical ones scored once."""

    def __init__(self, z_classes: Any, name: str = "z_classes") -> None:
        units = unit_rows(z_classes, name, dtype=np.float64) + 0.0
        if len(units) == 0:
            raise ShapeError(f"{name} has no rows; expected one for each class")
        self._distinct, code = np.unique(units, axis=0, return_inverse=True)
        self.code = code.reshape(-1)
        self.n_columns = units.shape[1]

    def __len__(self) -> int:
        return len(self.code)

    def blocks(self, z_items: Any, scale: Any, block: int | None = None) -> Iterator[ScoreBlock]:
        """Yield the scores of blocks of items, `block` at a time (default: what fits in 32 MB).

        Raises `ShapeError`, `NonFiniteRowsError` and `ArgumentError`, before the first block.
        """
        items = check_rows(z_items, "z_items")
        if hasattr(items, "tocsr"):
            raise ArgumentError("z_items is a sparse matrix; expected a dense array (n, d): project the rows first")
        if items.shape[1] != self.n_columns:
            raise ShapeError(
                f"z_items has {items.shape[1]} columns and the classes {self.n_columns}; both must live in one space"
            )
        if block is not None and (isinstance(block, bool) or not isinstance(block, int | np.integer) or block < 1):
            raise ArgumentError(f"block = {block!r}; expected at least 1 item")
        step = block or block_rows(len(self), 8, _BLOCK_BYTES)
        return self._blocks(items, checked_scale(scale), step)

    def _blocks(self, items: Any, scale: float, step: int) -> Iterator[ScoreBlock]:
        for start in range(0, len(items), step):
            rows = slice(start, min(start + step, len(items)))
            units = unit_rows(items[rows], "z_items", dtype=np.float64)
            yield ScoreBlock(rows, np.clip(units @ self._distinct.T, -1, 1)[:, self.code], scale)


def checked_scale(scale: Any) -> float:
    """Return the inverse temperature as a float; raises `ArgumentError` unless it is a finite number over 0."""
    return finite_number(scale, "logit_scale", "a finite number over 0, 1 / temperature", above=0)


def checked_threshold(threshold: Any) -> float | None:
    """Return the cosine below which no class is answered, or None; raises `ArgumentError` outside [-1, 1]."""
    if threshold is None:
        return None
    number = isinstance(threshold, int | float | np.number) and not isinstance(threshold, bool)
    if not number or not -1 <= threshold <= 1:
        raise ArgumentError(
            f"abstain_below = {threshold!r}; expected a cosine from -1 to 1 (scores are cosines), or None for never"
        )
    return float(threshold)
