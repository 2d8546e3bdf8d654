"""Leaks between the parts of a run: the same thing, or nearly, on both sides of the split.

This module is not about what counts as a leak (`audits.leakage` and its neighbours).
"""

from typing import Any

import numpy as np

from bridgehead.audits import (
    Finding,
    items_of_several_entities,
    key_leakage,
    near_duplicate_texts,
    near_rows,
    row_classes,
)
from bridgehead.runs.auditing.applicable import NotApplicable
from bridgehead.runs.auditing.items import (
    SIDES,
    SideName,
    column_values,
    ids_of,
    kind_of,
    shown,
    values_of,
)
from bridgehead.runs.work import Work
from bridgehead.scaffolds import scaffolds
from bridgehead.texts import normalise
from bridgehead.vectors import IntArray

MOST_ROWS = 5000
"""Test rows of a side that are held against training: products of all with all grow with the square of the data, and a
share of 1 % is known to a seventh of itself from so many."""
_LEVELS = {"exact": "exact identity", "parent": "parent identity", "skeleton": "skeleton"}


def identities(work: Work) -> list[Finding]:
    """Look for items of test that are items of training: molecules at each level, equal texts, entities, groups."""
    found: list[Finding] = []
    for side in SIDES:
        levels, apart = _levels(work, side)
        train, test = _parts(work, side)
        ids = work.prepared.table.side(side).ids
        found += key_leakage(levels, train, test, held_apart=apart, ids=ids, side=shown(work, side))
    return found


def shared_scaffolds(work: Work) -> list[Finding]:
    """Look for molecules of test whose scaffold training has seen, which no split by identity keeps apart."""
    found: list[Finding] = []
    for side in SIDES:
        if kind_of(work, side) != "molecule":
            continue
        train, test = _parts(work, side)
        numbers = np.union1d(train, test)
        made = scaffolds(values_of(work, side, numbers))
        known: list[Any] = [None] * len(work.prepared.table.side(side))
        for number, smiles in zip(numbers.tolist(), made, strict=True):
            known[number] = smiles
        ids = work.prepared.table.side(side).ids
        found += key_leakage({"scaffold": known}, train, test, held_apart=(), ids=ids, side=shown(work, side))
    if not found:
        raise NotApplicable("needs molecules with rings")
    return found


def near_texts(work: Work) -> list[Finding]:
    """Look for texts of test that are nearly a text of training."""
    found: list[Finding] = []
    sides = [side for side in SIDES if kind_of(work, side) == "text"]
    if not sides:
        raise NotApplicable("needs a side of texts")
    for side in sides:
        items = work.prepared.table.side(side)
        train, test = _parts(work, side)
        found += near_duplicate_texts(items.items, train, test, ids=items.ids, side=shown(work, side))
    if not found:
        raise NotApplicable("every text of the test part occurs in training as it is")
    return found


def nearly_same_rows(work: Work) -> list[Finding]:
    """Look for rows of test that are nearly a row of training, as the encoders give them before any training.

    Of more than `MOST_ROWS` test rows a side so many are drawn: each is held against all of training.
    """
    found: list[Finding] = []
    train, test = work.first_part("train"), work.first_part("test")
    seed = work.run.config.evaluate.seed
    sides: tuple[tuple[SideName, Any, Any, IntArray, IntArray], ...] = (
        ("a", test.rows_a, train.rows_a, test.items_a, train.items_a),
        ("b", test.rows_b, train.rows_b, test.items_b, train.items_b),
    )
    for side, rows, others, numbers, known in sides:
        drawn = _drawn(len(numbers), seed)
        found += near_rows(
            others,
            rows[drawn],
            same_text=_again(work, side, numbers[drawn], known),
            train_ids=ids_of(work, side, known),
            test_ids=ids_of(work, side, numbers[drawn]),
            side=shown(work, side),
            seed=seed,
        )
    if not found:
        raise NotApplicable("needs rows that differ: nearly all rows of both encoders point the same way")
    return found


def _drawn(n: int, seed: int) -> IntArray:
    """Return the rows that are looked at, ascending."""
    if n <= MOST_ROWS:
        return np.arange(n, dtype=np.int64)
    return np.sort(np.random.default_rng(seed).choice(n, size=MOST_ROWS, replace=False)).astype(np.int64)


