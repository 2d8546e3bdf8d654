"""The structure bits of one state of a side: those of its build, less what is removed, and what was added since.

Not about how they are computed (`bits`) or compared (`screen`, `similarity`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from bridgehead.errors import ShapeError
from bridgehead.index.structures.bits import BYTES, Bits

IntArray = npt.NDArray[np.int64]


def _no_numbers() -> IntArray:
    return np.zeros(0, dtype=np.int64)


def _no_bits() -> Bits:
    return np.zeros((0, BYTES), dtype=np.uint8)


@dataclass(frozen=True)
class StructureBits:
    """Numbers and bits of the items of a side, as they lie: `numbers` (n,) ascending and `bits` uint8 (n, 512) of the
    build (may be mapped from a file), `removed` ascending numbers of the build that are not to be found any more,
    `added_numbers` (m,) ascending, above all of the build, and `added_bits` (m, 512).

    Raises `ShapeError` when numbers and bits do not belong together.
    """

    numbers: IntArray
    bits: Bits
    removed: IntArray = field(default_factory=_no_numbers)
    added_numbers: IntArray = field(default_factory=_no_numbers)
    added_bits: Bits = field(default_factory=_no_bits)

    def __post_init__(self) -> None:
        for numbers, bits in ((self.numbers, self.bits), (self.added_numbers, self.added_bits)):
            if bits.shape != (len(numbers), BYTES) or bits.dtype != np.uint8:
                raise ShapeError(
                    f"structure bits {bits.dtype} of shape {bits.shape} for {len(numbers)} items; expected uint8 "
                    f"({len(numbers)}, {BYTES})"
                )

    def parts(self) -> Iterator[tuple[IntArray, Bits]]:
        """Yield (numbers, bits) of the build and of what was added, removed items among them."""
        if len(self.numbers):
            yield self.numbers, self.bits
        if len(self.added_numbers):
            yield self.added_numbers, self.added_bits

    def live(self, numbers: IntArray) -> IntArray:
        """Return those of `numbers` that are not removed, in their order."""
        return without(numbers, self.removed)


def without(numbers: IntArray, removed: IntArray) -> IntArray:
    """Return `numbers` less those in `removed` (ascending)."""
    return numbers[~_held(numbers, removed)] if len(removed) else numbers


def within(numbers: IntArray, allowed: IntArray) -> IntArray:
    """Return those of `numbers` that are in `allowed` (ascending)."""
    return numbers[_held(numbers, allowed)]


def _held(numbers: IntArray, among: IntArray) -> npt.NDArray[np.bool_]:
    if not len(among):
        return np.zeros(len(numbers), dtype=np.bool_)
    places = np.searchsorted(among, numbers)
    places[places == len(among)] = 0
    return np.asarray(among[places] == numbers)
