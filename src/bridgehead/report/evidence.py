"""What stands behind the figures, as plain data: contract, slices, geometry, maps, single queries, folds, costs.

All texts are taken as they are and escaped by whoever writes them out. Not about the figures themselves (`measured`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.report.measured import Field, Measure

AnswerSource = Literal["program", "config", "missing"]
CaseKind = Literal["best", "median", "worst"]


@dataclass(frozen=True)
class ContractAnswer:
    """One question of the evaluation contract, what the program knows of it, and what its author answered.

    `source` says who answered: "config" (its author, in `said`), "program" (`known` is all there is to say) or
    "missing" (`known` is only what the program sees, and `said` is empty).
    """

    question: str
    known: str = ""
    said: str = ""
    source: AnswerSource = "program"


@dataclass(frozen=True)
class Contract:
    """What fixes the meaning of the numbers: the answers, and the hashes (name, value) of split, pool and models."""

    answers: Sequence[ContractAnswer]
    hashes: Sequence[Field] = ()
    note: str = ""

    @property
    def n_missing(self) -> int:
        """How many questions nobody answered."""
        return sum(answer.source == "missing" for answer in self.answers)


@dataclass(frozen=True)
class SkippedAudit:
    """An audit that did not run, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class Slice:
    """Part of the queries: its name, how many queries of how many entities (None: unknown), and its figures."""

    name: str
    n_queries: int
    measures: Mapping[str, Measure]
    n_entities: int | None = None


@dataclass(frozen=True)
class SliceTable:
    """One way of cutting the queries ("length of the text") in one direction, the pool being the same for all slices.

    `whole` has the figures of all queries, for comparison; `note` says what the slices are or what was left out.
    """

    title: str
    query: str
    candidate: str
    slices: Sequence[Slice]
    whole: Mapping[str, Measure] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class GeometryValue:
    """One figure of the space: what it is called, its value, and in a few words how to read it."""

    name: str
    value: float
    reading: str = ""


@dataclass(frozen=True)
class Similarities:
    """Histograms of cosine over the same bins: `edges` (n + 1,), and a name ("across, true") -> counts (n,).

    Raises `ShapeError` when a histogram has another number of bins.
    """

    edges: Sequence[float]
    counts: Mapping[str, Sequence[float]]
    note: str = ""

    def __post_init__(self) -> None:
        for name, found in self.counts.items():
            if len(found) != len(self.edges) - 1:
                raise ShapeError(f"histogram {name!r} has {len(found)} bins; expected {len(self.edges) - 1}")


@dataclass(frozen=True)
class Item:
    """An item as it is shown: its id, its text and an SVG document, shown as an image: nothing in it can run."""

    id: str
    text: str = ""
    picture: str | None = None


@dataclass(frozen=True)
class Hub:
    """An item that is among the first `k` answers of `times` of `n_queries` queries, `expected` of them by chance."""

    item: Item
    side: str
    times: float
    n_queries: int
    k: int = 10
    expected: float | None = None


@dataclass(frozen=True)
class Difference:
    """One measure on the same queries before and after a change; `low`, `high`: 95 % interval of after - before.

    `title` says which direction (and, outside of a table about one change, against what), `p_value` how often chance
    gives as much (None: not asked).
    """

    title: str
    metric: str
    before: float
    after: float
    low: float | None = None
    high: float | None = None
    p_value: float | None = None


@dataclass(frozen=True)
class GeometryFacts:
    """The shape of the space: single figures, histograms of similarity, hubs, and what a mean shift would change."""

    values: Sequence[GeometryValue] = ()
    similarities: Similarities | None = None
    hubs: Sequence[Hub] = ()
    corrections: Sequence[Difference] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class MapView:
    """Both sides in two dimensions: `points_a` (n, 2), `points_b` (m, 2), and `links` (p, 2) rows that are mates.

    `title` says which space ("before training", "after training"), `note` how the plane was made. Raises `ShapeError`
    for other shapes and for a link to a point that is not there.
    """

    title: str
    points_a: Any
    points_b: Any
    links: Any = None
    note: str = ""

    def __post_init__(self) -> None:
        for name in ("points_a", "points_b"):
            shape = getattr(self, name).shape
            if len(shape) != 2 or shape[1] != 2:
                raise ShapeError(f"{name} have shape {shape}; expected (n, 2)")
        if self.links is not None and len(self.links):
            sizes = (len(self.points_a), len(self.points_b))
            if self.links.ndim != 2 or self.links.shape[1] != 2:
                raise ShapeError(f"links have shape {self.links.shape}; expected (n, 2)")
            if (self.links < 0).any() or (self.links >= sizes).any():
                raise ShapeError(f"a link names a point that is not there; expected rows under {sizes}")


@dataclass(frozen=True)
class QueryCase:
    """One query: the `rank` (expected, from 1) of its best true item among `n_candidates`, and what came first.

    `true` are its true items, the best first (a few of `n_true`); `first` is the candidate at rank 1, None where that
    is a true one. `score` is the cosine to the best true item, `first_score` that to the first.
    """

    query: Item
    rank: float
    n_candidates: int
    true: Sequence[Item]
    n_true: int = 1
    score: float | None = None
    first: Item | None = None
    first_score: float | None = None


@dataclass(frozen=True)
class QueryCases:
    """The best, the median or the worst queries of one direction, in the order of showing."""

    kind: CaseKind
    query: str
    candidate: str
    cases: Sequence[QueryCase]
    note: str = ""


@dataclass(frozen=True)
class FoldMeasure:
    """One measure of one direction over all out-of-fold queries.

    `sd_seeds` is the standard deviation over training seeds on the same folds, `sd_folds` that over folds: they answer
    different questions and are never mixed. `detectable` is the smallest difference between two settings that this
    data would show with 80 % power at 5 %, two-sided; None where unknown.
    """

    query: str
    candidate: str
    name: str
    measure: Measure
    sd_seeds: float | None = None
    sd_folds: float | None = None
    detectable: float | None = None


@dataclass(frozen=True)
class Fold:
    """One fold in one direction: how many queries ranked how many candidates, and a value for each measure."""

    name: str
    query: str
    candidate: str
    n_queries: int
    n_candidates: int
    values: Mapping[str, float]


@dataclass(frozen=True)
class FoldResults:
    """Cross-validation: `n_folds` folds, `n_repeats` times, `n_seeds` seeds; its measures and every single fold.

    `lines` are sentences to show under the table. Raises `ArgumentError` for numbers under 1.
    """

    n_folds: int
    n_repeats: int
    n_seeds: int
    measures: Sequence[FoldMeasure]
    per_fold: Sequence[Fold] = ()
    lines: Sequence[str] = ()

    def __post_init__(self) -> None:
        if min(self.n_folds, self.n_repeats, self.n_seeds) < 1:
            raise ArgumentError(
                f"{self.n_folds} folds, {self.n_repeats} repeats, {self.n_seeds} seeds; expected at least one of each"
            )


@dataclass(frozen=True)
class StageCost:
    """What a stage took: `seconds` of wall time and the most memory in bytes that the process held; None: unknown."""

    stage: str
    seconds: float | None = None
    peak_bytes: int | None = None
    note: str = ""
