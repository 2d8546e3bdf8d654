"""What RDKit is asked to do with texts from outside, as tasks on plain data that can be done in another process first.

A structure that goes through all of it there within limits is harmless here too: the same text costs the same again.
Not about the processes or their limits (`serve`), nor about how a query is read (`reading`).
"""

from collections.abc import Sequence
from typing import Any

from bridgehead import molecules
from bridgehead.errors import StructureError
from bridgehead.index.structures import has_substructure, read_pattern, structure_bits


def inspect_texts(texts: Sequence[str]) -> list[str | None]:
    """Do with each text all that reading and encoding it as a structure does; return why it is none, or None.

    That is: reading it as a query (`molecules.reads_as_smiles`), every kind of counted fingerprint, and the bits of
    substructure and similarity. The reasons are those of `molecules.parse`.
    """
    from bridgehead.encode.fingerprints import KINDS, count_features

    reasons: list[str | None] = []
    for text in texts:
        molecules.reads_as_smiles(text)
        molecules.why_no_smiles(text)
        try:
            molecules.parse(text)
        except StructureError as error:
            reasons.append(str(error))
            continue
        count_features([text], KINDS, radius=2, chirality=True)
        structure_bits([text], processes=1)
        reasons.append(None)
    return reasons


def inspect_pattern(text: str) -> dict[str, Any]:
    """Read a text as a substructure; return how it was read, a note on that, and why it is none (or None)."""
    try:
        pattern = read_pattern(text)
    except StructureError as error:
        return {"read_as": None, "note": "", "reason": str(error)}
    return {"read_as": pattern.read_as, "note": pattern.note, "reason": None}


def held(pattern: str, smiles: Sequence[str]) -> list[int]:
    """Return the positions of the structures that hold a substructure; raises `StructureError` for no pattern."""
    return [int(at) for at in has_substructure(pattern, smiles, processes=1).nonzero()[0]]
