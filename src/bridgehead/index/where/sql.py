"""A filter as SQL over the table of values, and the numbers of all items that it is true of.

Each comparison is one statement that reads one stretch of the table; `and`, `or` and `not` join the ascending numbers
that come back, which is several times quicker than letting SQLite join them. Whatever the user wrote reaches SQLite as
a bound value, never as text of a statement.
"""

import difflib
import sqlite3
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from bridgehead.errors import ArgumentError
from bridgehead.index.where.expression import All, Among, AnyOf, Compare, Exists, Not, Where
from bridgehead.index.where.table import item_field
from bridgehead.index.where.values import Scalar, Stored, stored_number, stored_text, stored_truth
from bridgehead.index.where.written import written_field

IntArray = npt.NDArray[np.int64]
KIND_STARTS = {"number": "1", "text": "value >= ''", "truth value": "value >= x''"}
KIND_ENDS = {"number": "value < ''", "text": "value < x''", "truth value": "1"}
"""Where values of a kind lie within a field: SQLite orders numbers below texts and texts below blobs."""

_SHOWN_FIELDS = 50
_SHOWN_NAME = 100
_HINTS = {"number": "write a number without quotes", "text": "put it in quotes", "truth value": "write true or false"}


def matching_numbers(connection: sqlite3.Connection, side: int, where: Where) -> IntArray:
    """Return the numbers of the items of side 0 or 1 that `where` is true of, ascending.

    Raises `ArgumentError` for a field that no item of the side has, with those there are, and for a comparison with a
    number, a text or a truth value where no item has one in that field.
    """
    return _Search(connection, side).numbers(where)


def compile_test(field: int, op: str, values: tuple[Scalar, ...]) -> tuple[str, tuple[int | Stored, ...]]:
    """Return (condition, bound values) of the records of `field` (its id) that compare so with `values`.

    `op`: "exists" (no value), "in" (one or more), or one of <, <=, >, >= with one value.
    """
    if op == "exists":
        return "field = ?", (field,)
    stored = tuple(map(_stored, values))
    if op == "in":
        return f"field = ? AND value IN ({', '.join('?' * len(stored))})", (field, *stored)
    # Only values of the same kind: the other end of a range is the end of that kind's stretch. A second condition on
    # the same end could be the one that SQLite starts from.
    other_end = (KIND_STARTS if op in ("<", "<=") else KIND_ENDS)[_kind(values[0])]
    return f"field = ? AND value {op} ? AND {other_end}", (field, *stored)


def _stored(value: Scalar) -> Stored:
    if isinstance(value, bool):
        return stored_truth(value)
    return stored_text(value) if isinstance(value, str) else stored_number(value)


def _kind(value: Scalar) -> str:
    return "truth value" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"


