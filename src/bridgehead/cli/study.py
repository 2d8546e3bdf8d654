"""The command `study`: published protocols, repeated. This module is not about what they measure (`runs.study`)."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from bridgehead.cli.session import session


class Study(StrEnum):
    """Which studies there are."""

    TWO_VIEWS = "two-views"


def study(
    name: Annotated[Study, typer.Argument(metavar="two-views", help="Which study.", show_default=False)],
    everything: Annotated[
        bool, typer.Option("--all", help="The exercises too: one-sided training, duplicated texts, a source tag.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for the page and the record.")] = Path("runs/two-views"),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document and nothing else, errors too.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Print the traceback of an error.")] = False,
) -> None:
    """Repeat a published study, beside its figures.

    two-views: five seeds on true and on shuffled pairs of synthetic data, held-out recall in both directions, each mean
    beside the published one. Writes one HTML page.
    """
    with session(as_json, debug) as current:
        from bridgehead import runs

        studies = {Study.TWO_VIEWS: runs.two_view_study}
        record = studies[name](out, everything=everything, progress=current.progress)
        current.show(record, record["lines"])
