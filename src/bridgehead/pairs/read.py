"""From files of pairs to a `PairTable`: which column is which side, which records count, and which items are the same.

All columns are text, so `00123`, `NA` and `1e5` stay as they are. This module is not about how a format is read
(`sources`, `delimited`, `structured`) or whether the content is good (`quality`, `check`).
"""

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from bridgehead.errors import ArgumentError, ColumnError, DataError, DuplicateIdError
from bridgehead.links import Links
from bridgehead.pairs.delimited import Quote, QuoteMode, Records, quote_mode, read_delimited, separator_hint
from bridgehead.pairs.sources import PathsLike, Source, find_files, format_of, read_bytes, to_utf8
from bridgehead.pairs.structured import read_jsonl, read_parquet
from bridgehead.pairs.table import RESERVED, PairTable, Side, Skipped

_SHOWN = 20
_SHOWN_NAME = 60


def read_pairs(
    path: PathsLike,
    a: str,
    b: str,
    id: str | None = None,
    entity: str | None = None,
    group: str | Sequence[str] | None = None,
    quote: Quote = "auto",
    encoding: str = "utf-8",
    names: Sequence[str] | Mapping[str, str] | None = None,
) -> PairTable:
    """Return the pairs in a file, a glob or a list of files (csv, tsv, txt, jsonl, ndjson, parquet, each also `.gz`).

    `a` and `b` name the columns of the two sides; equal values of a column are one item, so links are many-to-many. A
    list cell (jsonl, parquet) holds several items. `id` names the user's ids, text and unique; `entity` what several
    items of a may be views of; `group` one or more columns (donor, slide, batch) that a split must not cut through;
    all columns but sides and id travel as payload. `quote` ("auto", "on", "off"; True, False) is for csv and tsv, see
    `read_delimited`; `encoding` for all text. `names` are the names shown for (a, b), by default the columns'.

    A side is valid where it holds more than white space and control characters. A record with one valid side is kept
    as an unpaired item, one with none and one with too many or too few fields is skipped; each is listed with record,
    id and reason, and none moves another.
    Several files count as one, in order, and must have the same columns.

    Raises `InputFileNotFoundError`, `ColumnError` (lists the columns there are), `DuplicateIdError` (lists the ids),
    `DecodeError` (byte, line, option), `DataError` (empty file, header only, no valid record, different columns) and
    `ArgumentError`.
    """
    if group is not None and not isinstance(group, Sequence):
        raise ArgumentError(f"group = {group!r}; expected the name of a column, or several")
    groups = [group] if isinstance(group, str) else list(group or ())
    if a == b:
        raise ArgumentError(f"a and b are both {a!r}; expected the columns of two sides")
    records, sources = read_records(path, quote, encoding)
    needed = [a, b, *(name for name in (id, entity) if name is not None), *groups]
    check_columns(records, needed, ", ".join(source.path for source in sources))
    ids = _record_ids(records, id)
    return _assemble(records, ids, a, b, id, entity, groups, _shown_names(names, a, b), sources)


def read_items(
    path: PathsLike, column: str, id: str | None = None, quote: Quote = "auto", encoding: str = "utf-8"
) -> Side:
    """Return the distinct items of one column of a file, a glob or a list of files: a pool without partners.

    `id` names the ids; a file without that column has the numbers of its records as ids. All else as in `read_pairs`,
    errors too; `DataError` also where no cell of the column holds a value.
    """
    records, sources = read_records(path, quote, encoding)
    check_columns(records, [column], ", ".join(source.path for source in sources))
    try:
        ids = _record_ids(records, id if id in records.frame.columns else None)
    except DuplicateIdError as error:
        # Nobody would look for them in the pool: the pairs have a column of this name too.
        raise DuplicateIdError(f"{_paths(sources)}: {error}") from error
    side = _side(_values(records.frame[column], pl.Series("_row", records.rows), ids.alias("_id")), column)
    if not len(side):
        raise DataError(f"{_paths(sources)}: {column!r} is empty in all {records.n_records:,} records")
    return side


