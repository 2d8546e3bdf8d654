"""Arguments and options that many commands take. This module is not about what they do (`commands`)."""

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else, errors too.")]
Debug = Annotated[bool, typer.Option("--debug", help="Print the traceback of an error.")]
Source = Annotated[
    Path, typer.Argument(metavar="CONFIG|RUN", help="A config file, or a run folder.", show_default=False)
]
