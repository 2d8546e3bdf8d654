"""What a cosine is compared with: cosines of random pairs of items, and the training pairs, kept beside an index.

A cosine alone says little: in one space 0.3 is far, in another it is closer than anything else. So a build carries the
quantiles of the cosine of random pairs, for each two sides, and which of its items were trained on together. Written by
who builds an index (`reference_attachment`), read by who searches (`References`). Not about hits (`explain`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bridgehead.errors import ArgumentError, RunStateError
from bridgehead.files import UNREADABLE, read_json, why_unreadable, write_json, write_npy
from bridgehead.index import IndexState
from bridgehead.vectors import FloatArray, IntArray, unit_rows

REFERENCES = "references"
"""Name of the attachment."""

_FORMAT, _VERSION = "bridgehead references", 1
_FILE, _QUANTILES, _PAIRS = "references.json", "quantiles.npy", "training_pairs.npy"
_SIDES = ("ab", "aa", "bb")
_SAMPLE = 2048
_BLOCK = 16_384
Floats = npt.NDArray[np.float64]

# A thousand steps, and a finer upper end: hits of a large index lie in the last thousandth.
LEVELS: Floats = np.unique(
    np.concatenate([np.arange(1001) / 1000, 0.999 + np.arange(1, 10) / 10_000, 0.9999 + np.arange(1, 10) / 100_000])
)


def reference_attachment(
    rows_a: Any, rows_b: Any, training_pairs: Any, seed: int = 0
) -> Callable[[Path], dict[str, Any]]:
    """Return what writes the references of a fresh build into a folder: an attachment of `build_index`.

    `rows_a` (n_a, d), `rows_b` (n_b, d): the rows of both sides in the order of the build, any norm; arrays, memmaps or
    what has `shape` and `blocks(size)`. `training_pairs` (n, 2): positions of the items that were trained on together.
    Quantiles are those of all pairs among 2,048 items drawn of each side with `seed` (all where there are fewer); an
    item is never paired with itself, and items with a zero row are left out. Stored pairs are numbers: side a counts
    from 0, side b goes on after it. Raises `ArgumentError` for pairs that point outside the rows.
    """
    sizes = (int(rows_a.shape[0]), int(rows_b.shape[0]))
    pairs = _checked_pairs(training_pairs, sizes)
    drawn = np.random.default_rng(seed)
    sample_a, sample_b = (_sampled(rows, drawn) for rows in (rows_a, rows_b))

    def write(folder: Path) -> dict[str, Any]:
        folder.mkdir(parents=True, exist_ok=True)
        found = [_quantiles(sample_a, sample_b), _quantiles(sample_a, None), _quantiles(sample_b, None)]
        write_npy(folder / _QUANTILES, np.array(found))
        write_npy(folder / _PAIRS, pairs + np.array([0, sizes[0]]))
        facts = {"sampled": {"a": len(sample_a), "b": len(sample_b)}, "training_pairs": len(pairs), "seed": seed}
        write_json(folder / _FILE, facts, _FORMAT, _VERSION)
        return facts

    return write


@dataclass(frozen=True, eq=False)
class References:
    """What `reference_attachment` wrote. `quantiles` (3, L): of the cosine at `LEVELS` for a-b, a-a and b-b, NaN where
    there was no pair. `training_pairs` (n, 2): numbers of items, of side a and of side b."""

    quantiles: Floats
    training_pairs: IntArray

    @classmethod
    def load(cls, folder: str | Path) -> "References":
        """Read references. Raises `InputFileNotFoundError`, `FormatVersionError` and `RunStateError` (damaged)."""
        source = Path(folder)
        read_json(source / _FILE, _FORMAT, _VERSION)
        try:
            quantiles = np.load(source / _QUANTILES, allow_pickle=False)
            pairs = np.load(source / _PAIRS, allow_pickle=False)
        except UNREADABLE as error:
            raise RunStateError(f"{source} cannot be read ({why_unreadable(error)}); build the index again") from error
        shapes = quantiles.shape == (len(_SIDES), len(LEVELS)) and pairs.ndim == 2 and pairs.shape[1] == 2
        if not shapes or (quantiles.dtype, pairs.dtype) != (np.float64, np.int64):
            raise RunStateError(f"{source} holds other arrays than were written; build the index again")
        return cls(quantiles, pairs)

    def percentile(self, side: str, other: str, cosines: Any) -> Floats | None:
        """Return for each cosine the share (0 to 100) of random pairs of items of these sides whose cosine is below it.

        `side` and `other` are "a" or "b"; the order does not matter. Between quantiles it is interpolated, under the
        least it is 0 and above the greatest 100. None where no pair was measured.
        """
        quantiles = self._of_sides["".join(sorted(side + other))]
        if np.isnan(quantiles[0]):
            return None
        values = np.asarray(cosines, dtype=np.float64)
        # The first quantile at or above a value: the share of pairs that are strictly below.
        after = np.searchsorted(quantiles, values, side="left")
        last = len(quantiles) - 1
        upper = np.clip(after, 1, last)
        low, high = quantiles[upper - 1], quantiles[upper]
        part = np.clip((values - low) / np.where(high > low, high - low, 1), 0, 1)
        share = LEVELS[upper - 1] + part * (LEVELS[upper] - LEVELS[upper - 1])
        return np.asarray(100 * np.where(after == 0, 0.0, np.where(after > last, 1.0, share)))

    @cached_property
    def _of_sides(self) -> dict[str, Floats]:
        return dict(zip(_SIDES, self.quantiles, strict=True))


class KnownReferences:
    """The references of an index, read again when a new build has taken the place of the one they are of."""

    def __init__(self) -> None:
        self._known: tuple[Path, References] | None = None

    def of(self, state: IndexState) -> References | None:
        """Return the references of the build of a state, None where it carries none.

        Those that were read last stay when their files are gone, as the files of a build are that was replaced.
        """
        folder, known = state.attached(REFERENCES), self._known
        if known is not None and folder in (None, known[0]):
            return known[1]
        if folder is None:
            return None
        self._known = known = (folder, References.load(folder))
        return known[1]


def _checked_pairs(pairs: Any, sizes: tuple[int, int]) -> IntArray:
    given = np.asarray(pairs)
    found = np.asarray(given, dtype=np.int64).reshape(-1, 2) if given.size == 0 else given
    if found.ndim != 2 or found.shape[1] != 2 or found.dtype.kind not in "iu":
        raise ArgumentError(f"training_pairs has shape {given.shape} and dtype {given.dtype}; expected (n, 2) integers")
    if len(found) and (found.min() < 0 or (found >= np.array(sizes)).any()):
        raise ArgumentError(f"training_pairs point outside the rows: {sizes[0]} of a and {sizes[1]} of b")
    return np.unique(found.astype(np.int64), axis=0)


def _sampled(rows: Any, drawn: np.random.Generator) -> FloatArray:
    """Return unit float32 rows of some items, ascending by number; those of zero rows are left out."""
    n = int(rows.shape[0])
    chosen = np.sort(drawn.choice(n, min(n, _SAMPLE), replace=False))
    if hasattr(rows, "blocks"):
        taken = [np.zeros((0, int(rows.shape[1])), np.float32)]
        start = 0
        for block in rows.blocks(_BLOCK):
            taken.append(np.asarray(block)[chosen[(chosen >= start) & (chosen < start + len(block))] - start])
            start += len(block)
        sample = np.concatenate(taken)
    else:
        sample = np.asarray(rows[chosen])
    unit = unit_rows(sample.astype(np.float32))
    return unit[unit.any(axis=1)]


def _quantiles(rows: FloatArray, others: FloatArray | None) -> Floats:
    """Return the quantiles of the cosines of all pairs: of two sides, or of one without an item and itself."""
    if others is None:
        upper = np.triu_indices(len(rows), 1)
        cosines = (rows @ rows.T)[upper]
    else:
        cosines = (rows @ others.T).ravel()
    if not cosines.size:
        return np.full(len(LEVELS), np.nan)
    return np.asarray(np.quantile(np.clip(cosines, -1, 1).astype(np.float64), LEVELS))
