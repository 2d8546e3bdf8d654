"""What a search over rows gives back, and the check of the page that is asked for."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bridgehead.errors import ArgumentError
from bridgehead.vectors import IntArray


@dataclass(frozen=True, eq=False)
class Ranked:
    """Items found for one query, best first: `numbers` int64 (m,), `scores` float64 (m,), cosines in [-1, 1]."""

    numbers: IntArray
    scores: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.numbers)

    def page(self, k: int, offset: int) -> "Ranked":
        """Return the hits number offset + 1 to offset + k, as far as there are any."""
        return Ranked(self.numbers[offset : offset + k], self.scores[offset : offset + k])

    def ordered(self, limit: int | None = None) -> "Ranked":
        """Return the hits by descending score, ties by number; the first `limit` of them where it is given."""
        order = np.lexsort((self.numbers, -self.scores))[:limit]
        return Ranked(self.numbers[order], self.scores[order])


def no_hits() -> Ranked:
    """Return the ranking of nothing."""
    return Ranked(np.zeros(0, np.int64), np.zeros(0))


def check_page(k: Any, offset: Any) -> None:
    """Raise `ArgumentError` unless `k` is a whole number of at least 1 and `offset` one of at least 0."""
    if not _is_whole(k) or k < 1:
        raise ArgumentError(f"k = {k!r}; expected the number of hits, a whole number of at least 1")
    if not _is_whole(offset) or offset < 0:
        raise ArgumentError(f"offset = {offset!r}; expected the number of hits to skip, a whole number of at least 0")


def _is_whole(number: Any) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)
