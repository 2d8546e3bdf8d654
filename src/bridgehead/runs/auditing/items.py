"""What the items of a run are, beside their rows: names, formulas, lengths, columns of their records.

This module is not about rows (`runs.encoded`) or about how any of this is judged (`bridgehead.audits`).
"""

import re
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from bridgehead.errors import ColumnError
from bridgehead.pairs import PairTable
from bridgehead.pairs.table import RESERVED
from bridgehead.runs.work import Work
from bridgehead.texts import normalise
from bridgehead.vectors import IntArray

SideName = Literal["a", "b"]
SIDES: tuple[SideName, ...] = ("a", "b")
_ATOMS = re.compile(r"([A-Z][a-z]?)(\d*)")


def kind_of(work: Work, side: SideName) -> str:
    """Return what items of a side are: molecule, text or rows."""
    pairs = work.run.config.pairs
    return pairs.kind_a if side == "a" else pairs.kind_b


def shown(work: Work, side: SideName) -> str:
    """Return what a side is called."""
    return work.run.config.pairs.shown[SIDES.index(side)]


def values_of(work: Work, side: SideName, numbers: IntArray) -> list[str]:
    """Return the raw values of items of a side."""
    items = work.prepared.table.side(side).items
    return [items[number] for number in numbers.tolist()]


def ids_of(work: Work, side: SideName, numbers: IntArray) -> list[str]:
    """Return the ids of items of a side."""
    ids = work.prepared.table.side(side).ids
    return [ids[number] for number in numbers.tolist()]


def same_item(work: Work, side: SideName, numbers: IntArray) -> list[str]:
    """Return labels that items share which are the same thing: the molecule of the split's identity, or equal text.

    An entity column of side a comes before both.
    """
    table, config = work.prepared.table, work.run.config
    entities, identities = table.side(side).entities, work.prepared.identities.get(side)
    if entities is not None:
        return [entities[number] for number in numbers.tolist()]
    if identities is not None:
        return [str(getattr(identities[number], config.split.identity)) for number in numbers.tolist()]
    return [normalise(value) for value in values_of(work, side, numbers)]


def names_of(work: Work, numbers: IntArray) -> list[tuple[str, ...]]:
    """Return the names of items of a, from the columns `pairs.names` of all records that carry them."""
    table = work.prepared.table
    columns = [column_values(table, "a", column) for column in work.run.config.pairs.names]
    return [tuple(dict.fromkeys(name for column in columns for name in column[n])) for n in numbers.tolist()]


def formulas_of(work: Work, side: SideName, numbers: IntArray) -> list[str]:
    """Return the molecular formulas of molecules."""
    identities = work.prepared.identities[side]
    return [identities[number].formula for number in numbers.tolist()]


def lengths_of(work: Work, side: SideName, numbers: IntArray, rows: Any) -> IntArray | None:
    """Return how much there is of each item: heavy atoms, characters, or entries of a sparse row that are not 0.

    None for dense rows, which are all as long.
    """
    kind = kind_of(work, side)
    if kind == "molecule":
        found = [_heavy_atoms(formula) for formula in formulas_of(work, side, numbers)]
    elif kind == "text":
        found = [len(value) for value in values_of(work, side, numbers)]
    elif hasattr(rows, "tocsr"):
        return np.asarray(np.diff(rows.tocsr().indptr), dtype=np.int64)
    else:
        return None
    return np.array(found, dtype=np.int64)


def length_unit(work: Work, side: SideName) -> str:
    """Return what `lengths_of` counts, in words."""
    return {"molecule": "heavy atoms", "text": "characters"}.get(kind_of(work, side), "entries")


def further_columns(table: PairTable) -> list[str]:
    """Return the columns of the records beside the sides and the id."""
    return [column for column in table.records.columns if column not in RESERVED]


def column_values(table: PairTable, side: SideName, column: str) -> list[tuple[str, ...]]:
    """Return for each item of a side the distinct values of a column in all records that carry it, sorted.

    Raises `ColumnError` for a column that is not there.
    """
    if column not in further_columns(table):
        known = ", ".join(further_columns(table)) or "none"
        raise ColumnError(f"no further column {column!r}; those beside the sides and the id are {known}")
    cells = [_texts(cell) for cell in table.records[column].to_list()]
    carriers = table.side(side).carriers
    places = np.searchsorted(table.records["_row"].to_numpy(), carriers[:, 1])
    found: list[set[str]] = [set() for _ in range(len(table.side(side)))]
    for item, place in zip(carriers[:, 0].tolist(), places.tolist(), strict=True):
        found[item].update(cells[place])
    return [tuple(sorted(values)) for values in found]


def of(values: Sequence[Any], numbers: IntArray) -> list[Any]:
    """Return the entries of a list over all items that items have."""
    return [values[number] for number in numbers.tolist()]


def _heavy_atoms(formula: str) -> int:
    return sum(int(count or 1) for element, count in _ATOMS.findall(formula) if element not in ("H", "D", "T"))


def _texts(cell: Any) -> list[str]:
    values = cell if isinstance(cell, list) else [cell]
    return [str(value) for value in values if value not in (None, "")]
