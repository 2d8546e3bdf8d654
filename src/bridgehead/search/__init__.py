"""From a query to hits: how it is read, encoded, projected and looked up.

Light to import: FAISS, RDKit and encoders come with the first query that needs them; torch only with encoders that are
torch models. Building and files of an index are in `index`.
"""

from bridgehead.search.answer import Answer, Explanation, Hit, NearestPair
from bridgehead.search.opening import (
    OpenedSpace,
    canary_attachments,
    item_kind,
    model_attachment,
    model_fingerprint,
    open_space,
    open_space_of,
)
from bridgehead.search.query import MODES, Query
from bridgehead.search.reading import READINGS, Reading, read_query
from bridgehead.search.references import REFERENCES, References, reference_attachment
from bridgehead.search.space import Space

__all__ = [
    "MODES",
    "READINGS",
    "REFERENCES",
    "Answer",
    "Explanation",
    "Hit",
    "NearestPair",
    "OpenedSpace",
    "Query",
    "Reading",
    "References",
    "Space",
    "canary_attachments",
    "item_kind",
    "model_attachment",
    "model_fingerprint",
    "open_space",
    "open_space_of",
    "read_query",
    "reference_attachment",
]
