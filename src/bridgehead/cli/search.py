"""The command `search`: one query in and a table out, or a file of queries in and a file of hits out.

This module is not about finding anything (`Space.answer`, `Space.search_file`) or about the table (`hits`).
"""

import shutil
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bridgehead.cli.options import Debug, Heads, Json, WhichHeads, run_folder
from bridgehead.cli.session import session

if TYPE_CHECKING:
    from bridgehead.cli.session import Session

OPTIONS = {"read_as": "--as {}", "column": "--column {}"}


class ReadAs(StrEnum):
    """How a query can be read; the names are those of `bridgehead.search.READINGS`."""

    ID = "id"
    NAME = "name"
    INCHIKEY = "inchikey"
    SMILES = "smiles"
    TEXT = "text"


class Mode(StrEnum):
    """Which list answers; the names are those of `bridgehead.search.MODES`."""

    SPACE = "space"
    WORDS = "words"
    HYBRID = "hybrid"


def search(
    source: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, or its config.", show_default=False)],
    query: Annotated[
        str | None,
        typer.Argument(metavar="QUERY", help="An id, name, InChIKey, SMILES or words.", show_default=False),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="How many hits.")] = 10,
    offset: Annotated[int, typer.Option(min=0, help="How many hits to leave out before the first.")] = 0,
    of: Annotated[
        str | None, typer.Option(help="The side to find, by its name.", show_default="the one that QUERY is not on")
    ] = None,
    read_as: Annotated[
        ReadAs | None, typer.Option("--as", help="How QUERY is read.", show_default="the first that fits")
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(
            metavar="CONDITION",
            help="A condition on the fields of hits: \"ic50_nM < 100 and kind in ('drug', 'toxin')\".",
            show_default=False,
        ),
    ] = None,
    mode: Annotated[
        Mode, typer.Option(help="Nearest in the space, by shared words (BM25), or both lists fused by rank.")
    ] = Mode.SPACE,
    distinct: Annotated[
        bool, typer.Option("--distinct", help="One hit for all items that are the same thing.")
    ] = False,
    substructure: Annotated[
        str | None,
        typer.Option(metavar="SMARTS", help="What hits must contain, as SMILES or SMARTS.", show_default=False),
    ] = None,
    similar_to: Annotated[
        str | None, typer.Option(metavar="SMILES", help="A structure that hits must resemble.", show_default=False)
    ] = None,
    least_similarity: Annotated[
        float, typer.Option(min=0, max=1, help="How much: the least Tanimoto similarity to it.")
    ] = 0.7,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say of each hit why it is there, and which training pair is nearest.")
    ] = False,
    queries: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Many queries instead: txt, csv, tsv, jsonl or parquet.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The parquet file for their hits.", show_default=False)
    ] = None,
    column: Annotated[
        str | None,
        typer.Option(help="The column of FILE that holds the queries.", show_default="query, or the only one"),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option(help="The column of FILE that holds their ids.", show_default="id, or the row")
    ] = None,
    heads: WhichHeads = Heads.REFIT,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Find what belongs to QUERY on the other side.

    Says how QUERY was read, then shows the hits: a table on a terminal, tab-separated values elsewhere
    (there the lines before them begin with #). Put -- before a QUERY that begins with a dash.

    The score is a cosine; the percentile says how many of 100 random pairs are less alike. A query of which
    the encoder knows nothing is answered by the words it shares with items, and that is said.

    With --queries, every query of a file is searched for and all hits go to --out; what cannot be answered
    is listed there with the reason. Interrupted, the same command goes on where it stopped.
    """
    _check_usage(query, queries, out, offset, explain, (column, id_column))
    asked: dict[str, Any] = {
        "k": k, "of": of, "read_as": None if read_as is None else read_as.value, "where": where, "mode": mode.value,
        "distinct": distinct, "substructure": substructure, "similar_to": similar_to,
        "least_similarity": least_similarity,
    }  # fmt: skip
    with session(as_json, debug, OPTIONS) as current:
        from bridgehead import open_space

        folder = run_folder(source)
        with open_space(folder, heads=heads.value) as space:
            if queries is not None and out is not None:
                _search_file(current, space, queries, out, heads, asked | {"column": column, "id_column": id_column})
                return
            answer = space.answer(query or "", offset=offset, explain=explain, **asked)
            content = {"query": query, "heads": heads.value, "offset": offset, **asked, **_content(answer)}
            current.show(content, () if as_json else _lines(answer, space, folder))


def _check_usage(query: str | None, queries: Path | None, out: Path | None, offset: int, explain: bool,
                 columns: tuple[str | None, ...]) -> None:  # fmt: skip
    if (query is None) == (queries is None):
        raise typer.BadParameter("give either a QUERY, or a file of them with --queries")
    if (queries is None) != (out is None):
        raise typer.BadParameter("--queries FILE and --out FILE go together")
    if queries is not None and (offset or explain):
        raise typer.BadParameter("--offset and --explain are for one QUERY, not for --queries")
    if queries is None and any(column is not None for column in columns):
        raise typer.BadParameter("--column and --id-column are for --queries")


def _search_file(current: "Session", space: Any, queries: Path, out: Path, heads: Heads, asked: dict[str, Any]) -> None:
    def tell(done: int, total: int) -> None:
        current.progress("search", "queries", done, total or None)

    report = space.search_file(queries, out, progress=tell, **asked)
    current.show({"queries": queries, "heads": heads.value, **asked, "report": report}, report.lines())


def _content(answer: Any) -> dict[str, Any]:
    reading = {name: getattr(answer.reading, name) for name in ("kind", "value", "side", "explanation")}
    names = ("of", "note", "readings", "more", "n_searched", "hits")
    return {"reading": reading, **{name: getattr(answer, name) for name in names}}


def _lines(answer: Any, space: Any, folder: Path) -> list[str]:
    from bridgehead.cli import hits

    side = next(side for side, name in space.names.items() if name == answer.of)
    kind = space.kinds[side]
    said = [*hits.reading_lines(answer), *filter(None, [getattr(space, "model_note", "")])]
    columns = hits.hit_columns(answer.hits, answer.of, kind, hits.partner_columns(folder).get(side))
    if not sys.stdout.isatty():
        return [*(f"# {line}" for line in said), *hits.tab_separated(columns + hits.reason_columns(answer.hits))]
    if not answer.hits:
        return said if answer.note else [*said, "no hits"]
    width = shutil.get_terminal_size().columns
    reasons = hits.reason_lines(answer.hits)
    return [*said, "", *hits.table_lines(columns, width, kind), *([""] if reasons else []), *reasons]
