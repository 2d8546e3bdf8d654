"""What a report and a model card say, as plain data: numbers, texts and arrays that a run fills in.

All texts are taken as they are and escaped by whoever writes them out. This module is not about how anything looks
(`html`, `card`, `figures`) or how it was measured (`evaluate`, `audits`). The figures of retrieval are in `measured`,
what stands behind them in `evidence`; all their names are here too.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from bridgehead.audits.finding import Finding, Verdict
from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.report.evidence import (
    AnswerSource,
    CaseKind,
    Contract,
    ContractAnswer,
    Difference,
    Fold,
    FoldMeasure,
    FoldResults,
    GeometryFacts,
    GeometryValue,
    Hub,
    Item,
    MapView,
    QueryCase,
    QueryCases,
    Similarities,
    SkippedAudit,
    Slice,
    SliceTable,
    StageCost,
)
from bridgehead.report.measured import Direction, Field, Measure, PoolCurve, PoolRecall, QuerySet
from bridgehead.vectors import FloatArray

__all__ = [
    "Answer",
    "AnswerSource",
    "Attribution",
    "CaseKind",
    "Contract",
    "ContractAnswer",
    "Control",
    "Curves",
    "DataCheck",
    "Difference",
    "Direction",
    "Example",
    "ExampleHit",
    "Field",
    "Fold",
    "FoldMeasure",
    "FoldResults",
    "GeometryFacts",
    "GeometryValue",
    "Heatmap",
    "Hub",
    "Item",
    "MapView",
    "Measure",
    "PoolCurve",
    "PoolRecall",
    "QueryCase",
    "QueryCases",
    "QuerySet",
    "ReportContent",
    "Similarities",
    "SkippedAudit",
    "Slice",
    "SliceTable",
    "StageCost",
    "Table",
]


@dataclass(frozen=True)
class Curves:
    """What training logged for each epoch: equally long sequences; empty ones are left out of the figures.

    `chance_loss` is the loss of rows drawn at random at the same batch size, `valid_mrr` and `valid_recall` (recall@10)
    are of the validation part, `logit_scale` is s = 1 / temperature, and `best_epoch` is the epoch whose weights were
    kept.
    """

    epoch: Sequence[int] = ()
    loss: Sequence[float] = ()
    chance_loss: Sequence[float] = ()
    valid_mrr: Sequence[float] = ()
    logit_scale: Sequence[float] = ()
    best_epoch: int | None = None
    valid_recall: Sequence[float] = ()

    def __post_init__(self) -> None:
        for name in ("loss", "chance_loss", "valid_mrr", "valid_recall", "logit_scale"):
            found = len(getattr(self, name))
            if found not in (0, len(self.epoch)):
                raise ShapeError(f"{name} has {found} values; expected one for each of the {len(self.epoch)} epochs")


@dataclass(frozen=True)
class Control:
    """The same training on links whose partners were exchanged: `runs` values of `metric` beside the real one.

    `title` names the direction. `chance_high` is the upper end of the 95 % interval around chance: an honest pipeline
    keeps the mean under it.
    """

    title: str
    metric: str
    observed: float
    runs: Sequence[float]
    chance: float
    chance_high: float
    verdict: Verdict
    why: str

    @property
    def mean(self) -> float:
        """The mean over the shuffled runs; NaN without any."""
        return sum(self.runs) / len(self.runs) if len(self.runs) else math.nan


@dataclass(frozen=True)
class Heatmap:
    """Scores (n, n) of n test pairs: row i is item i of side a, column j is item j of side b, pairs on the diagonal.

    `linked` (n, n) marks every true match, off the diagonal too. Raises `ShapeError` when the arrays are not square
    and of one size.
    """

    scores: FloatArray
    linked: Any = None

    def __post_init__(self) -> None:
        shape = self.scores.shape
        if len(shape) != 2 or shape[0] != shape[1]:
            raise ShapeError(f"scores have shape {shape}; expected (n, n), the pairs on the diagonal")
        if self.linked is not None and self.linked.shape != shape:
            raise ShapeError(f"linked has shape {self.linked.shape}; expected that of the scores, {shape}")


@dataclass(frozen=True)
class Table:
    """Rows of a list that may be long: the first ones are shown, with how many there are (`total`, None: these)."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    note: str = ""
    total: int | None = None

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise ShapeError(
                    f"row {number} of the table {self.title!r} has {len(row)} cells; expected {len(self.columns)}"
                )


