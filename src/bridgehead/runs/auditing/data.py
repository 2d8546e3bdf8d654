"""Quality of a run's data: texts that say little or fit many items, wrong pairs, columns out of order.

All links of the table are looked at, whatever their part. This module is not about how they are judged
(`audits.quality`, `audits.mispairs`, `audits.order`).
"""

from dataclasses import replace
from typing import Any

import numpy as np

from bridgehead.audits import (
    Finding,
    ScoredLinks,
    broad_findings,
    generic_findings,
    linear_folds,
    mispair_findings,
    order_findings,
    record_items,
)
from bridgehead.audits.data.mispairs import LEAST_LINKS
from bridgehead.pairs import text_quality
from bridgehead.runs.auditing.applicable import NotApplicable
from bridgehead.runs.auditing.items import SIDES, SideName, ids_of, kind_of, same_item, shown
from bridgehead.runs.encoded import PartRows
from bridgehead.runs.prepare import numbered
from bridgehead.runs.work import Work

MOSTLY_SHORT = 0.5
"""Share of short texts above which short is what these texts are (names, labels, lists of numbers), and no fault."""


def weak_texts(work: Work) -> list[Finding]:
    """Count the links whose text says too little to tell one item from another."""
    table = work.prepared.table
    found: list[Finding] = []
    for side in _text_sides(work):
        items = table.side(side)
        quality = text_quality(items.items)
        if quality.counts.get("no words", 0) > MOSTLY_SHORT * len(items):
            continue
        weak = quality.generic if quality.short.mean() > MOSTLY_SHORT else quality.weak
        found += generic_findings(
            weak,
            table.links,
            side=side,
            ids=items.ids,
            texts=items.items,
            rules=quality.rules,
            name=shown(work, side),
        )
    if not found:
        raise NotApplicable("needs texts of words: these are lists of numbers or signs")
    return found


def broad_texts(work: Work) -> list[Finding]:
    """Count the links whose text fits many items of the other side."""
    table = work.prepared.table
    found: list[Finding] = []
    for side in _text_sides(work):
        items = table.side(side)
        other: SideName = "b" if side == "a" else "a"
        found += broad_findings(
            table.links,
            side=side,
            entities=same_item(work, other, np.arange(len(table.side(other)))),
            ids=items.ids,
            texts=items.items,
            name=shown(work, side),
        )
    return found


def mispairs(work: Work) -> list[Finding]:
    """Look for pairs whose partner a model that never saw them ranks behind random ones.

    All pairs are read by linear maps of the others. Where the trained heads read the pairs that they never saw better,
    their estimate is the one that is given: both are upper bounds, and heads see more than a linear map does.
    """
    part = work.start.rows.of(numbered(work.prepared.table.links.pairs))
    seed, names = work.run.config.evaluate.seed, work.run.config.pairs.shown
    by_maps = mispair_findings(
        linear_folds(part.rows_a, part.rows_b, part.links, seed=seed),
        ids_a=ids_of(work, "a", part.items_a),
        ids_b=ids_of(work, "b", part.items_b),
        names=names,
        seed=seed,
    )
    held_out = [_scored(work, work.part(name)) for name in ("valid", "test") if len(work.part(name).links)]
    if sum(len(each.links) for each in held_out) < LEAST_LINKS:
        return by_maps
    table = work.prepared.table
    by_heads = mispair_findings(held_out, ids_a=table.a.ids, ids_b=table.b.ids, names=names, seed=seed)
    if by_heads[0].value >= by_maps[0].value:
        return by_maps
    n = sum(len(each.links) for each in held_out)
    why = (
        f"{by_heads[0].why} (the trained heads on the {n:,} pairs that they never saw; linear maps put the bound at "
        f"{by_maps[0].value:.3f} of all pairs)"
    )
    return [replace(by_heads[0], why=why)]


def _scored(work: Work, part: PartRows) -> ScoredLinks:
    z_a, z_b = work.heads.project_a(part.rows_a), work.heads.project_b(part.rows_b)
    return ScoredLinks(z_a, z_b, part.links, part.items_a, part.items_b)


def order(work: Work) -> list[Finding]:
    """Look for stretches of the file where one column stands a record or two above or below the other."""
    table, rows = work.prepared.table, work.start.rows
    items = record_items(table)
    places = np.stack(
        [_row_of(items[:, 0], rows.a.position), _row_of(items[:, 1], rows.b.position)],
        axis=1,
    )
    ids = [str(number) for number in range(table.n_records)]
    for number, id_ in table.records.select("_row", "_id").iter_rows():
        ids[number] = str(id_)
    return order_findings(
        rows.a.encoded.rows,
        rows.b.encoded.rows,
        places,
        ids=ids,
        names=work.run.config.pairs.shown,
        seed=work.run.config.evaluate.seed,
    )


def _row_of(items: Any, position: Any) -> Any:
    """Return the row of each item number, -1 for no item and for an item without a row."""
    if not len(position):
        return np.full(len(items), -1, dtype=np.int64)
    return np.where(items >= 0, position[np.maximum(items, 0)], -1)


def _text_sides(work: Work) -> list[SideName]:
    sides = [side for side in SIDES if kind_of(work, side) == "text"]
    if not sides:
        raise NotApplicable("needs a side of texts")
    return sides