def read_records(path: PathsLike, quote: Quote = "auto", encoding: str = "utf-8") -> tuple[Records, tuple[Source, ...]]:
    """Return the records of one or several files as they stand, every cell as text, and the files they come from.

    Raises as `read_pairs` does, except for what concerns columns and ids.
    """
    mode = quote_mode(quote)
    parts: list[Records] = []
    sources: list[Source] = []
    for file in find_files(path):
        part, source = _read_file(file, mode, encoding)
        parts.append(part)
        sources.append(source)
    records = parts[0] if len(parts) == 1 else _concatenate(parts, sources)
    if records.n_records == 0:
        raise DataError(f"{_paths(sources)} has a header but no records; expected at least one line of data")
    if records.frame.height == 0:
        raise DataError(
            f"{_paths(sources)}: none of the {records.n_records:,} records could be read "
            f"(the first: {records.ragged[0][1]}); {_advice(sources)}"
        )
    return records, tuple(sources)


def _advice(sources: list[Source]) -> str:
    if format_of(Path(sources[0].path)) == "jsonl":
        return "expected a JSON object on each line"
    return "check the separator and the header"


def _read_file(file: Path, mode: QuoteMode, encoding: str) -> tuple[Records, Source]:
    kind = format_of(file)
    data, source = read_bytes(file)
    if kind == "parquet":
        return read_parquet(data, file.name), source
    data = to_utf8(data, encoding, file)
    if kind == "jsonl":
        return read_jsonl(data, file.name), source
    first_line = data.lstrip(b"\r\n").split(b"\n", 1)[0]
    separator = "\t" if kind == "tsv" or (kind == "txt" and b"\t" in first_line) else ","
    return read_delimited(data, separator, mode, file.name), source


def _concatenate(parts: list[Records], sources: list[Source]) -> Records:
    columns = parts[0].frame.columns
    frames, rows, ragged = [], [], []
    n_records = 0
    for part, source in zip(parts, sources, strict=True):
        if set(part.frame.columns) != set(columns):
            raise DataError(
                f"{source.path} has the columns {_listed(part.frame.columns)}, {sources[0].path} has "
                f"{_listed(columns)}; files that are read together need the same columns"
            )
        frames.append(part.frame.select(columns))
        rows.append(part.rows + n_records)
        ragged += [(row + n_records, reason) for row, reason in part.ragged]
        n_records += part.n_records
    notes = [note for part in parts for note in part.notes]
    lists = {name for frame in frames for name, kind in frame.schema.items() if kind != pl.String}
    frames = [frame.with_columns(_as_lists(frame, lists)) for frame in frames]
    return Records(pl.concat(frames), np.concatenate(rows), n_records, ragged, notes)


def _as_lists(frame: pl.DataFrame, lists: set[str]) -> list[pl.Expr]:
    """Wrap the text cells of columns that hold lists in another file."""
    wrapped = []
    for name in sorted(lists):
        if frame.schema[name] == pl.String:
            wrapped.append(pl.when(pl.col(name).is_not_null()).then(pl.concat_list(name)).alias(name))
    return wrapped


def check_columns(records: Records, needed: Sequence[str], paths: str) -> None:
    """Raise `ColumnError` for a column that is not there, and `DataError` for one whose name occurs twice."""
    columns = records.frame.columns
    for name in needed:
        if name in columns:
            if f"{name}#2" in columns and any(repr(name) in note for note in records.notes):
                raise DataError(f"{paths}: the column {name!r} occurs twice in the header; rename one of them")
            continue
        lowered = {column.lower(): column for column in columns}
        near = difflib.get_close_matches(str(name).lower(), list(lowered), n=3, cutoff=0.6)
        hint = f"; did you mean {' or '.join(repr(lowered[column]) for column in near)}?" if near else ""
        hint = separator_hint(columns) or hint
        raise ColumnError(f"{paths} has no column {name!r}; its columns are {_listed(columns)}{hint}")


