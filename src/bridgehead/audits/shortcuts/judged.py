"""Shortcuts: how much of a model's recall a scorer reaches that looks at nothing but a nuisance.

A pair may be told by its lengths, its words, a name in the text or where it comes from. Here such scorers rank the same
candidates as the model, untrained, and their recall is held against chance and against the model's. Scorers of words
and names are in `word_overlap` and `named`; a tag planted to see whether training falls for it is in `source_tag`.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse, stats

from bridgehead.audits.finding import Finding, Verdict
from bridgehead.audits.given import check_called, check_entries, check_kind
from bridgehead.audits.leakage.keys import keys_of
from bridgehead.errors import ArgumentError, LinksError, ShapeError
from bridgehead.evaluate import DirectionReport, RetrievalReport, report_from_scores
from bridgehead.evaluate.arguments import checked_names, checked_seed, whole_number
from bridgehead.links import Links
from bridgehead.vectors import IntArray, block_rows, to_numpy

WARN_SHARE, FAIL_SHARE = 0.25, 0.75
"""Where a nuisance alone reaches a quarter of what the model finds above chance, the model's figure cannot be read
without it; where it reaches three quarters, little is left that the model can claim."""

Float64Array = npt.NDArray[np.float64]
Scorer = Callable[[IntArray], Float64Array]
"""Takes numbers of query rows and returns their scores against all candidates, (len, N); higher is better."""

_BLOCK_BYTES = 64 << 20


def shortcut_findings(
    what: str,
    forth: Scorer,
    back: Scorer,
    links: Links,
    *,
    model: RetrievalReport | None = None,
    k: int = 10,
    queries_a: Any = None,
    queries_b: Any = None,
    entities_a: Any = None,
    entities_b: Any = None,
    max_queries: int = 2000,
    seed: int = 0,
    names: tuple[str, str] = ("a", "b"),
) -> list[Finding]:
    """Return, for both directions, recall@k of a scorer that looks at `what` alone, beside chance and the model.

    `forth` scores rows of a against all n_b rows of b, `back` rows of b against all of a; `links` are those of the test
    part, and every row of a side is a candidate. `model` is the trained model's report on the same links and pool. With
    the shortcut's recall r, chance c, the upper end u of chance's 95 % interval and the model's recall m:

    - r at most u: it finds no more than random ranking does, and passes;
    - otherwise its share of what the model finds above chance, (r - c) / (m - c), is held against 0.25 (warn) and 0.75
      (fail). Without a model, or with one at chance itself, r above u warns.

    `queries_a`, `queries_b` are boolean masks of the rows that are queries, `entities_a`, `entities_b` labels that make
    chance's interval as wide as evaluation makes it. More than `max_queries` queries are sampled with `seed`, which
    `why` says; the model's recall is taken over the same ones. Raises
    `ArgumentError` when the model lacks recall@k or ranked another number of candidates, `LinksError` when a direction
    has no query with truth, and as `report_from_scores`.
    """
    check_called(forth=forth, back=back)
    check_kind(Links, links=links)
    if model is not None:
        check_kind(RetrievalReport, model=model)
    names, max_queries = checked_names(names), whole_number(max_queries, "max_queries", 1)
    found = []
    for side, scorer, truth, mask, entities in (
        ("a", forth, links, queries_a, entities_a),
        ("b", back, links.swapped(), queries_b, entities_b),
    ):
        shown = names if side == "a" else names[::-1]
        rows, n = _sampled(truth, mask, max_queries, seed, side, shown)
        report = _direction(scorer, truth, rows, entities, k)
        trained = None if model is None else _trained(model.a_to_b if side == "a" else model.b_to_a, report, rows, k)
        sampled = f"; {len(rows):,} of {n:,} queries looked at" if len(rows) < n else ""
        found.append(_finding(what, shown, report, trained, k, sampled))
    return found


def length_shortcut(lengths_a: Any, lengths_b: Any, links: Links, **options: Any) -> list[Finding]:
    """Return `shortcut_findings` of ranking by length alone: a long item gets a long partner.

    `lengths_a` (n_a,) and `lengths_b` (n_b,) are any numbers that say how much there is of an item (atoms, words,
    peaks). Each becomes its average rank on its side, from 0 to 1, and score(a, b) = -|rank a - rank b|; where the
    linked items run against each other (a negative rank correlation) the ranks of b are turned around. `options` are
    those of `shortcut_findings`. Raises `ArgumentError` for lengths that are no finite numbers and `ShapeError` for
    lists of other lengths.
    """
    check_kind(Links, links=links)
    rank_a, rank_b = _ranks(lengths_a, links.n_a, "lengths_a"), _ranks(lengths_b, links.n_b, "lengths_b")
    pairs = links.expanded().pairs
    left, right = rank_a[pairs[:, 0]], rank_b[pairs[:, 1]]
    if len(pairs) and float(((left - left.mean()) * (right - right.mean())).sum()) < 0:
        rank_b = 1 - rank_b
    return shortcut_findings(
        "length",
        lambda rows: -np.abs(rank_a[rows][:, None] - rank_b),
        lambda rows: -np.abs(rank_b[rows][:, None] - rank_a),
        links,
        **options,
    )


def column_shortcut(
    values_a: Sequence[Any], values_b: Sequence[Any], links: Links, *, column: str, **options: Any
) -> list[Finding]:
    """Return `shortcut_findings` of ranking by a metadata column: 1 where a value is the same, 0 elsewhere.

    `values_a` (n_a entries) and `values_b` (n_b) are the column's values of each item: one, or several in a tuple, list
    or set for an item of several records; None, NaN and "" equal nothing. A source, an instrument, an ion mode: what is
    recorded with a pair rather than said by it. `column` is its name. Errors as in `shortcut_findings`, and
    `ShapeError` for lists of other lengths.
    """
    check_kind(Links, links=links)
    check_entries(values_a, links.n_a, "values_a")
    check_entries(values_b, links.n_b, "values_b")
    held_a, held_b = memberships([keys_of(one) for one in values_a], [keys_of(one) for one in values_b])
    return shortcut_findings(
        f"column {column}",
        lambda rows: (products(held_a[rows], held_b) > 0).astype(np.float64),
        lambda rows: (products(held_b[rows], held_a) > 0).astype(np.float64),
        links,
        **options,
    )


def memberships(left: Sequence[Iterable[Hashable]], right: Sequence[Iterable[Hashable]]) -> tuple[Any, Any]:
    """Return two CSR matrices (items, labels) of ones where an item has a label, over the labels that both sides have.

    Columns are in the order in which the labels come first on the left, so equal input gives equal matrices.
    """
    both = {label for entry in right for label in entry}
    codes: dict[Hashable, int] = {}
    for entry in left:
        for label in entry:
            if label in both:
                codes.setdefault(label, len(codes))
    found = []
    for side in (left, right):
        pairs = [(i, codes[label]) for i, entry in enumerate(side) for label in dict.fromkeys(entry) if label in codes]
        rows, columns = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        shape = (len(side), len(codes))
        found.append(sparse.csr_array(sparse.coo_array((np.ones(len(rows)), (rows, columns)), shape=shape)))
    return found[0], found[1]


def products(rows: Any, others: Any) -> Float64Array:
    """Return rows @ others.T of two CSR matrices as a dense float64 array, in blocks of 64 MB."""
    found = np.empty((rows.shape[0], others.shape[0]))
    step = block_rows(rows.shape[1] + others.shape[0], 8, _BLOCK_BYTES)
    for start in range(0, rows.shape[0], step):
        block = np.ascontiguousarray(rows[start : start + step].toarray().T, dtype=np.float64)
        found[start : start + step] = (others @ block).T
    return found


def _ranks(lengths: Any, n: int, name: str) -> Float64Array:
    array = to_numpy(lengths)
    if array.shape != (n,):
        raise ShapeError(f"{name} has shape {array.shape}; expected ({n},), one for each item")
    if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
        raise ArgumentError(f"{name} is {array.dtype} or holds NaN or infinity; expected finite numbers")
    return np.asarray((stats.rankdata(array) - 0.5) / max(1, n), dtype=np.float64)


def _sampled(truth: Links, mask: Any, most: int, seed: int, side: str, names: tuple[str, ...]) -> tuple[IntArray, int]:
    """Return the rows of the queries that are looked at, ascending, and how many there are in all."""
    asked = np.diff(truth.targets()[0]) > 0
    if mask is not None:
        chosen = to_numpy(mask)
        if chosen.shape != asked.shape or chosen.dtype != np.bool_:
            raise ShapeError(
                f"queries_{side} is {chosen.dtype} of shape {chosen.shape}; expected a boolean mask {asked.shape}"
            )
        asked = asked & chosen
    rows = np.flatnonzero(asked)
    if not len(rows):
        raise LinksError(f"{names[0]} -> {names[1]}: no query has a true candidate; expected links of the test part")
    kept = np.random.default_rng(checked_seed(seed)).choice(len(rows), size=min(most, len(rows)), replace=False)
    return rows[np.sort(kept)], len(rows)


def _direction(scorer: Scorer, truth: Links, rows: IntArray, entities: Any, k: int) -> DirectionReport:
    """Return the report of one direction on queries `rows` alone: rows of no interest are not scored."""
    indptr, columns = truth.targets()
    degree = np.diff(indptr)[rows]
    places = np.repeat(indptr[rows] - np.cumsum(degree) + degree, degree) + np.arange(degree.sum())
    pairs = np.stack([np.repeat(np.arange(len(rows)), degree), columns[places]], axis=1)
    labels = None if entities is None else to_numpy(entities)
    if labels is not None and labels.shape != (truth.n_a,):
        raise ShapeError(f"entities have shape {labels.shape}; expected ({truth.n_a},), a label for each row")
    # A report has two directions: of the other, which nobody reads, one query with constant scores is the least.
    one = np.zeros(truth.n_b, dtype=bool)
    one[pairs[0, 1]] = True
    return report_from_scores(
        lambda part: scorer(rows[part]),
        lambda part: np.zeros((part.stop - part.start, len(rows))),
        links=Links(pairs, len(rows), truth.n_b),
        ks=(k,),
        entities_a=None if labels is None else labels[rows],
        queries_b=one,
        n_resamples=0,
    ).a_to_b


def _trained(model: DirectionReport, shortcut: DirectionReport, rows: IntArray, k: int) -> tuple[float, float]:
    """Return the model's recall@k and the upper end of chance's interval for it."""
    metric = f"recall@{k}"
    if metric not in model.values:
        raise ArgumentError(f"the model's report has no {metric}; it has {', '.join(model.values)}")
    if (model.pool != shortcut.n_candidates).any():
        raise ArgumentError(
            f"the model's queries ranked {model.pool.min():,} to {model.pool.max():,} candidates and the shortcut's "
            f"{shortcut.n_candidates:,}; expected one pool: a recall over another number cannot be compared"
        )
    same = np.isin(model.queries, rows)
    value = float(model.per_query[metric][same].mean()) if same.any() else model.values[metric]
    return value, model.chance_interval(metric)[1]


def _finding(
    what: str,
    names: tuple[str, ...],
    shortcut: DirectionReport,
    model: tuple[float, float] | None,
    k: int,
    sampled: str,
) -> Finding:
    metric = f"recall@{k}"
    value, chance, (low, bound) = shortcut.values[metric], shortcut.chance[metric], shortcut.chance_interval(metric)
    verdict: Verdict = "pass"
    limit = bound
    against = "the upper end of chance"
    if model is not None and model[0] > model[1]:
        reached = (value - chance) / (model[0] - chance)
        if (quarter := chance + WARN_SHARE * (model[0] - chance)) > bound:
            limit, against = quarter, f"{WARN_SHARE:.0%} of what the model finds above chance"
        why = f"{what} alone reaches {max(0.0, reached):.0%} of what the model ({model[0]:.3f}) finds above chance"
        if value > bound and reached > WARN_SHARE:
            verdict = "fail" if reached > FAIL_SHARE else "warn"
    elif value > bound:
        verdict = "warn"
        why = f"{what} alone finds more than random ranking does"
        why += "" if model is None else f", and the model ({model[0]:.3f}) does not"
    else:
        why = f"{what} alone finds no more than random ranking does"
    return Finding(
        f"retrieval by {what} alone, {names[0]} -> {names[1]}, {metric}",
        value,
        f"at most {limit:.4f}, {against}",
        verdict,
        f"{why} (chance {chance:.4f}, {low:.4f} to {bound:.4f}){sampled}",
        "shortcuts",
    )
