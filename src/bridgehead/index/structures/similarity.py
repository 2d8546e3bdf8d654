"""Items that are similar to a structure by the Tanimoto coefficient of Morgan fingerprints (radius 2, 2,048 bits).

Exact over all items, without an index of its own. Not about similarity in a learnt space (`vectors`).
"""

import math

import numpy as np
import numpy.typing as npt

from bridgehead.errors import ArgumentError
from bridgehead.index.structures.bits import MORGAN, morgan_bits
from bridgehead.index.structures.screen import tanimoto
from bridgehead.index.structures.stored import IntArray, within
from bridgehead.index.structures.substructure import StructuresOfState, stored_structures
from bridgehead.molecules import parse


def similar_numbers(
    state: StructuresOfState, side: str, smiles: str, least: float, allowed: IntArray | None = None
) -> tuple[IntArray, npt.NDArray[np.float64]]:
    """Return the numbers (m,), ascending, of the items of `side` at least as similar as `least`, and how similar.

    Similarities are Tanimoto coefficients, 0 to 1, equal to RDKit's; stereochemistry does not count, salts and charges
    do as they are written. `least` is 0 to 1; at 0 every item with a structure is found. `allowed` (ascending) are the
    only numbers that may be found.

    Raises `StructureError` when `smiles` cannot be read, `ArgumentError` for a side without structures or a `least`
    outside 0 to 1, `RunStateError` when the bits are of another RDKit.
    """
    if isinstance(least, bool) or not isinstance(least, int | float) or not 0 <= least <= 1 or math.isnan(least):
        raise ArgumentError(f"the least similarity is {least!r:.80}; expected a number from 0 to 1")
    query = morgan_bits(parse(smiles))
    stored = stored_structures(state, side)
    numbers, scores = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
    for held, bits in stored.parts():
        similar = tanimoto(bits[:, MORGAN], query)
        near = np.flatnonzero(similar >= least)
        numbers.append(held[near])
        scores.append(similar[near])
    found, similarity = np.concatenate(numbers), np.concatenate(scores)
    kept = stored.live(found) if allowed is None else within(stored.live(found), allowed)
    # Both ascend, and `kept` is part of `found`.
    return kept, similarity[np.searchsorted(found, kept)]
