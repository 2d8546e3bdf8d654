"""Leakage by identity: test items that share a key with training items.

A key is whatever makes two items count as the same: an InChIKey, the parent's key, a skeleton, a scaffold, an entity, a
donor, a normalised text. Which keys an item has is computed elsewhere; here they are compared. This module is not about
items that are only similar (`near_text`, `rows`), or about one raw item under two entities (`contradictions`).
"""

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from bridgehead.audits.finding import Finding, Verdict
from bridgehead.audits.given import check_entries, check_kind
from bridgehead.audits.listed import namer, worst
from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.vectors import IntArray, to_numpy

ALLOWED_SHARE = 0.05
"""What a level that the split does not hold apart may share before it is worth a word: where 5 % of the test items are
known from training, a recall cannot be off by more than 0.05 for that reason, about the width of its interval."""

Keys = Sequence[Any]
"""One entry an item: a key, several (tuple, list, set), or None or "" for none."""


def key_leakage(
    levels: Mapping[str, Keys],
    train: Any,
    test: Any,
    *,
    held_apart: Collection[str] | None = None,
    ids: Sequence[str] | None = None,
    side: str = "a",
    parts: tuple[str, str] = ("training", "test"),
) -> list[Finding]:
    """Return, for each level of identity, the share of test items of which a key also occurs in training.

    `levels` maps a level's name (`exact`, `skeleton`, `scaffold`, `group donor`, `text`) to the keys of all n items of
    one side: one a key, several in a tuple, list or set, None, NaN or "" for an item that has none. `train` and `test`
    say which items take part: item numbers, or boolean masks (n,). An item may be in both and then shares its keys with
    itself. `held_apart` names the levels that the split promises to keep apart (None: all of them):

    - held apart: 0 is expected, and one item is a failure;
    - not held apart: sharing is allowed, and more than 5 % is worth a warning, since a figure over these test items
      says less about new ones.

    The denominator is the test items that have a key; a level at which none has one gives no finding, since nothing can
    be judged. Cost: one pass over the keys. `ids` (n,) name items in the listing, `side` and `parts` in the words.
    Raises `ShapeError` for lists of other lengths, `ArgumentError` for a level in `held_apart` that is not given, for
    items out of range and for a part without items.

    >>> found = key_leakage({"skeleton": ["A", "B", "B", ("C", "A")]}, train=[0, 1], test=[2, 3])
    >>> found[0].value, found[0].verdict
    (1.0, 'fail')
    """
    check_kind(Mapping, levels=levels)
    if held_apart is not None and not isinstance(held_apart, list | tuple | set | frozenset):
        raise ArgumentError(f"held_apart = {held_apart!r:.80}; expected a list of levels, or None for all")
    for level, keys in levels.items():
        check_entries(keys, None, f"level {level!r}", "an entry an item")
    if unknown := sorted(str(level) for level in set(held_apart or ()) - set(levels)):
        raise ArgumentError(f"held_apart names {', '.join(unknown)}; the levels given are {', '.join(levels)}")
    if len({len(keys) for keys in levels.values()}) > 1:
        sizes = ", ".join(f"{level} {len(keys)}" for level, keys in levels.items())
        raise ShapeError(f"the levels have keys for different numbers of items ({sizes}); expected an entry an item")
    promised = set(levels if held_apart is None else held_apart)
    found = []
    for level, keys in levels.items():
        known, asked = (members(part, len(keys), name) for part, name in zip((train, test), parts, strict=True))
        shared, judged = _shared(level, keys, known, asked)
        if judged:
            name = namer(ids, len(keys), "ids")
            found.append(_finding(level, shared, judged, len(asked), level in promised, side, parts, name))
    return found


def members(part: Any, n: int, name: str) -> IntArray:
    """Return the item numbers of a part that is given as numbers or as a boolean mask over `n` items, ascending.

    Raises `ShapeError` for a mask of another length and `ArgumentError` for what is neither, for numbers outside 0 ..
    n - 1 and for no item at all.
    """
    array = to_numpy(part)
    if array.dtype == np.bool_:
        if array.shape != (n,):
            raise ShapeError(
                f"the mask of the {name} items has shape {array.shape}; expected ({n},), one entry an item"
            )
        array = np.flatnonzero(array)
    if array.ndim != 1 or array.dtype.kind not in "iu" or not array.size:
        raise ArgumentError(
            f"the {name} items are {array.dtype} of shape {array.shape}; expected at least one item number, or a mask"
        )
    if array.min() < 0 or array.max() >= n:
        raise ArgumentError(f"the {name} items run from {array.min()} to {array.max()}; there are items 0 to {n - 1}")
    return np.unique(array).astype(np.int64)


def keys_of(entry: Any) -> list[Hashable]:
    """Return the keys of one entry: several, one, or none for None, NaN and ""."""
    several = list(entry) if isinstance(entry, tuple | list | set | frozenset | np.ndarray) else [entry]
    return [key for key in several if not (key is None or key == "" or (isinstance(key, float) and math.isnan(key)))]


def _shared(level: str, keys: Keys, train: IntArray, test: IntArray) -> tuple[list[tuple[int, Any, list[int]]], int]:
    """Return (test item, key, training items with it) of each affected item, and the number of those with a key."""
    try:
        holders: dict[Hashable, list[int]] = {}
        for item in train.tolist():
            for key in keys_of(keys[item]):
                holders.setdefault(key, []).append(item)
        shared, judged = [], 0
        for item in test.tolist():
            own = keys_of(keys[item])
            judged += bool(own)
            if hit := [(key, holders[key]) for key in own if key in holders]:
                key, others = max(hit, key=lambda pair: (len(pair[1]), str(pair[0])))
                shared.append((item, key, others))
    except TypeError as error:
        raise ArgumentError(f"level {level!r}: {error}; expected keys that can be compared, such as texts") from error
    return sorted(shared, key=lambda case: (-len(case[2]), case[0])), judged


def _finding(
    level: str,
    shared: list[tuple[int, Any, list[int]]],
    judged: int,
    n_test: int,
    promised: bool,
    side: str,
    parts: tuple[str, str],
    name: Any,
) -> Finding:
    first, second = parts
    share = len(shared) / judged
    unjudged = f"; {n_test - judged:,} have no key and are not judged" if judged < n_test else ""
    why = f"{len(shared):,} of {judged:,} {second} items of {side} share their {level} with {first} items{unjudged}"
    verdict: Verdict = "pass"
    if promised:
        expected = f"0: the split holds {level} apart"
        if shared:
            verdict, why = "fail", f"{why}: what is measured on them is memory, not transfer"
    else:
        expected = f"at most {ALLOWED_SHARE:g}: the split does not hold {level} apart"
        if share > ALLOWED_SHARE:
            verdict, why = "warn", f"{why}: this split allows it, and figures say less about a new {level}"
    columns = (f"{second} {side}", level, f"{first} {side}", f"{first} items with it")
    rows = [(name(item), str(key), name(others[0]), len(others)) for item, key, others in shared]
    return Finding(f"{side} in {second} and {first}, by {level}", share, expected, verdict, why, "leakage",
                   listed=worst(columns, rows))  # fmt: skip
