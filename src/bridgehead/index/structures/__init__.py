"""Structures in an index: bits of each molecule, substructure and similarity among them.

Owns the fingerprints that are stored beside the rows and what is found by them. Not about parsing (`molecules`), about
identity, or about the counted fingerprints that an encoder makes rows of (`encode`).
"""

from bridgehead.index.structures.bits import BYTES, structure_bits
from bridgehead.index.structures.stored import StructureBits

__all__ = ["BYTES", "StructureBits", "structure_bits"]
