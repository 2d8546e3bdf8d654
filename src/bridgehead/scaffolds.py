"""Scaffolds of molecules: the rings and what links them, without what hangs on them.

This module is not about who a molecule is (`molecules`) or about splitting by scaffold.
"""

from collections.abc import Sequence
from typing import Any

from bridgehead.errors import MissingExtraError, StructureError
from bridgehead.molecules import parse
from bridgehead.workers import map_chunks

_CHUNK = 512


def scaffold(smiles: str) -> str:
    """Return the canonical SMILES of a molecule's Bemis-Murcko scaffold, "" for one without a ring.

    Rings and the chains between them stay, with what is double-bonded to them; side chains go (Bemis and Murcko 1996,
    "The properties of known drugs. 1", as RDKit has it). Raises `StructureError` for what cannot be read.

    >>> scaffold("CC(=O)Oc1ccccc1C(=O)O")
    'c1ccccc1'
    """
    chem, murcko = _rdkit()
    return str(chem.MolToSmiles(murcko.GetScaffoldForMol(parse(smiles))))


def scaffolds(smiles: Sequence[str], processes: int | None = None) -> list[str | None]:
    """Return `scaffold` of each structure, None for what cannot be read, in the order of the input.

    Long lists are worked on in `processes` (default: all cores) worker processes.
    """
    found: list[str | None] = []
    for _, part in map_chunks(_chunk, smiles, chunk=_CHUNK, processes=processes):
        found += part
    return found


def _chunk(smiles: Sequence[str]) -> list[str | None]:
    found: list[str | None] = []
    for text in smiles:
        try:
            found.append(scaffold(text))
        except (StructureError, RuntimeError, ValueError):
            found.append(None)
    return found


def _rdkit() -> tuple[Any, Any]:
    try:
        from rdkit import Chem
        from rdkit.Chem.Scaffolds import MurckoScaffold
    except ImportError as error:
        raise MissingExtraError("rdkit", "molecules") from error
    return Chem, MurckoScaffold
