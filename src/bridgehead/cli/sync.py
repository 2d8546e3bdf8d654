"""The commands that keep an index up to date: `index` and `sync`.

This module is not about what they do (`bridgehead.runs`).
"""

from pathlib import Path
from typing import Annotated

import typer

from bridgehead.cli.options import Debug, Json, Source, run_folder
from bridgehead.cli.session import IN_CONFIG, session

_OPTIONS = {**IN_CONFIG, "side": "--side {}", "id": "--id {}"}


def index(
    source: Source,
    compact: Annotated[
        bool,
        typer.Option("--compact", help="Write the index anew with all that sync added, and measure its recall again."),
    ] = False,
    snapshot: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write the index as it is now into DIR, which searches and serves by itself.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Make the items searchable.

    Items of the pairs and those that the config adds, with the heads of refit and with the evaluated ones; what came
    by sync is carried over. While a new index is built the one before goes on serving.
    """  # fmt: skip
    if compact and snapshot is not None:
        raise typer.BadParameter("--compact and --snapshot are two things; ask for one, then for the other")
    with session(as_json, debug) as current:
        from bridgehead import runs

        run = runs.RunFolder.of(source)
        if snapshot is not None:
            target = runs.snapshot(run, snapshot, progress=current.progress)
            current.show({"snapshot": target}, [f"wrote {target}; search it: bridgehead search {target} QUERY"])
            return
        record = (runs.compact if compact else runs.index)(run, progress=current.progress)
        current.show(record, record["lines"])


def sync(
    source: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, or its config.", show_default=False)],
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Items: csv, tsv, jsonl, parquet, or a glob.", show_default=False)
    ],
    side: Annotated[str, typer.Option(help="The side that the items are on, by its name, or a or b.")] = "a",
    id_column: Annotated[
        str | None, typer.Option("--id", help="The column of ids in FILE.", show_default="that of the pairs, else id")
    ] = None,
    delete_missing: Annotated[
        bool, typer.Option("--delete-missing", help="Remove items of an earlier sync that FILE does not have.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and write nothing.")] = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Bring the index up to date with FILE.

    By id and content: what is new or changed is encoded, the rest is left alone, and the items of the run itself stay
    what its pairs say. Records that cannot be read are listed and change nothing; the exit status is 0 then too.
    """
    with session(as_json, debug, _OPTIONS) as current:
        from bridgehead import runs

        done = runs.sync(
            run_folder(source), file, side=side, delete_missing=delete_missing, dry_run=dry_run, id=id_column,
            progress=current.progress,
        )  # fmt: skip
        current.show(done.to_dict(), done.lines())
