"""The answer of a search as a table: cut to the width of a terminal, or whole as tab-separated values elsewhere.

This module is not about finding anything (`bridgehead.search`); it takes an `Answer` by its attributes.
"""

import io
import math
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from bridgehead.cli.plain import cell, spoken

HEADERS = {"molecule": "SMILES"}
NARROWEST = 40
_NAME_WIDTH = 28
_NUMBERS = ("rank", "score", "percentile")
_FIXED = (*_NUMBERS, "id", "name")
_GAP = 3
_NAME_COLUMNS = ("name", "names", "synonyms", "synonym")


def reading_lines(answer: Any) -> list[str]:
    """Return how the query was read, what was searched, and the note where there is one."""
    # The library speaks of its argument; here it is an option.
    said = spoken(answer.reading.explanation, {"read_as": "--as {}"})
    lines = [f"{said}; searching {answer.of}"]
    # That words can be searched for is part of how a query was read.
    others = [kind for kind in answer.readings if kind != "text"]
    if others:
        lines.append(f"it could also be read as: {', '.join(others)} (--as)")
    if answer.note:
        lines.append(answer.note)
    return [cell(line) for line in lines]


def partner_columns(folder: Path) -> dict[str, str]:
    """Return side -> the field of its items' payload that holds their partners, as the config of a run folder says.

    Empty where the folder has no config that says so.
    """
    try:
        pairs = tomllib.loads((folder / "config.toml").read_text(encoding="utf-8"))["pairs"]
        return {"a": str(pairs["b"]), "b": str(pairs["a"])}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def hit_columns(hits: Sequence[Any], of: str, kind: str, partners: str | None = None) -> list[tuple[str, list[str]]]:
    """Return (header, cells) of the columns that fit the hits: rank, score, id, name, the item, what belongs to it.

    `of` is the shown name of the side of the hits, `kind` what its items are, `partners` the field of the payload that
    holds what belongs to an item; where it is None, the first field with words is taken. Names and partners have a
    column where any hit has them, and so has the percentile. A text speaks for itself: it has neither.
    """
    columns = [
        ("rank", [str(hit.rank) for hit in hits]),
        ("score", [f"{hit.score:.3f}" for hit in hits]),
    ]
    if any(hit.percentile is not None for hit in hits):
        columns.append(("percentile", [percentile_text(hit.percentile) for hit in hits]))
    columns.append(("id", [cell(hit.id) for hit in hits]))
    names = [cell(hit.payload.get("name")) for hit in hits]
    if any(names):
        columns.append(("name", names))
    columns.append((HEADERS.get(kind, of), [cell(hit.item) for hit in hits]))
    if kind != "text":
        said = partners or _field_with_words([hit.payload for hit in hits])
        if said is not None and any(cells := [cell(hit.payload.get(said)) for hit in hits]):
            columns.append((said, cells))
    return columns


def _field_with_words(payloads: Sequence[Mapping[str, Any]]) -> str | None:
    fields = dict.fromkeys(field for payload in payloads for field in payload if field not in _NAME_COLUMNS)
    return next((field for field in fields if any(" " in cell(payload.get(field)) for payload in payloads)), None)


def percentile_text(percentile: float | None) -> str:
    """Return a percentile with two decimals, cut and not rounded: 99.998 of 100 are not all."""
    return "" if percentile is None else f"{math.floor(percentile * 100 + 1e-9) / 100:.2f}"


def reason_columns(hits: Sequence[Any]) -> list[tuple[str, list[str]]]:
    """Return (header, cells) of what was folded into hits and why they are there, where any hit has it."""
    columns = [("also", [cell(hit.also) for hit in hits])]
    if any(hit.explanation is not None for hit in hits):
        reasons = [hit.explanation for hit in hits]
        columns += [
            ("cosine", ["" if why.similarity is None else f"{why.similarity:.3f}" for why in reasons]),
            ("matched words", [cell(why.matched_words) for why in reasons]),
            ("rank in space", [cell(why.ranks.get("space")) for why in reasons]),
            ("rank by words", [cell(why.ranks.get("words")) for why in reasons]),
            ("nearest training pair", [_pair(why.nearest_pair) for why in reasons]),
        ]
    return [(name, cells) for name, cells in columns if any(cells)]


