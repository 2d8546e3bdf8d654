"""What a filter can say, as frozen records, and what it means for one payload.

The logic has two values. A comparison is true of an item when *any* value of its field makes it true, and false when
the field is missing; `!=` and `not in` ask that the item has the field and *none* of its values is (among) what was
given. `not` is the plain opposite: `not (x < 5)` is true of an item without `x`, `x >= 5` is not. Null, an empty list
and a missing field are the same; the empty text is a value.

`Where.matches` is the meaning itself, item by item; `matching` finds the same items by index.
"""

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bridgehead.errors import ArgumentError
from bridgehead.index.where.values import (
    LONGEST_STORED,
    Scalar,
    field_form,
    number_form,
    number_of,
    payload_values,
    text_form,
    truth_of,
)
from bridgehead.index.where.written import written_field, written_value

_ORDERED: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
MAX_VALUES = 1_000  # values of one `in`
MAX_TEXT = 10_000  # characters of a value


def why_no_test(op: str, *values: object) -> str:
    """Return why `op` cannot compare a field with `values`, or "" where it can."""
    if op not in (*OPERATORS, "in", "not in"):
        return f"{op!r} is no comparison; expected one of {', '.join(OPERATORS)}, in, not in"
    if not 1 <= len(values) <= MAX_VALUES:
        return f"{len(values):,} values in one list; expected 1 to {MAX_VALUES:,}"
    for value in values:
        if not isinstance(value, bool | int | float | str):
            return f"a {type(value).__name__} is no value; expected a number, a text, true or false"
        if isinstance(value, int | float) and not math.isfinite(number_form(value)):
            return "this number is too big, or none; expected one within about 1.8e308"
        if isinstance(value, str) and len(value) > MAX_TEXT:
            return f"a text of {len(value):,} characters is too long; expected at most {MAX_TEXT:,}"
        if op[0] in "<>" and isinstance(value, bool):
            return f"true and false have no order; use = or !=, not {op}"
        if op[0] in "<>" and isinstance(value, str) and len(text_form(value)) > LONGEST_STORED:
            return f"a text of over {LONGEST_STORED} characters can be compared by = and != only"
    return ""


def _check(op: str, *values: object) -> None:
    if why := why_no_test(op, *values):
        raise ArgumentError(why)


def _check_parts(*parts: object) -> None:
    if not parts or not all(isinstance(part, Where) for part in parts):
        raise ArgumentError(
            f"{len(parts)} parts, of {sorted({type(part).__name__ for part in parts})}; expected filters"
        )


def _form(value: Scalar) -> Scalar:
    return value if isinstance(value, bool | str) else number_form(value)


class Where(ABC):
    """A filter; one of `Compare`, `Among`, `Exists`, `Not`, `All`, `AnyOf`. `str()` gives text that parses to it.

    Filters are equal when their texts are: to Python `True` and `1` are equal, to a filter they are not.
    """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Where) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def matches(self, payload: Mapping[str, Any]) -> bool:
        """Whether it is true of an item with this payload. Raises `DataError` where the payload has NaN."""
        values: dict[str, list[Scalar]] = {}
        for name, value in payload_values(payload):
            values.setdefault(name, []).append(value)
        return self._holds(values)

    @abstractmethod
    def _holds(self, values: Mapping[str, list[Scalar]]) -> bool: ...

    @abstractmethod
    def fields(self) -> Iterator[str]:
        """Yield the names of the fields it asks about, in order, repeated ones repeated."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, which `where_from_json` reads."""


@dataclass(frozen=True, eq=False)
class Compare(Where):
    """`field op value`, `op` of `OPERATORS`; ranges only with numbers and texts."""

    field: str
    op: str
    value: Scalar

    def __post_init__(self) -> None:
        _check(self.op if self.op in OPERATORS else repr(self.op), self.value)
        object.__setattr__(self, "field", field_form(self.field))
        object.__setattr__(self, "value", _form(self.value))

    def _holds(self, values: Mapping[str, list[Scalar]]) -> bool:
        found = values.get(self.field, [])
        if self.op == "!=":
            return bool(found) and not any(_is(value, "=", self.value) for value in found)
        return any(_is(value, self.op, self.value) for value in found)

    def fields(self) -> Iterator[str]:
        yield self.field

    def to_json(self) -> dict[str, Any]:
        return {"field": self.field, "op": self.op, "value": self.value}

    def __str__(self) -> str:
        return f"{written_field(self.field)} {self.op} {written_value(self.value)}"


