"""`retrieval_report` and `report_from_scores`: from rows or scorers, and links, to metrics with interval and chance.

This module puts the parts together: truth from links, tie levels (`exact`, `scored`), metrics (`ties`), intervals
(`intervals`). It sees rows and scores, never a model.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridgehead.errors import ArgumentError, LinksError, ShapeError
from bridgehead.evaluate.exact import CosineRows, levels_both_ways
from bridgehead.evaluate.levels import Truth
from bridgehead.evaluate.record import DirectionReport, RetrievalReport
from bridgehead.evaluate.scored import BlockFunction, columns_of, kept_when_small, levels_of_scores
from bridgehead.evaluate.ties import Float64Array, TieLevels
from bridgehead.links import Links
from bridgehead.vectors import IntArray, to_numpy


@dataclass(frozen=True, eq=False)
class _Settings:
    ks: tuple[int, ...]
    n_resamples: int
    seed: int


@dataclass(frozen=True, eq=False)
class _Direction:
    """One direction's queries: their truth, what to call them, and their entities by row (or None)."""

    truth: Truth
    entities: Any
    n_rows: int
    n_candidates: int
    side: str


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
) -> RetrievalReport:
    """Return how well each side's rows find their matches on the other side, by cosine, in both directions.

    `z_a` (n_a, d) and `z_b` (n_b, d) are arrays or tensors of any length of row; rows are normalised here, and a zero
    row has cosine 0 with everything. Every row of a side is a candidate, linked or not. `links` is truth: `Links`,
    (n, 2) pairs, or None for row i with row i; many-to-many. `ks`: the k of recall@k, at least 1; k above the number
    of candidates counts as that number. `entities_a`, `entities_b`: a label for each row; intervals resample entities
    of the queries (default: every row its own). `block`: queries at once; results do not depend on it. `n_resamples`:
    bootstrap resamples, 0 for no intervals. `queries_a`, `queries_b`: boolean masks; only these rows are queries, all
    rows stay candidates.

    Every metric is its exact expectation over the random orders of tied candidates; cosines (float64) that differ by
    at most 1e-12 are tied. A constant scorer over N candidates with one true one has recall@k = k / N and MRR =
    H_N / N. Queries without truth are left out and counted.

    Raises `NonFiniteRowsError` naming rows with NaN or infinity, `ShapeError` for arrays that do not fit, and
    `LinksError` when a direction has no query with truth.

    >>> import numpy as np
    >>> report = retrieval_report(np.eye(4), np.eye(4), ks=(1, 2), n_resamples=0)
    >>> report.a_to_b.recall[1], report.a_to_b.chance_recall[2]
    (1.0, 0.5)
    """
    settings = _settings(ks, n_resamples, seed)
    _check_names(names)
    rows_a, rows_b = CosineRows(z_a, f"rows of {names[0]}"), CosineRows(z_b, f"rows of {names[1]}")
    if rows_a.n_columns != rows_b.n_columns:
        raise ShapeError(
            f"rows of {names[0]} have {rows_a.n_columns} columns and rows of {names[1]} {rows_b.n_columns}; "
            "both must live in one space"
        )
    truth = Links.of(links, len(rows_a), len(rows_b))
    forth = _direction(truth, queries_a, entities_a, "a", names)
    back = _direction(truth.swapped(), queries_b, entities_b, "b", names[::-1])
    levels_a, levels_b = levels_both_ways(rows_a, rows_b, forth.truth, back.truth, block)
    return RetrievalReport(_summary(forth, *levels_a, settings), _summary(back, *levels_b, settings), names)


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
) -> RetrievalReport:
    """Return the same report for a scorer that is not rows: word overlap, metadata, a nearest neighbour.

    `score_a_to_b(rows)` takes a slice of rows of a and returns float64-able scores (len, n_b), dense or CSR, higher is
    better; `score_b_to_a` does the same for rows of b. Without it the scorer is taken as symmetric: columns of
    `score_a_to_b` are read, which asks for all rows of a once for every 64 MB of scores (once in all when they fit into
    that). `links` says both numbers of rows.
    Scores that differ by at most 1e-12 are tied. All else is as in `retrieval_report`, errors too.
    """
    settings = _settings(ks, n_resamples, seed)
    _check_names(names)
    n_a, n_b = links.n_a, links.n_b
    forth = _direction(links, queries_a, entities_a, "a", names)
    back = _direction(links.swapped(), queries_b, entities_b, "b", names[::-1])
    reverse, reverse_block = score_b_to_a, block
    if reverse is None:
        # Each block of columns costs all scores once more, so columns come in large blocks.
        score_a_to_b = kept_when_small(score_a_to_b, n_a, n_b, block)
        reverse, reverse_block = columns_of(score_a_to_b, n_a, n_b, block), None
    return RetrievalReport(
        _summary(forth, *levels_of_scores(score_a_to_b, forth.truth, n_a, n_b, block, "score_a_to_b"), settings),
        _summary(back, *levels_of_scores(reverse, back.truth, n_b, n_a, reverse_block, "score_b_to_a"), settings),
        names,
    )


