"""The commands about what figures mean. This module is not about how anything is measured or tested (`runs`)."""

from pathlib import Path
from typing import Annotated

import typer

from bridgehead.cli.options import Debug, Json, Source
from bridgehead.cli.session import FAILED_CLAIM, session

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


def audit(
    source: Source,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with status 3 where a claim fails.")] = False,
    controls: Annotated[
        list[str] | None,
        typer.Option(help="Also train a control, as long as the run: within, one modality, one-sided, source tag."),
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Judge a run: each claim with its value, what was expected and the verdict.

    Leaks, shortcuts, false negatives, the data, the training and the controls; audits that do not apply say why.
    """
    with session(as_json, debug) as current:
        from bridgehead import runs

        record = runs.audit(source, progress=current.progress, controls=controls)
        current.show(record, record["lines"])
    if strict and record["counts"]["fail"]:
        raise typer.Exit(FAILED_CLAIM)


def report(source: Source, as_json: Json = False, debug: Debug = False) -> None:
    """Write the page and the model card of a run that is evaluated.

    The commands evaluate, audit, index and run write them too.
    """
    with session(as_json, debug) as current:
        from bridgehead import runs

        record = runs.report(source, progress=current.progress)
        current.show(record, record["lines"])
