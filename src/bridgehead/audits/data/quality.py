"""Descriptions that cannot tell items apart: generic ones, and those that many items share.

What is weak is decided elsewhere (`pairs.text_quality`, or any rule of the user's); this module counts what of the
links hangs on it. It is not about wrong pairs (`mispairs`) or about what duplicates cost recall (`ceiling`).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from bridgehead.audits.controls.shuffled import label_numbers
from bridgehead.audits.finding import Finding, Listing
from bridgehead.audits.given import check_entries, check_kind
from bridgehead.audits.listed import MOST_LISTED, namer, worst
from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.links import Links
from bridgehead.vectors import IntArray, to_numpy

LITTLE, MUCH = 0.05, 0.25
"""Shares of links with a weak description, above which training should leave them out, and above which most batches
hold many: at a quarter, a batch of 512 has 128 anchors that nothing can tell apart, and they shape the loss."""
MANY, MANY_SHARE = 10, 0.1
"""Items that a description fits before it is called broad: beyond 10, recall@10 cannot list them all. And the share of
links with such descriptions above which it is said."""


def generic_findings(
    weak: Any,
    links: Links,
    *,
    side: Literal["a", "b"] = "b",
    ids: Sequence[Any] | None = None,
    texts: Sequence[str] | None = None,
    rules: Sequence[str] | None = None,
    name: str = "text",
) -> list[Finding]:
    """Return what share of the links has a description that says too little to tell one item from another.

    `weak` (n,), boolean, marks the descriptions, which are the items of `side` of `links`; `rules` (n,) say why
    ("" for none), `texts` what they are and `ids` what they are called in the list of those with most links. One
    finding, of the group "data": value is the share of links with a weak description. It passes to 0.05, warns to 0.25
    and fails above. Links without any give no finding. Raises `ShapeError` for arrays of other lengths,
    `ArgumentError` for another side. Costs nothing.

    >>> generic_findings([True, False], Links.identity(2))[0].value
    0.5
    """
    column, n = _column(side, links)
    mask = to_numpy(weak)
    if mask.dtype != np.bool_ or mask.shape != (n,):
        raise ShapeError(f"weak is {mask.dtype} of shape {mask.shape}; expected booleans ({n},), one for each {name}")
    for given, what in ((texts, "texts"), (rules, "rules")):
        if given is not None:
            check_entries(given, n, what, f"one for each {name}")
    called = namer(ids, n, "ids")
    if len(links) == 0:
        return []
    times = np.bincount(links.pairs[:, column], minlength=n)
    share = float(times[mask].sum() / len(links))
    title, expected = f"generic {name}", f"at most {LITTLE:g} of the links"
    linked = np.flatnonzero(mask & (times > 0))
    order = linked[np.lexsort((linked, -times[linked]))]
    columns = [name, "links", *(["rule"] if rules is not None else []), *(["text"] if texts is not None else [])]
    rows = [
        [called(i), int(times[i])]
        + ([rules[i]] if rules is not None else [])
        + ([texts[i]] if texts is not None else [])
        for i in order[:MOST_LISTED].tolist()
    ]
    listed = _listed(columns, rows, len(order), "those with most links first")
    counted = f"{len(order):,} of {int((times > 0).sum()):,} say too little to tell one item from another"
    if share <= LITTLE:
        return [Finding(title, share, expected, "pass", counted, "data", listed=listed)]
    why = f'{counted}: the loss cannot tell this noise from meaning; leave them out of training (quality = "drop")'
    return [Finding(title, share, expected, "warn" if share <= MUCH else "fail", why, "data", listed=listed)]


def broad_findings(
    links: Links,
    *,
    side: Literal["a", "b"] = "b",
    entities: Any = None,
    ids: Sequence[Any] | None = None,
    texts: Sequence[str] | None = None,
    name: str = "text",
) -> list[Finding]:
    """Return what share of the links has a description that fits many items.

    An item of `side` fits all items of the other side that it is linked to, groups included, each `entities` label of
    these counted once (ten spectra of one molecule are one; default: every item by itself). One finding, of the group
    "data": value is the share of links whose item fits more than 10. It passes to 0.1 and warns above: the evaluator
    counts each of them as right, but such a text finds a class and no item, and as negatives of a batch the others of
    its class are false ones unless links say so. Links without any give no finding. Raises `ShapeError` for arrays of
    other lengths, `ArgumentError` for another side. Costs nothing.
    """
    _, n = _column(side, links)
    called = namer(ids, n, "ids")
    if texts is not None:
        check_entries(texts, n, "texts", f"one for each {name}")
    if len(links) == 0:
        return []
    fits, times = _fits(links if side == "a" else links.swapped(), entities)
    broad = fits > MANY
    share = float(times[broad].sum() / times.sum())
    most = int(fits.max())
    title, expected = f"{name} that fits many", f"at most {MANY_SHARE:g} of the links go to one that fits over {MANY}"
    order = np.flatnonzero(broad)
    order = order[np.lexsort((order, -fits[order]))]
    columns = [name, "fits", *(["text"] if texts is not None else [])]
    shown = order[:MOST_LISTED].tolist()
    rows = [[called(i), int(fits[i]), *([texts[i]] if texts is not None else [])] for i in shown]
    listed = _listed(columns, rows, len(order), "those that fit most first")
    counted = f"{int(broad.sum()):,} of {int((fits > 0).sum()):,} fit over {MANY} items, the broadest {most:,}"
    if share <= MANY_SHARE:
        return [Finding(title, share, expected, "pass", counted, "data", listed=listed)]
    why = (
        f"{counted}: such a {name} finds a class and no item; read recall_all@k and R-precision beside recall@k, and "
        "let no batch hold two items that share one"
    )
    return [Finding(title, share, expected, "warn", why, "data", listed=listed)]


def _listed(columns: Sequence[str], rows: Sequence[Sequence[Any]], total: int, note: str) -> Listing | None:
    """Return the first cases of `total`, or None where there are none."""
    found = worst(columns, rows, note)
    return None if found is None else replace(found, total=total)


def _column(side: str, links: Links) -> tuple[int, int]:
    check_kind(Links, links=links)
    if not isinstance(side, str) or side not in ("a", "b"):
        raise ArgumentError(f"side = {side!r:.80}; expected 'a' or 'b'")
    return (0, links.n_a) if side == "a" else (1, links.n_b)


def _fits(links: Links, entities: Any) -> tuple[IntArray, IntArray]:
    """Return for each row of a of `links` how many entities of b it matches, and how many rows."""
    pairs = links.expanded().pairs
    times = np.bincount(pairs[:, 0], minlength=links.n_a)
    if entities is None:
        return times, times
    numbers = label_numbers(entities, links.n_b)
    # An item without a label is an entity of its own.
    own = np.where(numbers >= 0, numbers, numbers.max(initial=-1) + 1 + np.arange(len(numbers)))
    distinct = np.unique(np.stack([pairs[:, 0], own[pairs[:, 1]]], axis=1), axis=0)
    return np.bincount(distinct[:, 0], minlength=links.n_a), times
