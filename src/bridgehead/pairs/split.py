"""Which links train, validate and test: by what is held out, so that nothing held out was seen in training.

This module is not about what makes two molecules one entity (`molecules`) or about metrics (`evaluate`).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from bridgehead.errors import ArgumentError
from bridgehead.links import Links
from bridgehead.pairs.components import HoldOut, Keys, SideKeys, check_keys, components, own_keys
from bridgehead.pairs.table import PairTable
from bridgehead.texts import normalise
from bridgehead.vectors import IntArray

Part = Literal["train", "valid", "test"]
PartArray = npt.NDArray[np.int8]

PARTS: tuple[Part, ...] = ("train", "valid", "test")
"""The parts in the order of their numbers 0, 1, 2."""

_TRAIN, _VALID, _TEST = 0, 1, 2
_LARGE_COMPONENT = 0.2


@dataclass(frozen=True, eq=False)
class Split:
    """The part of every item and link: 0 train, 1 valid, 2 test, -1 for an item without a link.

    `part_a` (n_a,), `part_b` (n_b,), `part_link` (n_links,) in the order of `truth.pairs`. The part of a link is that
    of its held-out item. The other side's items may occur in several parts; theirs is the first of train, valid, test
    that they occur in. `seen_b` (n_b,): the normalised text of the item also occurs in a link of train. `n_entities`
    counts the units that were dealt out, by part.
    """

    truth: Links
    part_a: PartArray
    part_b: PartArray
    part_link: PartArray
    seen_b: npt.NDArray[np.bool_]
    hold_out: HoldOut
    seed: int
    n_entities: dict[str, int]
    notes: list[str] = field(default_factory=list)

    def links(self, part: Part) -> tuple[IntArray, IntArray, Links]:
        """Return (rows_a, rows_b, links): the items that take part, ascending, and the links renumbered to them.

        Raises `ArgumentError` for another name than train, valid or test.
        """
        pairs = self.truth.pairs[self.part_link == _part_number(part)]
        rows_a, at_a = np.unique(pairs[:, 0], return_inverse=True)
        rows_b, at_b = np.unique(pairs[:, 1], return_inverse=True)
        numbered = np.stack([at_a.reshape(-1), at_b.reshape(-1)], axis=1)
        return rows_a, rows_b, Links(numbered, len(rows_a), len(rows_b))

    def counts(self) -> dict[str, dict[str, int]]:
        """Return per part the numbers of entities, items of a, items of b and links."""
        found: dict[str, dict[str, int]] = {}
        for part in PARTS:
            rows_a, rows_b, links = self.links(part)
            found[part] = {
                "entities": self.n_entities[part],
                "a": len(rows_a),
                "b": len(rows_b),
                "links": len(links),
            }
        return found


def split_pairs(
    links: Links,
    *,
    hold_out: HoldOut = "a",
    fractions: Sequence[float] = (0.8, 0.1, 0.1),
    seed: int = 0,
    keys_a: Keys | None = None,
    keys_b: Keys | None = None,
    groups: Keys | None = None,
    test_keys: Sequence[str] = (),
    items_a: Sequence[str] | None = None,
    items_b: Sequence[str] | None = None,
) -> Split:
    """Return a split of `links` into train, valid and test that holds out items of a, of b, or both.

    `keys_a`, `keys_b`: the entity keys of each item (a mixture has several, an item may have none); `groups`: further
    labels of the held-out side's items (of a for "both"), as `PairTable.group_labels` gives them. Items that share a
    key or label, directly or through others, are one component and never cross; with "both", links join components
    too. `fractions` (train, valid, test) are met as closely as whole components allow, counted in entities: distinct
    keys, and an item without one counts as one. Components that hold one of `test_keys` go to test.

    `items_a`, `items_b` are the raw values. They stand in for missing keys (of b in normalised form, so that a text
    differing only in hyphens is held out with it) and make `seen_b` compare normalised texts instead of items. A
    component's place is decided by a hash of the seed and its smallest key, so that the order of the records does not
    matter (where there are neither keys nor items, positions are hashed).

    Raises `ArgumentError` for impossible fractions, lists of the wrong length, or fewer components than parts: one
    pair, or pairs that are all identical, cannot be split.
    """
    shares = _check_fractions(fractions)
    if hold_out not in ("a", "b", "both"):
        raise ArgumentError(f"hold_out = {hold_out!r}; expected 'a', 'b' or 'both'")
    texts_b = None if items_b is None else [normalise(text) for text in items_b]
    keys = {
        "a": own_keys(keys_a, items_a, links.n_a, "a"),
        "b": own_keys(keys_b, texts_b, links.n_b, "b"),
    }
    labels = None if groups is None else check_keys(groups, links.n_b if hold_out == "b" else links.n_a, "groups")
    component_a, component_b = components(links, hold_out, keys, labels)
    of_links = component_b[links.pairs[:, 1]] if hold_out == "b" else component_a[links.pairs[:, 0]]
    units = _Units.of(of_links, component_a, component_b, hold_out, keys, test_keys)
    parts, n_entities, notes = _deal(units, shares, seed, hold_out)
    notes += _unknown_test_keys(test_keys, hold_out, keys)
    if hold_out == "both":
        notes += _large_component(component_a, component_b, units)
    part_link = parts[np.searchsorted(units.components, of_links)].astype(np.int8)
    return Split(
        truth=links,
        part_a=_item_parts(links.pairs[:, 0], part_link, links.n_a),
        part_b=_item_parts(links.pairs[:, 1], part_link, links.n_b),
        part_link=part_link,
        seen_b=_seen(links.pairs[part_link == _TRAIN, 1], links.n_b, texts_b),
        hold_out=hold_out,
        seed=seed,
        n_entities=n_entities,
        notes=notes,
    )


def split_table(
    table: PairTable,
    *,
    hold_out: HoldOut = "a",
    fractions: Sequence[float] = (0.8, 0.1, 0.1),
    seed: int = 0,
    keys_a: Keys | None = None,
    keys_b: Keys | None = None,
    test_keys: Sequence[str] = (),
) -> Split:
    """Return `split_pairs` of a table, with its items, its `group=` columns and, for a without keys, its entities."""
    if keys_a is None and table.a.entities is not None:
        keys_a = [(entity,) for entity in table.a.entities]
    return split_pairs(
        table.links,
        hold_out=hold_out,
        fractions=fractions,
        seed=seed,
        keys_a=keys_a,
        keys_b=keys_b,
        groups=table.group_labels("b" if hold_out == "b" else "a") if table.groups else None,
        test_keys=test_keys,
        items_a=table.a.items,
        items_b=table.b.items,
    )


def _part_number(part: str) -> int:
    if part not in PARTS:
        raise ArgumentError(f"part = {part!r}; expected 'train', 'valid' or 'test'")
    return PARTS.index(part)


def _check_fractions(fractions: Sequence[float]) -> npt.NDArray[np.float64]:
    shares = np.asarray(fractions, dtype=np.float64)
    if shares.shape != (3,) or not np.isfinite(shares).all() or (shares < 0).any() or shares[_TRAIN] <= 0:
        raise ArgumentError(f"fractions = {tuple(fractions)}; expected three numbers of 0 or more, train above 0")
    if abs(shares.sum() - 1) > 1e-6:
        raise ArgumentError(f"fractions = {tuple(fractions)} sum to {shares.sum():g}; expected 1")
    return shares


@dataclass(frozen=True)
class _Units:
    """The components that have a link, ascending: name (smallest key), number of entities, and whether test must."""

    components: IntArray
    names: list[str]
    sizes: IntArray
    forced: npt.NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        of_links: IntArray,
        component_a: IntArray,
        component_b: IntArray,
        hold_out: HoldOut,
        keys: SideKeys,
        test_keys: Sequence[str],
    ) -> "_Units":
        # Entities are counted on one side, of a for "both": the numbers of the two sides cannot be added.
        counted, entries = (component_b, keys["b"]) if hold_out == "b" else (component_a, keys["a"])
        found: dict[int, set[str]] = {component: set() for component in np.unique(of_links).tolist()}
        for component, entry in zip(counted.tolist(), entries, strict=True):
            if component in found:
                found[component].update(entry)
        wanted = set(test_keys)
        forced = {component for component, names in found.items() if names & wanted}
        if hold_out == "both":
            on_b = zip(component_b.tolist(), keys["b"], strict=True)
            forced |= {component for component, entry in on_b if wanted.intersection(entry)}
        components = np.array(sorted(found), dtype=np.int64)
        return cls(
            components,
            [min(found[component]) for component in components.tolist()],
            np.array([len(found[component]) for component in components.tolist()], dtype=np.int64),
            np.array([component in forced for component in components.tolist()], dtype=bool),
        )


def _deal(
    units: _Units, shares: npt.NDArray[np.float64], seed: int, hold_out: HoldOut
) -> tuple[npt.NDArray[np.int64], dict[str, int], list[str]]:
    """Deal the components out in the order of their hashes: to test or valid, whichever lacks more, else to train."""
    wanted = [part for part in (_TRAIN, _VALID, _TEST) if shares[part] > 0]
    n, total = len(units.components), int(units.sizes.sum())
    if n < len(wanted):
        raise ArgumentError(
            f"{n} separate {'entity' if n == 1 else 'entities'} of {_what(hold_out)} with a link "
            f"({total} before joining what belongs together), and {len(wanted)} parts "
            f"({', '.join(PARTS[part] for part in wanted)}); expected at least one for each: add pairs, hold out the "
            "other side, or give fractions with a 0"
        )
    hashes = [hashlib.sha256(f"{seed}\x1f{name}".encode("utf-8", "surrogatepass")).digest() for name in units.names]
    order = sorted(range(n), key=lambda unit: (hashes[unit], units.names[unit]))
    free = [unit for unit in order if not units.forced[unit]]
    parts = np.where(units.forced, _TEST, _TRAIN)
    room = _room(units, shares)
    for unit in free:
        part = _TEST if room[_TEST] >= room[_VALID] else _VALID
        if units.sizes[unit] > room[part]:
            part = _TEST + _VALID - part
        if units.sizes[unit] <= room[part]:
            parts[unit] = part
            room[part] -= int(units.sizes[unit])
    for part in wanted:
        counts = np.bincount(parts, minlength=len(PARTS))
        spare = [unit for unit in free if counts[parts[unit]] > 1]
        if not counts[part] and spare:
            parts[min(spare, key=lambda unit: (parts[unit] != _TRAIN, units.sizes[unit]))] = part
    missing = [PARTS[part] for part in wanted if not (parts == part).any()]
    if missing:
        raise ArgumentError(
            f"nothing is left for {' and '.join(missing)}: {int(units.forced.sum())} of {n} separate entities of "
            f"{_what(hold_out)} are forced into test; expected some for each part: name fewer test keys"
        )
    n_entities: dict[str, int] = {name: int(units.sizes[parts == part].sum()) for part, name in enumerate(PARTS)}
    return parts, n_entities, _off_target(n_entities, shares, total)


def _room(units: _Units, shares: npt.NDArray[np.float64]) -> dict[int, int]:
    """Return how many entities valid and test still take; at least one of those that are free is left to train."""
    total = int(units.sizes.sum())
    free = int(units.sizes[~units.forced].sum())
    room = {part: round(shares[part] * total) for part in (_VALID, _TEST)}
    room[_TEST] = max(0, room[_TEST] - (total - free))
    while sum(room.values()) >= max(1, free):
        room[max(room, key=lambda part: room[part])] -= 1
    return room


def _what(hold_out: HoldOut) -> str:
    return "a and b together" if hold_out == "both" else hold_out


def _off_target(n_entities: dict[str, int], shares: npt.NDArray[np.float64], total: int) -> list[str]:
    got = {name: n_entities[name] / total for name in PARTS}
    if all(abs(got[name] - shares[part]) * total <= max(1.0, 0.02 * total) for part, name in enumerate(PARTS)):
        return []
    asked = ", ".join(f"{name} {100 * share:.0f} %" for name, share in zip(PARTS, shares.tolist(), strict=True))
    return [
        f"asked for {asked}; got {', '.join(f'{name} {100 * share:.1f} %' for name, share in got.items())} of "
        f"{total:,} entities, because what belongs together is never cut"
    ]


def _unknown_test_keys(test_keys: Sequence[str], hold_out: HoldOut, keys: SideKeys) -> list[str]:
    sides = ("a", "b") if hold_out == "both" else (hold_out,)
    known = {key for side in sides for entry in keys[side] for key in entry}
    absent = [key for key in test_keys if key not in known]
    return [f"no item has the test keys {', '.join(absent)}"] if absent else []


def _large_component(component_a: IntArray, component_b: IntArray, units: _Units) -> list[str]:
    linked = np.concatenate([component_a, component_b])
    linked = linked[np.isin(linked, units.components)]
    largest = int(np.bincount(linked).max())
    if largest <= _LARGE_COMPONENT * len(linked):
        return []
    return [
        f"one component holds {largest:,} of {len(linked):,} items ({100 * largest / len(linked):.0f} %): links and "
        "shared entities tie them together, so they cannot be divided; hold out one side (hold_out = 'a' or 'b')"
    ]


def _item_parts(items: IntArray, part_link: PartArray, n: int) -> PartArray:
    """Return per item the first of train, valid, test among its links, -1 without a link."""
    lowest = np.full(n, len(PARTS), dtype=np.int8)
    np.minimum.at(lowest, items, part_link)
    return np.where(lowest == len(PARTS), -1, lowest).astype(np.int8)


def _seen(train_items: IntArray, n: int, texts: list[str] | None) -> npt.NDArray[np.bool_]:
    seen = np.zeros(n, dtype=bool)
    seen[train_items] = True
    if texts is None:
        return seen
    in_train = {texts[item] for item in np.flatnonzero(seen).tolist()}
    return np.array([text in in_train for text in texts], dtype=bool)
