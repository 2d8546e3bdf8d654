"""The answer of a search as a table: cut to the width of a terminal, or whole as tab-separated values elsewhere.

This module is not about finding anything (`bridgehead.search`); it takes an `Answer` by its attributes.
"""

import io
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from bridgehead.cli.plain import cell, spoken

HEADERS = {"molecule": "SMILES"}
OPTIONS = {"read_as": "--as {}"}
NARROWEST = 40
_NAME_WIDTH = 28
_FIXED = ("rank", "score", "id", "name")
_GAP = 3
_NAME_COLUMNS = ("name", "names", "synonyms", "synonym")


def reading_lines(answer: Any) -> list[str]:
    """Return how the query was read, what was searched, and the note where there is one."""
    # The library speaks of its argument; here it is an option.
    said = spoken(answer.reading.explanation, OPTIONS)
    lines = [f"{said}; searching {answer.of}"]
    return [cell(line) for line in (lines + [answer.note] if answer.note else lines)]


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
    column where any hit has them. A text speaks for itself: it has neither.
    """
    columns = [
        ("rank", [str(hit.rank) for hit in hits]),
        ("score", [f"{hit.score:.3f}" for hit in hits]),
        ("id", [cell(hit.id) for hit in hits]),
    ]
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
        justify: Literal["right", "left"] = "right" if name in ("rank", "score") else "left"
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
