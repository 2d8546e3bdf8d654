"""Which positions of the base may be found: without those removed, and only the allowed ones under a filter.

Owns bit sets over positions. How a filter changes the effort of a search is in `base`.
"""

from functools import cached_property

import numpy as np
import numpy.typing as npt

from bridgehead.vectors import IntArray


class Selection:
    """A set of positions 0..n-1, made from a mask (n,) of them; shared by threads."""

    def __init__(self, mask: npt.NDArray[np.bool_]) -> None:
        self.mask = mask
        self.count = int(np.count_nonzero(mask))

    @cached_property
    def bitmap(self) -> npt.NDArray[np.uint8]:
        """Return one bit a position, as FAISS reads them."""
        return np.packbits(self.mask, bitorder="little")

    @cached_property
    def positions(self) -> IntArray:
        """Return the positions, ascending."""
        return np.flatnonzero(self.mask).astype(np.int64)


def places_of(numbers: IntArray, wanted: IntArray) -> IntArray:
    """Return where each of `wanted` stands in ascending `numbers`, -1 for one that is not there."""
    n = len(numbers)
    if not n or not len(wanted):
        return np.full(len(wanted), -1, np.int64)
    first, last = int(numbers[0]), int(numbers[-1])
    if last - first == n - 1:
        return np.where((wanted >= first) & (wanted <= last), wanted - first, -1)
    places = np.searchsorted(numbers, wanted)
    inside = np.minimum(places, n - 1)
    return np.where(numbers[inside] == wanted, inside, -1)
