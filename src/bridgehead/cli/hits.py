"""The answer of a search as a table: cut to the width of a terminal, or whole as tab-separated values elsewhere.

This module is not about finding anything (`bridgehead.search`); it takes an `Answer` by its attributes.
"""

import io
from collections.abc import Mapping, Sequence
from typing import Any

from bridgehead.cli.plain import cell

HEADERS = {"molecule": "SMILES"}
NARROWEST = 40
_NAME_WIDTH = 28
_NAME_COLUMNS = ("name", "names", "synonyms", "synonym")


def reading_lines(answer: Any) -> list[str]:
    """Return how the query was read, what was searched, and the note where there is one."""
    lines = [f"{answer.reading.explanation}; searching {answer.of}"]
    return lines + [answer.note] if answer.note else lines


def hit_columns(hits: Sequence[Any], of: str, kind: str, other: str) -> list[tuple[str, list[str]]]:
    """Return (header, cells) of the columns that fit the hits: rank, score, id, name, the item, what is said of it.

    `of` is the shown name of the side of the hits, `kind` what its items are, `other` the shown name of the other side.
    A name and what is said of an item (its partners, or the first of its further fields with words) have a column where
    any hit has them.
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
    said = _said_of([hit.payload for hit in hits], other) if kind != "text" else None
    if said is not None:
        columns.append((said, [cell(hit.payload.get(said)) for hit in hits]))
    return columns


def _said_of(payloads: Sequence[Mapping[str, Any]], other: str) -> str | None:
    fields = dict.fromkeys(field for payload in payloads for field in payload)
    for field in (other, *(field for field in fields if field not in (*_NAME_COLUMNS, other))):
        if field in fields and any(" " in cell(payload.get(field)) for payload in payloads):
            return field
    return None


def tab_separated(columns: Sequence[tuple[str, list[str]]]) -> list[str]:
    """Return a header and a line for each row, every cell whole; a cell holds no tab or line break."""
    rows = zip(*(cells for _, cells in columns), strict=True)
    return ["\t".join(row) for row in ([name for name, _ in columns], *rows)]


def table_lines(columns: Sequence[tuple[str, list[str]]], width: int) -> list[str]:
    """Return the lines of a table of at most `width` characters (at least `NARROWEST`); long cells end in an ellipsis.

    The id is left out where there are names; the last column has the most room.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    named = any(name == "name" for name, _ in columns)
    shown = [column for column in columns if not (named and column[0] == "id")]
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, expand=False)
    for position, (name, _) in enumerate(shown):
        if name in ("rank", "score"):
            table.add_column(name, justify="right", no_wrap=True, min_width=5)
        elif name in ("id", "name"):
            table.add_column(name, no_wrap=True, overflow="ellipsis", max_width=min(_NAME_WIDTH, width // 4))
        else:
            ratio = 2 if position == len(shown) - 1 else 1
            table.add_column(name, no_wrap=True, overflow="ellipsis", ratio=ratio)
    for row in zip(*(cells for _, cells in shown), strict=True):
        # Text, not str: the brackets of a SMILES would be taken for markup.
        table.add_row(*map(Text, row))
    out = io.StringIO()
    Console(file=out, width=max(width, NARROWEST), color_system=None, force_terminal=False).print(table)
    return [line.rstrip() for line in out.getvalue().splitlines()]
