"""Which single queries stand for a direction: the best, those around the median, and the worst.

Not about how they are shown (`page`) or how they were ranked (`evaluate`).
"""

from typing import Any

import numpy as np

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.report.evidence import CaseKind
from bridgehead.vectors import IntArray


def pick_queries(ranks: Any, scores: Any = None, entities: Any = None, n: int = 20) -> dict[CaseKind, IntArray]:
    """Return the positions of the `n` best, median and worst queries, in the order of showing.

    `ranks` (n_queries,) are expected ranks of the best true item, lower is better. Equal ranks are ordered by `scores`
    (n_queries,), the score of the best true item, higher is better (NaN, an item out of reach, is worst), then by
    position. `entities` (n_queries,) lets each entity stand once in a list, by the query that comes first there: twenty
    views of one item are one case. The best and the worst stand best and worst first; those of the median are the `n`
    around the middle of the order, best first. With few queries the lists overlap, and no list has more than there are
    queries (or entities). Raises `ShapeError` for other lengths, `ArgumentError` for NaN ranks and `n` under 1.

    >>> {kind: found.tolist() for kind, found in pick_queries([5.0, 1.0, 9.0, 2.0, 3.0], n=2).items()}
    {'best': [1, 3], 'median': [3, 4], 'worst': [2, 0]}
    """
    places = np.asarray(ranks, dtype=np.float64)
    if places.ndim != 1:
        raise ShapeError(f"ranks have shape {places.shape}; expected one dimension (n_queries,)")
    if np.isnan(places).any():
        raise ArgumentError(f"ranks hold NaN (first at {int(np.isnan(places).argmax())}); expected ranks from 1")
    if n < 1:
        raise ArgumentError(f"n = {n}; expected at least 1 query")
    score = np.zeros(len(places)) if scores is None else np.asarray(scores, dtype=np.float64)
    labels = np.arange(len(places)) if entities is None else np.asarray(entities)
    for name, given in (("scores", score), ("entities", labels)):
        if given.shape != places.shape:
            raise ShapeError(f"{name} have shape {given.shape}; expected one for each of the {len(places)} queries")
    order = np.lexsort((np.where(np.isnan(score), np.inf, -score), places))
    best, worst = _once(order, labels), _once(order[::-1], labels)
    # Of an entity with several queries, the one nearest to the middle stands for it there.
    nearest = np.argsort(np.abs(np.arange(len(order)) - (len(order) - 1) / 2), kind="stable")
    middle = _once(order[nearest], labels)[:n]
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return {"best": best[:n], "median": middle[np.argsort(place[middle])], "worst": worst[:n]}


def _once(order: IntArray, labels: Any) -> IntArray:
    """Return the positions in `order` that are the first of their label."""
    _, first = np.unique(labels[order], return_index=True)
    return np.asarray(order[np.sort(first)], dtype=np.int64)
