"""Searching with every query of a file: in parts that last, so that an interrupted search goes on.

Parts lie in a folder beside the result, with a record of what was asked of which index; the result takes its place in
one step when all are there. Reading queries is in `query_files`, what a row of hits is in `hits_table`.
"""

import glob
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bridgehead
from bridgehead.errors import ArgumentError, BridgeheadError, DataError, FormatVersionError, RunStateError
from bridgehead.files import folder_lock, hash_file, hash_json, read_json, write_json
from bridgehead.search.batch.hits_table import HitsTable, joined
from bridgehead.search.batch.query_files import QueryRow, read_queries
from bridgehead.search.filters import filters_of
from bridgehead.search.query import Query

if TYPE_CHECKING:
    from bridgehead.encode.cache import Progress
    from bridgehead.search.space import Space

_FORMAT, _VERSION = "bridgehead batch search", 1
_ASKED = "asked.json"
# Hits and queries of a part; queries that are answered at once, and the hits that these may have.
_MOST_HITS, _MOST_QUERIES = 200_000, 8192
_TOGETHER, _HITS_TOGETHER = 1024, 10_240
_LISTED = 20


@dataclass(frozen=True)
class BatchReport:
    """What became of a file of queries.

    `out`: the parquet file. `n_hits` in all; `n_empty` queries were answered by no hit, `n_failed` could not be
    answered: the first of these are in `failures` as (row, id, reason). `note` is "" or says that the index changed
    meanwhile.
    """

    out: Path
    n_queries: int
    n_hits: int
    n_empty: int
    n_failed: int
    failures: tuple[tuple[int, str, str], ...] = field(default=())
    note: str = ""

    def lines(self) -> list[str]:
        """Return lines to print."""
        counts = f"{self.n_queries:,} queries, {self.n_hits:,} hits"
        head = f"{counts}; {self.n_empty:,} without a hit, {self.n_failed:,} failed"
        failed = [f"row {row} (id {identifier}): {reason}" for row, identifier, reason in self.failures]
        more = [f"... and {self.n_failed - len(failed):,} more, in {self.out}"] if self.n_failed > len(failed) else []
        return [head, *failed, *more, *([self.note] if self.note else []), f"wrote {self.out}"]


def search_file(
    space: "Space",
    queries: str | Path,
    out: str | Path,
    k: int = 10,
    *,
    column: str | None = None,
    id_column: str | None = None,
    progress: "Progress | None" = None,
    **options: Any,
) -> BatchReport:
    """Search with every query of a file, and write all hits to the parquet file `out`.

    `queries`, `column`, `id_column`: see `read_queries`. `options`: of, read_as, where, mode, distinct, substructure,
    similar_to, least_similarity, as in `Query`, the same for all. `progress(done, None)` is called with the number of
    queries done. The columns of `out`: query_row (from 0), query_id, query, read_as, rank, id, name, item, score,
    percentile, also, note, failure. A query without a hit has one row without a rank, and a note; one that cannot be
    answered has one row with the reason in `failure`, and touches no other. Rows come in the order of the queries.

    An interrupted call leaves its parts in a folder beside `out`; the same call on the same file and index goes on from
    them, any other starts anew. Raises as `read_queries`, `ArgumentError` for options that fit no query, and
    `RunBusyError` when another process writes the same `out`.
    """
    source, target = Path(queries), Path(out)
    _check_out(source, target)
    template = Query("query", k=k, **_batch_options(options))
    _check_filters(space, template)
    rows = read_queries(source, column, id_column)
    parts = target.parent / f".{target.name}.parts"
    before = _state_of(space)
    with folder_lock(parts):
        _prepare(parts, target, {"queries": hash_file(source), "columns": [column, id_column], "asked": _said(template),
                         "index": before, "version": bridgehead.__version__})  # fmt: skip
        written = _search_parts(space, template, rows, parts, progress)
        if not written:
            raise DataError(f"{source} holds no query; expected at least one")
        joined(written, target)
        shutil.rmtree(parts)
    changed = "the index changed meanwhile: later queries were answered from a later state"
    return _report(target, changed if _state_of(space) != before else "")


