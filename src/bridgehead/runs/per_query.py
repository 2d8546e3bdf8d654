"""Each query's own figures as a table (`queries.parquet`): what two runs are compared by, and what a reader looks up.

This module is not about the figures themselves (`evaluate`).
"""

from typing import Any

import numpy as np
import polars as pl

from bridgehead.errors import InputFileNotFoundError, RunStateError
from bridgehead.evaluate import DirectionReport
from bridgehead.files import atomic_path
from bridgehead.runs.folder import RunFolder

QUERIES_FILE = "queries.parquet"
DIRECTIONS = ("a_to_b", "b_to_a")


def write_queries(run: RunFolder, measured: Any, ids: tuple[list[str], list[str]]) -> None:
    """Write a row for each query of both directions: direction, id, entity, n_true, pool and every metric.

    `measured` is the report over all queries and `ids` the ids of the rows of both sides. `entity` numbers the
    entities of one direction; `rank` is the expected rank of the best true candidate.
    """
    frames = [_frame(name, getattr(measured, name), own) for name, own in zip(DIRECTIONS, ids, strict=True)]
    atomic_path(run.path(QUERIES_FILE), lambda name: pl.concat(frames).write_parquet(name))


def _frame(name: str, report: DirectionReport, ids: list[str]) -> pl.DataFrame:
    columns: dict[str, Any] = {
        "direction": [name] * report.n_queries,
        "id": [ids[row] for row in report.queries.tolist()],
        "entity": report.entities,
        "n_true": report.n_true,
        "pool": np.broadcast_to(report.pool, report.n_true.shape),
    }
    return pl.DataFrame({**columns, **report.per_query})


def read_queries(run: RunFolder) -> pl.DataFrame:
    """Return the table of an evaluated run; raises `RunStateError` where it is missing or damaged."""
    path = run.path(QUERIES_FILE)
    try:
        if not path.is_file():
            raise InputFileNotFoundError(str(path))
        return pl.read_parquet(path)
    except (InputFileNotFoundError, OSError, pl.exceptions.PolarsError) as error:
        raise RunStateError(
            f"{path} is missing or cannot be read; make it again with: bridgehead evaluate {run.folder}"
        ) from error
