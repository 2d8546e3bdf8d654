"""The stored bits of a molecule: a pattern fingerprint for the screen, a Morgan fingerprint for similarity.

Both have 2,048 bits, packed into 256 bytes each: bit i is bit i % 8 of byte i // 8. Stereochemistry is in neither.
This module is not about comparing them.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from bridgehead.errors import MissingExtraError, StructureError
from bridgehead.molecules import parse
from bridgehead.workers import map_chunks

PATTERN = slice(0, 256)
"""The bytes of the pattern fingerprint: those of a substructure are set in every molecule that holds it."""

MORGAN = slice(256, 512)
"""The bytes of the Morgan fingerprint, radius 2."""

BYTES = 512
_N_BITS = 2048
_CHUNK = 512

Bits = npt.NDArray[np.uint8]


def structure_bits(smiles: Sequence[str], processes: int | None = None) -> Bits:
    """Return the bits of each structure as uint8 (n, 512): bytes 0-255 RDKit's pattern fingerprint, 256-511 Morgan.

    A text that does not parse has a row of zeros, which nothing finds. Long lists are worked on in `processes` worker
    processes (default: all cores), about 0.3 ms a molecule on one core; no list gives (0, 512). Raises
    `MissingExtraError` without RDKit.
    """
    bits = np.zeros((len(smiles), BYTES), dtype=np.uint8)
    for part, found in map_chunks(_bits_of, smiles, chunk=_CHUNK, processes=processes):
        bits[part] = found
    return bits


def pattern_bits(molecule: Any) -> Bits:
    """Return the pattern fingerprint (256,) of an RDKit molecule or pattern."""
    chem, structs, _ = _rdkit()
    return _packed(structs.BitVectToBinaryText(chem.PatternFingerprint(molecule, fpSize=_N_BITS)))


def morgan_bits(molecule: Any) -> Bits:
    """Return the Morgan fingerprint (256,) of an RDKit molecule."""
    _, structs, morgan = _rdkit()
    return _packed(structs.BitVectToBinaryText(morgan.GetFingerprint(molecule)))


def _bits_of(smiles: Sequence[str]) -> Bits:
    chem, structs, morgan = _rdkit()
    write = structs.BitVectToBinaryText
    nothing = bytes(BYTES)
    rows = []
    for text in smiles:
        try:
            molecule = parse(text)
            pattern = chem.PatternFingerprint(molecule, fpSize=_N_BITS)
            rows.append(write(pattern) + write(morgan.GetFingerprint(molecule)))
        except (StructureError, RuntimeError, ValueError):
            rows.append(nothing)
    return _packed(b"".join(rows)).reshape(len(rows), BYTES)


def _packed(written: bytes) -> Bits:
    return np.frombuffer(written, dtype=np.uint8)


@lru_cache(maxsize=1)
def _rdkit() -> tuple[Any, Any, Any]:
    try:
        from rdkit import Chem, DataStructs
        from rdkit.Chem import rdFingerprintGenerator
    except ImportError as error:
        raise MissingExtraError("rdkit", "molecules") from error
    return Chem, DataStructs, rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=_N_BITS)