def _record_ids(records: Records, id: str | None) -> pl.Series:
    rows = pl.Series(records.rows)
    if id is None:
        return rows.cast(pl.String)
    ids = records.frame[id]
    if ids.dtype != pl.String:
        raise DataError(f"the id column {id!r} holds lists; expected one id for each record")
    missing = rows.filter(_is_blank(ids))
    if len(missing):
        shown = ", ".join(map(str, missing.head(_SHOWN)))
        raise DataError(
            f"{len(missing):,} records have no id in column {id!r} (records {shown}, counted from 0); "
            "give each an id, or leave id out to number them"
        )
    twice = ids.filter(ids.is_duplicated()).unique(maintain_order=True)
    if len(twice):
        more = f" and {len(twice) - _SHOWN} more" if len(twice) > _SHOWN else ""
        raise DuplicateIdError(
            f"{len(twice):,} ids occur more than once in column {id!r}: {', '.join(twice.head(_SHOWN))}{more}; "
            "expected a different id for each record: mend them, or leave id out to number the records"
        )
    return ids


def _assemble(
    records: Records,
    ids: pl.Series,
    a: str,
    b: str,
    id: str | None,
    entity: str | None,
    groups: list[str],
    names: tuple[str, str],
    sources: tuple[Source, ...],
) -> PairTable:
    frame, rows = records.frame, pl.Series("_row", records.rows)
    values = {column: _values(frame[column], rows, ids.alias("_id")) for column in (a, b)}
    has = {column: rows.is_in(values[column]["_row"].unique().implode()) for column in (a, b)}
    notes = list(records.notes)
    side_a, side_b = _side(values[a], names[0]), _side(values[b], names[1])
    if not len(side_a) and not len(side_b):
        raise DataError(f"{_paths(sources)}: both {a!r} and {b!r} are empty in all {records.n_records:,} records")
    if entity is not None:
        side_a = _with_entities(side_a, frame[entity], rows, notes)
    links, link_records = _links(side_a, side_b)
    kept = has[a] | has[b]
    payload = _payload(frame.drop([column for column in (a, b, id) if column is not None]), notes)
    table = pl.DataFrame([rows, ids.alias("_id")]).hstack(payload).filter(kept)
    unpaired = _listed_records(rows, ids, has[a] & ~has[b], "b", f"{b} is empty")
    unpaired += _listed_records(rows, ids, has[b] & ~has[a], "a", f"{a} is empty")
    skipped = _listed_records(rows, ids, ~kept, "both", f"{a} and {b} are empty")
    skipped += [Skipped(row, str(row) if id is None else "", "both", reason) for row, reason in records.ragged]
    return PairTable(
        a=side_a,
        b=side_b,
        links=links,
        link_records=link_records,
        records=table,
        unpaired=sorted(unpaired, key=lambda entry: entry.row),
        skipped=sorted(skipped, key=lambda entry: entry.row),
        notes=notes,
        n_records=records.n_records,
        groups={name: _labels(frame[name].filter(kept)) for name in groups},
        sources=sources,
    )


def _is_blank(values: pl.Series) -> pl.Series:
    return ~values.str.contains(r"[^\p{Z}\p{Cc}\p{Cf}]").fill_null(False)


def _values(column: pl.Series, rows: pl.Series, ids: pl.Series) -> pl.DataFrame:
    """Return the valid values of a column, one a line: `_row`, `_id` (with `#2` .. in lists) and `value`."""
    frame = pl.DataFrame([rows, ids, column.alias("value")])
    if column.dtype != pl.String:
        number = pl.int_range(1, pl.len() + 1).over("_row")
        frame = frame.explode("value").with_columns(
            pl.when(number > 1).then(pl.format("{}#{}", "_id", number)).otherwise("_id").alias("_id")
        )
    return frame.filter(~_is_blank(frame["value"]))


