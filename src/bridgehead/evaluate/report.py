"""`retrieval_report` and `report_from_scores`: from rows or scorers, and links, to metrics with interval and chance.

This module puts the parts together: who asks what (`asked`), tie levels (`exact`, `scored`, `listed`), and the record
with metrics, intervals and chance (`record`). It sees rows and scores, never a model.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.evaluate.asked import (
    Direction,
    Settings,
    both_directions,
    links_with_pool,
    pair_of,
    rows_with_pool,
)
from bridgehead.evaluate.listed import levels_of_listed_rows, levels_of_listed_scores
from bridgehead.evaluate.ranks.exact import CosineRows, levels_both_ways, levels_of_rows
from bridgehead.evaluate.record import RetrievalReport
from bridgehead.evaluate.scored import BlockFunction, columns_of, kept_when_small, levels_of_scores
from bridgehead.evaluate.ties import Float64Array, TieLevels
from bridgehead.links import Links


def retrieval_report(
    z_a: Any,
    z_b: Any,
    links: Any = None,
    ks: Sequence[int] = (1, 5, 10),
    names: tuple[str, str] = ("a", "b"),
    entities_a: Any = None,
    entities_b: Any = None,
    block: int | None = None,
    n_resamples: int = 1000,
    seed: int = 0,
    queries_a: Any = None,
    queries_b: Any = None,
    pool: tuple[Any, Any] | None = None,
    candidates: tuple[Any, Any] | None = None,
) -> RetrievalReport:
    """Return how well each side's rows find their matches on the other side, by cosine, in both directions.

    `z_a` (n_a, d) and `z_b` (n_b, d) are arrays or tensors of any length of row; rows are normalised here, and a zero
    row has cosine 0 with everything. Every row of a side is a candidate, linked or not. `links` is truth: `Links`,
    (n, 2) pairs, or None for row i with row i; many-to-many. `ks`: the k of recall@k, at least 1; k above the number
    of candidates counts as that number. `entities_a`, `entities_b`: a label for each row; intervals resample entities
    of the queries (default: every row its own). `block`: queries at once; results do not depend on it. `n_resamples`:
    bootstrap resamples, 0 for no intervals. `queries_a`, `queries_b`: boolean masks; only these rows are queries, all
    rows stay candidates.

    `pool`: further candidate rows (of side a or None, of side b or None), which are never queries. They are numbered
    after the side's own rows and are wrong answers, but where `links` are pairs, or `Links` over all rows with the
    pool's, that name them.

    `candidates`: what each query ranks, (lists of the queries of a or None, of the queries of b or None); a list for
    each row of the querying side, in a form that `listed.CandidateLists.of` takes, of row numbers of the other side
    with its pool. None ranks every row. Lists may differ in length: chance, ties and intervals are those of each
    query's own list. A true item that the list lacks is not dropped: it counts as not retrieved, and `n_true_missing`
    says how many there are. Where a list lacks all true items, recall and reciprocal rank are 0, and the rank is
    counted as the list's length + 1 (which flatters mean and median rank where lists are short).

    Every metric is its exact expectation over the random orders of tied candidates; cosines (float64) that differ by
    at most 1e-12 are tied. A constant scorer over N candidates with one true one has recall@k = k / N and MRR =
    H_N / N. Queries without truth are left out and counted.

    Raises `NonFiniteRowsError` naming rows with NaN or infinity, `ShapeError` for arrays that do not fit,
    `ArgumentError` for lists that name a row that there is not, and `LinksError` when a direction has no query with
    truth.

    >>> import numpy as np
    >>> report = retrieval_report(np.eye(4), np.eye(4), ks=(1, 2), n_resamples=0)
    >>> report.a_to_b.recall[1], report.a_to_b.chance_recall[2]
    (1.0, 0.5)
    >>> lists = [[0, 1], [1, 2, 3], [2], [0]]  # the last one lacks its true item, 3
    >>> found = retrieval_report(np.eye(4), np.eye(4), ks=(1,), n_resamples=0, candidates=(lists, None)).a_to_b
    >>> found.recall[1], round(found.chance_recall[1], 3), found.n_true_missing  # chance: (1/2 + 1/3 + 1 + 0) / 4
    (0.75, 0.458, 1)
    """
    settings = Settings.of(ks, n_resamples, seed, names)
    further = pair_of(pool, "pool", "further rows of side a, and of side b")
    all_a, n_a = rows_with_pool(z_a, further[0], names[0])
    all_b, n_b = rows_with_pool(z_b, further[1], names[1])
    rows_a, rows_b = CosineRows(all_a, f"rows of {names[0]}"), CosineRows(all_b, f"rows of {names[1]}")
    if rows_a.n_columns != rows_b.n_columns:
        raise ShapeError(
            f"rows of {names[0]} have {rows_a.n_columns} columns and rows of {names[1]} {rows_b.n_columns}; "
            "both must live in one space"
        )
    truth = links_with_pool(links, (n_a, n_b), (len(rows_a), len(rows_b)))
    forth, back = both_directions(
        truth, (n_a, n_b), settings, (queries_a, queries_b), (entities_a, entities_b), candidates
    )
    if forth.lists is None and back.lists is None:
        levels_a, levels_b = levels_both_ways(rows_a, rows_b, forth.truth, back.truth, block)
    else:
        levels_a, levels_b = _levels(rows_a, rows_b, forth, block), _levels(rows_b, rows_a, back, block)
    return RetrievalReport(forth.report(*levels_a, settings), back.report(*levels_b, settings), settings.names)


def report_from_scores(
    score_a_to_b: BlockFunction,
    score_b_to_a: BlockFunction | None = None,
    *,
    links: Links,
    ks: Sequence[int] = (1, 5, 10),
    names: tuple[str, str] = ("a", "b"),
    entities_a: Any = None,
    entities_b: Any = None,
    block: int | None = None,
    n_resamples: int = 1000,
    seed: int = 0,
    queries_a: Any = None,
    queries_b: Any = None,
    pool: tuple[int, int] | None = None,
    candidates: tuple[Any, Any] | None = None,
) -> RetrievalReport:
    """Return the same report for a scorer that is not rows: word overlap, metadata, a nearest neighbour.

    `score_a_to_b(rows)` takes a slice of rows of a and returns float64-able scores (len, n_b), dense or CSR, higher is
    better; `score_b_to_a` does the same for rows of b. Without it the scorer is taken as symmetric: columns of
    `score_a_to_b` are read, which asks for all rows of a once for every 64 MB of scores (once in all when they fit into
    that). `links` says both numbers of rows.
    Scores that differ by at most 1e-12 are tied. `pool` is the number of further candidates of each side, (of a, of b):
    scores then have columns for the other side's own items and after them for its further ones, while `links` stay
    over the own items. Without `score_b_to_a`, rows of `score_a_to_b` beyond a's own are a's further items.
    All else is as in `retrieval_report`, errors too.
    """
    settings = Settings.of(ks, n_resamples, seed, names)
    n_own, n_all = _sizes_with_pool(links, pool)
    forth, back = both_directions(
        links_with_pool(links, n_own, n_all), n_own, settings, (queries_a, queries_b), (entities_a, entities_b),
        candidates,
    )  # fmt: skip
    reverse, reverse_block = score_b_to_a, block
    if reverse is None:
        # Each block of columns costs all scores once more, so columns come in large blocks.
        score_a_to_b = kept_when_small(score_a_to_b, *n_all, block)
        reverse, reverse_block = columns_of(score_a_to_b, *n_all, block), None
    return RetrievalReport(
        forth.report(*_levels_of_scores(score_a_to_b, forth, n_own[0], block, "score_a_to_b"), settings),
        back.report(*_levels_of_scores(reverse, back, n_own[1], reverse_block, "score_b_to_a"), settings),
        settings.names,
    )


def _sizes_with_pool(links: Links, pool: Any) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the numbers of own rows and of all candidates of both sides; links are over the own rows."""
    if not isinstance(links, Links):
        raise ArgumentError(
            f"links is a {type(links).__name__}; expected Links: scores do not say how many rows there are"
        )
    further = pair_of(pool, "pool", "the numbers of further candidates of side a, and of side b")
    counts = [0 if n is None else n for n in further]
    if any(isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0 for n in counts):
        raise ArgumentError(f"pool = {pool!r}; expected two whole numbers, of further candidates of a and of b")
    return (links.n_a, links.n_b), (links.n_a + int(counts[0]), links.n_b + int(counts[1]))


def _levels(
    rows: CosineRows, others: CosineRows, direction: Direction, block: int | None
) -> tuple[TieLevels, Float64Array]:
    if direction.lists is None:
        return levels_of_rows(rows, others, direction.truth, block)
    return levels_of_listed_rows(rows, others, direction.truth, direction.lists, block)


def _levels_of_scores(
    score: BlockFunction, direction: Direction, n_queries: int, block: int | None, name: str
) -> tuple[TieLevels, Float64Array]:
    if direction.lists is None:
        return levels_of_scores(score, direction.truth, n_queries, direction.n_candidates, block, name)
    return levels_of_listed_scores(score, direction.truth, n_queries, direction.lists, block, name)
