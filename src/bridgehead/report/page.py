"""What the report's page needs beside its content: what is drawn, what stands at the top, and in which order.

Not about how any of it looks (the templates) or how a figure is drawn (`figures`, `space_figures`).
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from markupsafe import Markup

from bridgehead.audits.finding import Finding, Group, Verdict
from bridgehead.report import figures, space_figures
from bridgehead.report.content import Direction, Fold, FoldResults, Measure, ReportContent, SliceTable
from bridgehead.report.licences import LicenceNote, combine

UNTRAINED = "untrained baseline"
CLOSED_FORM = "closed-form baseline"
_MOST_ATTENTION = 8
_VERDICTS: tuple[Verdict, ...] = ("fail", "warn", "pass")


@dataclass(frozen=True)
class Licences:
    """What is to be said about how the sources' licences combine."""

    notes: list[LicenceNote]

    @property
    def warnings(self) -> list[LicenceNote]:
        """Those that are warnings."""
        return [note for note in self.notes if note.warns]


def view_of(content: ReportContent) -> dict[str, Any]:
    """Return the variables of the page's template that are made from the content."""
    drawn = _figures(content)
    claims = _claims(content)
    attention = [claim for claim in claims if claim[0] != "pass"]
    counts = Counter(verdict for verdict, *_ in claims)
    return {
        "figures": drawn,
        "sections": list(_sections(content, drawn)),
        "headline": _headline(content),
        "verdicts": [(verdict, counts[verdict]) for verdict in reversed(_VERDICTS) if counts[verdict]],
        "n_claims": len(claims),
        "attention": attention[:_MOST_ATTENTION],
        "n_attention": len(attention),
        "findings": _grouped(content.findings),
        "licences": Licences(combine([(source.name, source.licence) for source in content.sources])),
    }


def slice_measures(table: SliceTable, headline: Any) -> list[str]:
    """Return which measures a table of slices shows: those of the headline that it has, else its first two."""
    known = list(dict.fromkeys(name for part in table.slices for name in part.measures))
    return [name for name in headline if name in known] or known[:2]


def groups_by(rows: Any, *fields: str) -> list[tuple[tuple[Any, ...], list[Any]]]:
    """Return ((values of `fields`), rows with them) in the order in which the values first come."""
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows:
        groups.setdefault(tuple(getattr(row, field) for field in fields), []).append(row)
    return list(groups.items())


def _sections(content: ReportContent, drawn: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (anchor, name) of every section that the page has, in its order."""
    there = (
        ("overview", "In short", True),
        ("numbers", "Numbers", True),
        ("figures", "Figures", True),
        ("folds", "Folds", content.folds),
        ("contract", "Contract", content.contract),
        ("claims", "Is it real?", content.controls or content.findings or content.skipped),
        ("training", "Training", drawn["curves"]),
        ("space", "Space", content.views or content.geometry),
        ("slices", "Slices", content.slices),
        ("queries", "Queries", content.cases),
        ("examples", "Examples", content.examples),
        ("data", "Data", content.data.counts or content.data.tables),
        ("aligned", "Set-up", True),
        ("sources", "Sources", content.sources),
    )
    return ((anchor, name) for anchor, name, shown in there if shown)


def _claims(content: ReportContent) -> list[tuple[Verdict, str, float | None, str]]:
    """Return (verdict, name, value, why) of every claim, failed ones first.

    The control on shuffled links has figures of its own; where audits found about it as well, it counts once.
    """
    claims: list[tuple[Verdict, str, float | None, str]] = [
        (finding.verdict, finding.name, finding.value, finding.why) for finding in content.findings
    ]
    if not any(finding.group == "controls" for finding in content.findings):
        claims += [
            (control.verdict, f"shuffled links, {control.title}, {control.metric}", control.mean, control.why)
            for control in content.controls
        ]
    return sorted(claims, key=lambda claim: _VERDICTS.index(claim[0]))


def _grouped(findings: Any) -> list[tuple[str, list[Finding]]]:
    """Return the findings group by group, the worst first within each; those without a group are other claims."""
    groups = [(group or "other claims", [f for f in findings if f.group == group]) for group in get_args(Group)]
    groups = [*groups[1:], groups[0]]
    order = _VERDICTS.index
    return [(name, sorted(found, key=lambda finding: order(finding.verdict))) for name, found in groups if found]


def _headline(content: ReportContent) -> list[tuple[Direction, list[tuple[str, Measure]]]]:
    return [
        (direction, [(name, direction.measures[name]) for name in content.headline if name in direction.measures])
        for direction in content.query_sets[0].directions
    ]


def _figures(content: ReportContent) -> dict[str, Any]:
    """Draw everything there is data for; an empty list or None where there is none."""
    directions = content.query_sets[0].directions
    similarities = content.geometry.similarities if content.geometry else None
    return {
        "ranks": [
            Markup(figures.rank_histogram(d.ranks, d.n_candidates, d.n_true, d.pool)) if len(d.ranks) else None
            for d in directions
        ],
        "recall": [_recall(content, number) for number in range(len(directions))],
        "pools": [Markup(space_figures.pool_curves(d.pools)) if d.pools else None for d in directions],
        "curves": [(name, Markup(svg)) for name, svg in figures.training_curves(content.curves)],
        "controls": [Markup(figures.shuffled_strip(control)) for control in content.controls],
        "heatmap": Markup(figures.score_heatmap(content.heatmap)) if content.heatmap else None,
        "views": [Markup(space_figures.mates_map(view)) for view in content.views],
        "similarities": Markup(space_figures.similarity_histogram(similarities)) if similarities else None,
        "folds": _folds(content.folds),
    }


def _folds(folds: FoldResults | None) -> list[tuple[tuple[str, str], list[Fold], Markup]]:
    """Return ((query, candidate), folds, their dots) for each direction that was cross-validated."""
    groups = groups_by(folds.per_fold if folds else (), "query", "candidate")
    return [((names[0], names[1]), own, Markup(space_figures.fold_dots(own))) for names, own in groups]


def _recall(content: ReportContent, number: int) -> Markup | None:
    groups, baselines = _recall_groups(content, number), _baselines(content, number)
    return Markup(figures.recall_bars(groups, baselines)) if groups or baselines else None


def _recall_groups(content: ReportContent, number: int) -> Mapping[str, Mapping[str, Measure]]:
    """Return what stands side by side for one direction: each set of queries with a recall.

    Directions are told apart by their names: a set of queries may have only one of them.
    """
    wanted = content.query_sets[0].directions[number]
    groups = {
        queries.title: direction.measures
        for queries in content.query_sets
        for direction in queries.directions
        if (direction.query, direction.candidate) == (wanted.query, wanted.candidate) and direction.n_queries
    }
    return _with_recall(groups)


def _baselines(content: ReportContent, number: int) -> Mapping[str, Mapping[str, Measure]]:
    """Return the baselines over all queries that stand beside them for one direction."""
    direction = content.query_sets[0].directions[number]
    name = f"{CLOSED_FORM} ({content.closed_form})" if content.closed_form else CLOSED_FORM
    return _with_recall({UNTRAINED: direction.baseline, name: direction.closed_form})


def _with_recall(groups: Mapping[str, Mapping[str, Measure]]) -> dict[str, Mapping[str, Measure]]:
    return {title: group for title, group in groups.items() if any(name.startswith("recall@") for name in group)}
