"""The pair table: the distinct items of two sides, which of them match, and what else their records say.

An item is a distinct value of a side, a record one line of the user's file. Everything that was left out is listed with
its record, id and reason. This module is not about files (`read`) or what is held out (`split`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl

from bridgehead.errors import ArgumentError
from bridgehead.links import Links
from bridgehead.pairs.sources import Source
from bridgehead.vectors import IntArray

SideName = Literal["a", "b"]

RESERVED = ("_row", "_id")
"""Names of our own in `PairTable.records`; a column of the user's under such a name is renamed with a note."""


@dataclass(frozen=True)
class Skipped:
    """A record, or one value of it, that is not part of the links: `row` counts records from 0 over all files.

    `side` is the side without a valid value: "a" or "b" where the record has one on the other side (or further values
    on the same), "both" where it has none.
    """

    row: int
    id: str
    side: Literal["a", "b", "both"]
    reason: str


@dataclass(frozen=True, eq=False)
class Side:
    """The items of one side, in order of first appearance.

    `items`: distinct raw values, exactly as in the file. `ids`: unique texts, the id of the first record that carries
    the item, `<id>#2` for the second value of a list cell and so on; without an id column the id is the record's
    number. `records` (n,): that record's number. `entities`: labels of the entity column, where one was named; an item
    without a label is its own entity. `carriers` (m, 2): (item, record) for every record that carries an item.
    """

    name: str
    items: list[str]
    ids: list[str]
    records: IntArray
    carriers: IntArray
    entities: list[str] | None = None

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, eq=False)
class PairTable:
    """Two sides and the links between them, with the records they come from.

    `links` join items of a and b that stand in one record; `link_records` (n_links,) holds the first such record of
    each, in the order of `links.pairs`. `records` has a row per kept record: `_row`, `_id`, then all columns that are
    neither side nor id, as text or lists of text (null where the cell is empty). `groups` maps each group column to
    its labels, one per kept record ("" for none). `unpaired` are records with one valid side: their item is kept,
    without a link. `skipped` are records and values that were left out. `n_records` counts all records of the files.
    """

    a: Side
    b: Side
    links: Links
    link_records: IntArray
    records: pl.DataFrame
    unpaired: list[Skipped]
    skipped: list[Skipped]
    notes: list[str]
    n_records: int
    groups: dict[str, list[str]] = field(default_factory=dict)
    sources: tuple[Source, ...] = ()

    def side(self, side: SideName) -> Side:
        """Return side "a" or "b"; raises `ArgumentError` for another name."""
        if side not in ("a", "b"):
            raise ArgumentError(f"side = {side!r}; expected 'a' or 'b'")
        return self.a if side == "a" else self.b

    def unlinked(self, side: SideName) -> IntArray:
        """Return the numbers of the items of a side that have no link, ascending."""
        linked = np.zeros(len(self.side(side)), dtype=bool)
        linked[self.links.pairs[:, 0 if side == "a" else 1]] = True
        return np.flatnonzero(~linked)

    def payload(self, side: SideName, item: int) -> dict[str, Any]:
        """Return the further columns of the first record that carries an item, by name."""
        return self.records.drop(RESERVED).row(int(self._positions(self.side(side).records[[item]])[0]), named=True)

    def payloads(self, side: SideName) -> list[dict[str, Any]]:
        """Return `payload` of every item of a side, in order."""
        return self.records.drop(RESERVED)[self._positions(self.side(side).records)].to_dicts()

    def group_labels(self, side: SideName) -> list[tuple[str, ...]]:
        """Return per item of a side the labels `column=label` of all records that carry it, sorted and distinct.

        This is what `split_pairs` takes as `groups`. Without group columns each tuple is empty.
        """
        found: list[set[str]] = [set() for _ in range(len(self.side(side)))]
        carriers = self.side(side).carriers
        positions = self._positions(carriers[:, 1])
        for column, labels in self.groups.items():
            for item, position in zip(carriers[:, 0].tolist(), positions.tolist(), strict=True):
                if labels[position]:
                    found[item].add(f"{column}={labels[position]}")
        return [tuple(sorted(labels)) for labels in found]

    def without(self, side: SideName, rows: Sequence[int], reasons: Sequence[str]) -> "PairTable":
        """Return the table without some items of a side, for example SMILES that do not parse.

        `rows` are item numbers, `reasons` one text for each. Their links go; partners stay, as unpaired items where no
        link is left; a record without any item left is skipped. Ids and records of all other items stay as they are.
        Raises `ArgumentError` when the numbers of rows and reasons differ or a row is out of range.
        """
        kept = np.ones(len(self.side(side)), dtype=bool)
        dropped = np.asarray(rows, dtype=np.int64)
        if len(rows) != len(reasons):
            raise ArgumentError(f"{len(rows)} rows and {len(reasons)} reasons; expected a reason for each row")
        if len(dropped) and not (dropped.min() >= 0 and dropped.max() < len(kept)):
            raise ArgumentError(f"rows from {dropped.min()} to {dropped.max()}; side {side} has {len(kept)} items")
        kept[dropped] = False
        sides = {"a": self.a, "b": self.b, side: _keep(self.side(side), kept)}
        links, link_records = self._links_of(side, kept)
        unpaired, skipped = self._lists_without(side, kept, dict(zip(dropped.tolist(), reasons, strict=True)))
        alive = np.isin(self._rows, np.union1d(sides["a"].carriers[:, 1], sides["b"].carriers[:, 1]))
        groups = {
            column: [label for label, stays in zip(labels, alive, strict=True) if stays]
            for column, labels in self.groups.items()
        }
        return replace(
            self,
            a=sides["a"],
            b=sides["b"],
            links=links,
            link_records=link_records,
            records=self.records.filter(pl.Series(alive)),
            unpaired=unpaired,
            skipped=skipped,
            groups=groups,
        )

    @cached_property
    def _rows(self) -> IntArray:
        return self.records["_row"].to_numpy().astype(np.int64)

    def _positions(self, rows: IntArray) -> IntArray:
        return np.searchsorted(self._rows, rows).astype(np.int64)

    def _links_of(self, side: SideName, kept: Any) -> tuple[Links, IntArray]:
        column = 0 if side == "a" else 1
        stays = kept[self.links.pairs[:, column]]
        pairs = self.links.pairs[stays].copy()
        pairs[:, column] = (np.cumsum(kept) - 1)[pairs[:, column]]
        sizes = {"a": self.links.n_a, "b": self.links.n_b, side: int(kept.sum())}
        return Links(pairs, sizes["a"], sizes["b"]), self.link_records[stays]

    def _lists_without(self, side: SideName, kept: Any, reasons: dict[int, str]) -> tuple[list[Skipped], list[Skipped]]:
        """Enter each record of a dropped item: as skipped when nothing of it is left, else as what it still has."""
        carriers = self.side(side).carriers
        other = set(self.side("b" if side == "a" else "a").carriers[:, 1].tolist())
        same = set(carriers[kept[carriers[:, 0]], 1].tolist())
        unpaired = {entry.row: entry for entry in self.unpaired}
        skipped = list(self.skipped)
        lost: dict[int, Skipped] = {}
        for item, row in carriers[~kept[carriers[:, 0]]].tolist():
            record_id = str(self.records["_id"][int(self._positions(np.array([row]))[0])])
            entry = Skipped(row, record_id, side, f"{self.side(side).name}: {reasons[item]}")
            if row in same:
                skipped.append(entry)
            elif row in other:
                before = unpaired.get(row)
                unpaired[row] = replace(before, reason=f"{before.reason}; {entry.reason}") if before else entry
            else:
                before = lost.get(row) or unpaired.pop(row, None)
                why = f"{before.reason}; {entry.reason}" if before else entry.reason
                lost[row] = replace(entry, side="both", reason=why)
        return (
            sorted(unpaired.values(), key=lambda entry: entry.row),
            sorted([*skipped, *lost.values()], key=lambda entry: entry.row),
        )


def _keep(side: Side, kept: Any) -> Side:
    rows = np.flatnonzero(kept)
    carriers = side.carriers[kept[side.carriers[:, 0]]].copy()
    carriers[:, 0] = (np.cumsum(kept) - 1)[carriers[:, 0]]
    return replace(
        side,
        items=[side.items[row] for row in rows],
        ids=[side.ids[row] for row in rows],
        records=side.records[rows],
        carriers=carriers,
        entities=None if side.entities is None else [side.entities[row] for row in rows],
    )
