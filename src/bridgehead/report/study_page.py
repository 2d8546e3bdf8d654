"""The page of a study: its table beside published figures, pictures, exercises, and the contract that it keeps.

Plain data in, one HTML file out that needs nothing else, makes no request and runs no script; every text is escaped.
This module is not about what was measured or how.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import bridgehead
from bridgehead.files import write_text
from bridgehead.report.content import Field, MapView, Table
from bridgehead.report.space_figures import mates_map
from bridgehead.report.study_figures import score_window, spread_bars
from bridgehead.vectors import FloatArray


@dataclass(frozen=True)
class StudyRow:
    """One figure beside what was published, as text; `within` says whether they agree."""

    metric: str
    measured: str
    published: str
    apart: str
    within: bool
    chance: str


@dataclass(frozen=True)
class StudyGroup:
    """The rows of one part of the data under one condition."""

    title: str
    rows: Sequence[StudyRow]


@dataclass(frozen=True)
class StudyBars:
    """Bars of recall: `labels`, (legend, means, sds) for each series, and chance for each label."""

    labels: Sequence[str]
    series: Sequence[tuple[str, Sequence[float], Sequence[float]]]
    chance: Sequence[float]


@dataclass(frozen=True)
class StudyWindow:
    """Cosines (n, m) of the first pairs of a part under one model, with what to say of them."""

    title: str
    scores: FloatArray
    note: str = ""


@dataclass(frozen=True)
class StudySection:
    """An exercise: what is asked, how it was done, what was found and what that says."""

    title: str
    question: str
    points: Sequence[str]
    table: Table
    conclusion: str


@dataclass(frozen=True)
class StudyContent:
    """All that the page says. `tolerance` is how far a mean may be from the published one; `told` sums that up."""

    title: str
    summary: str
    told: str
    all_within: bool
    tolerance: float
    headline: Sequence[tuple[str, str, str]]
    groups: Sequence[StudyGroup]
    spread_note: str
    bars: StudyBars
    windows: Sequence[StudyWindow] = ()
    views: Sequence[MapView] = ()
    names: tuple[str, str] = ("image", "text")
    sections: Sequence[StudySection] = ()
    protocol: Sequence[Field] = ()
    contract: Sequence[Field] = ()
    scale: tuple[float, float] = (-0.5, 1.0)


def render_study(content: StudyContent) -> str:
    """Return the HTML text of the page."""
    environment = Environment(
        loader=PackageLoader("bridgehead.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["minus"] = with_minus
    style, _, _ = environment.loader.get_source(environment, "report.css")  # type: ignore[union-attr]
    return environment.get_template("study.html.j2").render(
        content=content, style=Markup(style), figures=_figures(content), version=bridgehead.__version__
    )


def with_minus(text: str) -> str:
    """Return `text` with the hyphen before each negative number as a minus sign: "-0.1 to -2" but not "top-5"."""
    return re.sub(r"(?<![\w.)-])-(?=\d)", "\N{MINUS SIGN}", text)


def write_study(path: str | Path, content: StudyContent) -> None:
    """Write `content` as one self-contained HTML file, atomically."""
    write_text(path, render_study(content))


def _figures(content: StudyContent) -> dict[str, Any]:
    bars = content.bars
    return {
        "bars": Markup(spread_bars(bars.labels, bars.series, bars.chance)),
        "windows": [Markup(score_window(window.scores, *content.scale, *content.names)) for window in content.windows],
        "views": [Markup(mates_map(view)) for view in content.views],
    }
