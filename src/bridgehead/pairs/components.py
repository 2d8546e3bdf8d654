"""What a split must not separate: items that share a key or label, directly or through others.

This module is not about which component goes into which part (`split`).
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from bridgehead.errors import ArgumentError
from bridgehead.links import Links
from bridgehead.vectors import IntArray

HoldOut = Literal["a", "b", "both"]
Keys = Sequence[Sequence[str]]
SideKeys = dict[str, list[tuple[str, ...]]]


def check_keys(keys: Keys, n: int, name: str) -> list[tuple[str, ...]]:
    """Return the keys of `n` items as tuples; raises `ArgumentError` for another length, or a text for a tuple."""
    if len(keys) != n:
        raise ArgumentError(f"{name} has {len(keys)} entries; expected {n}, a tuple of keys for each item")
    if any(isinstance(entry, str) for entry in keys):
        raise ArgumentError(f"{name} holds texts; expected a tuple of keys for each item, such as ('{keys[0]}',)")
    return [tuple(entry) for entry in keys]


def own_keys(keys: Keys | None, items: Sequence[str] | None, n: int, side: str) -> list[tuple[str, ...]]:
    """Return the keys of each item; one without any gets its own value, or its position where there is none."""
    if items is not None and len(items) != n:
        raise ArgumentError(f"items_{side} has {len(items)} entries; expected {n}")
    own = items if items is not None else [f"item {position}" for position in range(n)]
    given = [()] * n if keys is None else check_keys(keys, n, f"keys_{side}")
    return [entry or (value,) for entry, value in zip(given, own, strict=True)]


def components(
    links: Links, hold_out: HoldOut, keys: SideKeys, groups: list[tuple[str, ...]] | None
) -> tuple[IntArray, IntArray]:
    """Return component numbers (n_a,) and (n_b,) of what may not be separated; -1 on a side that is not held out.

    `keys` of "a" and "b" hold a tuple per item, `groups` a tuple of labels per held-out item (of a for "both").
    """
    nodes: dict[tuple[str, str], int] = {}
    edges: list[tuple[int, int]] = []
    first_b = links.n_a
    first_key = links.n_a + links.n_b
    joined = [("a", 0, keys["a"]), ("b", first_b, keys["b"])]
    grouped = groups if groups is not None else []
    for name, first, entries in [*joined, ("group", first_b if hold_out == "b" else 0, grouped)]:
        if name in ("a", "b") and hold_out not in (name, "both"):
            continue
        for item, entry in enumerate(entries):
            edges += [(first + item, first_key + nodes.setdefault((name, key), len(nodes))) for key in entry]
    pairs = np.array(edges, dtype=np.int64).reshape(-1, 2)
    if hold_out == "both":
        pairs = np.concatenate([pairs, links.pairs + np.array([0, first_b])])
    size = first_key + len(nodes)
    graph = sparse.coo_array((np.ones(len(pairs), dtype=bool), (pairs[:, 0], pairs[:, 1])), shape=(size, size))
    _, labels = connected_components(graph, directed=False)
    labels = labels.astype(np.int64)
    nobody = np.full(size, -1, dtype=np.int64)
    component_a = labels if hold_out in ("a", "both") else nobody
    component_b = labels if hold_out in ("b", "both") else nobody
    return component_a[: links.n_a], component_b[first_b:first_key]
