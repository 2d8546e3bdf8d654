"""The rows of one side: stored as float16, found through FAISS, scored and ordered exactly.

FAISS only proposes candidates; what is returned is always scored again from the stored rows in float64 and ordered by
score (equal to 1e-12 is tied), then by number. It knows numbers and rows, never an item (`index.items`).
"""

from bridgehead.index.vectors.base import BaseVectors, open_base
from bridgehead.index.vectors.engine import faiss_library
from bridgehead.index.vectors.plan import VectorFacts, VectorPlan
from bridgehead.index.vectors.ranked import Ranked, check_page
from bridgehead.index.vectors.sources import ArrayRows, RowShards, RowSource
from bridgehead.index.vectors.view import SideView
from bridgehead.index.vectors.writing import write_side

__all__ = [
    "ArrayRows",
    "BaseVectors",
    "Ranked",
    "RowShards",
    "RowSource",
    "SideView",
    "VectorFacts",
    "VectorPlan",
    "check_page",
    "faiss_library",
    "open_base",
    "write_side",
]
