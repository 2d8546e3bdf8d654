"""Lists of candidates for `retrieval_report(candidates=...)`: choose-among-T, and candidates of nearly equal mass.

Both return (indptr, indices): the candidates of row i of the querying side are `indices[indptr[i]:indptr[i + 1]]`,
ascending. This module is not about ranking them (`listed`); lists that come from a file need nothing from here.
"""

from typing import Any

import numpy as np

from bridgehead.errors import ArgumentError, NonFiniteRowsError, ShapeError
from bridgehead.evaluate.arguments import checked_seed, finite_number, whole_number
from bridgehead.evaluate.listed import distinct_keys
from bridgehead.links import Links
from bridgehead.vectors import IntArray, to_numpy

_AT_ONCE = 1 << 21
_SHOWN = 10


def choose_among(links: Links, n_candidates: int, t: int, seed: int = 0) -> tuple[IntArray, IntArray]:
    """Return for each row of a its true candidates and `t` - 1 others, drawn at random from those that are not true.

    So a query with one true candidate chooses among `t`, and chance at the first place is 1 / t. `n_candidates` is the
    number of rows of b with the further ones of a pool, at least `links.n_b`; for queries of b pass `links.swapped()`.
    Each set of `t` - 1 others is equally likely; a query with fewer others has all of them, one without truth has an
    empty list. The lists depend on `seed` and on the numbers of the rows. Raises `ArgumentError` for a t under 1 and
    for fewer candidates than `links` has.

    >>> indptr, indices = choose_among(Links.identity(100), 100, t=4, seed=0)
    >>> len(indices), all(i in indices[indptr[i] : indptr[i + 1]] for i in range(100))
    (400, True)
    """
    if not isinstance(links, Links):
        raise ArgumentError(f"links is a {type(links).__name__}; expected Links, which say how many rows there are")
    t, n_candidates = whole_number(t, "t", 1), whole_number(n_candidates, "n_candidates", links.n_b)
    starts, true = links.targets()
    rng = np.random.default_rng(checked_seed(seed))
    n_others = np.where(np.diff(starts) > 0, np.minimum(t - 1, n_candidates - np.diff(starts)), 0)
    many = 2 * n_others > n_candidates - np.diff(starts)
    queries, drawn = [np.repeat(np.arange(links.n_a), np.diff(starts))], [true]
    for rows, draw, step in (
        (np.flatnonzero(many), _by_keys, max(1, _AT_ONCE // max(1, n_candidates))),
        (np.flatnonzero(~many & (n_others > 0)), _by_places, max(1, _AT_ONCE // int(t))),
    ):
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            own, others = draw(part, n_others[part], (starts, true), n_candidates, rng)
            queries.append(part[own])
            drawn.append(others)
    return _as_lists(np.concatenate(queries), np.concatenate(drawn), links.n_a, n_candidates)


def within_tolerance(
    values_queries: Any, values_candidates: Any, tolerance: float, relative: bool = False
) -> tuple[IntArray, IntArray]:
    """Return for each query the candidates whose value differs from its own by at most `tolerance`.

    `values_queries` (n,) and `values_candidates` (N,) are numbers of one unit: precursor and molecular masses in Da, or
    retention times. With `relative` the tolerance is a share of the query's magnitude: 10 ppm is 1e-5. Bounds are
    inclusive, up to the rounding of float64. A query may have no candidate, and its true item may lie outside: the
    report counts it as missing. Time and memory are of the order of N log N and all that is listed. Raises `ShapeError`
    for other shapes, `NonFiniteRowsError` naming rows with NaN or infinity (leave those items out, or give them all
    candidates), and `ArgumentError` for what is no number and a tolerance that is negative or infinite.

    >>> within_tolerance([100.0, 250.0], [250.001, 100.0005, 99.9], 10e-6, relative=True)
    (array([0, 1, 2]), array([1, 0]))
    """
    queries, candidates = _values(values_queries, "values_queries"), _values(values_candidates, "values_candidates")
    width = finite_number(tolerance, "tolerance", "a number of 0 or more, finite", least=0)
    if not isinstance(relative, bool | np.bool_):
        raise ArgumentError(f"relative = {relative!r:.80}; expected True (tolerance is a share) or False")
    widths = np.abs(queries) * width if relative else np.full(len(queries), width)
    order = np.argsort(candidates, kind="stable")
    ordered = candidates[order]
    # One rounding of the bound must not cut off a value that is exactly at the tolerance.
    slack = 4 * np.finfo(np.float64).eps * np.abs(queries)
    first = np.searchsorted(ordered, queries - widths - slack, side="left")
    sizes = np.searchsorted(ordered, queries + widths + slack, side="right") - first
    query = np.repeat(np.arange(len(queries), dtype=np.int64), sizes)
    places = np.arange(len(query)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + np.repeat(first, sizes)
    return _as_lists(query, order[places], len(queries), len(candidates))


def _by_keys(
    rows: IntArray, n_others: IntArray, truth: tuple[IntArray, IntArray], n_candidates: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Draw most of the others: those with the least random keys, true ones having none."""
    keys = rng.random((len(rows), n_candidates))
    own, true = _true_of(rows, truth)
    keys[own, true] = np.inf
    ranked = np.argsort(keys, axis=1)
    query = np.repeat(np.arange(len(rows), dtype=np.int64), n_others)
    place = np.arange(len(query)) - np.repeat(np.cumsum(n_others) - n_others, n_others)
    return query, ranked[query, place].astype(np.int64)


def _by_places(
    rows: IntArray, n_others: IntArray, truth: tuple[IntArray, IntArray], n_candidates: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Draw a few of the others by their place among the others, again and again until none is there twice."""
    own, true = _true_of(rows, truth)
    n_true = np.bincount(own, minlength=len(rows))
    first = np.cumsum(n_true) - n_true
    size = n_candidates + 1
    found = np.zeros(0, dtype=np.int64)
    lacking = n_others
    while lacking.any():
        query = np.repeat(np.arange(len(rows), dtype=np.int64), lacking)
        drawn = query * size + rng.integers(0, (n_candidates - n_true)[query])
        found = distinct_keys(np.concatenate([found, drawn]))
        lacking = n_others - np.bincount(found // size, minlength=len(rows))
    query, place = np.divmod(found, size)
    # The true ones that stand before the other at this place: the j-th true one has true[j] - j others before it.
    others_before = own * size + true - (np.arange(len(own)) - first[own])
    passed = np.searchsorted(others_before, query * size + place, side="right") - first[query]
    return query, place + passed


def _true_of(rows: IntArray, truth: tuple[IntArray, IntArray]) -> tuple[IntArray, IntArray]:
    """Return (number in `rows`, true candidate), ascending."""
    starts, true = truth
    sizes = starts[rows + 1] - starts[rows]
    own = np.repeat(np.arange(len(rows), dtype=np.int64), sizes)
    return own, true[np.arange(len(own)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + np.repeat(starts[rows], sizes)]


def _as_lists(query: IntArray, candidate: IntArray, n_queries: int, n_candidates: int) -> tuple[IntArray, IntArray]:
    ordered = np.sort(query.astype(np.int64) * max(1, n_candidates) + candidate)
    query, candidate = np.divmod(ordered, max(1, n_candidates))
    return np.searchsorted(query, np.arange(n_queries + 1)).astype(np.int64), candidate


def _values(given: Any, name: str) -> Any:
    values = to_numpy(given)
    if values.ndim != 1:
        raise ShapeError(f"{name} has shape {values.shape}; expected one dimension (n,), a number for each item")
    if values.size and values.dtype.kind not in "fiu":
        raise ArgumentError(f"{name} has dtype {values.dtype}; expected numbers, one for each item")
    values = values.astype(np.float64)
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        shown = ", ".join(map(str, wrong[:_SHOWN].tolist())) + (", ..." if len(wrong) > _SHOWN else "")
        raise NonFiniteRowsError(f"{name} is NaN or infinite for {len(wrong)} items (rows {shown})")
    return values
