"""The model card: a Markdown file with the YAML head that model hubs read.

Not about figures: those are in the report. Every text of a user is escaped, so that it cannot become markup or a
field of the head.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bridgehead.audits.finding import Finding
from bridgehead.files import write_text
from bridgehead.report import wording
from bridgehead.report.content import Attribution, Contract, Direction, Field, Measure, QuerySet, SkippedAudit

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~&$-])")


@dataclass(frozen=True)
class CardContent:
    """All that a model card says. `licence` is an SPDX expression; `limits` are sentences, one an item.

    `aligned` are the facts of what was aligned, as in the report; `query_sets` the measurements, all queries first.
    `closed_form` names the method of that baseline ("CCA, no training"); `refit` says whether the weights beside the
    card were trained again on all pairs. `contract`, `findings` and `skipped` are said in short. `datasets` and
    `base_models` are what the hub knows by these names (identifiers such as "owner/name"), empty where it knows none;
    `tags` stand beside those that every card has.
    """

    title: str
    summary: str
    names: tuple[str, str]
    licence: str
    aligned: Sequence[Field]
    query_sets: Sequence[QuerySet] = ()
    uses: Sequence[str] = ()
    limits: Sequence[str] = ()
    sources: Sequence[Attribution] = ()
    refit: bool = False
    closed_form: str = ""
    contract: Contract | None = None
    findings: Sequence[Finding] = ()
    skipped: Sequence[SkippedAudit] = ()
    datasets: Sequence[str] = ()
    base_models: Sequence[str] = ()
    tags: Sequence[str] = ()


def write_card(path: str | Path, content: CardContent) -> None:
    """Write `content` as Markdown, atomically."""
    write_text(path, render_card(content))


def render_card(content: CardContent) -> str:
    """Return the Markdown text of the card."""
    parts = [_head(content), f"# {plain(content.title)}", plain(content.summary)]
    parts += ["## What was aligned", _bullets([f"{plain(name)}: {plain(value)}" for name, value in content.aligned])]
    if content.query_sets:
        parts += ["## How well it retrieves", _measured_on(content)]
        parts += [_query_set(queries, content.closed_form) for queries in content.query_sets]
    for heading, sentences in (("## Meant for", content.uses), ("## Limits", content.limits)):
        if sentences:
            parts += [heading, _bullets([plain(sentence) for sentence in sentences])]
    if content.sources:
        parts += ["## Sources and licences", _bullets([_source(source) for source in content.sources])]
    return "\n\n".join(part for part in parts if part) + "\n"


def plain(text: str) -> str:
    """Return `text` so that Markdown shows it as it is: one line, every character that could be markup escaped."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _head(content: CardContent) -> str:
    # JSON strings are YAML strings, whatever is in them.
    fields = {
        "license": "other",
        "license_name": content.licence,
        "library_name": "bridgehead",
        "tags": ["contrastive-learning", "cross-modal-retrieval", *content.names],
    }
    return "\n".join(["---", *(f"{name}: {json.dumps(value)}" for name, value in fields.items()), "---"])


def _measured_on(content: CardContent) -> str:
    text = "Shares are in [0, 1], intervals are 95 %, chance is what random order of the same pool gives."
    if content.refit:
        text += (
            " **Measured before refit:** on pairs held out from training. The weights beside this card were then "
            "trained again on all pairs with the same settings, and no figure is computed with them on those pairs."
        )
    return text


def _query_set(queries: QuerySet, closed_form: str) -> str:
    parts = [f"### {plain(queries.title)}", plain(queries.note)]
    parts += [_direction(direction, closed_form) for direction in queries.directions]
    return "\n\n".join(part for part in parts if part)


def _direction(direction: Direction, closed_form: str) -> str:
    title = (
        f"{plain(direction.query)} to {plain(direction.candidate)}: {wording.count(direction.n_queries)} queries "
        f"among {wording.count(direction.n_candidates)} candidates"
    )
    if not direction.n_queries:
        return title
    others = [("untrained baseline", direction.baseline)]
    if direction.closed_form:
        name = f"closed-form baseline ({plain(closed_form)})" if closed_form else "closed-form baseline"
        others.append((name, direction.closed_form))
    titles = ["measure", "value", "95 % interval", "chance", *(title for title, _ in others)]
    rows = [titles, ["---"] * len(titles)]
    for name, measure in direction.measures.items():
        beside = [group[name].value if name in group else None for _, group in others]
        rows.append(_cells(name, measure) + [wording.number(value, name) for value in beside])
    return title + "\n\n" + "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _cells(name: str, measure: Measure) -> list[str]:
    return [
        wording.measure_label(name),
        wording.number(measure.value, name),
        wording.interval(measure, name),
        wording.number(measure.chance, name),
    ]


def _source(source: Attribution) -> str:
    return f"{plain(source.name)} ({plain(source.licence)}). {plain(source.sentence)}".rstrip()


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
