"""Vectors in FAISS beside items in SQLite: built in one go, searched by many, changed by one writer at a time.

Owns the files of an index and what is found in them by row, id, name, key, words or filter. It sees rows, never a
model; how a query becomes a row is in `search`.
"""

from bridgehead.index.build import IndexFacts, build_index
from bridgehead.index.items import Item, WordHit, item_hash
from bridgehead.index.open import Index, IndexState, SideFacts, open_index
from bridgehead.index.side import IndexSide
from bridgehead.index.structures import StructureBits, similar_numbers, structure_bits, substructure_numbers
from bridgehead.index.vectors import Ranked, RowShards, SideView, VectorFacts, VectorPlan, check_page
from bridgehead.index.where import FieldFacts, Where, parse_where, where_from_json
from bridgehead.index.writer import IndexWriter, Written

__all__ = [
    "FieldFacts",
    "Index",
    "IndexFacts",
    "IndexSide",
    "IndexState",
    "IndexWriter",
    "Item",
    "Ranked",
    "RowShards",
    "SideFacts",
    "SideView",
    "StructureBits",
    "VectorFacts",
    "VectorPlan",
    "Where",
    "WordHit",
    "Written",
    "build_index",
    "check_page",
    "item_hash",
    "open_index",
    "parse_where",
    "similar_numbers",
    "structure_bits",
    "substructure_numbers",
    "where_from_json",
]
