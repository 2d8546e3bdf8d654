"""Reading jsonl and parquet: numbers as they are printed, missing values as null, lists as lists of text.

This module is not about files and encodings (`sources`) or what columns mean (`read`).
"""

import io
import json
from typing import Any

import numpy as np
import polars as pl

from bridgehead.errors import DataError
from bridgehead.pairs.delimited import Records

_SHOWN = 80


class _Number(str):
    """A number as it stands in the file."""


def read_jsonl(data: bytes, name: str) -> Records:
    """Return the records of UTF-8 JSON lines, one object a line.

    A number becomes the text that stands in the file (`00123` is not JSON, but `1e5` and `1.50` stay), true and false
    `true` and `false`, null and NaN missing, a nested object its JSON. A list becomes a list of texts, and then the
    whole column does. Columns are those of all objects, in order of first appearance. A line that is not an object is
    listed as unreadable. Raises `DataError` for an empty file.
    """
    objects: list[dict[str, Any]] = []
    rows: list[int] = []
    ragged: list[tuple[int, str]] = []
    number = -1
    for line in data.decode().split("\n"):
        if not line.strip():
            continue
        number += 1
        found = _object(line)
        if isinstance(found, dict):
            objects.append(found)
            rows.append(number)
        else:
            ragged.append((number, found))
    if number < 0:
        raise DataError(f"{name} is empty; expected a JSON object on each line")
    names = list(dict.fromkeys(key for found in objects for key in found))
    columns = [_column(key, [found.get(key) for found in objects]) for key in names]
    return Records(pl.DataFrame(columns), np.array(rows, dtype=np.int64), number + 1, ragged)


def _object(line: str) -> dict[str, Any] | str:
    try:
        found = json.loads(line, parse_float=_Number, parse_int=_Number, parse_constant=_constant)
    except (ValueError, RecursionError) as error:
        return f"not JSON ({error}): {line[:_SHOWN]}"
    return found if isinstance(found, dict) else f"not a JSON object: {line[:_SHOWN]}"


def _constant(name: str) -> str | None:
    return None if name == "NaN" else name


def _column(name: str, values: list[Any]) -> pl.Series:
    if any(isinstance(value, list) for value in values):
        lists = [None if value is None else _texts(value) for value in values]
        return pl.Series(name, lists, dtype=pl.List(pl.String))
    return pl.Series(name, [_text(value) for value in values], dtype=pl.String)


def _texts(value: Any) -> list[str | None]:
    return [_text(part) for part in value] if isinstance(value, list) else [_text(value)]


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value) if isinstance(value, str) else _json(value)
    # A lone surrogate, which "\ud800" in JSON may stand for, is no text and cannot be stored as UTF-8.
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _json(value: Any) -> str:
    """Return nested JSON with its numbers as they stood in the file."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_json(key)}: {_json(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_json, value)) + "]"
    return str(value) if isinstance(value, _Number) else json.dumps(value, ensure_ascii=False)


def read_parquet(data: bytes, name: str) -> Records:
    """Return the records of a parquet file with every column as text, or as lists of text.

    Numbers, booleans, dates and categories are printed as polars prints them; NaN is missing; bytes must be UTF-8.
    Raises `DataError` for a file that is not parquet or holds a column that has no text form.
    """
    try:
        frame = pl.read_parquet(io.BytesIO(data))
    except Exception as error:  # polars raises its own, Arrow's and the system's errors here
        raise DataError(f"{name} cannot be read as parquet ({error}); write it again, or convert it to csv") from error
    columns = [_as_text(frame[column], name) for column in frame.columns]
    return Records(pl.DataFrame(columns), np.arange(frame.height, dtype=np.int64), frame.height)


def _as_text(column: pl.Series, name: str) -> pl.Series:
    kind = column.dtype
    try:
        if isinstance(kind, pl.Array):
            column, kind = column.arr.to_list(), pl.List(kind.inner)
        if isinstance(kind, pl.List):
            return column.list.eval(_without_nan(pl.element(), kind.inner).cast(pl.String))
        if isinstance(kind, pl.Struct):
            return column.struct.json_encode()
        return column.to_frame().select(_without_nan(pl.col(column.name), kind).cast(pl.String)).to_series()
    except pl.exceptions.PolarsError as error:
        why = str(error).splitlines()[0]
        raise DataError(
            f"{name}: column {column.name!r} of type {kind} has no text form ({why}); leave it out or store text"
        ) from error


def _without_nan(values: pl.Expr, kind: Any) -> pl.Expr:
    return values.fill_nan(None) if kind in (pl.Float32, pl.Float64) else values
