"""`geometry_report`: the shape of a shared space in one record, as numbers, as JSON and as lines to read.

This module puts the parts together and measures nothing itself.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from bridgehead.errors import ArgumentError
from bridgehead.evaluate.arguments import whole_number
from bridgehead.evaluate.geometry.alignment import alignment_cosine, alignment_distance, uniformity
from bridgehead.evaluate.geometry.gap import ModalityGap, modality_gap
from bridgehead.evaluate.geometry.hubs import Hubness, hubness
from bridgehead.evaluate.geometry.sides import drawn_rows, generator, rows_at, two_sides
from bridgehead.evaluate.geometry.similarity import Histogram, SimilarityHistograms, similarity_histograms
from bridgehead.evaluate.geometry.spread import Spread, spread
from bridgehead.evaluate.ranks.cosine_rows import CosineRows
from bridgehead.links import Links
from bridgehead.vectors import IntArray

_SAMPLE, _PAIRS, _CLASSIFIER = 4, 20_000, 2000


@dataclass(frozen=True)
class Geometry:
    """The shape of a space in which `n_rows` = (rows of a, rows of b) and `n_links` true pairs live.

    `uniformity` and `spread` are by side ("a", "b"), `hubness` by direction ("a_to_b": rows of a are queries). `n_zero`
    counts zero rows, of which the space knows nothing. `looked_at` = (rows of a, rows of b) took part in uniformity and
    hubness, where all are compared with all: as many as there are, or a sample. Row numbers of hubs are those of the
    whole sides. `uniformity` of a side of one row is None. The parts say what each figure means.
    """

    names: tuple[str, str]
    n_rows: tuple[int, int]
    n_dimensions: int
    n_links: int
    n_zero: tuple[int, int]
    looked_at: tuple[int, int]
    seed: int
    alignment_cosine: float
    alignment_distance: float
    uniformity: dict[str, float | None]
    gap: ModalityGap
    hubness: dict[str, Hubness]
    spread: dict[str, Spread]
    histograms: SimilarityHistograms

    @property
    def sampled(self) -> bool:
        """Whether uniformity and hubness are of a sample."""
        return self.looked_at != self.n_rows

    def to_dict(self) -> dict[str, Any]:
        """Return nested, JSON-safe entries with the names of the fields."""
        plain = asdict(replace(self, histograms=None))  # type: ignore[arg-type]
        found: dict[str, Any] = _listed(plain | {"sampled": self.sampled, "histograms": self.histograms.to_dict()})
        return found

    def lines(self) -> list[str]:
        """Return what was found, as lines to print."""
        a, b = self.names
        uniform = {side: "-" if value is None else f"{value:.3f}" for side, value in self.uniformity.items()}
        histograms = self.histograms
        return [
            f"space of {self.n_dimensions} dimensions, {self.n_rows[0]:,} rows of {a}, {self.n_rows[1]:,} of {b}, "
            f"{self.n_links:,} true pairs",
            *([f"  zero rows: {self.n_zero[0]:,} of {a}, {self.n_zero[1]:,} of {b}"] if any(self.n_zero) else []),
            f"  alignment: mean cosine of true pairs {self.alignment_cosine:.3f} (random pairs "
            f"{_mean(histograms.across_random)}), mean squared distance {self.alignment_distance:.3f}",
            f"  true above random: {_share(histograms.true_above_random)} of the time (0.5 is no signal)",
            f"  uniformity: {a} {uniform['a']}, {b} {uniform['b']} (low is more even; near 0 is collapse)",
            *self._gap_lines(),
            *(self._spread_line(side, name) for side, name in (("a", a), ("b", b))),
            *(self._hub_line(key, *shown) for key, *shown in (("a_to_b", a, b), ("b_to_a", b, a))),
            *([self._sample_line()] if self.sampled else []),
        ]

    def _gap_lines(self) -> list[str]:
        gap = self.gap
        found = [
            f"  modality gap: centroids {gap.centroid_distance:.3f} apart (two samples of one distribution: about "
            f"{gap.expected_distance:.3f})"
        ]
        if gap.separability is not None and gap.chance_high is not None:
            found.append(
                f"  a linear classifier tells the sides apart with accuracy {gap.separability:.3f} (0.5 is guessing, "
                f"{gap.chance_high:.3f} its bound; {gap.n_rows[0]:,} and {gap.n_rows[1]:,} rows)"
            )
        return found

    def _spread_line(self, side: str, name: str) -> str:
        found = self.spread[side]
        return (
            f"  {name}: effective rank {found.effective_rank:.1f} of {min(found.n_dimensions, found.n_rows)}, "
            f"participation ratio {found.participation_ratio:.1f}, mean row of length {found.mean_length:.3f}"
        )

    def _hub_line(self, key: str, query: str, candidate: str) -> str:
        found = self.hubness[key]
        return (
            f"  {query} -> {candidate}, first {found.k}: skewness {found.skewness:.2f} (chance "
            f"{found.chance_skewness:.2f}), {found.never:.1%} never come (chance {found.chance_never:.1%}), the "
            f"largest hub for {found.largest_share:.1%} of queries"
        )

    def _sample_line(self) -> str:
        a, b = self.names
        return (
            f"  uniformity and hubs are of {self.looked_at[0]:,} rows of {a} and {self.looked_at[1]:,} of {b}, "
            f"drawn at random (seed {self.seed})"
        )


def geometry_report(
    z_a: Any,
    z_b: Any,
    links: Any = None,
    names: tuple[str, str] = ("a", "b"),
    k: int = 10,
    sample: int | None = 10_000,
    seed: int = 0,
) -> Geometry:
    """Return the geometry of a shared space: alignment, uniformity, gap, hubs, effective rank, histograms of cosine.

    `z_a` (n_a, d) and `z_b` (n_b, d) are arrays or tensors of rows of any length; `links` is truth, as in
    `retrieval_report`. `k`: length of the lists of hubness. `sample`: where a side has more rows, uniformity and
    hubness look at that many of it, drawn with `seed` (None: always all, in blocks). Histograms look at 20,000 pairs of
    a kind at most, the classifier of the gap at 2,000 rows of a side. Memory is O(block x n + d^2) beside the rows.

    Raises `ShapeError` (an empty side, other widths), `NonFiniteRowsError` naming rows, `LinksError` (no links), and
    `ArgumentError` for names, k, sample or seed out of range.

    >>> import numpy as np
    >>> rows = np.random.default_rng(0).standard_normal((50, 8))
    >>> found = geometry_report(rows, rows)
    >>> round(found.alignment_cosine, 6), round(found.gap.centroid_distance, 6)
    (1.0, 0.0)
    """
    if not isinstance(names, tuple | list) or len(names) != 2 or not all(isinstance(name, str) for name in names):
        raise ArgumentError(f"names = {names!r}; expected two, of a and of b, such as ('molecule', 'text')")
    rows = two_sides(z_a, z_b, (names[0], names[1]))
    truth = Links.of(links, len(rows[0]), len(rows[1])).expanded()
    most = None if sample is None else whole_number(sample, "sample", 2)
    rng = generator(seed, _SAMPLE)
    chosen = [drawn_rows(len(side), most, rng) for side in rows]
    given = (z_a, z_b)
    part = [
        side if len(at) == len(side) else rows_at(z, at, name)
        for side, at, z, name in zip(rows, chosen, given, names, strict=True)
    ]
    hubs = hubness(part[0], part[1], k)
    return Geometry(
        names=(names[0], names[1]),
        n_rows=(len(rows[0]), len(rows[1])),
        n_dimensions=rows[0].n_columns,
        n_links=len(truth),
        n_zero=(_n_zero(rows[0]), _n_zero(rows[1])),
        looked_at=(len(part[0]), len(part[1])),
        seed=int(seed),
        alignment_cosine=alignment_cosine(*rows, truth),
        alignment_distance=alignment_distance(*rows, truth),
        uniformity={key: uniformity(side) if len(side) > 1 else None for key, side in zip("ab", part, strict=True)},
        gap=modality_gap(*rows, truth, _CLASSIFIER, seed),
        hubness={"a_to_b": _numbered(hubs[0], chosen[1]), "b_to_a": _numbered(hubs[1], chosen[0])},
        spread={"a": spread(rows[0]), "b": spread(rows[1])},
        histograms=similarity_histograms(*rows, truth, _PAIRS, seed),
    )


def _numbered(found: Hubness, rows: IntArray) -> Hubness:
    return replace(found, top_rows=tuple(rows[list(found.top_rows)].tolist()))


def _n_zero(rows: CosineRows) -> int:
    return int(len(rows) - np.count_nonzero(rows.unit32.any(axis=1)))


def _mean(histogram: Histogram) -> str:
    return "-" if histogram.mean is None else f"{histogram.mean:.3f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _listed(value: Any) -> Any:
    """Return nested entries with lists for tuples, as JSON gives them back."""
    if isinstance(value, dict):
        return {key: _listed(entry) for key, entry in value.items()}
    return [_listed(entry) for entry in value] if isinstance(value, list | tuple) else value
