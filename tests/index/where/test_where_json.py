"""The JSON form of a filter."""

import json

import pytest

from bridgehead.errors import ArgumentError
from bridgehead.index.where import parse_where, where_from_json


@pytest.mark.parametrize(
    "text",
    [
        "a < 5",
        "a in ('x', 2, true)",
        "a not in (1.5)",
        "exists a",
        "not a = false",
        "a = 1 and (b = 2 or not exists c)",
    ],
)
def test_the_json_form_says_the_same_as_the_text(text):
    where = parse_where(text)
    assert where_from_json(json.loads(json.dumps(where.to_json()))) == where


def test_null_and_single_parts_are_read():
    assert where_from_json({"field": "a", "op": "=", "value": None}) == parse_where("a = null")
    assert where_from_json({"field": "a", "op": "!=", "value": None}) == parse_where("a != null")
    assert where_from_json({"and": [{"field": "a", "op": "exists"}]}) == parse_where("exists a")
    assert where_from_json({"field": "e\u0301", "op": "exists"}) == parse_where("exists \u00e9")


def nested(depth, content):
    for _ in range(depth):
        content = {"not": content}
    return content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "in filter: found None; expected an object"),
        ([], "expected an object"),
        ({}, "expected"),
        ({"field": "a"}, "found the keys"),
        ({"field": "a", "op": "<"}, "no value"),
        ({"field": "a", "op": "~", "value": 1}, "in filter.op: found '~'"),
        ({"field": "a", "op": ["<"], "value": 1}, "in filter.op"),
        ({"field": 5, "op": "<", "value": 1}, "in filter.field"),
        ({"field": "a", "op": "<", "value": None}, "in filter.value"),
        ({"field": "a", "op": "<", "value": True}, "have no order"),
        ({"field": "a", "op": "=", "value": float("nan")}, "too big, or none"),
        ({"field": "a", "op": "=", "value": 10**400}, "too big"),
        ({"field": "a", "op": "=", "value": {"x": 1}}, "a dict is no value"),
        ({"field": "a", "op": "in", "value": 5}, "expected a list"),
        ({"field": "a", "op": "in", "value": []}, "0 values in one list"),
        ({"field": "a", "op": "in", "value": [1, [2]]}, "a list is no value"),
        ({"field": "a", "op": "exists", "value": 3}, "exists takes no value"),
        ({"field": "a", "op": "exists", "more": 3}, "found the keys"),
        ({"and": []}, "in filter.and: found"),
        ({"and": {}}, "in filter.and"),
        ({"or": [{"field": "a", "op": "exists"}, {"not": 7}]}, r"in filter.or\[1\].not: found 7"),
        ({"and": [], "or": []}, "found the keys"),
        (nested(5000, {"field": "a", "op": "exists"}), "more than 50 levels"),
        ({"or": [{"field": "a", "op": "exists"}] * 101}, "at most 100 comparisons"),
        ({"or": [{"or": [{"field": "a", "op": "exists"}] * 60}] * 2}, "more than 100 comparisons"),
        ({"field": "a", "op": "=", "value": "x" * 20_000}, "a text of 20,000 characters"),
        ({"a" * 5000: 1}, "found the keys"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, str) else "",
)
def test_what_is_no_filter_is_refused_with_the_place(content, message):
    with pytest.raises(ArgumentError, match=message) as caught:
        where_from_json(content)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("inner", [[], {}])
def test_what_is_nested_too_deep_anywhere_is_refused(inner):
    deep = inner
    for _ in range(20_000):
        deep = {"x": deep} if isinstance(inner, dict) else [deep]
    for content in (deep, {"field": deep, "op": "=", "value": 1}, {"field": "a", "op": deep, "value": 1},
                    {"field": "a", "op": "=", "value": deep}, {"field": "a", "op": "in", "value": [deep]},
                    {"field": "a", "op": "exists", "value": deep}, {"not": deep}, {"and": deep}):  # fmt: skip
        with pytest.raises(ArgumentError):
            where_from_json(content)
    while deep:
        # Taken apart by hand: freeing it in one go is deep as well.
        deep = deep.pop("x") if isinstance(deep, dict) else deep.pop()
