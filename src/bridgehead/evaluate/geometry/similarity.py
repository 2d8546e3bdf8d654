"""Histograms of cosine: within each side, across true pairs and across pairs that do not match.

This module is not about ranks: those compare cosines of one query, these of all.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bridgehead.evaluate.arguments import whole_number
from bridgehead.evaluate.geometry.sides import (
    cosines_of,
    generator,
    pairs_apart,
    pairs_within,
    true_pairs,
    two_sides,
)
from bridgehead.evaluate.ranks.cosine_rows import CosineRows
from bridgehead.evaluate.ties import Float64Array
from bridgehead.vectors import IntArray

N_BINS = 40
_PAIRS = 3
_DIGITS = 12


@dataclass(frozen=True)
class Histogram:
    """The cosines of one kind of pair: `counts` of the 40 bins, their `mean` and standard deviation `sd`.

    `n_pairs` pairs were looked at, which are all of the kind where `exact`, else drawn at random. `mean` and `sd` are
    None where there is no pair.
    """

    counts: tuple[int, ...]
    n_pairs: int
    mean: float | None
    sd: float | None
    exact: bool


@dataclass(frozen=True)
class SimilarityHistograms:
    """Histograms over the same bins: 40 of width 0.05 from -1 to 1, each from its lower edge on, the last one closed.

    `within_a` and `within_b` are of different rows of a side, `across_true` of pairs that match, `across_random` of
    pairs across that do not. `true_above_random` is the probability that a true pair has the higher cosine of the two,
    ties counting half: 0.5 is no signal, None where one kind has no pairs.
    """

    within_a: Histogram
    within_b: Histogram
    across_true: Histogram
    across_random: Histogram
    true_above_random: float | None

    @property
    def edges(self) -> tuple[float, ...]:
        """The 41 edges of the bins."""
        return tuple(np.linspace(-1, 1, N_BINS + 1).round(_DIGITS).tolist())

    def to_dict(self) -> dict[str, Any]:
        """Return the edges and every histogram as JSON-safe entries."""
        return {"edges": list(self.edges), **asdict(self)}


def similarity_histograms(
    z_a: Any, z_b: Any, links: Any = None, sample: int = 20_000, seed: int = 0
) -> SimilarityHistograms:
    """Return histograms of cosine of four kinds of pairs of rows of `z_a` (n_a, d) and `z_b` (n_b, d).

    Of a kind with more than `sample` pairs that many are drawn with `seed`. `links` is truth, as in `retrieval_report`.
    Raises `ShapeError`, `NonFiniteRowsError`, `LinksError` (no links), `ArgumentError` for a sample under 1.
    """
    rows_a, rows_b = two_sides(z_a, z_b)
    most = whole_number(sample, "sample", 1)
    true = true_pairs(links, len(rows_a), len(rows_b))
    rng = generator(seed, _PAIRS)
    within = [_cosines(rows, rows, *pairs_within(len(rows), most, rng)) for rows in (rows_a, rows_b)]
    shown = true if len(true) <= most else true[np.sort(rng.choice(len(true), most, replace=False))]
    matching = _cosines(rows_a, rows_b, shown, len(shown) == len(true))
    apart = _cosines(rows_a, rows_b, *pairs_apart(true, len(rows_a), len(rows_b), most, rng))
    return SimilarityHistograms(
        within_a=_histogram(*within[0]),
        within_b=_histogram(*within[1]),
        across_true=_histogram(*matching),
        across_random=_histogram(*apart),
        true_above_random=_share_above(matching[0], apart[0]),
    )


def _cosines(left: CosineRows, right: CosineRows, pairs: IntArray, exact: bool) -> tuple[Float64Array, bool]:
    # What is equal to 1e-12 is one value, so that rounding moves nothing over the edge of a bin.
    return np.clip(cosines_of(left, right, pairs).round(_DIGITS), -1, 1) + 0.0, exact


def _histogram(cosines: Float64Array, exact: bool) -> Histogram:
    counts = np.histogram(cosines, bins=N_BINS, range=(-1, 1))[0]
    mean, sd = (float(cosines.mean()), float(cosines.std())) if len(cosines) else (None, None)
    return Histogram(tuple(counts.tolist()), len(cosines), mean, sd, exact)


def _share_above(true: Float64Array, others: Float64Array) -> float | None:
    if not len(true) or not len(others):
        return None
    ordered = np.sort(others)
    below, up_to = np.searchsorted(ordered, true, side="left"), np.searchsorted(ordered, true, side="right")
    return float((below + up_to).mean()) / 2 / len(others)