class _Search:
    """One evaluation: field ids and results of tests are looked up once."""

    def __init__(self, connection: sqlite3.Connection, side: int) -> None:
        self._connection = connection
        self._side = side
        self._found: dict[tuple[int, str, tuple[Stored, ...]], IntArray] = {}

    def numbers(self, where: Where) -> IntArray:
        if isinstance(where, Not):
            return _without(self._test(item_field(self._side), "exists"), self.numbers(where.part))
        if isinstance(where, All | AnyOf):
            join = _both if isinstance(where, All) else _either
            found = self.numbers(where.parts[0])
            for part in where.parts[1:]:
                found = join(found, self.numbers(part))
            return found
        assert isinstance(where, Compare | Among | Exists)
        field = self._field(where.field)
        if isinstance(where, Exists):
            return self._test(field, "exists")
        if isinstance(where, Compare) and where.op not in ("=", "!="):
            return self._compared(field, where, where.op, (where.value,))
        values = where.values if isinstance(where, Among) else (where.value,)
        equal = self._compared(field, where, "in", values)
        negated = where.negated if isinstance(where, Among) else where.op == "!="
        return _without(self._test(field, "exists"), equal) if negated else equal

    def _field(self, name: str) -> int:
        row = self._connection.execute(
            "SELECT field FROM field_names WHERE side = ? AND name = ? AND n_items > 0", (self._side, name)
        ).fetchone()
        if row is None:
            self._fail_for_name(name)
        return int(row[0])

    def _compared(self, field: int, where: Compare | Among, op: str, values: tuple[Scalar, ...]) -> IntArray:
        found = self._test(field, op, values)
        if not len(found) and not any(self._has(field, kind) for kind in map(_kind, values)):
            self._fail_for_kind(field, where, _kind(values[0]))
        return found

    def _test(self, field: int, op: str, values: tuple[Scalar, ...] = ()) -> IntArray:
        condition, bound = compile_test(field, op, values)
        key = (field, op, bound)
        if key not in self._found:
            # One text of all numbers is read several times quicker than one row for each.
            joined = self._connection.execute(
                f"SELECT group_concat(number) FROM fields WHERE {condition}", bound
            ).fetchone()[0]
            numbers = np.fromstring(joined, dtype=np.int64, sep=",") if joined else np.empty(0, np.int64)
            self._found[key] = _ascending(numbers)
        return self._found[key]

    def _has(self, field: int, kind: str) -> bool:
        statement = f"SELECT 1 FROM fields WHERE field = ? AND {KIND_STARTS[kind]} AND {KIND_ENDS[kind]} LIMIT 1"
        return self._connection.execute(statement, (field,)).fetchone() is not None

    def _fail_for_kind(self, field: int, where: Compare | Among, kind: str) -> NoReturn:
        has = [kind for kind in KIND_ENDS if self._has(field, kind)]
        there = " and ".join(f"{kind}s" for kind in has)
        name = written_field(where.field)
        raise ArgumentError(f"the filter compares {name} with a {kind}, and its values are {there}; {_HINTS[has[0]]}")

    def _fail_for_name(self, name: str) -> NoReturn:
        there = [row[0] for row in self._connection.execute(
            "SELECT name FROM field_names WHERE side = ? AND n_items > 0 ORDER BY n_items DESC, name LIMIT 1000",
            (self._side,),
        )]  # fmt: skip
        # Case apart first: then letters left out or swapped.
        near = [other for other in there if other.casefold() == name.casefold()] or difflib.get_close_matches(
            name[:_SHOWN_NAME], there, n=1, cutoff=0.5
        )
        listed = [written_field(other[:_SHOWN_NAME]) for other in dict.fromkeys([*near, *sorted(there)])]
        more = f", and {len(listed) - _SHOWN_FIELDS} more" if len(listed) > _SHOWN_FIELDS else ""
        what = f"there are: {', '.join(listed[:_SHOWN_FIELDS])}{more}" if listed else "these items have no payload"
        raise ArgumentError(f"no item searched has the field {written_field(name[:_SHOWN_NAME])}; {what}")


def _ascending(numbers: IntArray) -> IntArray:
    numbers.sort()
    keep = np.ones(len(numbers), dtype=bool)
    np.not_equal(numbers[1:], numbers[:-1], out=keep[1:])
    return numbers[keep]


def _is_among(numbers: IntArray, others: IntArray) -> npt.NDArray[np.bool_]:
    """Whether each of `numbers` is one of `others`, both ascending."""
    if not len(others):
        return np.zeros(len(numbers), dtype=bool)
    at = np.searchsorted(others, numbers)
    at[at == len(others)] = 0
    found: npt.NDArray[np.bool_] = others[at] == numbers
    return found


def _both(first: IntArray, second: IntArray) -> IntArray:
    small, large = (first, second) if len(first) <= len(second) else (second, first)
    return small[_is_among(small, large)]


def _either(first: IntArray, second: IntArray) -> IntArray:
    return _ascending(np.concatenate([first, second]))


def _without(numbers: IntArray, others: IntArray) -> IntArray:
    return numbers[~_is_among(numbers, others)]
