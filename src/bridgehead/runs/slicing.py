"""Slices of the evaluation: by length, source, class, group, seen text, similarity to training, activity cliffs.

A slice is some of the queries; all rank the same pool. This module is not about a slice's figures (`evaluate.slices`).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from bridgehead.encode.cache import RowCache
from bridgehead.encode.fingerprints import FingerprintEncoder
from bridgehead.evaluate.cliffs import CLIFF, activity_cliffs
from bridgehead.evaluate.similarity import nearest_similarity
from bridgehead.evaluate.slices import Bins, quintiles, slice_report
from bridgehead.runs.classes import labels_of
from bridgehead.runs.pools import SideName
from bridgehead.runs.work import Work
from bridgehead.texts import normalise
from bridgehead.vectors import IntArray

Labelled = tuple[str, str, Any]
"""A direction, the name of a way to slice it, and a label for each row of the querying side."""


def slices_of(work: Work) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return direction -> name of the slicing -> its slices, as JSON; a slicing with a single slice is left out."""
    measured = work.evaluation.all
    found: dict[str, dict[str, list[dict[str, Any]]]] = {"a_to_b": {}, "b_to_a": {}}
    for direction, name, labels in _labelled(work):
        slices = slice_report(getattr(measured, direction), labels, name)
        if len(slices) > 1:
            found[direction][name] = [one.to_dict() for one in slices]
    return found


def _labelled(work: Work) -> Iterator[Labelled]:
    config = work.run.config
    sides: tuple[tuple[SideName, str], ...] = (("a", "a_to_b"), ("b", "b_to_a"))
    for side, direction in sides:
        name = config.pairs.shown[0 if side == "a" else 1]
        yield direction, f"length of the {name}", _lengths(work, side)
        for column in _columns(work, side):
            yield direction, column, _column(work, side, column)
        yield direction, f"similarity of the {name} to the nearest in training", _nearest(work, side)
    b = config.pairs.shown[1]
    if work.unseen.any():
        yield "b_to_a", f"whether training saw the {b}", np.where(work.unseen, "unseen", "seen").tolist()
    if config.pairs.kind_a == "molecule":
        yield "a_to_b", f"activity cliffs (another structure above {CLIFF:g} Tanimoto with other text)", _cliffs(work)


def _numbers(work: Work, side: SideName) -> IntArray:
    """Return the item number of each row of a side that may ask, -1 for the others."""
    part = work.asked.part
    numbers = part.items_a if side == "a" else part.items_b
    n_own = work.part("test").links.n_a if side == "a" else work.part("test").links.n_b
    return np.where(np.arange(len(numbers)) < n_own, numbers, -1)


def _lengths(work: Work, side: SideName) -> Bins:
    items = work.prepared.table.side(side).items
    lengths = [len(items[n]) if n >= 0 else np.nan for n in _numbers(work, side).tolist()]
    return quintiles(np.array(lengths, dtype=np.float64), digits=0, unit="characters")


def _columns(work: Work, side: SideName) -> list[str]:
    """Return the columns whose labels slice a side: those of the config, its class and its groups."""
    pairs = work.run.config.pairs
    own = pairs.class_a if side == "a" else pairs.class_b
    named = (*work.run.config.evaluate.slices, *([] if own is None else [own]), *pairs.group)
    return list(dict.fromkeys(named))


def _column(work: Work, side: SideName, column: str) -> list[tuple[str, ...]]:
    labels = labels_of(work.prepared.table, side, column, "evaluate.slices")
    return [labels[n] if n >= 0 else () for n in _numbers(work, side).tolist()]


def _nearest(work: Work, side: SideName) -> Bins:
    """Return quintiles of the cosine with the nearest training item, in the rows that training starts from."""
    train, asked = work.first_part("train"), work.first_asked.part
    rows, known = (asked.rows_a, train.rows_a) if side == "a" else (asked.rows_b, train.rows_b)
    # To three decimals, so that bounds can be read; a hundred texts at 1 - 1e-9 and 1 are one bin.
    similarity = np.round(nearest_similarity(rows, known), 3)
    return quintiles(np.where(_numbers(work, side) >= 0, similarity, np.nan), digits=3)


def _cliffs(work: Work) -> list[str | None]:
    """Return whether a molecule of the test part has a near twin there, or in training, that is described otherwise."""
    table = work.prepared.table
    numbers = _numbers(work, "a")
    own = numbers[numbers >= 0]
    others = np.setdiff1d(np.unique(table.links.pairs[:, 0]), own)
    items = np.concatenate([own, others])
    encoder = FingerprintEncoder(kinds=("morgan",), chirality=False, min_count=1)
    block = encoder.counts([table.a.items[n] for n in items.tolist()], RowCache(work.run.cache))
    counted: Any = block.rows
    counts = sparse.csr_array(
        (counted.counts.astype(np.int64), counted.codes.astype(np.int64), counted.offsets),
        shape=(len(counted), len(counted.table)),
    )
    texts: list[set[str]] = [set() for _ in range(len(table.a))]
    for a, b in table.links.pairs.tolist():
        texts[a].add(normalise(table.b.items[b]))
    read = items[block.index]
    found = activity_cliffs(counts, [texts[n] for n in read.tolist()])
    on = set(read[found.mask].tolist())
    return [None if n < 0 else ("on a cliff" if n in on else "elsewhere") for n in numbers.tolist()]
