"""Reads the JSON form of a filter, as HTTP clients send it; `Where.to_json` writes it.

`{"field": "ic50_nM", "op": "<", "value": 100}`, `{"field": "species", "op": "in", "value": ["human", "rat"]}`,
`{"field": "assay", "op": "exists"}`, `{"and": [...]}`, `{"or": [...]}`, `{"not": {...}}`.
"""

from collections.abc import Mapping
from typing import Any, NoReturn

from bridgehead.errors import ArgumentError
from bridgehead.index.where.expression import OPERATORS, All, Among, AnyOf, Compare, Exists, Not, Where, why_no_test
from bridgehead.index.where.parse import MAX_DEPTH, MAX_LENGTH, MAX_TESTS
from bridgehead.index.where.values import Scalar

_FORMS = '{"field": ..., "op": ..., "value": ...}, {"and": [...]}, {"or": [...]} or {"not": {...}}'
_SHOWN = 80


def where_from_json(content: Any) -> Where:
    """Return the filter of a JSON object.

    Raises `ArgumentError` that says which part is wrong, and where the limits of `parse_where` are exceeded.
    """
    return _Reader().read(content, "filter", 0)


class _Reader:
    def __init__(self) -> None:
        self._tests = 0

    def read(self, content: Any, place: str, depth: int) -> Where:
        if depth > MAX_DEPTH:
            _fail("filter", f"more than {MAX_DEPTH} levels of and, or and not; write it flatter")
        if not isinstance(content, Mapping):
            _fail(place, f"found {_said(content)}; expected an object: {_FORMS}")
        keys = set(content)
        if keys == {"and"} or keys == {"or"}:
            (word,) = keys
            return self._parts(content[word], word, place, depth)
        if keys == {"not"}:
            return Not(self.read(content["not"], f"{place}.not", depth + 1))
        if not {"field", "op"} <= keys <= {"field", "op", "value"}:
            _fail(place, f"found the keys {', '.join(sorted(map(_said, keys)))[:_SHOWN]}; expected {_FORMS}")
        return self._test(content, place)

    def _parts(self, parts: Any, word: str, place: str, depth: int) -> Where:
        if not isinstance(parts, list) or not parts:
            _fail(f"{place}.{word}", f"found {_said(parts)}; expected a list of one filter or more")
        if len(parts) > MAX_TESTS:
            _fail(f"{place}.{word}", f"{len(parts):,} parts; at most {MAX_TESTS} comparisons are read")
        found = tuple(self.read(part, f"{place}.{word}[{n}]", depth + 1) for n, part in enumerate(parts))
        return found[0] if len(found) == 1 else All(found) if word == "and" else AnyOf(found)

    def _test(self, content: Mapping[str, Any], place: str) -> Where:
        self._tests += 1
        if self._tests > MAX_TESTS:
            _fail("filter", f"more than {MAX_TESTS} comparisons; use in for many values of one field")
        field, op = content["field"], content["op"]
        if not isinstance(field, str) or len(field) > MAX_LENGTH:
            _fail(f"{place}.field", f"found {_said(field)}; expected the name of a field")
        if op == "exists":
            if content.get("value", True) is not True:
                _fail(f"{place}.value", "exists takes no value")
            return Exists(field)
        if "value" not in content:
            _fail(place, f"no value to compare {_said(field)} with")
        if op in ("in", "not in"):
            return Among(field, _values(content["value"], f"{place}.value"), op == "not in")
        if op not in OPERATORS:
            _fail(f"{place}.op", f"found {_said(op)}; expected one of {', '.join(OPERATORS)}, in, not in, exists")
        return _compared(field, op, content["value"], f"{place}.value")


def _compared(field: str, op: str, value: Any, place: str) -> Where:
    if value is None and op in ("=", "!="):
        return Not(Exists(field)) if op == "=" else Exists(field)
    if why := why_no_test(op, value):
        _fail(place, why)
    return Compare(field, op, value)


def _values(values: Any, place: str) -> tuple[Scalar, ...]:
    if not isinstance(values, list):
        _fail(place, f"found {_said(values)}; expected a list of values")
    if why := why_no_test("in", *values):
        _fail(place, why)
    return tuple(values)


def _said(value: Any) -> str:
    """Return what was found, briefly: of a list or an object only its size, as it may be huge or deep."""
    if isinstance(value, list | Mapping):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value):,}"
    if isinstance(value, int) and abs(value) > 2**63:
        return "a very big number"
    text = repr(value[:_SHOWN] if isinstance(value, str) else value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _fail(place: str, what: str) -> NoReturn:
    shown = place if len(place) <= _SHOWN else f"...{place[-_SHOWN:]}"
    raise ArgumentError(f"in {shown}: {what}")
