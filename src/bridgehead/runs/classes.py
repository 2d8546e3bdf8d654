"""Coarse classes of items from columns of the user's table: what the hierarchical loss reads.

Classes never become links and never shape the split. This module is not about the loss (`align.losses`).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bridgehead.errors import ColumnError
from bridgehead.pairs import PairTable
from bridgehead.pairs.table import RESERVED
from bridgehead.vectors import IntArray


def classes_of(table: PairTable, class_a: str | None, class_b: str | None) -> tuple[IntArray | None, IntArray | None]:
    """Return the class of each item of a and of b as numbers (n,), -1 for none; None for a side without a column.

    The same label is the same number on both sides. An item whose records carry several labels has no class: which of
    them it should be drawn to is not known. Raises `ColumnError` for a column that is not there.
    """
    labels = [_labels(table, side, column) for side, column in (("a", class_a), ("b", class_b))]
    numbers = {label: n for n, label in enumerate(sorted({x for side in labels if side for x in side if x}))}
    found = [None if side is None else np.array([numbers.get(x, -1) for x in side], dtype=np.int64) for side in labels]
    return found[0], found[1]


def _labels(table: PairTable, side: str, column: str | None) -> Sequence[str] | None:
    """Return the label of each item of a side, "" where it has none or several."""
    if column is None:
        return None
    return [own[0] if len(own) == 1 else "" for own in labels_of(table, side, column, f"pairs.class_{side}")]


def labels_of(table: PairTable, side: str, column: str, setting: str) -> list[tuple[str, ...]]:
    """Return the labels of each item of a side in a column: of all records that carry it, sorted, each once.

    Raises `ColumnError`, naming the `setting` that asks, for a column that is not there.
    """
    columns = [name for name in table.records.columns if name not in RESERVED]
    if column not in columns:
        raise ColumnError(
            f"{setting}: no further column {column!r}; those beside the sides and the id are "
            f"{', '.join(columns) or 'none'}"
        )
    cells = [_texts(cell) for cell in table.records[column].to_list()]
    carriers = table.side(side).carriers  # type: ignore[arg-type]
    positions = np.searchsorted(table.records["_row"].to_numpy(), carriers[:, 1])
    found: list[set[str]] = [set() for _ in range(len(table.side(side)))]  # type: ignore[arg-type]
    for item, position in zip(carriers[:, 0].tolist(), positions.tolist(), strict=True):
        found[item].update(cells[position])
    return [tuple(sorted(own)) for own in found]


def _texts(cell: Any) -> set[str]:
    """Return the labels of a cell: none, its text, or those of its list."""
    values = cell if isinstance(cell, list) else [cell]
    return {str(value) for value in values if value not in (None, "")}
