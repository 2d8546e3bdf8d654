"""Pairs: what matches what, read from the user's files.

`read_pairs` -> `PairTable`: distinct items of two sides and the links between them. `split_pairs` and `split_table`
decide what is held out, `text_quality` and `check_table` say how good the pairs are, `guess_columns` proposes which
column is which. This folder is not about vectors: `encode` makes rows of items.
"""

from bridgehead.pairs.check import CheckReport, check_table
from bridgehead.pairs.folds import Folds, deal_folds
from bridgehead.pairs.guess import ColumnGuess, guess_columns
from bridgehead.pairs.quality import TextQuality, text_quality
from bridgehead.pairs.read import read_pairs, read_records
from bridgehead.pairs.sources import Source
from bridgehead.pairs.split import Split, split_pairs, split_table
from bridgehead.pairs.table import PairTable, Side, Skipped

__all__ = [
    "CheckReport",
    "ColumnGuess",
    "Folds",
    "PairTable",
    "Side",
    "Skipped",
    "Source",
    "Split",
    "TextQuality",
    "check_table",
    "deal_folds",
    "guess_columns",
    "read_pairs",
    "read_records",
    "split_pairs",
    "split_table",
    "text_quality",
]
