"""The commands about what figures mean. This module is not about how anything is measured or tested (`runs`)."""

from pathlib import Path
from typing import Annotated

import typer

from bridgehead.cli.options import Debug, Json
from bridgehead.cli.session import session

First = Annotated[Path, typer.Argument(metavar="RUN", help="An evaluated run, or its config.", show_default=False)]
Second = Annotated[Path, typer.Argument(metavar="RUN", help="The run to hold it against.", show_default=False)]


def compare(first: First, second: Second, as_json: Json = False, debug: Debug = False) -> None:
    """Say by how much two runs differ on the same queries.

    Each metric with the interval of its difference and a paired permutation test, by entity; the same over folds where
    both were cross-validated on the same ones. Refused where their contracts differ: what differs is printed.
    """
    with session(as_json, debug) as current:
        from bridgehead import runs

        record = runs.compare_runs(first, second)
        current.show(record, record["lines"])
