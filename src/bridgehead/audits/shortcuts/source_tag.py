"""A source tag planted on purpose: does training fall for it, and what is left when the tag is drawn anew?

A watermark, a file name, an instrument: where both sides of a pair carry the same trace of where they come from, a
contrastive loss may align sources instead of contents. Here such a trace is added to rows as one more column. This
module trains nothing: `runs` hands it a `fit` function. It is not about columns that are there already (`columns`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from bridgehead.audits.finding import Finding
from bridgehead.audits.given import check_called, check_kind
from bridgehead.audits.shortcuts.drop import drops
from bridgehead.audits.shortcuts.judged import WARN_SHARE
from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.evaluate import RetrievalReport, retrieval_report
from bridgehead.evaluate.arguments import checked_seed, finite_number, whole_number
from bridgehead.links import Links
from bridgehead.vectors import check_rows

Project = Callable[[Any, Any], tuple[Any, Any]]
"""Takes raw rows of a and of b and returns their rows in the shared space."""

Float64Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PairedRows:
    """Rows of a part: `rows_a` (n_a, d) and `rows_b` (n_b, e), dense or CSR, and the `links` between them.

    Raises as `check_rows`, and `ShapeError` where rows and links differ in number.
    """

    rows_a: Any
    rows_b: Any
    links: Links

    def __post_init__(self) -> None:
        check_kind(Links, links=self.links)
        for name, rows, n in (("rows_a", self.rows_a, self.links.n_a), ("rows_b", self.rows_b, self.links.n_b)):
            checked = check_rows(rows, name)
            if checked.shape[0] != n:
                raise ShapeError(f"{name} has {checked.shape[0]} rows; expected {n}, as the links are over")
            object.__setattr__(self, name, checked)


@dataclass(frozen=True)
class TagScale:
    """What the levels of a tag are on each side: level i of `n_sources` is `size_a` or `size_b` times its place in
    [-1, 1]."""

    n_sources: int
    size_a: float
    size_b: float

    @classmethod
    def of(cls, part: PairedRows, n_sources: int = 16, strength: float = 1.0) -> "TagScale":
        """Return a scale on which the largest tag is `strength` times the root mean square length of a row of its side.

        A strength of 1 makes the tag about as loud as all else in a row together. Sides of zero rows count as length 1.
        Raises `ArgumentError` for fewer than two sources or a strength that is not above 0.
        """
        check_kind(PairedRows, part=part)
        n_sources = whole_number(n_sources, "n_sources", 2)
        strength = finite_number(strength, "strength", "a number above 0", above=0)
        sizes = [strength * (_mean_length(rows) or 1.0) for rows in (part.rows_a, part.rows_b)]
        return cls(n_sources, *sizes)


def plant_tag(part: PairedRows, scale: TagScale, seed: int = 0, *, shared: bool = True) -> PairedRows:
    """Return the part with one more column on each side: a source tag.

    `shared`: items that links connect, directly or through others, get one tag, so that a pair always agrees. Without
    it every item of either side draws its own: the tag is there, as loud and as frequent, and says nothing. Tags are
    drawn evenly from the levels of the scale. Rows keep their type, dense or CSR, float32 or float64. Raises
    `ArgumentError` for `shared` when links connect everything into one component, for then no tag tells pairs apart.
    """
    check_kind(PairedRows, part=part)
    check_kind(TagScale, scale=scale)
    rng = np.random.default_rng(checked_seed(seed))
    of_a, of_b = part.links.components()
    n = max(int(of_a.max(initial=-1)), int(of_b.max(initial=-1))) + 1
    if shared and n < 2:
        raise ArgumentError(f"links connect all items into {n} component; expected at least 2, or a tag is a constant")
    if shared:
        drawn = rng.integers(0, scale.n_sources, size=n)
        level_a, level_b = drawn[of_a], drawn[of_b]
    else:
        level_a, level_b = (rng.integers(0, scale.n_sources, size=count) for count in (len(of_a), len(of_b)))
    place = np.linspace(-1, 1, scale.n_sources)
    return PairedRows(
        _with_column(part.rows_a, scale.size_a * place[level_a], "rows_a"),
        _with_column(part.rows_b, scale.size_b * place[level_b], "rows_b"),
        part.links,
    )


def source_tag_findings(
    fit: Callable[[PairedRows], Project],
    train: PairedRows,
    test: PairedRows,
    *,
    n_sources: int = 16,
    strength: float = 1.0,
    seed: int = 0,
    k: int = 10,
    names: tuple[str, str] = ("a", "b"),
    **options: Any,
) -> list[Finding]:
    """Return, for both directions, how much of a model's recall hangs on a source tag that was planted for training.

    `fit(tagged)` trains on rows with one more column each (`plant_tag`) and returns what projects such rows. The model
    is then evaluated twice on the same test items: with tags that agree within a pair, as in training, and with tags
    drawn anew for every item. The value is the share of recall@k above chance that is lost (as in `drop_findings`). A
    large loss warns and never fails: it says what a tag would do to this recipe, not that there is one in the data.
    Where the model finds nothing beyond chance there is no finding.

    The scale of the tag is that of the training rows; `options` go to `retrieval_report` (entities, queries,
    n_resamples). Cost: one training at the budget of `fit`, and two evaluations. Raises as `TagScale.of`, `plant_tag`
    and `retrieval_report`.
    """
    check_called(fit=fit)
    check_kind(PairedRows, train=train, test=test)
    scale = TagScale.of(train, n_sources, strength)
    project = fit(plant_tag(train, scale, seed))
    reports: list[RetrievalReport] = []
    for number, shared in ((1, True), (2, False)):
        tagged = plant_tag(test, scale, seed + number, shared=shared)
        z_a, z_b = project(tagged.rows_a, tagged.rows_b)
        reports.append(retrieval_report(z_a, z_b, test.links, ks=(k,), names=names, **options))
    found = []
    for drop in drops(reports[0], reports[1], k, seed=seed):
        why = drop.figures
        if drop.verdict != "pass":
            taken = "training takes a shared tag where there is one: keep traces of the source out of the rows"
            why += f"; {taken}" if drop.real else "; too few entities to call it a loss"
        query, candidate = drop.names
        found.append(
            Finding(
                f"a planted source tag drawn anew, {query} -> {candidate}",
                drop.share,
                f"at most {WARN_SHARE:g} of the {drop.metric} above chance",
                "pass" if drop.verdict == "pass" else "warn",
                why,
                "shortcuts",
            )
        )
    return found


def _mean_length(rows: Any) -> float:
    checked = check_rows(rows)
    values = checked.data if hasattr(checked, "indptr") else checked
    return float(np.sqrt((values.astype(np.float64) ** 2).sum() / max(1, checked.shape[0])))


def _with_column(rows: Any, column: Float64Array, name: str) -> Any:
    checked = check_rows(rows, name)
    added = column.astype(checked.dtype)[:, None]
    if hasattr(checked, "indptr"):
        return sparse.csr_array(sparse.hstack([checked, sparse.csr_array(added)], format="csr"))
    return np.concatenate([checked, added], axis=1)
