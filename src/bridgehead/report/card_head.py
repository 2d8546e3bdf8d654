"""The head of a model card: the YAML that model hubs read, with results that a leaderboard can take.

Every value is written in YAML's flow style, texts always in double quotes, so that nothing in them can become a field.
Not about the text of the card (`card`).
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from bridgehead.report import wording
from bridgehead.report.measured import Direction, Measure, QuerySet

# The identifiers of the hub that are an SPDX name in small letters; any other licence is "other", with its name.
_HUB_LICENCES = re.compile(
    r"apache-2\.0|mit|bsd-[23]-clause|isc|zlib|unlicense|cc0-1\.0|cc-by-(2\.0|2\.5|3\.0|4\.0)|cc-by-sa-[34]\.0"
    r"|cc-by-nc-[234]\.0|cc-by-nd-4\.0|cc-by-nc-nd-[34]\.0|cc-by-nc-sa-[234]\.0|mpl-2\.0|epl-[12]\.0|eupl-1\.[12]"
    r"|artistic-2\.0|ms-pl|afl-3\.0|bsl-1\.0|ecl-2\.0|lgpl-(2\.1|3\.0)|gpl-[23]\.0|agpl-3\.0|ofl-1\.1|postgresql|wtfpl"
)
_LONGEST = 5000
_TAGS = ("contrastive-learning", "cross-modal-retrieval")


def card_head(
    title: str,
    licence: str,
    names: tuple[str, str],
    query_sets: Sequence[QuerySet] = (),
    datasets: Sequence[str] = (),
    base_models: Sequence[str] = (),
    tags: Sequence[str] = (),
) -> str:
    """Return the head between its two lines of dashes, each field on a line of its own.

    Results are those of the first set of queries: one entry for each direction with the measures that lie in [0, 1],
    their names saying pool, chance and interval, since a bare recall compares with nothing.
    """
    hub = licence.strip().lower()
    known = _HUB_LICENCES.fullmatch(hub) is not None
    fields: dict[str, Any] = {"license": hub if known else "other"}
    if not known:
        fields["license_name"] = licence
    fields |= {
        "library_name": "bridgehead",
        "pipeline_tag": "feature-extraction",
        "tags": list(dict.fromkeys([*_TAGS, *names, *tags])),
        "datasets": list(datasets),
        "base_model": list(base_models),
        "model-index": _index(title, query_sets, datasets),
    }
    return "\n".join(["---", *(f"{name}: {flow(value)}" for name, value in fields.items() if value), "---"])


def _index(title: str, query_sets: Sequence[QuerySet], datasets: Sequence[str]) -> list[dict[str, Any]]:
    results = [
        result
        for queries in query_sets[:1]
        for direction in queries.directions
        if (result := _result(direction, title, queries.title, datasets))["metrics"]
    ]
    return [{"name": title, "results": results}] if results else []


def _result(direction: Direction, title: str, queries: str, datasets: Sequence[str]) -> dict[str, Any]:
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "pairs"
    return {
        "task": {"type": "retrieval", "name": f"{direction.query} to {direction.candidate}"},
        "dataset": {"type": datasets[0] if datasets else slug, "name": f"{title}, held-out part ({queries})"},
        "metrics": [
            {"type": name, "value": measure.value, "name": _called(name, measure, direction)}
            for name, measure in direction.measures.items()
            if wording.is_share(name) and direction.n_queries and math.isfinite(measure.value)
        ],
    }


def _called(name: str, measure: Measure, direction: Direction) -> str:
    told = [f"chance {wording.number(measure.chance, name)}"] if measure.chance is not None else []
    if measure.low is not None and measure.high is not None:
        told.insert(0, f"95 % {wording.interval(measure, name)}")
    among = f"{wording.measure_label(name)} among {wording.candidates(direction)}"
    return f"{among} ({', '.join(told)})" if told else among


def flow(value: Any) -> str:
    """Return a text, number, list or mapping as YAML in one line. For plain texts it is JSON as well.

    >>> flow({"a": [1, 0.5, 'x "y"']})
    '{"a": [1, 0.5, "x \\\\"y\\\\""]}'
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{flow(str(name))}: {flow(entry)}" for name, entry in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(flow(entry) for entry in value) + "]"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int | float):
        return f"{value:.6g}" if isinstance(value, float) else str(value)
    return '"' + "".join(_escaped(character) for character in str(value)[:_LONGEST]) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    # Angle brackets too: a viewer that does not know the head shows it as text of the page.
    if " " <= character <= "~" and character not in "<>&":
        return character
    number = ord(character)
    # A lone surrogate is no character, and no reader of YAML takes one.
    if 0xD800 <= number <= 0xDFFF:
        return "?"
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"
