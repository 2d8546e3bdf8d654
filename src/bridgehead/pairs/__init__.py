"""Pairs: what matches what, read from the user's files.

`read_pairs` -> `PairTable`: distinct items of two sides and the links between them; `split_pairs` decides what is held
out; `text_quality` and `check_table` say how good the pairs are; `guess_columns` proposes which column is which.
"""

from bridgehead.pairs.read import read_pairs, read_records
from bridgehead.pairs.sources import Source
from bridgehead.pairs.split import Split, split_pairs, split_table
from bridgehead.pairs.table import PairTable, Side, Skipped

__all__ = [
    "PairTable",
    "Side",
    "Skipped",
    "Source",
    "Split",
    "read_pairs",
    "read_records",
    "split_pairs",
    "split_table",
]