@dataclass(frozen=True)
class DataCheck:
    """What was in the file: counts, and lists of what was left out or looks odd, each with its reason."""

    counts: Sequence[Field] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class ExampleHit:
    """One answer to an example query. `picture` is an SVG document, shown as an image: nothing in it can run."""

    rank: int
    name: str
    score: float
    text: str = ""
    expected: bool = False
    picture: str | None = None


@dataclass(frozen=True)
class Answer:
    """What one set of heads answered, and at which rank of how many candidates the expected item came."""

    heads: Literal["evaluated", "refit"]
    hits: Sequence[ExampleHit]
    expected_rank: int | None = None
    n_candidates: int | None = None


@dataclass(frozen=True)
class Example:
    """A query with the item that a user would expect (empty: none), answered by evaluated and by refit heads."""

    query: str
    read_as: str
    expected: str = ""
    answers: Sequence[Answer] = ()


@dataclass(frozen=True)
class Attribution:
    """Where data or weights come from, under which licence, and the sentence that the licence asks for.

    `licence` is an SPDX expression or what the source calls it (empty: unknown), `kind` what it is ("data", "encoder").
    """

    name: str
    licence: str
    sentence: str = ""
    kind: str = ""


@dataclass(frozen=True)
class ReportContent:
    """All that a report shows. The first of `query_sets` is the headline: all queries. Empty parts are left out.

    `aligned` are the facts of what was aligned (sides, counts, split, encoders, fingerprints); `headline` names the
    measures shown large. `closed_form` names the method of that baseline ("CCA, no training"; empty: none was asked
    for), and `closed_form_notes` say about it such as why it could not be fitted. `skipped` are audits that did not
    run, `audit_notes` sentences above the findings. `views` are drawn side by side in their order (before, after).
    `differences` are those of the heads and each baseline on the same queries (before: the baseline).
    `config` is the resolved TOML text, folded away; `versions` and `hashes` are (name, value). Raises `ArgumentError`
    when there is no query set.
    """

    title: str
    names: tuple[str, str]
    aligned: Sequence[Field]
    query_sets: Sequence[QuerySet]
    headline: Sequence[str] = ("recall@10", "mrr")
    summary: str = ""
    baseline: str = ""
    closed_form: str = ""
    closed_form_notes: Sequence[str] = ()
    curves: Curves = field(default_factory=Curves)
    controls: Sequence[Control] = ()
    findings: Sequence[Finding] = ()
    heatmap: Heatmap | None = None
    data: DataCheck = field(default_factory=DataCheck)
    examples: Sequence[Example] = ()
    sources: Sequence[Attribution] = ()
    refit: bool = False
    made: str = ""
    contract: Contract | None = None
    skipped: Sequence[SkippedAudit] = ()
    audit_notes: Sequence[str] = ()
    slices: Sequence[SliceTable] = ()
    differences: Sequence[Difference] = ()
    geometry: GeometryFacts | None = None
    views: Sequence[MapView] = ()
    cases: Sequence[QueryCases] = ()
    folds: FoldResults | None = None
    costs: Sequence[StageCost] = ()
    versions: Sequence[Field] = ()
    hashes: Sequence[Field] = ()
    config: str = ""

    def __post_init__(self) -> None:
        if not self.query_sets or not self.query_sets[0].directions:
            raise ArgumentError("a report needs at least one set of queries with a direction; evaluate the run first")
