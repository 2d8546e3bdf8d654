"""The commands and their arguments; each is a thin call into the library.

What a stage needs is imported inside its command: `bridgehead search` starts without torch, and `--help` without
anything. This module is not about how results and errors come out (`session`).
"""

import os
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bridgehead import __version__
from bridgehead.cli.classify import classify
from bridgehead.cli.evidence import audit, compare, report
from bridgehead.cli.options import Debug, Json, Source
from bridgehead.cli.search import search
from bridgehead.cli.serve import serve
from bridgehead.cli.session import INTERRUPTED, INTERRUPTION, USER_INPUT, Session, session
from bridgehead.cli.study import study
from bridgehead.cli.sync import index, sync
from bridgehead.errors import ArgumentError

if TYPE_CHECKING:
    from bridgehead.runs import RunFolder

app = typer.Typer(
    name="bridgehead",
    help="Align two modalities in one space, prove that the alignment is real, and search across it.",
    epilog="Exit status: 0 good, 1 the input is at fault, 2 the command is, 3 an audit failed under --strict, "
    "130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
)


class Quote(StrEnum):
    """Whether fields of csv and tsv are quoted."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bridgehead {__version__}")
        raise typer.Exit


@app.callback()
def bridgehead(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Align two modalities in one space, prove that the alignment is real, and search across it."""


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where the run goes.")] = Path("runs/demo"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the split and the training.")] = 0,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Run everything on packaged data, then ask questions.

    Aligns ligands of the Guide to PHARMACOLOGY with statements of what they do, and answers three queries: with the
    heads that never saw aspirin, and after refit.
    """
    with session(as_json, debug) as current:
        from bridgehead import runs

        _show_record(current, runs.demo(folder, seed=seed, progress=current.progress))


@app.command()
def init(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file of pairs, or a glob.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The config to write.")] = Path("config.toml"),
    force: Annotated[bool, typer.Option("--force", help="Replace the config when it is there already.")] = False,
    quote: Annotated[Quote, typer.Option(help="Whether fields of csv and tsv are quoted.")] = Quote.AUTO,
    encoding: Annotated[str, typer.Option(help="Encoding of the text.")] = "utf-8",
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Write a commented config for FILE, its columns guessed.

    The command run takes the config as it is; read it before you do.
    """
    with session(as_json, debug, {"quote": "--quote {}", "encoding": "--encoding {}"}) as current:
        if out.exists() and not force:
            raise ArgumentError(f"{out} exists already; name another file with --out, or replace it with --force")
        from bridgehead import files, runs

        config = runs.init_config(file, quote=quote.value, encoding=encoding, out=out)
        files.write_text(out, config)
        current.show({"config": out, "text": config}, [f"wrote {out}; read it, then: bridgehead run {out}"])


@app.command()
def check(source: Source, as_json: Json = False, debug: Debug = False) -> None:
    """Read the pairs, and say what is in them and what is not.

    Counts, duplicates, links per item, identities, the split, and what was left out with the reason.
    """
    _stage("check", source, as_json, debug)


@app.command()
def run(
    source: Source,
    folder: Annotated[Path | None, typer.Option(help="Run folder.", show_default="as the config says")] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Go through every stage; finished ones are skipped.

    The stages are check, encode, train, evaluate, refit, index and the report.
    """
    with session(as_json, debug) as current:
        from bridgehead import runs

        finished = runs.run(source, folder=folder, progress=current.progress)
        record, trained, folds = finished.record("evaluate"), finished.record("train"), runs.read_folds(finished)
        report = finished.path("report.html")
        current.show(
            {"folder": finished.folder, "report": report, "evaluate": record, "folds": folds},
            [
                # Where encoders were trained, it is said which, and what of them.
                *([*_lines_of(trained), ""] if trained.get("trained") else []),
                *_lines_of(record),
                *([] if folds is None else ["", *_lines_of(folds)]),
                "",
                f"report: {report}",
                f'search: bridgehead search {finished.folder} "QUERY"',
            ],
        )


@app.command()
def encode(source: Source, as_json: Json = False, debug: Debug = False) -> None:
    """Turn the items of both sides into rows.

    Rows are cached, so an interrupted encoding goes on where it stopped.
    """
    _stage("encode", source, as_json, debug)


@app.command()
def train(source: Source, as_json: Json = False, debug: Debug = False) -> None:
    """Train the heads on the training part of the pairs.

    Goes on from the last checkpoint after an interruption.
    """
    _stage("train", source, as_json, debug)


@app.command()
def refit(source: Source, as_json: Json = False, debug: Debug = False) -> None:
    """Train on all pairs: what people search.

    The settings are those of train, the epochs as many as validation chose. Nothing is measured with these heads.
    """
    _stage("refit", source, as_json, debug)


@app.command()
def evaluate(
    source: Source,
    folds: Annotated[
        int | None,
        typer.Option(min=0, max=100, help="Folds of cross-validation, 0 for none.", show_default="as the config says"),
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option(min=1, max=100, help="How often folds are dealt anew.", show_default="as the config says"),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(min=1, max=100, help="Trainings of each fold.", show_default="as the config says"),
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Measure retrieval on the pairs held out.

    Beside each figure: chance, an untrained baseline, a closed form (CCA), and a control trained on shuffled links.
    Runs of fewer than 3,000 entities are cross-validated too, in five folds unless their config or --folds says
    otherwise. Folds, repeats and seeds that are given stay in the config of the run folder.
    """
    with session(as_json, debug) as current:
        from bridgehead import runs

        run = runs.with_folds(runs.RunFolder.of(source), folds, repeats, seeds)
        _show_record(current, runs.evaluate(run, progress=current.progress))


app.command()(audit)
app.command()(report)
app.command()(compare)


app.command()(index)
app.command()(sync)


app.command()(search)
app.command()(classify)
app.command()(serve)
app.command()(study)


def _stage(name: str, source: Path, as_json: bool, debug: bool) -> None:
    with session(as_json, debug) as current:
        from bridgehead import runs

        stage: Callable[..., dict[str, Any]] = getattr(runs, name)
        run: RunFolder = runs.RunFolder.of(source)
        _show_record(current, stage(run, progress=current.progress))


def _show_record(current: Session, record: dict[str, Any]) -> None:
    current.show(record, _lines_of(record))


def _lines_of(record: dict[str, Any]) -> list[str]:
    """Return what a person should read of a stage's record: its lines, or else its plain values."""
    if "lines" in record:
        return list(record["lines"])
    return [f"{name}: {value}" for name, value in record.items() if isinstance(value, str | int | float)]


def main() -> None:
    """Run the command line and exit; the entry point `bridgehead`."""
    # Python has no stream where the caller closed it before the start.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # A terminal in another encoding shows a question mark for what it lacks, instead of ending the command.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        app(prog_name="bridgehead")
    except KeyboardInterrupt:
        # Before a command began, or after it ended.
        print(INTERRUPTION, file=sys.stderr)
        os._exit(INTERRUPTED)
    except OSError as error:
        # Standard output cannot be written to; leaving in the usual way would try once more.
        print(f"error: {error}", file=sys.stderr, flush=True)
        os._exit(USER_INPUT)
