"""Bits against bits: which stored fingerprints hold all bits of a pattern, and how similar they are to one.

In blocks, with numpy alone. Not about molecules (`bits`) or about items (`substructure`, `similarity`).
"""

import numpy as np
import numpy.typing as npt

from bridgehead.index.structures.bits import Bits
from bridgehead.index.structures.stored import IntArray

_SCREENED = 262_144
_COUNTED = 4096

Words = npt.NDArray[np.uint64]


def holding(bits: Bits, wanted: Bits) -> IntArray:
    """Return the positions, ascending, of the rows of `bits` (n, 256) in which every bit of `wanted` (256,) is set.

    No bit wanted gives all positions. A column at a time, the fullest first: most rows are out after one or two.
    """
    stored, query = _words(bits), _words(wanted)
    columns = np.flatnonzero(query)
    columns = columns[np.argsort(-np.bitwise_count(query[columns]).astype(np.int64), kind="stable")]
    found = [_held(stored[start : start + _SCREENED], query, columns) + start
             for start in range(0, len(stored), _SCREENED)]  # fmt: skip
    return np.concatenate([*found, np.zeros(0, dtype=np.int64)])


def _held(block: Words, query: Words, columns: IntArray) -> IntArray:
    left: IntArray = np.arange(len(block), dtype=np.int64)
    for column in columns:
        held = (block[left, column] if len(left) < len(block) else block[:, column]) & query[column] == query[column]
        left = left[held]
    return left


def tanimoto(bits: Bits, query: Bits) -> npt.NDArray[np.float64]:
    """Return the Tanimoto similarity of each row of `bits` (n, 256) to `query` (256,): common bits over all bits.

    As RDKit computes it, in float64; -1 for a row without a bit, which is no structure.
    """
    stored, wanted = _words(bits), _words(query)
    n_wanted = int(np.bitwise_count(wanted).sum())
    similar = np.full(len(stored), -1.0)
    for start in range(0, len(stored), _COUNTED):
        block = np.ascontiguousarray(stored[start : start + _COUNTED])
        own = np.bitwise_count(block).sum(axis=1, dtype=np.int64)
        common = np.bitwise_count(block & wanted).sum(axis=1, dtype=np.int64)
        np.divide(common, own + n_wanted - common, out=similar[start : start + _COUNTED], where=own > 0)
    return similar


def _words(bits: Bits) -> Words:
    return bits.view(np.uint64)
