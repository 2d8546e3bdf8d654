"""How many dimensions a side really uses: effective rank and participation ratio.

A space may have 256 columns and its rows lie along three of them. This module is not about whether that hurts recall.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bridgehead.evaluate.geometry.sides import one_side, slices_of
from bridgehead.evaluate.ranks.cosine_rows import CosineRows
from bridgehead.evaluate.ties import Float64Array


@dataclass(frozen=True)
class Spread:
    """The dimensions that the unit rows of a side use, of `n_dimensions` that there are and `n_rows` rows.

    `effective_rank` is exp of the entropy of the singular values divided by their sum, of the rows as they are (Roy and
    Vetterli, "The effective rank", EUSIPCO 2007): 1 where all lie on one line, at most min(n, d). `participation_ratio`
    is (sum of variances)^2 / sum of squared variances along the principal axes of the centred rows: 0 where all rows
    are one point. `mean_length` is the length of the mean row, in [0, 1]: how narrow the cone is that the rows lie in.
    """

    effective_rank: float
    participation_ratio: float
    mean_length: float
    n_rows: int
    n_dimensions: int


def effective_rank(z: Any) -> float:
    """Return Roy and Vetterli's effective rank of the unit rows `z` (n, d), in [1, min(n, d)]; 0 for zero rows alone.

    exp(-sum p_i log p_i) with p_i = s_i / sum s, s the singular values. Exact over all rows, in memory O(min(n, d)^2).
    Raises `ShapeError` for no rows, `NonFiniteRowsError`.

    >>> import numpy as np
    >>> round(effective_rank(np.eye(4)), 6)
    4.0
    """
    return spread(z).effective_rank


def spread(z: Any) -> Spread:
    """Return the effective rank and the participation ratio of one side's rows `z` (n, d). Errors as there."""
    rows = one_side(z, "z")
    mean = sum((rows.unit64(part).sum(axis=0) for part in slices_of(len(rows), rows.n_columns)), np.zeros(1)) / len(
        rows
    )
    mean = np.broadcast_to(mean, (rows.n_columns,))
    singular = np.sqrt(_squared_singular_values(rows, np.zeros(rows.n_columns)))
    variances = _squared_singular_values(rows, mean)
    total = float(singular.sum())
    shares = singular[singular > 0] / total if total > 0 else np.ones(0)
    return Spread(
        effective_rank=float(np.exp(-(shares * np.log(shares)).sum())) if len(shares) else 0.0,
        participation_ratio=_participation(variances),
        mean_length=float(np.sqrt((mean * mean).sum())),
        n_rows=len(rows),
        n_dimensions=rows.n_columns,
    )


def _participation(variances: Float64Array) -> float:
    squares = float((variances**2).sum())
    return float(variances.sum()) ** 2 / squares if squares > 0 else 0.0


def _squared_singular_values(rows: CosineRows, centre: Float64Array) -> Float64Array:
    """Return the squared singular values of the rows less `centre`; what rounding alone makes of a zero is 0."""
    n, d = len(rows), rows.n_columns
    if n < d:
        block = rows.unit64(slice(0, n)) - centre
        gram = block @ block.T
    else:
        gram = np.zeros((d, d))
        for part in slices_of(n, d):
            block = rows.unit64(part) - centre
            gram += block.T @ block
    if gram.size == 0:
        return np.zeros(0)
    values = np.linalg.eigvalsh(gram)
    # Unit rows have squares that sum to n; below the rounding of that there is nothing to be seen.
    return np.where(values > n * max(n, d) * np.finfo(np.float64).eps, values, 0.0)