def reason_lines(hits: Sequence[Any]) -> list[str]:
    """Return lines for a terminal: for each hit what was folded into it, and why it is there."""
    lines = []
    for hit in hits:
        said = [f"also {cell(hit.also)}"] if hit.also else []
        if (why := hit.explanation) is not None:
            said += _reasons(why)
        if said:
            lines.append(f"{hit.rank:>4}   {'; '.join(said)}")
    return lines


def _reasons(why: Any) -> list[str]:
    said = []
    if why.similarity is not None:
        above = "" if why.percentile is None else f", above {percentile_text(why.percentile)} % of random pairs"
        said.append(f"cosine {why.similarity:.3f}{above}")
    ranks = [f"{rank} {'in space' if mode == 'space' else 'by words'}" for mode, rank in why.ranks.items()]
    said += [f"rank {', '.join(ranks)}"] if ranks else []
    said += [f"words: {cell(why.matched_words)}"] if why.matched_words else []
    said += [f"nearest training pair: {_pair(why.nearest_pair)}"] if why.nearest_pair is not None else []
    return said


def _pair(pair: Any) -> str:
    if pair is None:
        return ""
    return cell(f"{pair.item_a} | {pair.item_b} (cosine {pair.to_query:.3f} with query, {pair.to_hit:.3f} with hit)")


def tab_separated(columns: Sequence[tuple[str, list[str]]]) -> list[str]:
    """Return a header and a line for each row, every cell whole; a cell holds no tab or line break."""
    rows = zip(*(cells for _, cells in columns), strict=True)
    return ["\t".join(row) for row in ([name for name, _ in columns], *rows)]


def table_lines(columns: Sequence[tuple[str, list[str]]], width: int, kind: str = "") -> list[str]:
    """Return the lines of a table of at most `width` characters (at least `NARROWEST`); long cells end in an ellipsis.

    The id is left out where there are names, and of texts; the last column has the most room.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    without_id = kind == "text" or any(name == "name" for name, _ in columns)
    shown = [column for column in columns if not (without_id and column[0] == "id")]
    width = max(width, NARROWEST)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for (name, _), room in zip(shown, _widths(shown, width), strict=True):
        justify: Literal["right", "left"] = "right" if name in _NUMBERS else "left"
        table.add_column(Text(name), justify=justify, no_wrap=True, overflow="ellipsis", width=room)
    for row in zip(*(cells for _, cells in shown), strict=True):
        # Text, not str: the brackets of a SMILES would be taken for markup.
        table.add_row(*map(Text, row))
    out = io.StringIO()
    Console(file=out, width=width, color_system=None, force_terminal=False).print(table)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def _widths(columns: Sequence[tuple[str, list[str]]], width: int) -> list[int]:
    """Return the width of each column: of numbers and names first, then the rest is shared, the last column's most."""
    from rich.cells import cell_len

    wanted = [max(map(cell_len, (name, *cells))) for name, cells in columns]
    most = {"id": min(_NAME_WIDTH, width // 4), "name": min(_NAME_WIDTH, width // 4)}
    widths = [min(want, most.get(name, want)) for (name, _), want in zip(columns, wanted, strict=True)]
    flexible = [position for position, (name, _) in enumerate(columns) if name not in _FIXED]
    fixed = sum(w for (name, _), w in zip(columns, widths, strict=True) if name in _FIXED)
    left = width - fixed - _GAP * (len(columns) - 1)
    for position, share in zip(flexible, (1, 2)[-len(flexible) :], strict=True):
        others = sum(wanted[other] for other in flexible if other != position)
        shared = left * share // (3 if len(flexible) == 2 else 2)
        widths[position] = min(wanted[position], max(left - others, shared, 1))
    return widths
