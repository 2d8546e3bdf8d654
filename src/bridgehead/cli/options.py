"""Arguments and options that many commands take. This module is not about what they do (`commands`)."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else, errors too.")]
Debug = Annotated[bool, typer.Option("--debug", help="Print the traceback of an error.")]
Source = Annotated[
    Path, typer.Argument(metavar="CONFIG|RUN", help="A config file, or a run folder.", show_default=False)
]


class Heads(StrEnum):
    """Which heads a search or a classification goes through."""

    REFIT = "refit"
    EVALUATED = "evaluated"


WhichHeads = Annotated[Heads, typer.Option(help="Trained on all pairs, or those that never saw the test pairs.")]


def run_folder(source: Path) -> Path:
    """Return the run folder that an argument names, which may be its config."""
    if source.is_file():
        from bridgehead.runs import RunFolder

        return Path(RunFolder.of(source).folder)
    return source
