"""How near matching rows lie (alignment) and how evenly a side fills the sphere (uniformity).

Source of both: Wang and Isola, "Understanding contrastive representation learning through alignment and uniformity on
the hypersphere", ICML 2020 (arXiv:2005.10242). This module is not about recall: a space may have the one without the
other.
"""

from typing import Any

import numpy as np

from bridgehead.errors import ShapeError
from bridgehead.evaluate.arguments import finite_number, whole_number
from bridgehead.evaluate.geometry.sides import (
    BLOCK_BYTES,
    cosines_of,
    drawn_rows,
    generator,
    one_side,
    rows_at,
    slices_of,
    true_pairs,
    two_sides,
)
from bridgehead.evaluate.ranks.cosine_rows import CosineRows
from bridgehead.evaluate.ties import Float64Array
from bridgehead.vectors import IntArray, block_rows

_UNIFORMITY = 1


def alignment_cosine(z_a: Any, z_b: Any, links: Any = None) -> float:
    """Return the mean cosine of matching rows, (1 / P) sum over links (i, j) of u_i . v_j, in [-1, 1].

    `z_a` (n_a, d) and `z_b` (n_b, d) are arrays or tensors of rows of any length; `links` is `Links`, (n, 2) pairs or
    None for row i with row i. Every match counts once, those shared through groups too. A zero row has cosine 0. Raises
    `ShapeError` (an empty side, other widths), `NonFiniteRowsError` and `LinksError` (no links).

    A high value alone says little: where all rows lie in one narrow cone, pairs that do not match reach it as well.
    Read it beside the cosine of random pairs (`similarity_histograms`).

    >>> import numpy as np
    >>> alignment_cosine(np.eye(2), np.array([[1.0, 0.0], [1.0, 0.0]]))
    0.5
    """
    rows_a, rows_b = two_sides(z_a, z_b)
    return float(cosines_of(rows_a, rows_b, true_pairs(links, len(rows_a), len(rows_b))).mean())


def alignment_distance(z_a: Any, z_b: Any, links: Any = None, alpha: float = 2.0) -> float:
    """Return Wang and Isola's alignment, the mean of |u_i - v_j|^alpha over links of unit rows; low is near.

    In [0, 2^alpha]; with the usual alpha = 2 it is 2 - 2 cosine where no row is zero, so from 0 (the same) to 4.
    Arguments and errors as in `alignment_cosine`; `ArgumentError` for an alpha that is not a finite number over 0.
    """
    alpha = finite_number(alpha, "alpha", "a finite number over 0", above=0)
    rows_a, rows_b = two_sides(z_a, z_b)
    pairs = true_pairs(links, len(rows_a), len(rows_b))
    return float(_distances(rows_a, rows_b, pairs, alpha).mean())


def _distances(rows_a: CosineRows, rows_b: CosineRows, pairs: IntArray, alpha: float) -> Float64Array:
    found = np.empty(len(pairs))
    for part in slices_of(len(pairs), 3 * rows_a.n_columns):
        gap = rows_a.unit64(pairs[part, 0]) - rows_b.unit64(pairs[part, 1])
        found[part] = (gap * gap).sum(axis=1) ** (alpha / 2)
    return found


def uniformity(z: Any, t: float = 2.0, sample: int | None = None, seed: int = 0, block: int | None = None) -> float:
    """Return log of the mean of exp(-t |u_i - u_j|^2) over pairs of different rows of one side; low is more even.

    From -4 t (opposite points) to 0 (all rows are one point). Rows spread evenly over many dimensions reach about
    -2 t, which is -4 for the usual t = 2. `sample`: look at that many rows, drawn with `seed`, where there are more
    (default: all, in blocks; the time grows with the square). `block`: rows at once; the value does not depend on it.
    A zero row lies in the middle of the sphere, at distance 1 from every other and 0 from another zero row.

    `AlignmentMetrics.uniformity` counts each row with itself as well and so has a floor at -log n; this is the estimate
    without it. Raises `ShapeError` for fewer than two rows, `ArgumentError` for t, sample or block out of range.
    """
    t = finite_number(t, "t", "a finite number over 0", above=0)
    rows = one_side(z, "z")
    if len(rows) < 2:
        raise ShapeError("z has 1 row; expected at least two, since uniformity is about pairs of rows")
    most = None if sample is None else whole_number(sample, "sample", 2)
    chosen = drawn_rows(len(rows), most, generator(seed, _UNIFORMITY))
    if len(chosen) < len(rows):
        rows = rows_at(rows.unit64(chosen), np.arange(len(chosen)), "z")
    step = block_rows(max(1, rows.n_columns), 8, BLOCK_BYTES // 4) if block is None else whole_number(block, "block", 1)
    starts = range(0, len(rows), step)
    total = -np.inf
    for start in starts:
        left = rows.unit64(slice(start, min(start + step, len(rows))))
        for other in range(start, len(rows), step):
            right = left if other == start else rows.unit64(slice(other, min(other + step, len(rows))))
            total = np.logaddexp(total, _log_kernel_sum(left, right, t, same=other == start))
    return float(total - np.log(len(rows) * (len(rows) - 1) / 2))


def _log_kernel_sum(left: Float64Array, right: Float64Array, t: float, same: bool) -> float:
    """Return log sum exp(-t |u - v|^2) over the pairs of two blocks, each pair once; -inf for one row with itself."""
    squares = (left * left).sum(axis=1)[:, None] + (right * right).sum(axis=1)[None, :]
    exponents = -t * np.maximum(squares - 2 * (left @ right.T), 0)
    if same:
        if len(left) == 1:
            return -np.inf
        np.fill_diagonal(exponents, -np.inf)
    # A large t makes every term vanish; taken relative to the largest, none is lost.
    largest = float(exponents.max())
    exponents -= largest
    total = float(np.exp(exponents, out=exponents).sum())
    # A block beside itself holds every pair twice.
    return largest + float(np.log(total / 2 if same else total))
