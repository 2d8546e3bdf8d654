"""Exact tie levels of rows against rows, both directions in one pass: float32 products screen, float64 decides.

For every query a float32 product with all candidates settles those that are further from a true score than a proven
bound on its rounding; the few others are scored again in float64. Identical rows, of either side, are scored once and
counted with their number. So the counts depend on the rows alone: not on tiles, threads or order. Memory is that of
float32 rows, the levels and one tile a thread. This module puts the parts together (`cosine_rows`, `layout`, `tiles`);
it is not about metrics (`ties`).
"""

import numpy as np

from bridgehead.errors import ArgumentError
from bridgehead.evaluate.ranks.cosine_rows import CosineRows, screening_error
from bridgehead.evaluate.ranks.layout import DistinctRows, Layout, true_levels
from bridgehead.evaluate.ranks.levels import Truth
from bridgehead.evaluate.ranks.tiles import count_both_ways
from bridgehead.evaluate.ties import Float64Array, TieLevels

__all__ = ["CosineRows", "levels_both_ways", "levels_of_rows", "screening_error"]

RankedSide = tuple[TieLevels, Float64Array]
"""The tie levels of one direction's queries, and each one's best true score (cosine, float64)."""


def levels_both_ways(
    rows_a: CosineRows, rows_b: CosineRows, truth_a: Truth, truth_b: Truth, block: int | None = None
) -> tuple[RankedSide, RankedSide]:
    """Return (levels, best) of the queries of a among all rows of b, and of the queries of b among all rows of a.

    `truth_a` holds queries (rows of a) and their true candidates (rows of b), `truth_b` the other way; either may have
    no query. Every tile of the product is used for both directions while it is in cache; parts of it that no query
    needs are not computed. `levels` are exact `TieLevels`, `best` (n_queries,) each query's best true score (cosine,
    float64). `block` is the number of rows of a taken at once (default 1,024); results do not depend on it, nor on the
    number of threads (`threads_to_use`). Raises `ArgumentError` for a block under 1.

    >>> import numpy as np
    >>> rows, own = CosineRows(np.eye(3), "rows"), np.arange(3)
    >>> truth = Truth(own, own, own, n_without=0)
    >>> (levels, best), _ = levels_both_ways(rows, rows, truth, truth)
    >>> levels.above.tolist(), levels.tied.tolist(), best.tolist()
    ([0, 0, 0], [1, 1, 1], [1.0, 1.0, 1.0])
    """
    if block is not None and (isinstance(block, bool) or not isinstance(block, int | np.integer) or block < 1):
        raise ArgumentError(f"block = {block!r}; expected at least 1 row")
    distinct_a, distinct_b = DistinctRows(rows_a), DistinctRows(rows_b)
    bounds_a = true_levels(distinct_a, distinct_b, truth_a)
    bounds_b = true_levels(distinct_b, distinct_a, truth_b)
    error = screening_error(rows_a.n_columns)
    side_a = Layout(distinct_a, truth_a, bounds_a, error)
    side_b = Layout(distinct_b, truth_b, bounds_b, error)
    counts = count_both_ways(side_a, side_b, None if block is None else int(block))
    levels_a, levels_b = (
        bounds.levels(count.above[side.of_level], count.tied[side.of_level], n_candidates)
        for bounds, side, count, n_candidates in zip(
            (bounds_a, bounds_b), (side_a, side_b), counts, (len(rows_b), len(rows_a)), strict=True
        )
    )
    return (levels_a, bounds_a.best), (levels_b, bounds_b.best)


def levels_of_rows(queries: CosineRows, candidates: CosineRows, truth: Truth, block: int | None = None) -> RankedSide:
    """Return the exact tie levels of the queries in `truth`, and each one's best true score (cosine, float64).

    One direction of `levels_both_ways`, whose arguments and errors it has.
    """
    nothing = np.zeros(0, dtype=np.int64)
    return levels_both_ways(queries, candidates, truth, Truth(nothing, nothing, nothing, n_without=0), block)[0]
