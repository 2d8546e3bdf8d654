"""The queries of two runs beside each other, and the paired difference of each metric over them.

This module is not about which runs may be compared (`comparing`, `folds.comparison`) or about the test (`evaluate`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from bridgehead.errors import MismatchError
from bridgehead.evaluate.detectable import detectable_difference
from bridgehead.evaluate.paired import PairedDifference, paired_difference
from bridgehead.runs.per_query import DIRECTIONS

_NOT_METRICS = {"direction", "id", "item", "entity", "n_true", "pool", "repeat", "fold", "seed", "unseen"}


def joined_queries(first: pl.DataFrame, second: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Return the rows of both tables beside each other, those of the second with the suffix `_2`, matched by `by`.

    Raises `MismatchError` where they are not the same queries with as many true candidates in pools of one size.
    """
    joined = first.join(second, on=by, how="inner", suffix="_2", maintain_order="left")
    if not len(first) == len(second) == len(joined):
        raise MismatchError(
            f"the two runs have {len(first):,} and {len(second):,} queries, and {len(joined):,} of them are the same; "
            "expected the same queries (did an encoder leave items out? see: bridgehead encode)"
        )
    for name, what in (("n_true", "numbers of true candidates"), ("pool", "numbers of candidates")):
        n = int((joined[name] != joined[f"{name}_2"]).sum())
        if n:
            raise MismatchError(
                f"{n:,} of {len(joined):,} queries have other {what} in the two runs; expected the same"
            )
    return joined


def differences_of(joined: pl.DataFrame, options: Mapping[str, Any]) -> dict[str, PairedDifference]:
    """Return the paired difference of each metric of each direction, by entity of the first table."""
    found = {}
    for direction in DIRECTIONS:
        rows = joined.filter(pl.col("direction") == direction)
        if not len(rows):
            continue
        for name in metric_names(joined):
            x, y = (rows[column].to_numpy().astype(np.float64) for column in (name, f"{name}_2"))
            shown = "mean_rank" if name == "rank" else name
            found[f"{direction}.{shown}"] = paired_difference(x, y, rows["entity"].to_numpy(), **options)
    return found


def metric_names(joined: pl.DataFrame) -> list[str]:
    """Return the metrics that both tables have, in the order of the first."""
    return [name for name in joined.columns if f"{name}_2" in joined.columns and name not in _NOT_METRICS]


def paired_entries(difference: PairedDifference) -> dict[str, Any]:
    """Return a difference as JSON-safe entries, with `detectable`: what its queries could have shown.

    It is None for one entity, and where the two answer alike throughout: what differs would be needed to tell.
    """
    sd = difference.sd
    least = detectable_difference(sd, difference.n_entities) if sd else None
    return difference.to_dict() | {"detectable": least}
