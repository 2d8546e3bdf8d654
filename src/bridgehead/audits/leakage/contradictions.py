"""Contradictions: one raw item that several records give to different entities.

This module is not about two items that share an entity (`keys`) or one text that fits many items.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from bridgehead.audits.finding import Finding, Verdict
from bridgehead.audits.given import check_entries
from bridgehead.audits.leakage.keys import Keys, keys_of
from bridgehead.audits.listed import namer, worst
from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.evaluate.arguments import checked_names
from bridgehead.vectors import to_numpy


def items_of_several_entities(
    items: Sequence[Any],
    entities: Keys,
    *,
    parts: Any = None,
    ids: Sequence[str] | None = None,
    names: tuple[str, str] = ("item", "entity"),
) -> list[Finding]:
    """Return how many records hold a raw item that other records give to another entity.

    Record i says that `items[i]` (n,), in its raw or normalised form, belongs to `entities[i]`: one label, or several
    for a record of a mixture; records without an item or an entity are left out. The same peak list under two
    molecules, or one picture under two cases, cannot be answered right for both, whatever the model. `parts` (n,) are
    labels of the records' parts (0 train, 1 valid, 2 test, -1 for none): such an item in two parts is the split cut
    through, which fails; within one part it warns, however few they are. Records whose entities have a label in common
    do not contradict each other.

    The listing gives each item with its number of entities, the most first. `ids` name records and `names` item and
    entity in the words. Nothing to judge (no record with both) gives no finding. Raises `ShapeError` when the lists
    differ in length.

    >>> items_of_several_entities(["p1", "p1", "p2"], ["M", "N", "M"])[0].verdict
    'warn'
    """
    check_entries(items, None, "items")
    n, names = len(items), checked_names(names)
    check_entries(entities, n, "entities", "one for each record")
    of_part = np.zeros(n, dtype=np.int64) if parts is None else to_numpy(parts)
    if of_part.shape != (n,) or of_part.dtype.kind not in "iu":
        raise ShapeError(
            f"parts is {of_part.dtype} of shape {of_part.shape}; expected ({n},) whole numbers, one a record"
        )
    name = namer(ids, n, "ids")
    holders = _holders(items, entities)
    judged = sum(map(len, holders.values()))
    if not judged:
        return []
    several = [records for records in holders.values() if len(records) > 1 and not _agree(records, entities)]
    crossing = [records for records in several if len(set(of_part[records].tolist()) - {-1}) > 1]
    return [_contradiction(several, crossing, judged, entities, name, names)]


def _holders(items: Sequence[Any], entities: Keys) -> dict[Hashable, list[int]]:
    """Return the records of each distinct item, of those with an item and an entity."""
    holders: dict[Hashable, list[int]] = {}
    for record, (item, entity) in enumerate(zip(items, entities, strict=True)):
        if not isinstance(item, Hashable):
            raise ArgumentError(f"item {record} is a {type(item).__name__}; expected one that can be compared, as text")
        if keys_of(item) and keys_of(entity):
            holders.setdefault(item, []).append(record)
    return holders


def _agree(records: list[int], entities: Keys) -> bool:
    """Say whether all entities of the records hang together through labels in common."""
    labels = list({frozenset(keys_of(entities[record])) for record in records})
    joined, rest = labels[0], labels[1:]
    while touching := [one for one in rest if one & joined]:
        joined = joined.union(*touching)
        rest = [one for one in rest if not one & joined]
    return not rest


def _contradiction(
    several: list[list[int]], crossing: list[list[int]], judged: int, entities: Keys, name: Any, names: tuple[str, str]
) -> Finding:
    item, entity = names
    n_records = sum(map(len, several))
    counted = f"{n_records:,} of {judged:,} records"
    why = f"{len(several):,} distinct raw values of {item}, in {counted}, have more than one {entity}"
    verdict: Verdict = "pass"
    if crossing:
        verdict = "fail"
        why += f"; {len(crossing):,} of them lie in two parts of the split: join their entities before splitting"
    elif several:
        verdict = "warn"
        why += ": no model can be right about all of them, and each is a false negative of the others"
    rows = []
    for records in several:
        counts = Counter(str(key) for record in records for key in keys_of(entities[record]))
        shown = ", ".join(sorted(counts)[:3]) + (", ..." if len(counts) > 3 else "")
        rows.append((", ".join(map(name, records[:3])), len(records), len(counts), shown))
    rows.sort(key=lambda row: (-row[2], -row[1], row[0]))
    columns = ("records", "number of records", f"number of {entity} labels", entity)
    return Finding(
        f"one raw {item} under more than one {entity}",
        float(len(several)),
        f"0: a raw {item} belongs to one {entity}",
        verdict,
        why,
        "leakage",
        listed=worst(columns, rows),
    )
