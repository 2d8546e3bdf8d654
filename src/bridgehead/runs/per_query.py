"""Each query's own figures as a table (`queries.parquet`): what two runs are compared by, and what a reader looks up.

This module is not about the figures themselves (`evaluate`).
"""

import hashlib
from typing import Any

import numpy as np
import polars as pl

from bridgehead.errors import RunStateError
from bridgehead.evaluate import DirectionReport
from bridgehead.files import atomic_path, hash_file
from bridgehead.pairs import PairTable
from bridgehead.runs.encoded import PartRows
from bridgehead.runs.folder import RunFolder

QUERIES_FILE = "queries.parquet"
DIRECTIONS = ("a_to_b", "b_to_a")


def write_queries(
    run: RunFolder, measured: Any, ids: tuple[list[str], list[str]], items: tuple[list[str], list[str]]
) -> None:
    """Write a row for each query of both directions: direction, id, item, entity, n_true, pool and every metric.

    `measured` is the report over all queries, `ids` and `items` the ids and raw values of the rows of both sides.
    `item` is the hash of the value: ids depend on the order of the records, and two runs are compared by values.
    `entity` numbers the entities of one direction; `rank` is the expected rank of the best true candidate.
    """
    sides = zip(DIRECTIONS, ids, items, strict=True)
    frames = [_frame(name, getattr(measured, name), own_ids, own_items) for name, own_ids, own_items in sides]
    atomic_path(run.path(QUERIES_FILE), lambda name: pl.concat(frames).write_parquet(name))


def values_of(table: PairTable, part: PartRows) -> tuple[list[str], list[str]]:
    """Return the raw values of the rows of both sides of a part, "" for those that are not in the table."""
    a, b = part.items_a.tolist(), part.items_b.tolist()
    return [table.a.items[n] if n >= 0 else "" for n in a], [table.b.items[n] if n >= 0 else "" for n in b]


def item_key(value: str) -> str:
    """Return the hash by which the item of a query is known."""
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _frame(name: str, report: DirectionReport, ids: list[str], items: list[str]) -> pl.DataFrame:
    rows = report.queries.tolist()
    columns: dict[str, Any] = {
        "direction": [name] * report.n_queries,
        "id": [ids[row] for row in rows],
        "item": [item_key(items[row]) for row in rows],
        "entity": report.entities,
        "n_true": report.n_true,
        "pool": np.broadcast_to(report.pool, report.n_true.shape),
    }
    return pl.DataFrame({**columns, **report.per_query})


def queries_hash(run: RunFolder) -> str | None:
    """Return the SHA-256 of the table in a run folder, None where there is none."""
    path = run.path(QUERIES_FILE)
    return hash_file(path) if path.is_file() else None


def read_queries(run: RunFolder) -> pl.DataFrame:
    """Return the table of an evaluated run; raises `RunStateError` where it is missing, damaged or of another run."""
    path = run.path(QUERIES_FILE)
    again = f"make it again with: bridgehead evaluate {run.folder}"
    try:
        found = queries_hash(run)
        if found is not None and found != run.record("evaluate")["queries"]:
            raise RunStateError(f"{path} is not the table that the evaluation wrote; {again}")
        return pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise RunStateError(f"{path} is missing or cannot be read; {again}") from error
