"""Whose views the items of a part are: the labels that intervals resample, so that five captions count as one witness.

This module is not about which entities a split keeps together (`pairs.split`) or about intervals (`evaluate`).
"""

from typing import Any

import numpy as np

from bridgehead.runs.encoded import PartRows
from bridgehead.texts import normalise


def entities_of(work: Any, part: PartRows) -> tuple[list[str], list[str]]:
    """Return a label for each row of a and of b of a part.

    A row of a has the label of its entity column, or else its molecule's identity at the level of the split, or else
    its normalised value. A row of b whose links lead to one entity of a is a view of that entity (the captions of a
    picture); one that several entities share, or none, is known by its own identity or normalised value.
    """
    labels_a = [f"a:{label}" for label in _own(work, "a", part.items_a.tolist())]
    labels_b = [f"b:{label}" for label in _own(work, "b", part.items_b.tolist())]
    number = np.unique(labels_a, return_inverse=True)[1].reshape(-1)
    pairs = part.links.expanded().pairs
    lowest = np.full(len(labels_b), np.iinfo(np.int64).max)
    highest = np.full(len(labels_b), -1)
    np.minimum.at(lowest, pairs[:, 1], number[pairs[:, 0]])
    np.maximum.at(highest, pairs[:, 1], number[pairs[:, 0]])
    first = dict(zip(number.tolist(), labels_a, strict=True))
    of_one = lowest == highest
    return labels_a, [
        first[n] if alone else label for label, n, alone in zip(labels_b, lowest.tolist(), of_one.tolist(), strict=True)
    ]


def _own(work: Any, side: str, numbers: list[int]) -> list[str]:
    """Return the labels of items by number; -1, an item that is not in the table, is nobody's view."""
    config, items = work.run.config, work.prepared.table.side(side)
    if items.entities is not None:
        return [items.entities[n] if n >= 0 else f"further {i}" for i, n in enumerate(numbers)]
    identities = work.prepared.identities.get(side)
    level = config.split.identity
    if identities is not None:
        return [str(getattr(identities[n], level)) if n >= 0 else f"further {i}" for i, n in enumerate(numbers)]
    return [normalise(items.items[n]) if n >= 0 else f"further {i}" for i, n in enumerate(numbers)]
