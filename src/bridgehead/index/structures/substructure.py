"""Items that hold a substructure: a screen by stored bits, then RDKit's own match on what is left.

The screen loses nothing, the match decides. Not about how a pattern is read (`pattern`) or how molecules are matched
(`matching`).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from bridgehead.errors import ArgumentError, RunStateError
from bridgehead.index.structures.bits import PATTERN, structure_bits
from bridgehead.index.structures.matching import has_substructure
from bridgehead.index.structures.pattern import read_pattern
from bridgehead.index.structures.screen import holding
from bridgehead.index.structures.stored import IntArray, StructureBits, within

_FIRST_BLOCK = 256
_BLOCK = 50_000
_SAMPLE = 8

Verify = Callable[[str, Sequence[str]], npt.NDArray[np.bool_]]
"""Says for each structure whether it holds a pattern: `has_substructure`, or the same within limits elsewhere."""

_known_samples: set[bytes] = set()


class StructuresOfState(Protocol):
    """What is asked of a state of an index."""

    def structures(self, side: str) -> StructureBits | None:
        """Return the structure bits of a side, None where it has none."""

    def texts(self, side: str, numbers: Iterable[int]) -> list[str]:
        """Return the raw items of `numbers`, in that order."""


def substructure_numbers(
    state: StructuresOfState,
    side: str,
    pattern: str,
    allowed: IntArray | None = None,
    limit: int | None = None,
    verify: Verify = has_substructure,
) -> IntArray:
    """Return the numbers, ascending, of the items of `side` that hold the substructure `pattern`.

    `pattern` is SMILES or SMARTS (see `read_pattern`); stereochemistry is left out of the match. `allowed` (ascending)
    are the only numbers that may be found; `limit` stops after that many, those of the lowest numbers. Items of which
    the screen keeps many (a benzene ring) are looked at one by one, about 25 us each once they are known, 0.1 ms
    before: whoever needs a few best ones rather than all takes `substructure_candidates` and verifies in that order.

    Raises `StructureError` when the pattern cannot be read, `ArgumentError` for a side without structures or a limit
    under 1, `RunStateError` when the bits are of another RDKit.
    """
    if limit is not None and limit < 1:
        raise ArgumentError(f"limit = {limit}; expected at least 1")
    candidates = substructure_candidates(state, side, pattern, allowed)
    found: list[IntArray] = [np.zeros(0, dtype=np.int64)]
    n_found, start, size = 0, 0, _BLOCK if limit is None else _FIRST_BLOCK
    while start < len(candidates) and (limit is None or n_found < limit):
        block = candidates[start : start + size]
        found.append(block[verify(pattern, state.texts(side, block.tolist()))])
        n_found += len(found[-1])
        start, size = start + size, min(2 * size, _BLOCK)
    return np.concatenate(found)[:limit]


def substructure_candidates(
    state: StructuresOfState, side: str, pattern: str, allowed: IntArray | None = None
) -> IntArray:
    """Return the numbers, ascending, of all items that may hold `pattern` by their bits: all that do, and some more.

    Raises as `substructure_numbers` does.
    """
    bits = read_pattern(pattern).bits
    stored = stored_structures(state, side)
    kept = [numbers[holding(block[:, PATTERN], bits)] for numbers, block in stored.parts()]
    candidates = stored.live(np.concatenate([*kept, np.zeros(0, dtype=np.int64)]))
    return candidates if allowed is None else within(candidates, allowed)


def stored_structures(state: StructuresOfState, side: str) -> StructureBits:
    """Return the structure bits of a side, made by this RDKit.

    Raises `ArgumentError` when the side has none, and `RunStateError` when the bits of a sample of its items come out
    otherwise: a screen by them would lose items.
    """
    stored = state.structures(side)
    if stored is None:
        raise ArgumentError(f"side {side!r} has no structures to look into; expected a side of molecules")
    sample = _sample(stored)
    key = b"".join(row.tobytes() for _, row in sample)
    if sample and key not in _known_samples:
        again = structure_bits(state.texts(side, [number for number, _ in sample]), processes=1)
        if not np.array_equal(again, np.stack([row for _, row in sample])):
            raise RunStateError(
                "the structure bits of this index were made by another release of RDKit, and would lose items that "
                "hold a substructure; build the index again"
            )
        if len(_known_samples) > 1000:
            _known_samples.clear()
        _known_samples.add(key)
    return stored


def _sample(stored: StructureBits) -> list[tuple[int, npt.NDArray[np.uint8]]]:
    """Return (number, bits) of a few items over the whole side, those that are there and have a structure."""
    places = np.unique(np.linspace(0, max(len(stored.numbers) - 1, 0), _SAMPLE).astype(np.int64))
    places = places[places < len(stored.numbers)]
    live = set(stored.live(stored.numbers[places]).tolist())
    rows = [(int(stored.numbers[place]), np.array(stored.bits[place])) for place in places]
    return [(number, row) for number, row in rows if number in live and row.any()]
