"""Naive references that tests compare the package with: loops and enumeration, written from the definitions alone."""

from collections.abc import Iterable, Sequence
from itertools import permutations, product
from math import log2

import numpy as np


def orders_of(scores: Sequence[float], tie: float = 1e-12) -> list[list[int]]:
    """Return every order of the candidates, best first, that a random break of ties can give, each equally likely."""
    ranked = sorted(range(len(scores)), key=lambda i: -scores[i])
    groups: list[list[int]] = []
    for i in ranked:
        if groups and scores[groups[-1][0]] - scores[i] <= tie:
            groups[-1].append(i)
        else:
            groups.append([i])
    return [[i for group in choice for i in group] for choice in product(*(list(permutations(g)) for g in groups))]


def metrics_of_order(order: Sequence[int], true: set[int], ks: Iterable[int]) -> dict[str, float]:
    """Return the metrics of one query whose candidates are in `order`, without ties."""
    hits = [i in true for i in order]
    ranks = [rank for rank, hit in enumerate(hits, 1) if hit]
    found = {"mrr": 1 / ranks[0], "rank": float(ranks[0])}
    found["map"] = sum(sum(hits[:rank]) / rank for rank in ranks) / len(true)
    found["r_precision"] = sum(hits[: len(true)]) / len(true)
    for k in ks:
        inside = [rank for rank in ranks if rank <= k]
        ideal = sum(1 / log2(rank + 1) for rank in range(1, min(k, len(true)) + 1))
        found[f"recall@{k}"] = float(bool(inside))
        found[f"recall_all@{k}"] = len(inside) / len(true)
        found[f"ndcg@{k}"] = sum(1 / log2(rank + 1) for rank in inside) / ideal
    return found


def enumerated_metrics(scores: Sequence[float], true: set[int], ks: Iterable[int]) -> dict[str, float]:
    """Return the mean of each metric over all orders of tied candidates, by enumeration: at most about 8 candidates."""
    found = [metrics_of_order(order, true, list(ks)) for order in orders_of(scores)]
    return {name: sum(one[name] for one in found) / len(found) for name in found[0]}


def cosine_loop(rows_a: np.ndarray, rows_b: np.ndarray) -> list[list[float]]:
    """Return all cosines in float64 by loops; a zero row has cosine 0 with everything."""

    def cosine(left: np.ndarray, right: np.ndarray) -> float:
        norms = float(np.sqrt((left**2).sum()) * np.sqrt((right**2).sum()))
        return float((left * right).sum()) / norms if norms else 0.0

    left, right = np.asarray(rows_a, dtype=np.float64), np.asarray(rows_b, dtype=np.float64)
    return [[cosine(a, b) for b in right] for a in left]


def mean_metrics(scores: Sequence[Sequence[float]], true: Sequence[set[int]], ks: Iterable[int]) -> dict[str, float]:
    """Return the means over the queries that have a true candidate; also `median_rank`, of expected best ranks."""
    found = [enumerated_metrics(row, own, ks) for row, own in zip(scores, true, strict=True) if own]
    means = {name: sum(one[name] for one in found) / len(found) for name in found[0]}
    means["mean_rank"] = means.pop("rank")
    means["median_rank"] = float(np.median([one["rank"] for one in found]))
    return means
