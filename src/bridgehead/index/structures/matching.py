"""Whether molecules hold a substructure: RDKit's own match on each of them, the last word after any screen.

Molecules that were parsed are kept in RDKit's binary form, because parsing costs four times what is left, and so are
the answers for the patterns asked last, because pages of one search ask again. This module is not about which molecules
are looked at (`substructure`) or about the limits of a service (its processes).
"""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bridgehead.errors import StructureError
from bridgehead.index.structures.pattern import Pattern, read_pattern
from bridgehead.molecules import parse
from bridgehead.workers import map_chunks

_MANY = 20_000
_CHUNK = 1000
_KEPT = 100_000
_PATTERNS = 64
# A longer structure is rare, and would make the store of parsed ones large.
_LONGEST_KEPT = 400
_UNKNOWN, _LACKS, _HOLDS = 0, 1, 2

BoolArray = npt.NDArray[np.bool_]


def has_substructure(pattern: str, smiles: Sequence[str], processes: int | None = None) -> BoolArray:
    """Return for each structure (n,) whether it holds the substructure that `pattern` writes, stereochemistry aside.

    `pattern` is read by `read_pattern`. A text that does not parse holds nothing. Over 20,000 structures that were not
    looked at before are parsed in `processes` worker processes (default: all cores); up to 100,000 are kept, about
    50 MB. Safe to call from several threads. Raises `StructureError` when the pattern cannot be read.
    """
    asked = read_pattern(pattern)
    known = _store.known
    new = [text for text in smiles if text not in known.places]
    if len(known.binaries) + len(new) > _KEPT:
        known = _store.emptied()
    if len(new) > _MANY and processes != 1:
        for part, binaries in map_chunks(_binaries, new, chunk=_CHUNK, processes=processes):
            for text, binary in zip(new[part], binaries, strict=True):
                known.keep(text, binary)
    return known.answers(asked, smiles)


class _Known:
    """Structures in the order in which they came, with what is known of them; grows until it is full."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}
        self.binaries: list[bytes] = []
        self._verdicts: OrderedDict[tuple[str, str], npt.NDArray[np.uint8]] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, text: str, binary: bytes) -> int | None:
        """Return the place of a structure that is kept, None where there is no room for it."""
        with self._lock:
            if text not in self.places and len(self.binaries) < _KEPT and len(text) <= _LONGEST_KEPT:
                # The binary first: a place that is seen has one.
                self.binaries.append(binary)
                self.places[text] = len(self.binaries) - 1
            return self.places.get(text)

    def answers(self, pattern: Pattern, smiles: Sequence[str]) -> BoolArray:
        """Return whether each structure holds the pattern, from what is known or by matching."""
        verdicts = self._verdicts_of(pattern)
        places = np.array([self.places.get(text, -1) for text in smiles], dtype=np.int64)
        answers = np.where(places >= 0, verdicts[places], _UNKNOWN)
        for at in np.flatnonzero(answers == _UNKNOWN).tolist():
            place, binary = self._found(smiles[at], int(places[at]))
            answers[at] = _HOLDS if _holds(binary, pattern.query) else _LACKS
            if place is not None:
                verdicts[place] = answers[at]
        return np.asarray(answers == _HOLDS)

    def _found(self, text: str, place: int) -> tuple[int | None, bytes]:
        if place >= 0:
            return place, self.binaries[place]
        binary = _binary(text)
        return self.keep(text, binary), binary

    def _verdicts_of(self, pattern: Pattern) -> npt.NDArray[np.uint8]:
        key = (pattern.read_as, pattern.text)
        with self._lock:
            verdicts = self._verdicts.setdefault(key, np.zeros(_KEPT, dtype=np.uint8))
            self._verdicts.move_to_end(key)
            if len(self._verdicts) > _PATTERNS:
                self._verdicts.popitem(last=False)
        return verdicts


class _Store:
    """What is known in this process."""

    def __init__(self) -> None:
        self.known = _Known()

    def emptied(self) -> _Known:
        """Begin anew, so that an index of millions does not freeze what is kept to its first structures."""
        self.known = _Known()
        return self.known


_store = _Store()


def _binaries(smiles: Sequence[str]) -> list[bytes]:
    return [_binary(text) for text in smiles]


def _binary(text: str) -> bytes:
    """Return a structure in RDKit's binary form; empty where it does not parse."""
    try:
        return bytes(parse(text).ToBinary())
    except (StructureError, RuntimeError, ValueError):
        return b""


def _holds(binary: bytes, query: Any) -> bool:
    from rdkit import Chem

    made: Any = Chem.Mol
    return bool(binary) and bool(made(binary).HasSubstructMatch(query))
