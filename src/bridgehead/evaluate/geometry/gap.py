"""The modality gap: whether the two sides lie in different regions of the space that they share.

Source: Liang et al., "Mind the gap", NeurIPS 2022 (arXiv:2203.02053). What closing the gap does to recall is measured
in `correction`, not assumed here.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bridgehead.evaluate.arguments import whole_number
from bridgehead.evaluate.geometry.sides import drawn_rows, generator, slices_of, two_sides
from bridgehead.evaluate.ranks.cosine_rows import CosineRows
from bridgehead.evaluate.ties import Float64Array
from bridgehead.links import Links
from bridgehead.vectors import IntArray

_FOLDS = 5
_LEAST_ROWS = 2 * _FOLDS
_TWO_SIDED_95 = 1.959963984540054
_GAP = 2


@dataclass(frozen=True)
class ModalityGap:
    """How far apart the sides lie, and how well they are told apart.

    `centroid_distance` is |mean of a - mean of b| of unit rows, in [0, 2]; `expected_distance` is about what two
    samples of these sizes from one distribution would show (sqrt(v_a / n_a + v_b / n_b), v the mean squared distance
    from the mean). `separability` is the cross-validated accuracy of a linear classifier that says which side a row is
    of, the mean of both sides' shares of right answers: 0.5 is guessing (inseparable), 1.0 a gap that a plane cuts
    through; None with fewer than 10 rows on a side. `chance_high`: guessing is above it once in 40 times. `n_rows`
    (a, b) are the rows that the classifier saw. `mates_together`: rows that links connect were in one fold; where they
    could not be (links connect nearly everything), equal rows on both sides may push the accuracy under 0.5.
    """

    centroid_distance: float
    expected_distance: float
    separability: float | None
    chance_high: float | None
    n_rows: tuple[int, int]
    mates_together: bool


def modality_gap(z_a: Any, z_b: Any, links: Any = None, sample: int | None = 2000, seed: int = 0) -> ModalityGap:
    """Return the gap between the sides `z_a` (n_a, d) and `z_b` (n_b, d).

    Centroids are of all rows. The classifier (linear discriminant analysis with the covariance shrunk after Ledoit and
    Wolf) sees at most `sample` rows of each side, drawn with `seed`, in five folds. Links keep mates in one fold: an
    item that the classifier has seen on the other side would otherwise tell it that this one is not of that side. With
    `links` None rows match by position where the sides are equally long; where they are not, no row has a mate.

    Raises `ShapeError`, `NonFiniteRowsError`, `LinksError`, and `ArgumentError` for a sample under 1.
    """
    rows_a, rows_b = two_sides(z_a, z_b)
    most = None if sample is None else whole_number(sample, "sample", 1)
    mean_a, spread_a = _centroid(rows_a)
    mean_b, spread_b = _centroid(rows_b)
    rng = generator(seed, _GAP)
    chosen = (drawn_rows(len(rows_a), most, rng), drawn_rows(len(rows_b), most, rng))
    folds, together = _folds(_components(links, len(rows_a), len(rows_b)), chosen, rng)
    sizes = (len(chosen[0]), len(chosen[1]))
    measured = min(sizes) >= _LEAST_ROWS
    data = np.concatenate([rows_a.unit64(chosen[0]), rows_b.unit64(chosen[1])]) if measured else np.zeros((0, 1))
    return ModalityGap(
        centroid_distance=float(np.sqrt(((mean_a - mean_b) ** 2).sum())),
        expected_distance=float(np.sqrt(spread_a / len(rows_a) + spread_b / len(rows_b))),
        separability=_accuracy(data, sizes[0], folds) if measured else None,
        chance_high=0.5 + _TWO_SIDED_95 * 0.25 * float(np.sqrt(1 / sizes[0] + 1 / sizes[1])) if measured else None,
        n_rows=sizes,
        mates_together=together,
    )


def _centroid(rows: CosineRows) -> tuple[Float64Array, float]:
    """Return the mean of the unit rows, and the mean squared distance from it."""
    total, squares = np.zeros(rows.n_columns), 0.0
    for part in slices_of(len(rows), rows.n_columns):
        block = rows.unit64(part)
        total += block.sum(axis=0)
        squares += float((block * block).sum())
    mean = total / len(rows)
    return mean, max(0.0, squares / len(rows) - float((mean * mean).sum()))


def _components(links: Any, n_a: int, n_b: int) -> tuple[IntArray, IntArray]:
    if links is None and n_a != n_b:
        return np.arange(n_a, dtype=np.int64), np.arange(n_a, n_a + n_b, dtype=np.int64)
    return Links.of(links, n_a, n_b).components()


def _folds(
    components: tuple[IntArray, IntArray], chosen: tuple[IntArray, IntArray], rng: np.random.Generator
) -> tuple[IntArray, bool]:
    """Return a fold for each chosen row of a, then of b, and whether what links connect is in one fold."""
    label = np.concatenate([components[0][chosen[0]], components[1][chosen[1]]])
    unit, size = np.unique(label, return_inverse=True, return_counts=True)[1:]
    together = bool(size.max() <= len(label) / _FOLDS)
    if not together:
        unit, size = np.arange(len(label)), np.ones(len(label), dtype=np.int64)
    order = rng.permutation(len(size))
    # Filled one after the other to equal numbers of rows.
    before = np.cumsum(size[order]) - size[order]
    fold = np.empty(len(size), dtype=np.int64)
    fold[order] = np.minimum(before * _FOLDS // len(label), _FOLDS - 1)
    return fold[unit], together


def _accuracy(data: Float64Array, n_a: int, folds: IntArray) -> float:
    """Return the mean over both sides of the share of rows that a classifier of the other folds puts on their side."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    side = np.repeat([0, 1], [n_a, len(data) - n_a])
    right = np.zeros(len(data))
    for fold in range(_FOLDS):
        test = folds == fold
        if not test.any() or len(np.unique(side[~test])) < 2:
            right[test] = 0.5
            continue
        model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=[0.5, 0.5])
        scores = model.fit(data[~test], side[~test]).decision_function(data[test])
        # Scores of nothing but rounding are a guess.
        found = np.where(np.abs(scores) < 1e-9, 0.5, scores > 0)
        right[test] = np.where(side[test] == 1, found, 1 - found)
    return float((right[:n_a].mean() + right[n_a:].mean()) / 2)