def several_entities(work: Work) -> list[Finding]:
    """Look for raw items that several records give to different entities."""
    config, table = work.run.config, work.prepared.table
    split = work.prepared.split
    if config.pairs.entity is not None:
        rows = table.records["_row"].to_list()
        labels = dict(zip(rows, table.records[config.pairs.entity].to_list(), strict=True))
        called = dict(zip(rows, table.records["_id"].to_list(), strict=True))
        carriers = table.a.carriers
        raw = _raw(work, "a")
        return _judged(
            items_of_several_entities(
                [raw[item] for item in carriers[:, 0].tolist()],
                [labels[record] for record in carriers[:, 1].tolist()],
                parts=split.part_a[carriers[:, 0]],
                ids=[called[record] for record in carriers[:, 1].tolist()],
                names=(shown(work, "a"), "entity"),
            )
        )
    for side, other in (("a", "b"), ("b", "a")):
        if kind_of(work, side) == "rows" and kind_of(work, other) == "molecule":  # type: ignore[arg-type]
            mine, theirs = split.truth.pairs.T if side == "a" else split.truth.pairs[:, ::-1].T
            raw = _raw(work, side)  # type: ignore[arg-type]
            owners = work.prepared.identities[other]
            return _judged(
                items_of_several_entities(
                    [raw[item] for item in mine.tolist()],
                    [owners[item].components for item in theirs.tolist()],
                    parts=split.part_link,
                    ids=ids_of(work, side, mine),  # type: ignore[arg-type]
                    names=(shown(work, side), shown(work, other)),  # type: ignore[arg-type]
                )
            )
    raise NotApplicable("needs pairs.entity, the column that says which entity a record is of")


def _judged(found: list[Finding]) -> list[Finding]:
    if not found:
        raise NotApplicable("no record has both an item and an entity")
    return found


def _raw(work: Work, side: SideName) -> list[Any]:
    """Return what an item is as it came: its value, or for rows that were brought the class of equal rows."""
    table = work.prepared.table
    if kind_of(work, side) != "rows":
        return list(table.side(side).items)
    rows = work.start.rows.a if side == "a" else work.start.rows.b
    classes = row_classes(rows.encoded.rows)
    return [None if place < 0 else f"row {classes[place]}" for place in rows.position.tolist()]


def _parts(work: Work, side: SideName) -> tuple[IntArray, IntArray]:
    """Return the numbers of a side's items in training and in test."""
    train, test = work.prepared.part("train"), work.prepared.part("test")
    return (train[0], test[0]) if side == "a" else (train[1], test[1])


def _levels(work: Work, side: SideName) -> tuple[dict[str, Any], list[str]]:
    """Return the keys of all items of a side by level, and the levels that the split keeps apart."""
    config, table = work.run.config, work.prepared.table
    items, known = table.side(side), work.prepared.identities.get(side)
    held_out = config.split.hold_out in (side, "both")
    levels: dict[str, Any] = {}
    apart: list[str] = []
    if items.entities is not None:
        levels[f"entity ({config.pairs.entity})"] = items.entities
        apart += list(levels)
    if known is not None:
        for level, called in _LEVELS.items():
            levels[called] = [one.components if level == "skeleton" else getattr(one, level) for one in known]
            # A finer level is held apart with the coarser one: what is the same exactly is the same as a parent.
            if items.entities is None and list(_LEVELS).index(level) <= list(_LEVELS).index(config.split.identity):
                apart.append(called)
    elif kind_of(work, side) == "text":
        levels["text"] = [normalise(value) for value in items.items]
        apart += [] if items.entities is not None else ["text"]
    else:
        levels["item"] = items.items
        apart += [] if items.entities is not None else ["item"]
    for column in table.groups:
        levels[f"group {column}"] = column_values(table, side, column)
        # Groups are kept apart on the side that is held out, and on a where both are.
        if side == ("b" if config.split.hold_out == "b" else "a"):
            apart.append(f"group {column}")
    return levels, [level for level in apart if held_out]


def _again(work: Work, side: SideName, numbers: IntArray, known: IntArray) -> Any:
    """Mark the items of test that training has seen as they are, where the split allows it: that is said elsewhere."""
    if work.run.config.split.hold_out in (side, "both"):
        return None
    if kind_of(work, side) != "text":
        return np.isin(numbers, known)
    seen = {normalise(value) for value in values_of(work, side, known)}
    return np.array([normalise(value) in seen for value in values_of(work, side, numbers)], dtype=bool)
