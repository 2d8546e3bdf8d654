"""A text read as a substructure to look for: as SMILES where it is one, as SMARTS otherwise.

The texts are parsed by `molecules`; this module decides how one is meant. Not about finding it (`substructure`).
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from bridgehead.errors import StructureError
from bridgehead.index.structures.bits import Bits, pattern_bits
from bridgehead.molecules import MAX_PATTERN_ATOMS, MAX_PATTERN_LENGTH, parse, parse_pattern

_FORCED = "smarts:"
_ORDER = re.compile(r"BondOrder (\d+) = val")


@dataclass(frozen=True)
class Pattern:
    """A substructure: its `text`, whether it was read as "SMILES" or "SMARTS", the RDKit `query`, and the `bits` (256,)
    that every molecule with it has; none set where the pattern says nothing that a screen could use, such as `[R]`.
    `note` says why a text was not read as SMILES."""

    text: str
    read_as: str
    query: Any
    bits: Bits
    note: str = ""


def read_pattern(text: str) -> Pattern:
    """Return the substructure that a text writes: 1 to 250 atoms in at most 2,000 characters.

    What is a SMILES is read as one. Rings are then aromatic by RDKit's rules however they are written
    (`C1=CC=CC=C1` is benzene); a charge or isotope that is written must be there, and none that is not written is
    excluded; `*` is any atom; an atom `[H]` asks for a hydrogen on its neighbour, and hydrogens within the brackets of
    another atom do not count (`[nH]1cccc1` finds N-methylpyrrole). All else is SMARTS, and so is a SMILES that leaves
    an electron unpaired (`[CH3]`, `[#7]`, `[OH]`): there the brackets mean conditions. A text that begins with
    `smarts:` is read as SMARTS whatever it is (`smarts:[nH]1cccc1` does not find N-methylpyrrole).

    Raises `StructureError` with the reasons of both readings, or when the text is empty or beyond the limits.
    """
    return _read(text if isinstance(text, str) else "")


@lru_cache(maxsize=64)
def _read(text: str) -> Pattern:
    word = text.strip()
    if word[: len(_FORCED)].lower() == _FORCED:
        word = word[len(_FORCED) :].strip()
        return _pattern(word, "SMARTS", parse_pattern(word))
    try:
        query, refused = _smiles_query(word), "an atom with an unpaired electron"
    except StructureError as error:
        query, refused = None, str(error)
    if query is not None:
        return _pattern(word, "SMILES", query)
    try:
        return _pattern(word, "SMARTS", parse_pattern(word), f"read as SMARTS; as SMILES: {refused}")
    except StructureError as error:
        raise StructureError(
            f"the substructure can be read neither as SMILES ({refused}) nor as SMARTS: {error}"
        ) from None


def _smiles_query(text: str) -> Any | None:
    """Return the query of a SMILES, or None where its brackets are rather meant as conditions."""
    molecule = parse(text, max_atoms=MAX_PATTERN_ATOMS, max_length=MAX_PATTERN_LENGTH)
    if not molecule.GetNumAtoms() or any(atom.GetNumRadicalElectrons() for atom in molecule.GetAtoms()):
        return None
    from rdkit import Chem, rdBase

    with rdBase.BlockLogs():
        if "[H]" in text:
            molecule = Chem.MergeQueryHs(parse(text, hydrogens=True))
        if "*" in text:
            settings: Any = Chem.AdjustQueryParameters.NoAdjustments()
            settings.makeDummiesQueries = True
            molecule = Chem.AdjustQueryProperties(molecule, settings)
    return molecule


def _pattern(text: str, read_as: str, query: Any, note: str = "") -> Pattern:
    try:
        bits = pattern_bits(_screened(query))
    except (RuntimeError, ValueError):
        # No screen then: every structure is looked at.
        bits = np.zeros(256, dtype=np.uint8)
    return Pattern(text, read_as, query, bits, note)


def _screened(query: Any) -> Any:
    """Return what of a query its fingerprint may be made of: all but bonds that RDKit would take for others there.

    A bond such as `~=` asks for a double bond and says that it is of no certain order; the fingerprint goes by what it
    says, and would have bits that molecules with the double bond do not have.
    """
    odd = [bond for bond in query.GetBonds() if bond.HasQuery() and _is_odd(bond)]
    if not odd:
        return query
    from rdkit import Chem

    edited = Chem.RWMol(query)
    for bond in odd:
        edited.RemoveBond(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx())
    return edited


def _is_odd(bond: Any) -> bool:
    asked = _ORDER.fullmatch(bond.DescribeQuery().strip())
    return asked is not None and int(asked[1]) != int(bond.GetBondType())
