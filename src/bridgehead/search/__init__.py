"""From a query to hits: how it is read, encoded, projected and looked up.

Light to import: FAISS, RDKit and encoders come with the first query that needs them; torch only with encoders that are
torch models. Building and files of an index are in `index`.
"""

from bridgehead.search.opening import (
    OpenedSpace,
    canary_attachments,
    item_kind,
    model_attachment,
    model_fingerprint,
    open_space,
    open_space_of,
)
from bridgehead.search.reading import READINGS, Reading, read_query
from bridgehead.search.space import Answer, Hit, Space

__all__ = [
    "READINGS",
    "Answer",
    "Hit",
    "OpenedSpace",
    "Reading",
    "Space",
    "canary_attachments",
    "item_kind",
    "model_attachment",
    "model_fingerprint",
    "open_space",
    "open_space_of",
    "read_query",
]
