"""The ceiling of recall@1: what no scorer can exceed, because some rows cannot be told apart.

Identical candidate rows tie under every scorer of rows, and identical queries rank alike. This module is not about
what a model reached (`evaluate`) or about rows that are only near (`leakage.rows`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from bridgehead.audits.finding import Finding, Verdict
from bridgehead.audits.given import check_kind
from bridgehead.audits.listed import namer, worst
from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.evaluate import RetrievalReport
from bridgehead.evaluate.arguments import checked_names
from bridgehead.links import Links
from bridgehead.vectors import IntArray, check_rows, to_numpy

WARN_BELOW, FAIL_BELOW = 0.95, 0.5
"""A ceiling of 0.95 costs less than the interval of a recall at most sizes; under a half, recall@1 says more about
duplicates than about any model."""

_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Ceiling:
    """The highest recall@1 that is possible in one direction, and where it is lost.

    `value` in [0, 1] is the mean over `n_queries` queries with a true candidate. The other fields have an entry for
    each class of queries that cannot be told apart and loses something, the most first: `queries` (its first query),
    `n_alike` (queries in it), `candidates` (the first candidate of the class that it should rank first), `n_tied`
    (candidates in that class) and `lost` (expected number of queries that miss although they are ranked best).
    """

    value: float
    n_queries: int
    queries: IntArray
    n_alike: IntArray
    candidates: IntArray
    n_tied: IntArray
    lost: Any


def row_classes(rows: Any, name: str = "rows") -> IntArray:
    """Return a number for each row, dense or CSR (n, d), that identical rows share and others do not, (n,).

    Rows are compared bit by bit as float32 or float64, 0.0 and -0.0 alike, explicit zeros of a sparse matrix left out.
    Rows that differ in length alone are not identical: heads may see it. Numbers run from 0 in order of first
    appearance. Raises as `check_rows`.
    """
    checked = check_rows(rows, name)
    codes: dict[bytes, int] = {}
    found = np.empty(checked.shape[0], dtype=np.int64)
    if hasattr(checked, "indptr"):
        csr = checked.copy()
        csr.eliminate_zeros()
        indices = csr.indices.astype(np.int64)
        bounds = csr.indptr.tolist()
        for i, (start, stop) in enumerate(pairwise(bounds)):
            key = blake2b(indices[start:stop].tobytes() + csr.data[start:stop].tobytes(), digest_size=20).digest()
            found[i] = codes.setdefault(key, len(codes))
        return found
    for i, row in enumerate(checked):
        found[i] = codes.setdefault(blake2b((row + 0.0).tobytes(), digest_size=20).digest(), len(codes))
    return found


def recall_ceiling(links: Links, classes_a: Any = None, classes_b: Any = None, queries: Any = None) -> Ceiling:
    """Return the highest expected recall@1 of queries of a over candidates of b that any scorer can reach.

    `classes_a` (n_a,) and `classes_b` (n_b,) are integers that rows share which cannot be told apart (`row_classes`;
    None: all can). All queries i of one class Q rank alike, and the t candidates of one class C tie, so putting C first
    gives query i an expected hit of p_i(C) / t, with p_i(C) true ones among them. The best choice for Q is

        max over C of sum over i in Q of p_i(C) / t(C)

    and the ceiling is its sum over all Q divided by the number of queries. It is reached by a scorer that knows the
    links. `queries` (n_a,) is an optional boolean mask. Queries without a true candidate do not count; when there is no
    other the result has `n_queries` 0 and the value 0. Truth includes what groups share. The other direction is that of
    `links.swapped()`. Raises `ShapeError` for arrays of other lengths and `ArgumentError` for what is no integer.

    >>> import numpy as np
    >>> recall_ceiling(Links.identity(4), classes_b=np.array([0, 0, 1, 2])).value
    0.75
    """
    check_kind(Links, links=links)
    of_a, of_b = _classes(classes_a, links.n_a, "classes_a"), _classes(classes_b, links.n_b, "classes_b")
    indptr, columns = links.targets()
    asked = np.diff(indptr) > 0
    if queries is not None:
        mask = to_numpy(queries)
        if mask.shape != (links.n_a,) or mask.dtype != np.bool_:
            raise ShapeError(
                f"queries is {mask.dtype} of shape {mask.shape}; expected a boolean mask ({links.n_a},) of rows"
            )
        asked &= mask
    query = np.repeat(np.arange(links.n_a), np.diff(indptr))
    kept = asked[query]
    tied = np.bincount(of_b, minlength=1)
    row, column = of_a[query[kept]], of_b[columns[kept]]
    hits = sparse.coo_array((1 / tied[column], (row, column)), shape=(int(of_a.max(initial=0)) + 1, len(tied))).tocsr()
    n_queries = int(asked.sum())
    members = np.flatnonzero(asked)
    alike = np.bincount(of_a[members], minlength=hits.shape[0])
    best = np.zeros(hits.shape[0])
    choice = np.full(hits.shape[0], -1, dtype=np.int64)
    if hits.nnz:
        best = np.asarray(hits.max(axis=1).todense()).ravel()
        choice = np.asarray(hits.argmax(axis=1)).ravel().astype(np.int64)
    return _ceiling(best, choice, alike, tied, _first(of_a, members), _first(of_b, np.arange(links.n_b)), n_queries)


def _ceiling(
    best: Any, choice: IntArray, alike: IntArray, tied: IntArray, first_a: IntArray, first_b: IntArray, n_queries: int
) -> Ceiling:
    lost = alike - best
    order = np.flatnonzero(lost > _ROUNDING)
    order = order[np.lexsort((first_a[order], -np.round(lost[order], 9)))]
    return Ceiling(
        value=float(best.sum() / n_queries) if n_queries else 0.0,
        n_queries=n_queries,
        queries=first_a[order],
        n_alike=alike[order].astype(np.int64),
        candidates=first_b[choice[order]],
        n_tied=tied[choice[order]].astype(np.int64),
        lost=lost[order],
    )


def ceiling_findings(
    links: Links,
    classes_a: Any,
    classes_b: Any,
    *,
    report: RetrievalReport | None = None,
    queries_a: Any = None,
    queries_b: Any = None,
    ids_a: Sequence[str] | None = None,
    ids_b: Sequence[str] | None = None,
    names: tuple[str, str] = ("a", "b"),
    what: str = "identical rows",
) -> list[Finding]:
    """Return, for both directions, the highest recall@1 that rows (or items) which cannot be told apart allow.

    `classes_a` and `classes_b` are those of `recall_ceiling`: `row_classes` of the encoders' rows, or numbers that
    equal texts share; `what` says which in words. Under 0.95 it warns, under 0.5 it fails. With a `report` on the same
    links and queries (`queries_a`, `queries_b`) the measured recall@1 stands beside it where k = 1 is among its ks, and
    one above the ceiling fails: then something other than the rows told them apart, such as their order in the file.
    The listing names the queries that lose most. A direction without a query that has a true candidate gives no
    finding. Cost: a fraction of a second for 10,000 pairs. Errors as in `recall_ceiling`.
    """
    check_kind(Links, links=links)
    if report is not None:
        check_kind(RetrievalReport, report=report)
    names = checked_names(names)
    names_of = namer(ids_a, links.n_a, "ids_a"), namer(ids_b, links.n_b, "ids_b")
    found = []
    for query, truth, (own, other), mask in (
        (0, links, (classes_a, classes_b), queries_a),
        (1, links.swapped(), (classes_b, classes_a), queries_b),
    ):
        ceiling = recall_ceiling(truth, own, other, mask)
        if ceiling.n_queries:
            measured = None
            if report is not None:
                measured = (report.b_to_a if query else report.a_to_b).values.get("recall@1")
            shown = (names[query], names[1 - query])
            found.append(_finding(ceiling, measured, shown, names_of[query], names_of[1 - query], what))
    return found


def _finding(
    ceiling: Ceiling, measured: float | None, shown: tuple[str, str], name_query: Any, name_candidate: Any, what: str
) -> Finding:
    query, candidate = shown
    value = ceiling.value
    verdict: Verdict = "pass" if value >= WARN_BELOW else "warn" if value >= FAIL_BELOW else "fail"
    why = f"with {what}, no scorer finds more than {value:.1%} of {ceiling.n_queries:,} {query} queries at rank 1"
    if verdict != "pass":
        why += "; read recall at larger k, count equal items as one, or link every item to what fits it"
    if measured is not None:
        why += f" (measured: {measured:.1%})"
        if measured > value + _ROUNDING:
            verdict = "fail"
            why += ", and what was measured lies above: the ranking knows more than the rows, or another truth was used"
    columns = (query, f"{query} items alike", f"best {candidate}", f"{candidate} items tied", "queries lost")
    rows = [
        (name_query(int(a)), int(alike), name_candidate(int(b)), int(tied), round(float(lost), 3))
        for a, alike, b, tied, lost in zip(
            ceiling.queries, ceiling.n_alike, ceiling.candidates, ceiling.n_tied, ceiling.lost, strict=True
        )
    ]
    return Finding(
        f"ceiling of recall@1 under {what}, {query} -> {candidate}",
        value,
        f"at least {WARN_BELOW:g}, under {FAIL_BELOW:g} fails",
        verdict,
        why,
        "false negatives",
        listed=worst(columns, rows),
    )


def _classes(classes: Any, n: int, name: str) -> IntArray:
    if classes is None:
        return np.arange(n, dtype=np.int64)
    array = to_numpy(classes)
    if array.shape != (n,):
        raise ShapeError(f"{name} has shape {array.shape}; expected ({n},), a number for each row")
    if array.size and array.dtype.kind not in "iu":
        raise ArgumentError(f"{name} has dtype {array.dtype}; expected integers, such as those of row_classes")
    return np.unique(array, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _first(classes: IntArray, members: IntArray) -> IntArray:
    """Return the first of `members` in each class, -1 where there is none."""
    found = np.full(int(classes.max(initial=-1)) + 1, -1, dtype=np.int64)
    found[classes[members][::-1]] = members[::-1]
    return found
