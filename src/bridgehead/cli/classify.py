"""The command `classify`: labels and items from the command line or files in, answers out.

This module is not about how anything is classified (`Space.classify`).
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from bridgehead.cli.options import Debug, Heads, Json, WhichHeads, run_folder
from bridgehead.cli.plain import cell
from bridgehead.cli.session import session
from bridgehead.errors import ArgumentError, DecodeError, InputFileNotFoundError

_FILES = (".txt", ".tsv", ".csv")
_COLUMNS = ("position", "item", "answer", "cosine", "share_among_candidates", "nearest", "not read because")


def classify(
    source: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, or its config.", show_default=False)],
    labels: Annotated[
        str,
        typer.Option(
            metavar="NAMES|FILE",
            help="Names of classes with commas between them, or a file of one a line, its synonyms after tabs.",
            show_default=False,
        ),
    ],
    item: Annotated[list[str] | None, typer.Option(help="An item; may be repeated.", show_default=False)] = None,
    items: Annotated[Path | None, typer.Option(help="A file of items, one a line.", show_default=False)] = None,
    template: Annotated[
        list[str] | None,
        typer.Option(help="A text with {} where a name goes; may be repeated, then averaged.", show_default="{}"),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many labels to show for an item.")] = 5,
    abstain_below: Annotated[
        float | None,
        typer.Option(
            min=-1, max=1, help='Answer "none of these" where the nearest cosine is below.', show_default="never"
        ),
    ] = None,
    of: Annotated[
        str | None, typer.Option(help="The side that labels are on, by its name.", show_default="that of texts")
    ] = None,
    heads: WhichHeads = Heads.REFIT,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Put items to the nearest of described classes.

    Nothing is trained on these classes. Shares are among the labels given and no probabilities; how the answers move
    when a class is removed, a template stands alone or a synonym is a candidate of its own is shown with them. Away
    from a terminal: tab-separated values, after lines that begin with #.
    """
    with session(as_json, debug) as current:
        from bridgehead import open_space

        names, synonyms = _labels(labels)
        with open_space(run_folder(source), heads=heads.value) as space:
            found = space.classify(_items(item, items), names, template or ["{}"], k, abstain_below, synonyms, of)
            current.show(found.to_dict() | {"heads": heads.value}, () if as_json else _lines(found))


def _labels(given: str) -> tuple[list[str], dict[str, list[str]]]:
    """Return the names of classes and the synonyms of those that have any."""
    looks_like_a_file = "," not in given and (os.sep in given or given.endswith(_FILES))
    if not Path(given).is_file():
        if looks_like_a_file:
            raise InputFileNotFoundError(f"there is no file of labels {given}; expected one, or names with commas")
        return [name.strip() for name in given.split(",")], {}
    rows = [[part.strip() for part in line.split("\t")] for line in _lines_of(Path(given))]
    return [row[0] for row in rows], {row[0]: row[1:] for row in rows if len(row) > 1}


def _items(given: Sequence[str] | None, file: Path | None) -> list[str]:
    found = list(given or []) + ([] if file is None else _lines_of(file))
    if not found:
        raise ArgumentError("there are no items; name some with --item, or a file of them with --items")
    return found


def _lines_of(path: Path) -> list[str]:
    """Return the lines of a text file that hold anything."""
    if not path.is_file():
        raise InputFileNotFoundError(f"there is no file {path}; expected a text file, one entry a line")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DecodeError(f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8") from error
    return [line.rstrip("\r") for line in text.split("\n") if line.strip()]


def _lines(found: Any) -> list[str]:
    """Return lines to read on a terminal, elsewhere every answer whole in tab-separated values."""
    lines = found.lines()
    if sys.stdout.isatty():
        return list(lines)
    said = [lines[0], *found.notes, *(one.line() for one in found.sensitivity)]
    rows = [(one.position, _answer_cells(one)) for one in found.items]
    rows += [(one.position, [one.position, one.item, "", "", "", "", one.reason]) for one in found.unread]
    ordered = [cells for _, cells in sorted(rows, key=lambda row: row[0])]
    return [*(f"# {cell(line)}" for line in said), "\t".join(_COLUMNS), *("\t".join(map(cell, r)) for r in ordered)]


def _answer_cells(one: Any) -> list[Any]:
    first = one.labels[0]
    nearest = [f"{near.label} ({near.share_among_candidates:.3f})" for near in one.labels]
    share = f"{first.share_among_candidates:.3f}"
    return [one.position, one.item, one.answer or "none of these", f"{first.score:.3f}", share, nearest, ""]
