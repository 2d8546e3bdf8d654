"""The numbers of all items that a filter is true of.

Each comparison is one statement (`sql`); `and`, `or` and `not` join the ascending numbers that come back, which is
several times quicker than letting SQLite join them.
"""

import difflib
import sqlite3
from functools import reduce
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from bridgehead.errors import ArgumentError
from bridgehead.index.where.expression import All, Among, AnyOf, Compare, Exists, Not, Where
from bridgehead.index.where.sql import KIND_ENDS, KIND_STARTS, RANGES, Bound, compile_equal, compile_range, kind_of
from bridgehead.index.where.table import item_field
from bridgehead.index.where.values import Scalar
from bridgehead.index.where.written import written_field

IntArray = npt.NDArray[np.int64]

_SHOWN_FIELDS = 50
_SHOWN_NAME = 100
_HINTS = {"number": "write a number without quotes", "text": "put it in quotes", "truth value": "write true or false"}


def matching_numbers(connection: sqlite3.Connection, side: int, where: Where) -> IntArray:
    """Return the numbers of the items of side 0 or 1 that `where` is true of, ascending.

    Raises `ArgumentError` for a field that no item of the side has, with those there are, and for a comparison with a
    number, a text or a truth value where no item has one in that field.
    """
    return _Matching(connection, side).numbers(where)


class _Matching:
    """One evaluation: what is asked twice is looked up once."""

    def __init__(self, connection: sqlite3.Connection, side: int) -> None:
        self._connection = connection
        self._side = side
        self._found: dict[tuple[str, Bound], IntArray] = {}

    def numbers(self, where: Where) -> IntArray:
        if isinstance(where, Not):
            return _without(self._having(item_field(self._side)), self.numbers(where.part))
        if isinstance(where, All):
            return reduce(_both, self._parts(where))
        if isinstance(where, AnyOf):
            return reduce(_either, map(self.numbers, where.parts))
        assert isinstance(where, Compare | Among | Exists)
        field = self._field(where.field)
        if isinstance(where, Exists):
            return self._having(field)
        if isinstance(where, Compare) and where.op in RANGES:
            found = self._selected(*compile_range(field, [(where.op, where.value)]))
            return self._checked(found, field, where, (where.value,))
        values = where.values if isinstance(where, Among) else (where.value,)
        equal = self._checked(self._selected(*compile_equal(field, values)), field, where, values)
        negated = where.negated if isinstance(where, Among) else where.op == "!="
        return _without(self._having(field), equal) if negated else equal

    def _parts(self, where: All) -> list[IntArray]:
        """Return the numbers of each part; of ranges of a field that has one value an item, of all together."""
        ranges: dict[tuple[str, str], list[Compare]] = {}
        others: list[Where] = []
        for part in where.parts:
            if isinstance(part, Compare) and part.op in RANGES:
                ranges.setdefault((part.field, kind_of(part.value)), []).append(part)
            else:
                others.append(part)
        found = list(map(self.numbers, others))
        for (name, kind), group in ranges.items():
            field = self._field(name)
            if len(group) > 1 and self._has_single_values(field, kind):
                found.append(self._selected(*compile_range(field, [(part.op, part.value) for part in group])))
            else:
                found += map(self.numbers, group)
        return found

    def _has_single_values(self, field: int, kind: str) -> bool:
        """Whether each item with a value of `kind` has one alone, so that it must lie in all ranges by itself."""
        n_items, n_numbers, n_truths = self._connection.execute(
            "SELECT n_items, n_numbers, n_truths FROM field_names WHERE field = ?", (field,)
        ).fetchone()
        if kind == "text" and (n_numbers or n_truths):
            return False
        counted = f"SELECT count(*) FROM fields WHERE field = ? AND {KIND_STARTS[kind]} AND {KIND_ENDS[kind]}"
        n_values = self._connection.execute(counted, (field,)).fetchone()[0]
        return bool(0 < n_values == (n_items if kind == "text" else n_numbers))

    def _field(self, name: str) -> int:
        row = self._connection.execute(
            "SELECT field FROM field_names WHERE side = ? AND name = ? AND n_items > 0", (self._side, name)
        ).fetchone()
        if row is None:
            self._fail_for_name(name)
        return int(row[0])

    def _having(self, field: int) -> IntArray:
        return self._selected("field = ?", (field,))

    def _checked(self, found: IntArray, field: int, where: Compare | Among, values: tuple[Scalar, ...]) -> IntArray:
        """Return `found`, or raise where there is nothing because the field has no value of these kinds."""
        if not len(found) and not any(self._has(field, kind) for kind in map(kind_of, values)):
            self._fail_for_kind(field, where, kind_of(values[0]))
        return found

    def _selected(self, condition: str, bound: Bound) -> IntArray:
        key = (condition, bound)
        if key not in self._found:
            # One text of all numbers is read several times quicker than one row for each.
            joined = self._connection.execute(
                f"SELECT group_concat(number) FROM fields WHERE {condition}", bound
            ).fetchone()[0]
            try:
                numbers = np.fromstring(joined, dtype=np.int64, sep=",") if joined else np.empty(0, np.int64)
            except ValueError as error:
                raise sqlite3.DatabaseError("a value of a field belongs to no item") from error
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
