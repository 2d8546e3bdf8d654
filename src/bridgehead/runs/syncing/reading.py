"""What a file says of the items of one side: one record an item, and every record that cannot be one with the reason.

Ids are compared as text, exactly as they stand. This module is not about what an index holds already (`standing`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bridgehead.errors import ColumnError, DataError
from bridgehead.pairs.read import check_columns, read_records
from bridgehead.pairs.sources import PathsLike
from bridgehead.runs.config import RunConfig
from bridgehead.runs.indexing.entries import names_in
from bridgehead.runs.indexing.sides import index_id
from bridgehead.texts import normalise


@dataclass(frozen=True)
class FileItem:
    """An item of the file: its `id` as an index holds it, the `record` (from 0) and `record_id` that it stands in.

    `entity` is the label of the config's entity column, None where there is none.
    """

    id: str
    item: str
    names: tuple[str, ...]
    payload: dict[str, Any]
    entity: str | None
    record: int
    record_id: str


@dataclass(frozen=True)
class FailedRecord:
    """A record, or a value of one, that is not in the index as the file has it: its number (from 0), id and why."""

    record: int
    id: str
    reason: str


@dataclass(frozen=True, eq=False)
class FileItems:
    """The items of a file in its order, what `failed`, and all ids that it names, failed ones included."""

    items: list[FileItem]
    failed: list[FailedRecord]
    ids: frozenset[str]
    n_records: int


@dataclass(frozen=True)
class _Columns:
    item: str
    partner: str
    id: str
    names: tuple[str, ...]
    entity: str | None
    left_out: frozenset[str]


def read_file_items(config: RunConfig, file: PathsLike, side: str, id: str | None = None) -> FileItems:
    """Return what `file` says of items of `side`, with the columns of the config's pairs.

    The file is any that pairs are read from. `id` names the column of ids (default: the config's, else `id`). An empty
    item, a missing id and an id that occurred before are failures of their record, and shift no other. Raises as
    `read_pairs`, and `ColumnError` where the column of items or ids is not there.
    """
    pairs = config.pairs
    records, sources = read_records(file, pairs.quote, pairs.encoding)
    paths = ", ".join(source.path for source in sources)
    columns = _columns(config, side, id, records.frame.columns)
    if columns.id not in records.frame.columns:
        raise ColumnError(
            f"{paths} has no column {columns.id!r} of ids, by which items are known again; its columns are "
            f"{', '.join(records.frame.columns[:50])}: name the one with ids (id=)"
        )
    check_columns(records, [columns.item, columns.id], paths)
    if str(records.frame[columns.id].dtype) != "String":
        raise DataError(f"{paths}: the column of ids {columns.id!r} holds lists; expected one id for each record")
    found: list[FileItem] = []
    failed = [FailedRecord(row, "", reason) for row, reason in records.ragged]
    first_of: dict[str, int] = {}
    for number, record in zip(records.rows.tolist(), records.frame.iter_rows(named=True), strict=True):
        for one in _items_of(config, side, columns, number, record):
            if isinstance(one, FileItem) and one.id in first_of:
                one = FailedRecord(number, one.id, f"the id stands in record {first_of[one.id]} already, which counts")
            if isinstance(one, FailedRecord):
                failed.append(one)
            else:
                first_of[one.id] = number
                found.append(one)
    ids = frozenset([*first_of, *(one.id for one in failed if one.id)])
    return FileItems(found, sorted(failed, key=lambda one: one.record), ids, records.n_records)


def _columns(config: RunConfig, side: str, id: str | None, present: Sequence[str]) -> _Columns:
    pairs = config.pairs
    item, partner = (pairs.a, pairs.b) if side == "a" else (pairs.b, pairs.a)
    ids = id or pairs.id or "id"
    names = tuple(name for name in pairs.names if name in present)
    entity = pairs.entity if side == "a" and pairs.entity in present else None
    return _Columns(item, partner, ids, names if side == "a" else (), entity, frozenset([item, ids, *names]))


def _items_of(
    config: RunConfig, side: str, columns: _Columns, number: int, record: dict[str, Any]
) -> Iterator[FileItem | FailedRecord]:
    record_id = record[columns.id]
    values = _values(record[columns.item])
    if record_id is None or _is_blank(record_id):
        yield FailedRecord(number, "", f"it has no id in column {columns.id!r}")
        return
    own = index_id(config, side, record_id)
    if not values:
        yield FailedRecord(number, own, f"{columns.item} is empty")
    payload = {name: value for name, value in record.items() if name not in columns.left_out and value is not None}
    payload |= _partners(side, columns, record_id, record)
    label = (record[columns.entity] or "").strip() if columns.entity else ""
    for place, value in values:
        id_ = own if place == 1 else f"{own}#{place}"
        yield FileItem(id_, value, tuple(names_in(record, columns.names)), payload, label or None, number, own)


def _partners(side: str, columns: _Columns, record_id: str, record: dict[str, Any]) -> dict[str, list[str]]:
    """Return what an index says of partners: texts with an item of a, the id of its record with an item of b."""
    if columns.partner not in record:
        return {}
    values = [value for _, value in _values(record[columns.partner])]
    return {columns.partner: values if side == "a" else [record_id] if values else []}


def _values(cell: Any) -> list[tuple[int, str]]:
    """Return the valid values of a cell, each with its place in it from 1."""
    values = cell if isinstance(cell, list) else [cell]
    return [(place, value) for place, value in enumerate(values, 1) if value is not None and not _is_blank(value)]


def _is_blank(text: str) -> bool:
    return not normalise(text)
