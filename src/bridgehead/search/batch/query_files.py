"""Files of queries, read one record at a time: txt, csv, tsv, jsonl and parquet.

A record that cannot be read is a failure with its row number and shifts no other. Memory does not grow with the file.
Reading pairs, where whole tables are needed, is in `pairs`.
"""

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from bridgehead.errors import ArgumentError, ColumnError, DataError, InputFileNotFoundError

LONGEST_LINE = 1 << 20
_BOM = b"\xef\xbb\xbf"
_ROWS_AT_ONCE = 16_384
_SHOWN = 60


@dataclass(frozen=True)
class QueryRow:
    """A record of a file of queries.

    `row` counts records from 0, without a header. `id` is the user's, or the row as text. `text` is the query; where it
    could not be read, it is "" and `failure` says why.
    """

    row: int
    id: str
    text: str
    failure: str = ""


def read_queries(path: str | Path, column: str | None = None, id_column: str | None = None) -> Iterator[QueryRow]:
    """Yield the queries of a file, by its ending.

    `.txt`: a query a line. `.csv`, `.tsv` (with a header; fields of csv may be quoted, those of tsv are taken as they
    stand), `.jsonl` (an object or a text a line), `.parquet`: `column` holds the query; by default "query", or the only
    one beside the ids. `id_column`: "id" where there is one. Text is UTF-8. Empty records are failures.

    Raises `InputFileNotFoundError`, `ArgumentError` (ending), `ColumnError`, and `DataError` for a file whose records
    cannot be told apart: no parquet, or a quote of csv that is never closed.
    """
    source = Path(path)
    if not source.is_file():
        raise InputFileNotFoundError(f"there is no file of queries {source}")
    readers: dict[str, Callable[[Path, str | None, str | None], Iterator[QueryRow]]] = {
        ".txt": _read_lines,
        ".csv": _read_csv,
        ".tsv": _read_tsv,
        ".jsonl": _read_json_lines,
        ".parquet": _read_parquet,
    }
    reader = readers.get(source.suffix.lower())
    if reader is None:
        raise ArgumentError(f"{source} ends in {source.suffix!r}; expected one of {', '.join(readers)}")
    return reader(source, column, id_column)


def _row(number: int, identifier: Any, text: Any, failure: str = "") -> QueryRow:
    name = str(number) if identifier is None or identifier == "" else str(identifier)
    if not failure and not isinstance(text, str):
        failure = "the query is empty" if text is None else f"the query is a {type(text).__name__}; expected text"
    if not failure and not text.strip():
        failure = "the query is empty"
    if not failure and _holds_bytes(text):
        failure = "the query is not UTF-8"
    return QueryRow(number, _shown(name), "" if failure else _shown(text), failure)


def _holds_bytes(text: str) -> bool:
    """Say whether bytes that are no UTF-8 were decoded to lone surrogates."""
    return not text.isascii() and any("\udc80" <= character <= "\udcff" for character in text)


