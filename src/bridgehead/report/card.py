"""The model card: a Markdown file with the YAML head that model hubs read.

Not about figures: those are in the report. Every text of a user is escaped, so that it cannot become markup or a
field of the head.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bridgehead.audits.finding import Finding
from bridgehead.depict import shown_text
from bridgehead.files import write_text
from bridgehead.report import wording
from bridgehead.report.card_head import card_head
from bridgehead.report.content import (
    Attribution,
    Contract,
    ContractAnswer,
    Direction,
    Field,
    Measure,
    QuerySet,
    SkippedAudit,
)
from bridgehead.report.licences import combine

_LONGEST = 5000
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
    if content.contract:
        parts += ["## What the numbers are about", _contract(content.contract)]
    if content.findings or content.skipped:
        parts += ["## Is it real?", _audits(content)]
    for heading, sentences in (("## Meant for", content.uses), ("## Limits", content.limits)):
        if sentences:
            parts += [heading, _bullets([plain(sentence) for sentence in sentences])]
    if content.sources:
        parts += ["## Sources and licences", _sources(content.sources)]
    return "\n\n".join(part for part in parts if part) + "\n"


def plain(text: str) -> str:
    """Return `text` so that Markdown shows it as it is: one line, every character that could be markup escaped.

    What cannot be shown (`shown_text`) is taken out, and a text of megabytes is cut.
    """
    return _SPECIAL.sub(r"\\\1", shown_text(str(text), _LONGEST))


def _head(content: CardContent) -> str:
    return card_head(
        content.title, content.licence, content.names, content.query_sets, content.datasets, content.base_models,
        content.tags,
    )  # fmt: skip


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
        f"among {wording.candidates(direction)}"
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


def _contract(contract: Contract) -> str:
    return _bullets([_answer(answer) for answer in contract.answers])


def _answer(answer: ContractAnswer) -> str:
    told = [plain(text).rstrip(".") + "." for text in (answer.said, wording.opening(answer.known)) if text]
    if answer.source == "missing":
        told.append("*The author of the data has not answered this yet.*")
    return " ".join([f"**{plain(answer.question)}**", *told])


def _audits(content: CardContent) -> str:
    """Return how many claims hold, those that do not with the reason, and what was not looked at."""
    held = [finding for finding in content.findings if finding.verdict == "pass"]
    other = sorted((f for f in content.findings if f.verdict != "pass"), key=lambda f: f.verdict)
    parts = []
    if content.findings:
        parts.append(f"{len(held)} of {len(content.findings)} claims that were checked hold.")
    if other:
        parts.append(_bullets([_claim(finding) for finding in other]))
    if held:
        parts.append(f"Hold: {'; '.join(plain(finding.name) for finding in held)}.")
    if content.skipped:
        parts.append(f"Not checked: {'; '.join(plain(audit.name) for audit in content.skipped)}.")
    return "\n\n".join(parts)


def _claim(finding: Finding) -> str:
    return (
        f"**{finding.verdict}** {plain(finding.name)}: {plain(wording.figure(finding.value))}, "
        f"expected {plain(finding.expected)}. {plain(wording.opening(finding.why)).rstrip('.')}."
    )


def _sources(sources: Sequence[Attribution]) -> str:
    parts = [_bullets([_source(source) for source in sources])]
    notes = combine([(source.name, source.licence) for source in sources])
    if notes:
        parts.append("On how these combine (from the names of the licences; no legal advice):")
        parts.append(_bullets([plain(note.text) for note in notes]))
    return "\n\n".join(parts)


def _source(source: Attribution) -> str:
    kind = f"{plain(source.kind)}, " if source.kind else ""
    licence = plain(source.licence) or "no licence stated"
    return f"{plain(source.name)} ({kind}{licence}). {plain(source.sentence)}".rstrip()


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
