"""Some thousand real compounds as a side of an index: what the tests of structures search in."""

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from rdkit import Chem, rdBase

from bridgehead.index.structures import StructureBits, structure_bits
from bridgehead.pairs.chemicals_data import read_chemicals
from bridgehead.pairs.starter_data import read_starter_frame

FIRST = 1000
"""The number of the first item; those before are of another side."""


class State:
    """A state of an index that holds `smiles`, numbered from `FIRST` on, the last `added` of them not in the build."""

    def __init__(self, smiles: list[str], bits: np.ndarray | None = None, added: int = 0, removed: Iterable[int] = ()):
        self.smiles = smiles
        bits = structure_bits(smiles, processes=1) if bits is None else bits
        numbers = np.arange(FIRST, FIRST + len(smiles), dtype=np.int64)
        n = len(smiles) - added
        gone = np.array(sorted(removed), dtype=np.int64)
        self.stored = StructureBits(numbers[:n], bits[:n], gone, numbers[n:], bits[n:])

    def structures(self, side: str) -> StructureBits | None:
        return self.stored if side == "a" else None

    def texts(self, side: str, numbers: Iterable[int]) -> list[str]:
        return [self.smiles[number - FIRST] for number in numbers]


@lru_cache(maxsize=1)
def compounds() -> tuple[list[str], np.ndarray, list[Chem.Mol | None]]:
    """SMILES, bits and RDKit molecules of 1,600 ligands and 1,600 chemicals, and of some odd structures."""
    ligands = [text for text in read_starter_frame()["smiles"].to_list() if text]
    chemicals = [compound.smiles for compound in read_chemicals()]
    odd = ["not a structure", "[Na+].[Cl-]", "[H][H]", "[2H]OC", "N->[Pt](Cl)(Cl)<-N", "[13CH4]", "*CC", "C", "[Fe]"]
    smiles = ligands[::5][:1600] + odd + chemicals[::47][:1600]
    with rdBase.BlockLogs():
        molecules = [Chem.MolFromSmiles(text) for text in smiles]
    return smiles, structure_bits(smiles), molecules


def state(added: int = 0, removed: Iterable[int] = ()) -> State:
    """A state that holds the compounds."""
    smiles, bits, _ = compounds()
    return State(smiles, bits, added, removed)


def matches(query: Chem.Mol) -> list[int]:
    """The numbers of the compounds that hold a query, by a plain loop over RDKit."""
    return [FIRST + at for at, molecule in enumerate(compounds()[2]) if molecule and molecule.HasSubstructMatch(query)]
