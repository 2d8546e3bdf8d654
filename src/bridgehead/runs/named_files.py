"""What the config of an evaluation names, looked at before anything is trained: columns, pools, candidate lists.

A mistyped column would else be found after hours of training and its control. This module is not about what they hold
(`pools`, `slicing`).
"""

from typing import Any

from bridgehead.errors import ConfigError
from bridgehead.pairs import read_pairs
from bridgehead.pairs.read import read_items
from bridgehead.runs.classes import labels_of
from bridgehead.runs.config import CHEMICALS
from bridgehead.runs.evidence_config import UNPAIRED


def check_named(work: Any) -> None:
    """Raise `ColumnError` for a column of `evaluate.slices` that is not there, `ConfigError` for a pool of items that
    can have no row, and as `read_pairs` for a pool or a list that cannot be read."""
    pairs, evaluate, table = work.run.config.pairs, work.run.config.evaluate, work.prepared.table
    for column in evaluate.slices:
        labels_of(table, "a", column, "evaluate.slices")
    for side, column in (("a", pairs.a), ("b", pairs.b)):
        places, encoder = getattr(evaluate, f"pool_{side}"), getattr(work.run.config.encode, side)
        if places and encoder.startswith("rows:") and encoder.endswith(".npy"):
            raise ConfigError(
                f"evaluate.pool_{side} names further candidates, and encode.{side} = {encoder!r} has rows for the "
                f"records of the pairs alone; expected rows with ids (.npz or .parquet), or no pool_{side}"
            )
        for place in places:
            if place not in (UNPAIRED, CHEMICALS):
                read_items(place, column, id=pairs.id, quote=pairs.quote, encoding=pairs.encoding)
    for file in (evaluate.candidates_a, evaluate.candidates_b):
        if file is not None:
            read_pairs(file, a="query", b="candidate")
