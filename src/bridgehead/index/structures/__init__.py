"""Structures in an index: bits of each molecule, substructure and similarity among them.

Owns the fingerprints that are stored beside the rows and what is found by them. Not about parsing (`molecules`), about
identity, or about the counted fingerprints that an encoder makes rows of (`encode`).
"""

from bridgehead.index.structures.bits import BYTES, structure_bits
from bridgehead.index.structures.matching import has_substructure
from bridgehead.index.structures.pattern import Pattern, read_pattern
from bridgehead.index.structures.similarity import similar_numbers
from bridgehead.index.structures.stored import StructureBits
from bridgehead.index.structures.substructure import Verify, substructure_candidates, substructure_numbers

__all__ = [
    "BYTES",
    "Pattern",
    "StructureBits",
    "Verify",
    "has_substructure",
    "read_pattern",
    "similar_numbers",
    "structure_bits",
    "substructure_candidates",
    "substructure_numbers",
]
