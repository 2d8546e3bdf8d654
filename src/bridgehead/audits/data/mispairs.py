"""Likely wrong pairs: declared partners that a model which never saw them ranks behind random ones.

A model that was trained on a pair may have memorised it, right or wrong; so rows come from models that were fitted
without it, the folds of a cross-validation, or the quick linear map of this folder. This module is not about whole
stretches of records out of order (`order`) or about descriptions that say too little (`quality`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridgehead.audits.data.linear_map import Float64Array, fit_linear_map, main_directions
from bridgehead.audits.data.stretches import looks_random
from bridgehead.audits.finding import Finding, Listing
from bridgehead.audits.given import check_entries, check_kind
from bridgehead.audits.listed import MOST_LISTED, namer
from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.evaluate.arguments import checked_seed, whole_number
from bridgehead.links import Links
from bridgehead.vectors import IntArray, block_rows, unit_rows

LEAST_LINKS = 64
"""Fewer links than this, and the share of wrong ones has an error of over a tenth."""
SOME, MANY = 0.05, 0.2
"""Estimated shares of wrong pairs above which it is worth reading the list, and above which nothing should be trained
before that: contrastive training bears a few percent of noise and loses much at a fifth."""
READABLE = 0.5
"""Estimated share from which the rows themselves are the likelier cause: they do not find partners at all."""
CLEAR = 0.02
"""Median place of the pairs that are taken for right, up to which a large share of others counts against the data: rows
that put right partners before 98 % of candidates do not put many of them last."""
TAIL, SHORT_TAIL = 0.2, 0.1
"""Part of the places, from the last on, whose density estimates the share of wrong pairs: right ones rarely stand
there, and a fifth is wide enough to count in. The further back, the fewer right ones that are hard to read, so that a
tenth is nearer to the truth where there are links enough for it."""
MANY_LINKS = 1000
"""Links from which the short tail is taken: a share of wrong ones at `SOME` puts ten places into it, of 2,000."""
BEHIND = 0.5
"""Place beyond which a pair is listed: behind half of the candidates, both ways."""
_SAME = 1e-9
_LARGEST = 0.2


@dataclass(frozen=True, eq=False)
class ScoredLinks:
    """Links under rows of a model that never saw them: z_a (n, d) and z_b (m, d) of any length, `links` over them.

    `items_a` and `items_b` are the numbers of the rows' items in the whole table (default: their own numbers).
    """

    z_a: Any
    z_b: Any
    links: Links
    items_a: Any = None
    items_b: Any = None


def linear_folds(
    rows_a: Any, rows_b: Any, links: Links, n_folds: int = 5, rank: int = 128, seed: int = 0
) -> list[ScoredLinks]:
    """Return the links in folds, each under the linear map (`linear_map`) of the other folds' links.

    Raw rows, dense or CSR, in `rank` main directions. Links that share an item, through others too, come into one fold,
    where no such component holds over a fifth of a; else all links of an item of a do. Raises `ArgumentError` for fewer
    than 64 links or a number of folds under 2, `ShapeError`, `NonFiniteRowsError`. Costs about 3 s for 10,000 sparse
    rows on one core.
    """
    check_kind(Links, links=links)
    n_folds, seed = whole_number(n_folds, "n_folds", 2), checked_seed(seed)
    x, y = main_directions(rows_a, "rows of a", rank, seed), main_directions(rows_b, "rows of b", rank, seed)
    if (len(x), len(y)) != (links.n_a, links.n_b):
        raise ShapeError(f"rows are {len(x)} and {len(y)}; expected {links.n_a} and {links.n_b}, as links are over")
    pairs = _enough(links)
    units = links.components()[0]
    if np.bincount(units).max() > _LARGEST * links.n_a:
        units = np.arange(links.n_a)
    fold = (np.random.default_rng(seed).permutation(int(units.max()) + 1) % n_folds)[units]
    found = []
    for number in range(n_folds):
        mine = fold[pairs[:, 0]] == number
        if not mine.any():
            continue
        mapping = fit_linear_map(x, y, pairs[~mine])
        items_a, items_b = np.unique(pairs[mine, 0]), np.unique(pairs[mine, 1])
        found.append(
            ScoredLinks(
                mapping.project_a(x[items_a]),
                mapping.project_b(y[items_b]),
                links.within(items_a, items_b),
                items_a,
                items_b,
            )
        )
    return found


def mispair_findings(
    folds: Sequence[ScoredLinks],
    *,
    ids_a: Sequence[Any] | None = None,
    ids_b: Sequence[Any] | None = None,
    names: tuple[str, str] = ("a", "b"),
    n_pool: int = 1000,
    seed: int = 0,
) -> list[Finding]:
    """Return what share of the declared pairs is likely wrong, and the twenty that look worst.

    `folds` hold rows from models that saw none of their links: those of a cross-validation, `linear_folds`, or a test
    part under trained heads. For each link, u is the place of the partner among at most `n_pool` random candidates of
    the fold that are not linked, in both directions: 1 / (pool + 1) is before all, 1 behind all, ties count half. Right
    partners have small u; wrong ones have u even over (0, 1), so that the share of u above 0.8, divided by 0.2 (0.9
    and 0.1 from 1,000 links on), is an estimate of the share of wrong pairs, from above: right pairs that the model
    cannot read count too (the estimate of Storey 2002, "A direct approach to false discovery rates").

    One finding, of the group "data": value is that share, at most 1. It passes to 0.05, warns to 0.2 and fails above,
    unless the rows place the better 1 - share of the pairs only loosely (median over 0.02), which warns as well.
    Where it is over 0.5, or partners look random on the whole (`stretches.looks_random`; value 1), the rows find
    none, which warns, for nothing can be said of single pairs. Listed are the pairs behind half of the candidates in
    both directions, the worst first (by the better of the two places), with the candidate that fits best instead.

    Raises `ArgumentError` for fewer than 64 links or a pool under 1, `ShapeError`, `NonFiniteRowsError`. Costs under a
    second for 10,000 links and the default pool.
    """
    n_pool, seed = whole_number(n_pool, "n_pool", 1), checked_seed(seed)
    check_entries(folds, None, "folds", "as linear_folds returns them")
    for number, fold in enumerate(folds):
        check_kind(ScoredLinks, **{f"folds[{number}]": fold})
    judged = [_Judged.of(fold, n_pool, seed) for fold in folds]
    total = sum(len(each.pairs) for each in judged)
    if total < LEAST_LINKS:
        raise ArgumentError(f"there are {total} links; expected at least {LEAST_LINKS} to judge single ones by")
    places = np.concatenate([each.places for each in judged])
    tail = SHORT_TAIL if total >= MANY_LINKS else TAIL
    share = float(min(1.0, (places > 1 - tail).mean() / tail))
    if looks_random(-np.log(places.ravel())):
        share = 1.0
    called = (
        _names(ids_a, [each.items_a for each in judged], "ids_a"),
        _names(ids_b, [each.items_b for each in judged], "ids_b"),
    )
    title, expected = "likely wrong pairs", f"at most {SOME:g} of the declared pairs"
    figures = (
        f"{int((places.min(axis=1) > BEHIND).sum()):,} of {total:,} pairs stand behind half of the candidates both ways"
    )
    if share > READABLE:
        why = (
            f"{figures}: these rows hardly find declared partners at all, so no single pair can be judged; the links "
            "may be wrong everywhere (see the order of records), or the rows say too little"
        )
        return [Finding(title, share, expected, "warn", why, "data")]
    listed = _listed(judged, called, names)
    if share <= SOME:
        return [Finding(title, share, expected, "pass", figures, "data", listed=listed)]
    why = f"{figures}: read those listed, and mend or drop what is wrong before training; some may only be hard to read"
    loose = float(np.quantile(places, (1 - share) / 2))
    if share > MANY and loose <= CLEAR:
        return [Finding(title, share, expected, "fail", why, "data", listed=listed)]
    if loose > CLEAR:
        why += (
            f", for these rows place right partners only loosely (median {loose:.2f}), and the share is an upper bound"
        )
    return [Finding(title, share, expected, "warn", why, "data", listed=listed)]


@dataclass(frozen=True, eq=False)
class _Judged:
    """A fold with the places of its links, (n_links, 2): u from a to b, and from b to a."""

    z_a: Float64Array
    z_b: Float64Array
    links: Links
    pairs: IntArray
    items_a: IntArray
    items_b: IntArray
    places: Float64Array

    @classmethod
    def of(cls, fold: ScoredLinks, n_pool: int, seed: int) -> "_Judged":
        z_a: Float64Array = np.asarray(unit_rows(fold.z_a, "z_a", dtype=np.float64), dtype=np.float64)
        z_b: Float64Array = np.asarray(unit_rows(fold.z_b, "z_b", dtype=np.float64), dtype=np.float64)
        if z_a.shape[1] != z_b.shape[1]:
            raise ShapeError(f"z_a has {z_a.shape[1]} columns and z_b {z_b.shape[1]}; both must live in one space")
        links = Links.of(fold.links, len(z_a), len(z_b))
        pairs = links.expanded().pairs
        there = _places(z_a, z_b, links, pairs, n_pool, seed)
        back = _places(z_b, z_a, links.swapped(), pairs[:, ::-1], n_pool, seed)
        places = np.stack([there, back], axis=1)
        return cls(z_a, z_b, links, pairs, _items(fold.items_a, len(z_a)), _items(fold.items_b, len(z_b)), places)

    def instead(self, row: int) -> int:
        """Return the row of b, not linked to `row` of a, that fits it best, or -1 where all are linked."""
        scores = self.z_b @ self.z_a[row]
        scores[self.links.matrix[[row]].indices] = -np.inf
        best = int(np.argmax(scores))
        return best if np.isfinite(scores[best]) else -1


def _names(ids: Sequence[Any] | None, items: list[IntArray], name: str) -> Callable[[int], str]:
    """Return what items are called, whose numbers in the whole table are `items`."""
    n = 1 + max(int(numbers.max(initial=-1)) for numbers in items)
    if ids is not None:
        check_entries(ids, None, name)
    if ids is not None and len(ids) < n:
        raise ShapeError(f"{name} has {len(ids)} entries; expected {n} or more, one for each item of the table")
    return namer(ids, n if ids is None else len(ids), name)


def _items(items: Any, n: int) -> IntArray:
    numbers = np.arange(n, dtype=np.int64) if items is None else np.asarray(items, dtype=np.int64)
    if numbers.shape != (n,):
        raise ShapeError(f"items have shape {numbers.shape}; expected ({n},), one number for each row")
    return numbers


def _places(
    z_queries: Float64Array, z_candidates: Float64Array, links: Links, pairs: IntArray, n_pool: int, seed: int
) -> Float64Array:
    """Return the place u of the partner of each pair (query, candidate) among a random pool that is not linked."""
    pool = np.sort(np.random.default_rng(seed).permutation(len(z_candidates))[:n_pool])
    linked = links.matrix.tocsc()[:, pool].tocsr()
    found = np.empty(len(pairs))
    step = block_rows(len(pool), 8)
    for start in range(0, len(pairs), step):
        query, candidate = pairs[start : start + step].T
        scores = z_queries[query] @ z_candidates[pool].T
        own = np.einsum("ij,ij->i", z_queries[query], z_candidates[candidate])[:, None]
        truth = linked[query]
        rows = np.repeat(np.arange(len(query)), np.diff(truth.indptr))
        scores[rows, truth.indices] = -np.inf
        above = (scores > own + _SAME).sum(axis=1)
        tied = (scores >= own - _SAME).sum(axis=1) - above
        others = len(pool) - np.diff(truth.indptr)
        found[start : start + step] = (1 + above + tied / 2) / (others + 1)
    return found


def _enough(links: Links) -> IntArray:
    pairs = links.expanded().pairs
    if len(pairs) < LEAST_LINKS:
        raise ArgumentError(f"there are {len(pairs)} links; expected at least {LEAST_LINKS} to judge single ones by")
    return pairs


def _listed(judged: list[_Judged], called: tuple[Any, Any], names: tuple[str, str]) -> Listing | None:
    fold = np.repeat(np.arange(len(judged)), [len(each.pairs) for each in judged])
    pairs = np.concatenate([each.pairs for each in judged])
    items = np.concatenate([np.stack([e.items_a[e.pairs[:, 0]], e.items_b[e.pairs[:, 1]]], axis=1) for e in judged])
    places = np.concatenate([each.places for each in judged])
    better = places.min(axis=1)
    flagged = np.flatnonzero(better > BEHIND)
    if len(flagged) == 0:
        return None
    order = flagged[np.lexsort((items[flagged, 1], items[flagged, 0], -better[flagged]))]
    rows = []
    for link in order[:MOST_LISTED].tolist():
        own = judged[int(fold[link])]
        best = own.instead(int(pairs[link, 0]))
        instead = called[1](int(own.items_b[best])) if best >= 0 else ""
        u = [round(float(place), 4) for place in places[link]]
        rows.append([called[0](int(items[link, 0])), called[1](int(items[link, 1])), *u, instead])
    columns = (names[0], names[1], f"place of the {names[1]}", f"place of the {names[0]}", f"{names[1]} that fits best")
    note = "place: 0 is before all candidates, 1 behind all; that of a random partner is 0.5 on average"
    return Listing(columns, rows, len(order), note)