@dataclass(frozen=True, eq=False)
class Among(Where):
    """`field in (values)`, or `not in` where `negated`."""

    field: str
    values: tuple[Scalar, ...]
    negated: bool = False

    def __post_init__(self) -> None:
        _check("in", *self.values)
        object.__setattr__(self, "field", field_form(self.field))
        object.__setattr__(self, "values", tuple(map(_form, self.values)))

    def _holds(self, values: Mapping[str, list[Scalar]]) -> bool:
        found = values.get(self.field, [])
        hit = any(_is(value, "=", wanted) for value in found for wanted in self.values)
        return bool(found) and not hit if self.negated else hit

    def fields(self) -> Iterator[str]:
        yield self.field

    def to_json(self) -> dict[str, Any]:
        return {"field": self.field, "op": "not in" if self.negated else "in", "value": list(self.values)}

    def __str__(self) -> str:
        values = ", ".join(map(written_value, self.values))
        return f"{written_field(self.field)} {'not in' if self.negated else 'in'} ({values})"


@dataclass(frozen=True, eq=False)
class Exists(Where):
    """`exists field`: the item has a value, whatever it is."""

    field: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "field", field_form(self.field))

    def _holds(self, values: Mapping[str, list[Scalar]]) -> bool:
        return self.field in values

    def fields(self) -> Iterator[str]:
        yield self.field

    def to_json(self) -> dict[str, Any]:
        return {"field": self.field, "op": "exists"}

    def __str__(self) -> str:
        return f"exists {written_field(self.field)}"


@dataclass(frozen=True, eq=False)
class Not(Where):
    """The opposite of `part`."""

    part: Where

    def __post_init__(self) -> None:
        _check_parts(self.part)

    def _holds(self, values: Mapping[str, list[Scalar]]) -> bool:
        return not self.part._holds(values)

    def fields(self) -> Iterator[str]:
        yield from self.part.fields()

    def to_json(self) -> dict[str, Any]:
        return {"not": self.part.to_json()}

    def __str__(self) -> str:
        return f"not {_bracketed(self.part, All, AnyOf)}"


@dataclass(frozen=True, eq=False)
class All(Where):
    """All of `parts` (two or more): `and`."""

    parts: tuple[Where, ...]

    def __post_init__(self) -> None:
        _check_parts(*self.parts)

    def _holds(self, values: Mapping[str, list[Scalar]]) -> bool:
        return all(part._holds(values) for part in self.parts)

    def fields(self) -> Iterator[str]:
        for part in self.parts:
            yield from part.fields()

    def to_json(self) -> dict[str, Any]:
        return {"and": [part.to_json() for part in self.parts]}

    def __str__(self) -> str:
        return " and ".join(_bracketed(part, All, AnyOf) for part in self.parts)


@dataclass(frozen=True, eq=False)
class AnyOf(Where):
    """Any of `parts` (two or more): `or`."""

    parts: tuple[Where, ...]

    def __post_init__(self) -> None:
        _check_parts(*self.parts)

    def _holds(self, values: Mapping[str, list[Scalar]]) -> bool:
        return any(part._holds(values) for part in self.parts)

    def fields(self) -> Iterator[str]:
        for part in self.parts:
            yield from part.fields()

    def to_json(self) -> dict[str, Any]:
        return {"or": [part.to_json() for part in self.parts]}

    def __str__(self) -> str:
        return " or ".join(_bracketed(part, AnyOf) for part in self.parts)


def _bracketed(part: Where, *kinds: type[Where]) -> str:
    return f"({part})" if isinstance(part, kinds) else str(part)


def _is(value: Scalar, op: str, wanted: Scalar) -> bool:
    """Whether one value of an item compares so with what was given; values of different kinds never do."""
    holds = _ORDERED[op]
    if isinstance(wanted, bool):
        return truth_of(value) is wanted
    if isinstance(wanted, str):
        return isinstance(value, str) and holds(text_form(value), text_form(wanted))
    number = number_of(value)
    return number is not None and holds(number, wanted)
