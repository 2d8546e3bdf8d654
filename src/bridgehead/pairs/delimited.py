"""Reading csv and tsv: every cell as text, and no record that moves another.

polars reads the cells. Where records begin and how many fields they have is found first, from the positions of quotes,
separators and line ends, so that blank lines and records with too many or too few fields are known by number and are
left out before polars sees them. Files whose quotes do not follow the rules are read by Python's `csv`, which takes a
quote inside a field as it stands. This module is not about files and encodings (`sources`) or about what columns mean
(`read`).
"""

import csv
import io
import re
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import polars as pl

from bridgehead.errors import ArgumentError, DataError
from bridgehead.pairs.sources import BOM
from bridgehead.vectors import IntArray

QuoteMode = Literal["auto", "on", "off"]
Quote = QuoteMode | bool

_QUOTE, _NEWLINE, _RETURN = 34, 10, 13
_LONE_RETURN = re.compile(r"\r(?!\n)")
# Ends a text that is read quoted: where it does not come back as a record of its own, a quote was left open.
_SENTINEL = "\x1eend of records\x1e"


@dataclass(frozen=True)
class Records:
    """What a file holds, before anybody says what its columns mean.

    `frame` has only text columns, or lists of text, under the names in the file; `rows` (n,) numbers its records among
    the `n_records` of the file, from 0; `ragged` lists (row, reason) of the records that could not be read.
    """

    frame: pl.DataFrame
    rows: IntArray
    n_records: int
    ragged: list[tuple[int, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class _QuotesError(Exception):
    """The file cannot be read as quoted; the message completes "quoted reading ..."."""


def quote_mode(quote: Quote) -> QuoteMode:
    """Return "auto", "on" or "off" for one of these, True or False; raises `ArgumentError`."""
    if isinstance(quote, bool):
        return "on" if quote else "off"
    if quote not in ("auto", "on", "off"):
        raise ArgumentError(f"quote = {quote!r}; expected 'auto', 'on' (or True) or 'off' (or False)")
    return quote


def read_delimited(data: bytes, separator: str, quote: QuoteMode, name: str) -> Records:
    """Return the records of UTF-8 csv or tsv `data`, the first of which is the header.

    A quoted cell may hold separators, line ends and doubled quotes. `quote`: "on" and "off" say how it is; "auto" is
    on for a comma, and for a tab quoted is tried first and given up, with a note, where it fails (an open quote, text
    after a closing one) or loses records that an unquoted reading finds whole. An empty cell is null. Line ends are
    LF, CRLF or (throughout) CR. Blank lines are no records. Raises `DataError` for an empty file and, when quoted,
    for a quote that is never closed.
    """
    if not data.strip():
        raise DataError(f"{name} is empty; expected a header line and at least one record")
    if b"\n" not in data and b"\r" in data:
        data = data.replace(b"\r", b"\n")
    if quote == "off" or b'"' not in data:
        return _read_plain(data, separator, name)
    if quote == "on" or separator == ",":
        try:
            return _read_quoted(data, separator, name, strict=False)
        except _QuotesError as error:
            raise DataError(
                f"{name}: quoted reading {error}; mend the quotes, or pass quote='off' when quotes are plain characters"
            ) from None
    return _read_either(data, separator, name)


def _read_either(data: bytes, separator: str, name: str) -> Records:
    plain = _read_plain(data, separator, name)
    if not _a_quote_opens_a_cell(data, separator):
        plain.notes.append(f"{name} was read unquoted, {plain.n_records:,} records: no cell begins with a quote")
        return plain
    try:
        quoted = _read_quoted(data, separator, name, strict=True)
    except _QuotesError as error:
        why = str(error)
    else:
        if quoted.n_records >= plain.n_records or len(quoted.ragged) < len(plain.ragged):
            return quoted
        why = f"finds {quoted.n_records:,} records in {plain.n_records:,} lines"
    plain.notes.append(f"{name} was read unquoted, {plain.n_records:,} records: quoted reading {why}")
    return plain


def _read_plain(data: bytes, separator: str, name: str) -> Records:
    return _read_laid_out(data, separator, name, quoted=False)


def _read_quoted(data: bytes, separator: str, name: str, strict: bool) -> Records:
    if _quotes_are_regular(data, separator):
        return _read_laid_out(data, separator, name, quoted=True)
    return _read_with_csv(data, separator, name, strict)


def _quotes_are_regular(data: bytes, separator: str) -> bool:
    """Say whether each quote opens at the start of a cell, closes at its end, or is one of a doubled pair.

    Only then is a position inside a quoted cell exactly where an odd number of quotes stands before it.
    """
    bytes_ = np.frombuffer(data, dtype=np.uint8)
    quotes = np.flatnonzero(bytes_ == _QUOTE)
    if len(quotes) % 2:
        return False
    opening, closing = quotes[0::2], quotes[1::2]
    before = np.concatenate([[_NEWLINE], bytes_])[opening]
    after = np.concatenate([bytes_, [_NEWLINE]])[closing + 1]
    boundaries = [ord(separator), _NEWLINE]
    doubled = np.concatenate([[False], opening[1:] == closing[:-1] + 1])
    opens = np.isin(before, boundaries) | doubled
    closes = np.isin(after, [*boundaries, _RETURN]) | np.concatenate([doubled[1:], [False]])
    return bool(opens.all() and closes.all())


def _a_quote_opens_a_cell(data: bytes, separator: str) -> bool:
    return data[:1] == b'"' or b'\n"' in data or separator.encode() + b'"' in data


@dataclass(frozen=True)
class _Layout:
    starts: IntArray
    ends: IntArray
    n_fields: IntArray


def _layout(data: bytes, separator: str, quoted: bool) -> _Layout:
    """Find where the records begin and end and how many fields each has; blank lines are left out."""
    bytes_ = np.frombuffer(data, dtype=np.uint8)
    newlines = np.flatnonzero(bytes_ == _NEWLINE)
    separators = np.flatnonzero(bytes_ == ord(separator))
    if quoted:
        quotes = np.flatnonzero(bytes_ == _QUOTE)
        newlines = newlines[np.searchsorted(quotes, newlines) % 2 == 0]
        separators = separators[np.searchsorted(quotes, separators) % 2 == 0]
    starts = np.concatenate([[0], newlines + 1]).astype(np.int64)
    ends = np.concatenate([newlines, [len(data)]]).astype(np.int64)
    ends -= (ends > starts) & (bytes_[np.maximum(ends - 1, 0)] == _RETURN)
    full = ends > starts
    starts, ends = starts[full], ends[full]
    n_fields = np.searchsorted(separators, ends) - np.searchsorted(separators, starts) + 1
    return _Layout(starts, ends, n_fields.astype(np.int64))


def _read_laid_out(data: bytes, separator: str, name: str, quoted: bool) -> Records:
    layout = _layout(data, separator, quoted)
    header = data[layout.starts[0] : layout.ends[0]].decode()
    names, notes = _column_names(_split_line(header, separator, quoted), name)
    n_fields = layout.n_fields[1:]
    whole = n_fields == len(names)
    rows = np.flatnonzero(whole)
    ragged = [(int(row), _ragged_reason(int(n_fields[row]), len(names))) for row in np.flatnonzero(~whole)]
    # Cut out and joined: polars then sees neither blank lines nor records that it would fill up or cut short.
    spans = zip(layout.starts[1:][whole].tolist(), layout.ends[1:][whole].tolist(), strict=True)
    body = b"\n".join([data[start:end] for start, end in spans])
    frame = _read_cells(body, names, len(rows), separator, quoted)
    if frame.height != len(rows):
        return _read_with_csv(data, separator, name, strict=False)
    return Records(frame, rows, len(n_fields), ragged, notes)


def _read_cells(body: bytes, names: list[str], n_records: int, separator: str, quoted: bool) -> pl.DataFrame:
    schema = dict.fromkeys(names, pl.String)
    if n_records == 0:
        return pl.DataFrame(schema=schema)
    # polars drops a carriage return at the end of a cell, so those that are content travel as another character.
    mark = _absent_character(body.decode()) if b"\r" in body else None
    if mark:
        body = body.replace(b"\r", mark.encode())
    if body.startswith(BOM):
        body = BOM + body  # polars takes one off, and here it is the content of a cell
    frame = pl.read_csv(
        body,
        has_header=False,
        schema=schema,
        separator=separator,
        quote_char='"' if quoted else None,
        null_values=None,
    )
    if mark:
        frame = frame.with_columns(pl.all().str.replace_all(mark, "\r", literal=True))
    return _empty_to_null(frame)


def _absent_character(text: str) -> str:
    """Return a private character that `text` does not hold."""
    return next(chr(code) for code in range(0xE000, 0xF8FF) if chr(code) not in text)


def _read_with_csv(data: bytes, separator: str, name: str, strict: bool) -> Records:
    """Read with Python's csv: a quote inside a field is a character, text after a closing quote is joined to it."""
    notes: list[str] = []
    text = data.decode()
    try:
        lines = _csv_rows(text, separator, strict=True)
    except csv.Error as error:
        if strict:
            raise _QuotesError(f"fails ({error})") from None
        lines = _csv_rows(text, separator, strict=False)
        notes.append(f"{name}: a quote is followed by other text ({error}); the two were joined")
    if lines[-1] != [_SENTINEL]:
        raise _QuotesError("runs to the end of the file in search of a closing quote")
    header, *records = [line for line in lines[:-1] if line]
    names, more = _column_names(header, name)
    whole = [row for row, record in enumerate(records) if len(record) == len(names)]
    ragged = [
        (row, _ragged_reason(len(record), len(names)))
        for row, record in enumerate(records)
        if len(record) != len(names)
    ]
    columns = list(zip(*[records[row] for row in whole], strict=True)) or [()] * len(names)
    frame = pl.DataFrame(dict(zip(names, columns, strict=True)), schema=dict.fromkeys(names, pl.String))
    rows = np.array(whole, dtype=np.int64)
    return Records(_empty_to_null(frame), rows, len(records), ragged, notes + more)


def _csv_rows(text: str, separator: str, strict: bool) -> list[list[str]]:
    # The reader takes a carriage return for the end of a line, so those that are content travel as another character.
    mark = _absent_character(text) if _LONE_RETURN.search(text) else ""
    limit = csv.field_size_limit(max(csv.field_size_limit(), len(text) + 1))
    try:
        source = io.StringIO(f"{_LONE_RETURN.sub(mark, text)}\n{_SENTINEL}", newline="\n")
        rows = list(csv.reader(source, delimiter=separator, strict=strict))
    except csv.Error as error:
        if "unexpected end of data" in str(error):
            raise _QuotesError("runs to the end of the file in search of a closing quote") from None
        raise
    finally:
        csv.field_size_limit(limit)
    return [[cell.replace(mark, "\r") for cell in row] for row in rows] if mark else rows


def _split_line(line: str, separator: str, quoted: bool) -> list[str]:
    if not quoted:
        return line.split(separator)
    return next(csv.reader(io.StringIO(line, newline=""), delimiter=separator))


def _column_names(header: list[str], name: str) -> tuple[list[str], list[str]]:
    """Return unique names: an empty one becomes `column_3`, a repeated one `name#2`, and a note says so."""
    names: list[str] = []
    notes: list[str] = []
    for number, given in enumerate(header, start=1):
        wanted = given.strip() or f"column_{number}"
        unique, count = wanted, 1
        while unique in names:
            count += 1
            unique = f"{wanted}#{count}"
        if unique != wanted:
            notes.append(f"{name}: column {wanted!r} occurs again; column {number} is called {unique!r}")
        names.append(unique)
    return names, notes


def separator_hint(columns: list[str]) -> str:
    """Return what to say where a file has one column whose name holds another separator, else ""."""
    found = next((mark for mark in (";", "\t", "|") if len(columns) == 1 and mark in columns[0]), None)
    if found is None:
        return ""
    return (
        f"; the header holds {found!r}: fields of csv are separated by commas, those of tsv by tabs; "
        "write the file again with one of these"
    )


def _ragged_reason(n_fields: int, n_columns: int) -> str:
    return f"{n_fields} fields where the header has {n_columns}"


def _empty_to_null(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.select(pl.when(pl.all() != "").then(pl.all()))
