"""Folds of cross-validation: every link held out once, by the same rule of what must not be separated as the split.

This module is not about training or measuring a fold (`runs`) or about one split into three parts (`split`).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bridgehead.errors import ArgumentError
from bridgehead.links import Links
from bridgehead.pairs.components import HoldOut, Keys, check_keys, components, own_keys
from bridgehead.texts import normalise
from bridgehead.vectors import IntArray


@dataclass(frozen=True, eq=False)
class Folds:
    """The fold of each link, (n_links,) with numbers 0 .. n_folds - 1, in the order of `truth.pairs`.

    `n_entities` counts the entities of each fold, `n_units` the components that could be dealt out.
    """

    truth: Links
    of_link: IntArray
    n_folds: int
    n_entities: tuple[int, ...]
    n_units: int


def deal_folds(
    links: Links,
    n_folds: int,
    *,
    hold_out: HoldOut = "a",
    seed: int = 0,
    keys_a: Keys | None = None,
    keys_b: Keys | None = None,
    groups: Keys | None = None,
    items_a: Sequence[str] | None = None,
    items_b: Sequence[str] | None = None,
) -> Folds:
    """Return folds of `links` such that what may not be separated lies in one fold.

    All arguments but `n_folds` are those of `split_pairs`: items that share a key or label, directly or through
    others, are one unit, and with "both" links join units too. Units go, the largest first and equal ones in the order
    of a hash of the seed and their smallest key, to the fold that has fewest entities so far. So folds are as even as
    whole units allow, no fold is empty, and neither the order of the records nor that of the links matters.

    Raises `ArgumentError` for fewer than two folds, fewer units than folds, and as `split_pairs` for keys.

    >>> deal_folds(Links([[0, 0], [1, 1], [2, 2], [3, 3]], 4, 4), 2).n_entities
    (2, 2)
    """
    if isinstance(n_folds, bool) or not isinstance(n_folds, int | np.integer) or n_folds < 2:
        raise ArgumentError(f"n_folds = {n_folds!r}; expected a whole number of 2 or more")
    if hold_out not in ("a", "b", "both"):
        raise ArgumentError(f"hold_out = {hold_out!r}; expected 'a', 'b' or 'both'")
    texts_b = None if items_b is None else [normalise(text) for text in items_b]
    keys = {"a": own_keys(keys_a, items_a, links.n_a, "a"), "b": own_keys(keys_b, texts_b, links.n_b, "b")}
    labels = None if groups is None else check_keys(groups, links.n_b if hold_out == "b" else links.n_a, "groups")
    component_a, component_b = components(links, hold_out, keys, labels)
    counted, column, own = (component_b, 1, keys["b"]) if hold_out == "b" else (component_a, 0, keys["a"])
    units, of_link = np.unique(counted[links.pairs[:, column]], return_inverse=True)
    if len(units) < n_folds:
        raise ArgumentError(
            f"{len(units)} separate {'entity' if len(units) == 1 else 'entities'} with a link, and {n_folds} folds; "
            "expected at least one for each: ask for fewer folds, add pairs, or hold out the other side"
        )
    names: dict[int, set[str]] = {unit: set() for unit in units.tolist()}
    for unit, entry in zip(counted.tolist(), own, strict=True):
        if unit in names:
            names[unit].update(entry)
    fold_of_unit, n_entities = _deal([names[unit] for unit in units.tolist()], n_folds, seed)
    return Folds(links, fold_of_unit[of_link.reshape(-1)], int(n_folds), n_entities, len(units))


def _deal(units: list[set[str]], n_folds: int, seed: int) -> tuple[IntArray, tuple[int, ...]]:
    def place(unit: int) -> tuple[int, bytes, str]:
        name = min(units[unit])
        # Not the hash of the split: the folds of a seed are drawn apart from its test part.
        digest = hashlib.sha256(f"folds\x1f{seed}\x1f{name}".encode("utf-8", "surrogatepass")).digest()
        return -len(units[unit]), digest, name

    found = np.zeros(len(units), dtype=np.int64)
    held = [0] * n_folds
    for unit in sorted(range(len(units)), key=place):
        fold = min(range(n_folds), key=lambda number: (held[number], number))
        found[unit] = fold
        held[fold] += len(units[unit])
    return found, tuple(held)
