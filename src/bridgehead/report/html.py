"""The HTML report: one file that needs nothing else, makes no request and runs no script.

Every text of the content is escaped by the template; the only markup that is passed through is that of our own
figures. Pictures of items enter as images in data URIs, in which nothing runs. Not about what is measured.
"""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import bridgehead
from bridgehead.files import write_text
from bridgehead.report import figures, wording
from bridgehead.report.content import Direction, Measure, ReportContent

UNTRAINED = "untrained baseline"
CLOSED_FORM = "closed-form baseline"


def write_report(path: str | Path, content: ReportContent) -> None:
    """Write `content` as one self-contained HTML file, atomically."""
    write_text(path, render_report(content))


def render_report(content: ReportContent) -> str:
    """Return the HTML text of the report."""
    environment = Environment(
        loader=PackageLoader("bridgehead.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=wording.number,
        count=wording.count,
        label=wording.measure_label,
        explained=wording.measure_explained,
        interval=wording.interval,
        picture=picture_uri,
    )
    style, _, _ = environment.loader.get_source(environment, "report.css")  # type: ignore[union-attr]
    return environment.get_template("report.html.j2").render(
        content=content,
        style=Markup(style),
        figures=_figures(content),
        headline=_headline(content),
        version=bridgehead.__version__,
    )


def picture_uri(svg: str) -> str:
    """Return an SVG document as a data URI for an `<img>`: there, scripts and requests inside it are dead."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode("utf-8", "replace")).decode("ascii")


def _headline(content: ReportContent) -> list[tuple[Direction, list[tuple[str, Measure]]]]:
    return [
        (direction, [(name, direction.measures[name]) for name in content.headline if name in direction.measures])
        for direction in content.query_sets[0].directions
    ]


def _figures(content: ReportContent) -> dict[str, Any]:
    """Draw everything there is data for; an empty list or None where there is none."""
    directions = content.query_sets[0].directions
    return {
        "ranks": [
            Markup(figures.rank_histogram(d.ranks, d.n_candidates, d.n_true)) if len(d.ranks) else None
            for d in directions
        ],
        "recall": [
            Markup(figures.recall_bars(groups, baselines)) if groups or baselines else None
            for groups, baselines in (
                (_recall_groups(content, n), _baselines(content, n)) for n in range(len(directions))
            )
        ],
        "curves": [(name, Markup(svg)) for name, svg in figures.training_curves(content.curves)],
        "controls": [Markup(figures.shuffled_strip(control)) for control in content.controls],
        "heatmap": Markup(figures.score_heatmap(content.heatmap)) if content.heatmap else None,
    }


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