def _check_out(source: Path, target: Path) -> None:
    if target.suffix.lower() != ".parquet":
        raise ArgumentError(f"out = {str(target)!r}; expected the name of a .parquet file")
    if source.exists() and target.exists() and source.samefile(target):
        raise ArgumentError(f"out is the file of queries itself ({target}); name another file")


def _batch_options(options: dict[str, Any]) -> dict[str, Any]:
    known = {"of", "read_as", "where", "mode", "distinct", "substructure", "similar_to", "least_similarity"}
    if unknown := sorted(options.keys() - known):
        raise ArgumentError(f"{', '.join(unknown)}: no option of a search with many queries; expected {sorted(known)}")
    return options


def _check_filters(space: "Space", query: Query) -> None:
    """Raise what every query would fail with: a side that there is not, or a filter that fits no side."""
    sides = [space.side(query.of)] if query.of is not None else list(space.names)
    errors = []
    with space.index.state() as state:
        for side in sides:
            try:
                filters_of(state, side, query)
            except BridgeheadError as error:
                errors.append(error)
    if len(errors) == len(sides):
        raise errors[0]


def _said(query: Query) -> dict[str, Any]:
    names = ("k", "of", "read_as", "mode", "distinct", "substructure", "similar_to", "least_similarity")
    condition = query.condition
    return {name: getattr(query, name) for name in names} | {"where": None if condition is None else str(condition)}


def _state_of(space: "Space") -> list[Any]:
    with space.index.state() as state:
        return [space.index.model, space.index.fingerprint, state.change]


def _prepare(parts: Path, target: Path, asked: dict[str, Any]) -> None:
    """Leave the parts of the same question to the same index, and remove those of another."""
    # What a killed call left of the result; nobody else writes it while the lock is held.
    for path in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
        path.unlink()
    key = hash_json(asked)
    try:
        same = read_json(parts / _ASKED, _FORMAT, _VERSION).get("key") == key
    except (FileNotFoundError, FormatVersionError, RunStateError):
        same = False
    if not same:
        for path in parts.glob("*part*"):
            path.unlink()
        write_json(parts / _ASKED, {"key": key}, _FORMAT, _VERSION)


def _search_parts(
    space: "Space", template: Query, rows: Iterator[QueryRow], parts: Path, progress: "Progress | None"
) -> list[Path]:
    size = max(1, min(_MOST_QUERIES, _MOST_HITS // template.k))
    written: list[Path] = []
    done = 0
    while part := list(islice(rows, size)):
        path = parts / f"part-{len(written):07}.parquet"
        if not path.is_file():
            _searched(space, template, part).write(path)
        written.append(path)
        done += len(part)
        if progress is not None:
            progress(done, 0)
    return written


def _searched(space: "Space", template: Query, rows: Sequence[QueryRow]) -> HitsTable:
    table = HitsTable()
    step = max(1, min(_TOGETHER, _HITS_TOGETHER // template.k))
    for start in range(0, len(rows), step):
        some = rows[start : start + step]
        asked = [_query(template, row) for row in some]
        answers = iter(space.answer_all([one for one in asked if isinstance(one, Query)]))
        for row, one in zip(some, asked, strict=True):
            found = next(answers) if isinstance(one, Query) else one
            if isinstance(found, BridgeheadError):
                table.add_failure(row, str(found))
            else:
                table.add(row, found)
    return table


def _query(template: Query, row: QueryRow) -> Query | BridgeheadError:
    if row.failure:
        return DataError(row.failure)
    try:
        return template.asking(row.text)
    except BridgeheadError as error:
        return error


def _report(out: Path, note: str) -> BatchReport:
    import polars as pl

    frame = pl.scan_parquet(out, glob=False)
    counts = frame.select(
        (pl.col("query_row").max() + 1).alias("queries"),
        pl.col("rank").count().alias("hits"),
        pl.col("failure").count().alias("failed"),
        (pl.col("rank").is_null() & pl.col("failure").is_null()).sum().alias("empty"),
    )
    failed = frame.filter(pl.col("failure").is_not_null()).select("query_row", "query_id", "failure").head(_LISTED)
    n = counts.collect(engine="streaming").row(0, named=True)
    listed = tuple(failed.collect(engine="streaming").rows())
    return BatchReport(out, n["queries"], n["hits"], n["empty"], n["failed"], listed, note)