def _side(values: pl.DataFrame, name: str) -> Side:
    firsts = values.unique(subset="value", keep="first", maintain_order=True).with_row_index("item")
    ids = firsts["_id"]
    twice = ids.filter(ids.is_duplicated()).unique(maintain_order=True)
    if len(twice):
        raise DuplicateIdError(
            f"the ids {', '.join(twice.head(_SHOWN))} are also made for the further values of a list cell "
            "(<id>#2, <id>#3 ..); rename them in the file"
        )
    found = values.join(firsts.select("value", "item"), on="value").select(
        pl.col("item").cast(pl.Int64), pl.col("_row").cast(pl.Int64)
    )
    carriers = found.unique().sort("_row", "item").to_numpy().reshape(-1, 2)
    return Side(name, firsts["value"].to_list(), ids.to_list(), firsts["_row"].to_numpy().astype(np.int64), carriers)


def _links(a: Side, b: Side) -> tuple[Links, Any]:
    frames = [pl.DataFrame({"item": side.carriers[:, 0], "_row": side.carriers[:, 1]}) for side in (a, b)]
    joined = frames[0].join(frames[1], on="_row", suffix="_b")
    first = joined.group_by("item", "item_b").agg(pl.col("_row").min()).sort("item", "item_b")
    pairs = first.select("item", "item_b").to_numpy().reshape(-1, 2)
    return Links(pairs, len(a), len(b)), first["_row"].to_numpy().astype(np.int64)


def _with_entities(side: Side, column: pl.Series, rows: pl.Series, notes: list[str]) -> Side:
    labels = pl.DataFrame({"_row": rows, "label": _labels(column)})
    carried = pl.DataFrame({"item": side.carriers[:, 0], "_row": side.carriers[:, 1]}).join(labels, on="_row")
    carried = carried.filter(pl.col("label") != "").sort("_row")
    several = carried.group_by("item").agg(pl.col("label").n_unique()).filter(pl.col("label") > 1).height
    if several:
        notes.append(f"{several:,} items of {side.name} have several labels of {column.name!r}; the first counts")
    first = dict(carried.unique("item", keep="first", maintain_order=True).select("item", "label").iter_rows())
    entities = [first.get(item, f"no {column.name}: {id_}") for item, id_ in enumerate(side.ids)]
    return Side(side.name, side.items, side.ids, side.records, side.carriers, entities)


def _labels(column: pl.Series) -> list[str]:
    if column.dtype != pl.String:
        raise DataError(f"the column {column.name!r} holds lists; expected one label for each record")
    return [label or "" for label in column.str.strip_chars().to_list()]


def _payload(frame: pl.DataFrame, notes: list[str]) -> pl.DataFrame:
    taken = [name for name in RESERVED if name in frame.columns]
    renamed = {name: f"{name}_" for name in taken}
    notes += [f"the column {name!r} is called {new!r}: the name is our own" for name, new in renamed.items()]
    return frame.rename(renamed)


def _listed_records(rows: pl.Series, ids: pl.Series, mask: pl.Series, side: Any, reason: str) -> list[Skipped]:
    found = zip(rows.filter(mask).to_list(), ids.filter(mask).to_list(), strict=True)
    return [Skipped(row, id_ or "", side, reason) for row, id_ in found]


def _shown_names(names: Sequence[str] | Mapping[str, str] | None, a: str, b: str) -> tuple[str, str]:
    if names is None:
        return a, b
    if isinstance(names, Mapping):
        return names.get("a", a), names.get("b", b)
    if isinstance(names, str) or len(names) != 2:
        raise ArgumentError(f"names = {names!r}; expected two, for a and b, such as ('molecule', 'text')")
    return names[0], names[1]


def _paths(sources: Sequence[Source]) -> str:
    return ", ".join(source.path for source in sources)


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(name if len(name) <= _SHOWN_NAME else f"{name[:_SHOWN_NAME]}.." for name in columns[:50])