def _settings(ks: Sequence[int], n_resamples: int, seed: int) -> _Settings:
    wanted = tuple(dict.fromkeys(ks)) if isinstance(ks, Iterable) else ()
    if not wanted or any(isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1 for k in wanted):
        raise ArgumentError(f"ks = {ks!r}; expected one or more whole numbers, each at least 1, such as (1, 5, 10)")
    if n_resamples < 0:
        raise ArgumentError(f"n_resamples = {n_resamples}; expected 0 (no intervals) or more")
    return _Settings(tuple(int(k) for k in wanted), n_resamples, seed)


def _check_names(names: Any) -> None:
    if not isinstance(names, tuple | list) or len(names) != 2 or not all(isinstance(name, str) for name in names):
        raise ArgumentError(f"names = {names!r}; expected two, of a and of b, such as ('molecule', 'text')")


def _direction(links: Links, mask: Any, entities: Any, side: str, names: tuple[str, str]) -> _Direction:
    """Return the queries of one direction (`links` seen from it), with their true candidates."""
    n = links.n_a
    chosen = np.ones(n, dtype=bool)
    if mask is not None:
        chosen = to_numpy(mask)
        if chosen.dtype != np.bool_ or chosen.shape != (n,):
            raise ShapeError(
                f"queries_{side} is {chosen.dtype} of shape {chosen.shape}; expected a boolean mask ({n},), one entry "
                f"for each row of {names[0]}"
            )
    edges, candidate = links.targets()
    degree = np.diff(edges)
    kept = chosen & (degree > 0)
    rows = np.flatnonzero(kept)
    if len(rows) == 0:
        raise LinksError(
            f"{names[0]} -> {names[1]}: none of the {int(chosen.sum())} queries has a true candidate, so there is "
            "nothing to evaluate; expected links from at least one query row (are links and queries of the same split?)"
        )
    query = np.repeat(np.arange(len(rows), dtype=np.int64), degree[rows])
    truth = Truth(rows, query, candidate[np.repeat(kept, degree)], int(chosen.sum()) - len(rows))
    return _Direction(truth, entities, n, links.n_b, side)


def _entity_numbers(direction: _Direction) -> IntArray:
    rows = direction.truth.rows
    if direction.entities is None:
        return np.arange(len(rows), dtype=np.int64)
    labels = to_numpy(direction.entities)
    if labels.shape != (direction.n_rows,):
        raise ShapeError(
            f"entities_{direction.side} has shape {labels.shape}; expected ({direction.n_rows},): a label for each row"
        )
    return np.unique(labels[rows], return_inverse=True)[1].reshape(-1).astype(np.int64)


def _summary(
    direction: _Direction, levels: TieLevels, true_scores: Float64Array, settings: _Settings
) -> DirectionReport:
    """Return the report of one direction from its tie levels."""
    return DirectionReport.from_levels(
        levels,
        settings.ks,
        direction.n_candidates,
        direction.truth.rows,
        true_scores,
        _entity_numbers(direction),
        direction.truth.n_without,
        settings.n_resamples,
        settings.seed,
    )