def _shown(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _lines(file: IO[bytes]) -> Iterator[str | None]:
    """Yield the lines of a file with their ends; None for one of over a mebibyte, which is left out."""
    first = True
    while line := file.readline(LONGEST_LINE):
        if first:
            line, first = line.removeprefix(_BOM), False
        if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
            while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                pass
            yield None
            continue
        yield line.decode("utf-8", "surrogateescape")


def _too_long(number: int) -> QueryRow:
    return _row(number, None, None, f"the line is longer than {LONGEST_LINE:,} bytes")


def _read_lines(path: Path, column: str | None, id_column: str | None) -> Iterator[QueryRow]:
    for name, value in (("column", column), ("id_column", id_column)):
        if value is not None:
            raise ArgumentError(f"{name} = {value!r}, and {path} is plain text without columns; leave it out")
    with open(path, "rb") as file:
        for number, line in enumerate(_lines(file)):
            yield _too_long(number) if line is None else _row(number, None, line.rstrip("\r\n"))


def _read_csv(path: Path, column: str | None, id_column: str | None) -> Iterator[QueryRow]:
    return _read_delimited(path, column, id_column, {"delimiter": ",", "strict": True})


def _read_tsv(path: Path, column: str | None, id_column: str | None) -> Iterator[QueryRow]:
    return _read_delimited(path, column, id_column, {"delimiter": "\t", "quoting": csv.QUOTE_NONE})


def _read_delimited(path: Path, column: str | None, id_column: str | None, how: dict[str, Any]) -> Iterator[QueryRow]:
    with open(path, "rb") as file:
        # A line beyond all measure becomes one that cannot be a record, so that it shifts no other.
        records = csv.reader(("\x00\n" if line is None else line for line in _lines(file)), **how)
        header = _next_record(path, records, -1)
        if header is None:
            raise DataError(f"{path} is empty; expected a header line and at least one query")
        if isinstance(header, str):
            raise DataError(f"the header of {path} cannot be read: {header}")
        names = [name.strip() for name in header]
        at, id_at = _columns(path, names, column, id_column)
        number = 0
        while (record := _next_record(path, records, number)) is not None:
            if record == []:
                continue
            yield _record_row(number, record, len(names), at, id_at)
            number += 1


def _record_row(number: int, record: list[str] | str, n_fields: int, at: int, id_at: int | None) -> QueryRow:
    if isinstance(record, str):
        return _row(number, None, None, record)
    if record == ["\x00"]:
        return _too_long(number)
    if len(record) != n_fields:
        return _row(number, None, None, f"the record has {len(record)} fields; the header has {n_fields}")
    return _row(number, None if id_at is None else record[id_at], record[at])


def _next_record(path: Path, records: Any, number: int) -> list[str] | str | None:
    """Return the next record, why it cannot be read, or None at the end of the file."""
    began = records.line_num
    try:
        return next(records)  # type: ignore[no-any-return]
    except StopIteration:
        return None
    except csv.Error as error:
        # Within one line no other record is lost; over several it is not known where the next one begins.
        if records.line_num == began + 1 and "end of data" not in str(error):
            return f"the record is no csv ({error})"
        where = "its header" if number < 0 else f"row {number}"
        raise DataError(
            f"{path}: a quote that opens in {where} (line {began + 1}) is never closed ({error}); mend it, or save the "
            "queries as .txt, .tsv or .jsonl, where quotes are plain characters"
        ) from None


def _read_json_lines(path: Path, column: str | None, id_column: str | None) -> Iterator[QueryRow]:
    with open(path, "rb") as file:
        for number, line in enumerate(_lines(file)):
            yield _too_long(number) if line is None else _json_row(number, line, column or "query", id_column or "id")


def _json_row(number: int, line: str, column: str, id_column: str) -> QueryRow:
    if not line.strip():
        return _row(number, None, None)
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as error:
        return _row(number, None, None, f"the line is no JSON ({error})")
    if isinstance(content, str):
        return _row(number, None, content)
    if not isinstance(content, dict):
        return _row(number, None, None, f"the line holds a {type(content).__name__}; expected an object or a text")
    identifier = content.get(id_column)
    if isinstance(identifier, dict | list):
        identifier = None
    if column not in content:
        names = ", ".join(map(repr, content))
        return _row(number, identifier, None, f"the object has no field {column!r}; it has: {names:.{_SHOWN}}")
    return _row(number, identifier, content[column])


def _read_parquet(path: Path, column: str | None, id_column: str | None) -> Iterator[QueryRow]:
    import polars as pl

    try:
        frame = pl.scan_parquet(path, glob=False)
        schema = frame.collect_schema()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path} is no parquet file that can be read ({error!s:.200})") from error
    names = schema.names()
    at, id_at = _columns(path, names, column, id_column)
    if isinstance(schema[names[at]], pl.List | pl.Struct | pl.Array | pl.Binary | pl.Object):
        raise DataError(f"{path}: column {names[at]!r} holds {schema[names[at]]}; expected text")
    chosen = [pl.col(names[at]).cast(pl.String).alias("query")]
    chosen.append((pl.lit(None) if id_at is None else pl.col(names[id_at])).cast(pl.String).alias("id"))
    start = 0
    while True:
        part = frame.slice(start, _ROWS_AT_ONCE).select(chosen).collect()
        for number, (text, identifier) in enumerate(part.iter_rows(), start):
            yield _row(number, identifier, text)
        start += len(part)
        if len(part) < _ROWS_AT_ONCE:
            return


def _columns(path: Path, names: Sequence[str], column: str | None, id_column: str | None) -> tuple[int, int | None]:
    """Return the positions of the column of queries and of that of ids, None where there is none."""
    wanted_id = id_column or ("id" if "id" in names and column != "id" else None)
    for name in (column, id_column):
        if name is not None and name not in names:
            raise ColumnError(f"{path} has no column {name!r}; it has: {', '.join(map(repr, names))}")
    others = [name for name in names if name != wanted_id]
    if column is None and "query" in others:
        column = "query"
    elif column is None and len(others) == 1:
        column = others[0]
    elif column is None:
        listed = ", ".join(map(repr, names))
        raise ColumnError(
            f"{path} has no column 'query'; pass column='NAME' with the one that holds the queries, of {listed}"
        )
    return names.index(column), None if wanted_id is None else names.index(wanted_id)
