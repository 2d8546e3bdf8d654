"""Exact tie levels of scorers that are not rows: a function gives a block of float64 scores against all candidates.

This module is not about rows (`exact`) or metrics (`ties`).
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bridgehead.errors import ArgumentError, NonFiniteRowsError, ShapeError
from bridgehead.evaluate.arguments import rows_at_once
from bridgehead.evaluate.ranks.levels import TIE, Truth, count_rows, level_bounds
from bridgehead.evaluate.ties import Float64Array, TieLevels
from bridgehead.vectors import block_rows, to_numpy

BlockFunction = Callable[[slice], Any]
"""Takes a slice of query rows and returns their scores against all candidates, (len, N); higher is better."""

_BLOCK_BYTES = 64 << 20


def levels_of_scores(
    score: BlockFunction, truth: Truth, n_queries: int, n_candidates: int, block: int | None = None, name: str = "score"
) -> tuple[TieLevels, Float64Array]:
    """Return the tie levels of the queries in `truth` under `score`, and each one's best true score.

    Scores are taken as float64 and are tied when they differ by at most 1e-12. Blocks without a query are not scored.
    Raises `ShapeError` when a block has another shape than (len, n_candidates) and `NonFiniteRowsError`, naming query
    rows, for NaN and infinity.
    """
    pieces: list[TieLevels] = []
    best: list[Float64Array] = []
    for rows in _steps(n_queries, n_candidates, block):
        first, last = np.searchsorted(truth.rows, [rows.start, rows.stop]).tolist()
        if first < last:
            scores = checked_block(score, rows, n_candidates, name)[truth.rows[first:last] - rows.start]
            left, right = np.searchsorted(truth.query, [first, last]).tolist()
            part = Truth(
                truth.rows[first:last], truth.query[left:right] - first, truth.candidate[left:right], truth.n_without
            )
            levels, part_best = _levels_of_block(scores, part)
            pieces.append(levels)
            best.append(part_best)
    return _joined(pieces, n_candidates), np.concatenate(best)


def columns_of(score: BlockFunction, n_rows: int, n_columns: int, block: int | None = None) -> BlockFunction:
    """Return a function that reads blocks of columns of `score`, for the direction from candidates to queries.

    Every block of columns asks `score` for all rows again, in blocks: right for a small pool or a cheap scorer.
    """

    def transposed(columns: slice) -> Float64Array:
        parts = [
            checked_block(score, rows, n_columns, "score_a_to_b")[:, columns].T
            for rows in _steps(n_rows, n_columns, block)
        ]
        return np.concatenate(parts, axis=1)

    return transposed


def kept_when_small(score: BlockFunction, n_rows: int, n_columns: int, block: int | None = None) -> BlockFunction:
    """Return a function with the same scores that computes them once, where all of them fit into one block (64 MB)."""
    if n_rows * n_columns * 8 > _BLOCK_BYTES:
        return score
    parts = [checked_block(score, rows, n_columns, "score_a_to_b") for rows in _steps(n_rows, n_columns, block)]
    kept = np.concatenate([np.zeros((0, n_columns)), *parts])
    return lambda rows: kept[rows]


def checked_block(score: BlockFunction, rows: slice, n_candidates: int, name: str) -> Float64Array:
    """Return the block of scores of `rows` as float64, after checking its shape and that all are finite."""
    if not callable(score):
        raise ArgumentError(f"{name} is a {type(score).__name__}; expected a function that takes a slice of query rows")
    block = to_numpy(score(rows))
    block = block.toarray() if hasattr(block, "toarray") else block
    expected = (rows.stop - rows.start, n_candidates)
    if block.shape != expected:
        raise ShapeError(f"{name}({rows}) has shape {block.shape}; expected {expected}: (queries, all candidates)")
    if block.dtype.kind not in "fiub":
        raise ArgumentError(f"{name}({rows}) has dtype {block.dtype}; expected real numbers")
    scores = np.asarray(block, dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(scores).all(axis=1))
    if len(bad):
        shown = ", ".join(str(rows.start + i) for i in bad[:10].tolist()) + (", ..." if len(bad) > 10 else "")
        raise NonFiniteRowsError(
            f"{name}: scores of {len(bad)} query rows hold NaN or infinity (rows {shown}); "
            "expected finite numbers: mend the scorer or leave these rows out"
        )
    return scores


def _levels_of_block(scores: Float64Array, truth: Truth) -> tuple[TieLevels, Float64Array]:
    ones = np.ones(len(truth.query), dtype=np.int64)
    n = len(truth.rows)
    bounds = level_bounds(truth.query, scores[truth.query, truth.candidate], ones, ones, n)
    above = np.zeros(len(bounds.query), dtype=np.int64)
    tied = np.zeros(len(bounds.query), dtype=np.int64)
    for levels in bounds.passes(0, n):
        part = scores[bounds.query[levels]]
        above[levels] = count_rows(part > (bounds.high[levels] + TIE)[:, None])
        tied[levels] = count_rows(part >= (bounds.low[levels] - TIE)[:, None]) - above[levels]
    return bounds.levels(above, tied, scores.shape[1]), bounds.best


def _joined(pieces: list[TieLevels], n_candidates: int) -> TieLevels:
    offsets = np.cumsum([0] + [piece.n_queries for piece in pieces])
    return TieLevels(
        query=np.concatenate([piece.query + offset for piece, offset in zip(pieces, offsets[:-1], strict=True)]),
        above=np.concatenate([piece.above for piece in pieces]),
        tied=np.concatenate([piece.tied for piece in pieces]),
        true=np.concatenate([piece.true for piece in pieces]),
        n_queries=int(offsets[-1]),
        n_candidates=n_candidates,
    )


def _steps(n_rows: int, n_columns: int, block: int | None) -> Iterator[slice]:
    step = rows_at_once(block) or block_rows(n_columns, 8, _BLOCK_BYTES)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))
