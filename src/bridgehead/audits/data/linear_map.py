"""A quick linear map between the raw rows of two sides: what audits of the data ask before anything is trained.

Both sides are taken to their main directions, and a regularised canonical correlation analysis of linked rows takes
them into one space, in numpy and within seconds. It is made to tell right partners from wrong ones, not to be searched
or reported: the closed form that a trained model has to beat is `align.closed_form`, which audits never see.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.evaluate.arguments import checked_seed
from bridgehead.vectors import IntArray, check_rows

Float64Array = npt.NDArray[np.float64]

REGULARISATION = 0.1
"""Ridge in units of the mean variance, as in the closed form of the package."""
_SAMPLE = 3000
_LEAST_PAIRS = 8
# A map of as many dimensions as a quarter of the pairs still says something about pairs that it did not see.
_PAIRS_A_DIMENSION = 4


def main_directions(rows: Any, name: str, rank: int = 128, seed: int = 0) -> Float64Array:
    """Return rows (n, d), dense or CSR, in at most `rank` centred coordinates, (n, min(rank, d)) float64.

    Dense columns are first brought to mean 0 and deviation 1 (a constant column becomes 0), CSR rows to length 1 (a
    zero row stays zero), and never made dense. Wider rows are projected onto the first right singular vectors of a
    sample of 3,000 rows drawn with `seed` (Halko, Martinsson and Tropp 2011, as scikit-learn has it). Raises as
    `check_rows`, `ArgumentError` for a rank under 1, and `ShapeError` for rows without a column.
    """
    checked = check_rows(rows, name)
    if isinstance(rank, bool) or not isinstance(rank, int | np.integer) or rank < 1:
        raise ArgumentError(f"rank = {rank!r}; expected a whole number of at least 1")
    n, width = checked.shape
    if width == 0:
        raise ShapeError(f"{name} have shape {checked.shape}; expected at least one column")
    scaled: Any = _unit_csr(checked) if hasattr(checked, "indptr") else _standard(checked)
    if n == 0 or width <= rank:
        dense: Float64Array = np.asarray(scaled.toarray() if hasattr(scaled, "indptr") else scaled)
        return dense - dense.mean(axis=0) if n else dense
    from sklearn.utils.extmath import randomized_svd

    seed = checked_seed(seed)
    drawn = np.sort(np.random.default_rng(seed).choice(n, min(n, _SAMPLE), replace=False))
    part = scaled[drawn]
    mean = np.asarray(part.mean(axis=0)).ravel()
    _, _, axes = randomized_svd(part, n_components=min(rank, *part.shape), n_iter=2, random_state=seed % 2**32)
    return np.asarray(scaled @ axes.T - mean @ axes.T, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class LinearMap:
    """Affine maps of both sides into one space: z = (x - mean) @ matrix, then unit rows."""

    mean_a: Float64Array
    matrix_a: Float64Array
    mean_b: Float64Array
    matrix_b: Float64Array

    def project_a(self, rows: Float64Array) -> Float64Array:
        """Return unit rows of a in the shared space; a row that is mapped to zero stays zero."""
        return _unit((rows - self.mean_a) @ self.matrix_a)

    def project_b(self, rows: Float64Array) -> Float64Array:
        """Return unit rows of b in the shared space; a row that is mapped to zero stays zero."""
        return _unit((rows - self.mean_b) @ self.matrix_b)


def fit_linear_map(x: Float64Array, y: Float64Array, pairs: IntArray) -> LinearMap:
    """Return the map of linked rows: x (n_a, d) and y (n_b, e) as of `main_directions`, `pairs` (n, 2) rows of both.

    With C the covariances over the pairs, W = (C + r m I)^(-1/2), r = 0.1 and m the mean variance, and U S V' the
    singular value decomposition of W_a C_ab W_b: z_a = S^(1/2) U' W_a x, z_b = S^(1/2) V' W_b y, in at most a quarter
    as many dimensions as there are pairs. Columns come in order of importance, and only as many of x and y are used.
    Raises `ArgumentError` for fewer than 8 pairs. Sources: Vinod 1976; Bach and Jordan 2005, theorem 2.
    """
    if len(pairs) < _LEAST_PAIRS:
        raise ArgumentError(f"{len(pairs)} pairs to fit a linear map on; expected at least {_LEAST_PAIRS}")
    most = max(2, len(pairs) // _PAIRS_A_DIMENSION)
    x_linked, y_linked = x[pairs[:, 0], :most], y[pairs[:, 1], :most]
    mean_a, mean_b = x_linked.mean(axis=0), y_linked.mean(axis=0)
    x_linked, y_linked = x_linked - mean_a, y_linked - mean_b
    n = len(pairs)
    white_a, white_b = _whitening(x_linked.T @ x_linked / n), _whitening(y_linked.T @ y_linked / n)
    left, strength, right = np.linalg.svd(white_a @ (x_linked.T @ y_linked / n) @ white_b, full_matrices=False)
    weight = np.sqrt(strength)
    return LinearMap(
        _padded(mean_a, x.shape[1]),
        _padded(white_a @ left * weight, x.shape[1]),
        _padded(mean_b, y.shape[1]),
        _padded(white_b @ right.T * weight, y.shape[1]),
    )


def _whitening(covariance: Float64Array) -> Float64Array:
    values, axes = np.linalg.eigh(covariance)
    values = np.maximum(values, 0.0)
    varying = values > 1e-12 * values.max(initial=0.0)
    if not varying.any():
        return np.zeros_like(covariance)
    return np.asarray((axes / np.sqrt(values + REGULARISATION * values[varying].mean())) @ axes.T)


def _padded(array: Float64Array, n: int) -> Float64Array:
    """Return the array with rows of zeros up to n: coordinates that are not used."""
    return np.concatenate([array, np.zeros((n - len(array), *array.shape[1:]))])


def _standard(rows: Any) -> Float64Array:
    array = np.asarray(rows, dtype=np.float64)
    if len(array) == 0:
        return array
    # By the largest magnitude first: squares of 1e200 would be infinite.
    largest = np.abs(array).max(axis=0)
    array = array / np.where(largest > 0, largest, 1)
    array = array - array.mean(axis=0)
    deviation = array.std(axis=0)
    return np.asarray(array / np.where(deviation > 1e-12, deviation, np.inf))


def _unit_csr(rows: Any) -> Any:
    wide = sparse.csr_array(rows, dtype=np.float64)
    norms = np.sqrt(np.asarray(wide.multiply(wide).sum(axis=1)).ravel())
    return sparse.csr_array(sparse.diags_array(1 / np.where(norms > 0, norms, 1)) @ wide)


def _unit(rows: Float64Array) -> Float64Array:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(norms > 0, norms, 1))
