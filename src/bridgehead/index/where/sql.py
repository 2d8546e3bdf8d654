"""A filter as SQL over the table of values, and the numbers of all items that it is true of.

Whatever the user wrote reaches SQLite as a bound value, never as text of a statement.
"""

import difflib
import sqlite3
from typing import Any

import numpy as np
import numpy.typing as npt

from bridgehead.errors import ArgumentError
from bridgehead.index.where.expression import All, Among, AnyOf, Compare, Exists, Not, Where
from bridgehead.index.where.values import Scalar, Stored, stored_text, stored_truth

_FIELD = "SELECT number FROM fields WHERE field = (SELECT field FROM field_names WHERE side = ? AND name = ?)"
_ITEMS = "SELECT number FROM items WHERE side = ?"
_SHOWN_FIELDS = 50


def compile_where(where: Where, side: int) -> tuple[str, list[Any]]:
    """Return a SELECT of the numbers (any order, repeated) of side 0 or 1 that `where` is true of, and values."""
    if isinstance(where, Compare | Among | Exists):
        return _test(where, side)
    if isinstance(where, Not):
        inner, values = compile_where(where.part, side)
        return f"{_ITEMS} AND number NOT IN ({inner})", [side, *values]
    assert isinstance(where, All | AnyOf)
    parts = [compile_where(part, side) for part in where.parts]
    joined = (" AND " if isinstance(where, All) else " OR ").join(f"number IN ({sql})" for sql, _ in parts)
    return f"{_ITEMS} AND ({joined})", [side, *(value for _, values in parts for value in values)]


def _test(where: Compare | Among | Exists, side: int) -> tuple[str, list[Any]]:
    if isinstance(where, Exists):
        return _FIELD, [side, where.field]
    if isinstance(where, Among) or where.op in ("=", "!="):
        given = where.values if isinstance(where, Among) else (where.value,)
        negated = where.negated if isinstance(where, Among) else where.op == "!="
        marks = ", ".join("?" * len(given))
        equal, values = f"{_FIELD} AND value IN ({marks})", [side, where.field, *map(_stored, given)]
        return (f"{_FIELD} AND number NOT IN ({equal})", [side, where.field, *values]) if negated else (equal, values)
    value = _stored(where.value)
    # One kind is one stretch of the order: numbers, then texts from '', then blobs from x''.
    if where.op in ("<", "<="):
        bound = "" if not isinstance(value, str) else " AND value >= ''"
    else:
        bound = " AND value < ''" if not isinstance(value, str) else " AND value < x''"
    return f"{_FIELD} AND value {where.op} ?{bound}", [side, where.field, value]


def _stored(value: Scalar) -> Stored:
    if isinstance(value, bool):
        return stored_truth(value)
    return stored_text(value) if isinstance(value, str) else value


def matching_numbers(connection: sqlite3.Connection, side: int, where: Where) -> npt.NDArray[np.int64]:
    """Return the numbers of the items of side 0 or 1 that `where` is true of, ascending.

    Raises `ArgumentError` for a field that no item of the side has, with those there are.
    """
    _check_fields(connection, side, where)
    sql, values = compile_where(where, side)
    found = np.fromiter((row[0] for row in connection.execute(sql, values)), dtype=np.int64)
    return np.unique(found)


def _check_fields(connection: sqlite3.Connection, side: int, where: Where) -> None:
    there = [name for (name,) in connection.execute(
        "SELECT name FROM field_names WHERE side = ? AND n_items > 0 ORDER BY name", (side,))]  # fmt: skip
    known = set(there)
    for name in where.fields():
        if name not in known:
            near = difflib.get_close_matches(name, there[:1000], n=1, cutoff=0.5)
            listed = near + [other for other in there if other not in near]
            more = f" and {len(listed) - _SHOWN_FIELDS} more" if len(listed) > _SHOWN_FIELDS else ""
            what = f"there are: {', '.join(listed[:_SHOWN_FIELDS])}{more}" if listed else "they have no payload"
            raise ArgumentError(f"no item that could be found has the field {name[:100]!r}; {what}")
