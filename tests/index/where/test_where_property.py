"""Random payloads against random filters: SQLite finds exactly the items that the filter is true of, one by one."""

import math
import re
import sqlite3
import unicodedata

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgehead.errors import ArgumentError
from bridgehead.index.where import (
    FIELDS_SCHEMA,
    field_facts,
    field_records,
    matching_numbers,
    parse_where,
    remove_fields,
    where_from_json,
    write_fields,
)
from bridgehead.index.where.expression import All, Among, AnyOf, Compare, Exists, Not

FIELDS = ["a", "b c", "d", "é", "drop"]
LONG = "long text " * 11
TEXTS = ["", "a", "b", "A", "true", "False", "1", "1.0", " 2 ", "1e0", "-0", "007", "x'; DROP TABLE fields; --", "é",
         "e\u0301", "\ud800", "\0", "a\0b", "\U0001f9ea", "日本", LONG, LONG + "x", LONG[:100], LONG[:99], "nan", "inf",
         "1_000", "١"]  # fmt: skip
NUMBERS = [0, -0.0, 1, 1.0, 2, 7, -3, 0.5, 1e300, -1e300, 5e-324, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**63,
           2**63 + 1, 2**64 + 0.0, 10**400, 9007199254740993.0]  # fmt: skip
scalars = st.sampled_from(TEXTS) | st.sampled_from(NUMBERS) | st.booleans() | st.text(max_size=3) | st.floats(
    allow_nan=False, allow_infinity=False) | st.integers()  # fmt: skip
values = scalars | st.none() | st.lists(scalars | st.none(), max_size=3)
payloads = st.dictionaries(st.sampled_from(FIELDS), values, max_size=4)


def usable(value):
    return not isinstance(value, int | float) or isinstance(value, bool) or abs(value) < 10**300


given_values = scalars.filter(usable)
ranged = given_values.filter(lambda v: not isinstance(v, bool) and not (isinstance(v, str) and len(v) > 100))
fields = st.sampled_from(FIELDS)
signs = st.sampled_from(["<", "<=", ">", ">="])
tests = st.one_of(
    st.builds(Compare, fields, st.sampled_from(["=", "!="]), given_values),
    st.builds(Compare, fields, signs, ranged),
    st.builds(Among, fields, st.lists(given_values, min_size=1, max_size=3).map(tuple), st.booleans()),
    st.builds(Exists, fields),
)
together = fields.flatmap(
    lambda name: st.lists(st.builds(Compare, st.just(name), signs, ranged), min_size=2, max_size=3)
).map(lambda parts: All(tuple(parts)))
filters = st.recursive(
    tests | together,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(All, st.lists(inner, min_size=2, max_size=3).map(tuple)),
        st.builds(AnyOf, st.lists(inner, min_size=2, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)


def table(found):
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(FIELDS_SCHEMA)
    write_fields(connection, 0, found.items())
    # The other side has every field and every kind, so what is missing is missing on the first side alone.
    write_fields(connection, 1, [(10_000, {name: [1, "1", True] for name in FIELDS})])
    return connection


def plain(where, payload):
    """The meaning of a filter, written a second time without anything of the package but its records."""
    if isinstance(where, Not):
        return not plain(where.part, payload)
    if isinstance(where, All | AnyOf):
        return (all if isinstance(where, All) else any)(plain(part, payload) for part in where.parts)
    found = {unicodedata.normalize("NFC", name): value for name, value in payload.items()}.get(where.field)
    found = [value for value in (found if isinstance(found, list) else [found]) if value is not None]
    if isinstance(where, Exists):
        return bool(found)
    if isinstance(where, Among):
        hit = any(holds(value, "=", wanted) for value in found for wanted in where.values)
        return bool(found) and not hit if where.negated else hit
    if where.op == "!=":
        return bool(found) and not any(holds(value, "=", where.value) for value in found)
    return any(holds(value, where.op, where.value) for value in found)


def number(value):
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        text = value.strip()
        if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
            return None
        value = int(text) if re.fullmatch("[+-]?[0-9]+", text) else float(text)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float(value) if abs(value) < 10**308 else math.inf * (1 if value > 0 else -1)
    return value


def holds(value, op, wanted):
    if isinstance(wanted, bool):
        return value is wanted or (isinstance(value, str) and value.lower() == str(wanted).lower())
    if isinstance(wanted, str):
        if not isinstance(value, str):
            return False
        value, wanted = (unicodedata.normalize("NFC", t.encode("utf-8", "replace").decode()) for t in (value, wanted))
    else:
        value, wanted = number(value), number(wanted)
        if value is None:
            return False
    order = (value > wanted) - (value < wanted)
    return {"=": order == 0, "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[op]


@given(st.lists(payloads, min_size=1, max_size=12), filters)
@settings(max_examples=400, deadline=None)
def test_sqlite_finds_what_the_filter_is_true_of_item_by_item(found, where):
    numbered = {7 * n + 3: payload for n, payload in enumerate(found)}
    expected = [n for n, payload in numbered.items() if plain(where, payload)]
    assert [n for n, payload in numbered.items() if where.matches(payload)] == expected
    connection = table(numbered)
    try:
        result = matching_numbers(connection, 0, where)
    except ArgumentError:
        present = {
            name for _, payload in numbered.items() for name, value in payload.items() if value not in (None, [])
        }
        missing = set(where.fields()) - {unicodedata.normalize("NFC", name) for name in present}
        assert missing or not_of_the_kind(where, numbered.values())
    else:
        assert result.dtype == np.int64
        assert result.tolist() == expected
    finally:
        connection.close()


def not_of_the_kind(where, found):
    """Whether some test of `where` compares with kinds of values that no item has."""
    if isinstance(where, Not):
        return not_of_the_kind(where.part, found)
    if isinstance(where, All | AnyOf):
        return any(not_of_the_kind(part, found) for part in where.parts)
    if isinstance(where, Exists):
        return False
    wanted = where.values if isinstance(where, Among) else (where.value,)
    kinds = {type(v) if isinstance(v, bool | str) else float for v in wanted}
    records = [record for payload in found for record in field_records(0, payload)]
    there = {
        bool if isinstance(v, bytes) else str if isinstance(v, str) else float
        for n, v, _ in records
        if n == where.field
    }
    return not kinds & there


@given(filters)
@settings(max_examples=300, deadline=None)
def test_text_and_json_of_a_filter_lead_back_to_it(where):
    assert parse_where(str(where)) == where
    assert where_from_json(where.to_json()) == where


@given(st.lists(payloads, min_size=1, max_size=8), st.data())
@settings(max_examples=100, deadline=None)
def test_writing_and_removing_in_any_order_leaves_what_writing_the_rest_would(found, data):
    numbered = dict(enumerate(found))
    gone = data.draw(st.sets(st.sampled_from(sorted(numbered))))
    connection, fresh = table(numbered), table({n: p for n, p in numbered.items() if n not in gone})
    remove_fields(connection, 0, [(n, numbered[n]) for n in gone])
    assert contents(connection) == contents(fresh)
    connection.close()
    fresh.close()


def contents(connection):
    records = connection.execute(
        "SELECT name, hex(value), typeof(value), number FROM fields LEFT JOIN field_names USING (field)"
    ).fetchall()
    counts = connection.execute(
        "SELECT side, name, n_items, n_numbers, n_truths FROM field_names WHERE n_items <> 0 ORDER BY side, name"
    ).fetchall()
    return sorted(records, key=str), counts


@given(st.lists(payloads, min_size=1, max_size=12))
@settings(max_examples=150, deadline=None)
def test_facts_count_what_is_there_and_every_value_that_they_show_finds_so_many_items(found):
    connection = table(dict(enumerate(found)))
    for facts in field_facts(connection, 0):
        assert facts.n_items == sum(Exists(facts.name).matches(payload) for payload in found)
        for value, count in facts.common:
            assert len(matching_numbers(connection, 0, Compare(facts.name, "=", value))) == count
        if isinstance(facts.least, int | float):
            assert len(matching_numbers(connection, 0, Compare(facts.name, ">=", facts.least))) >= 1
            below = matching_numbers(connection, 0, Compare(facts.name, "<", facts.least))
            assert all(-math.inf in map(number, as_list(found[n].get(facts.name))) for n in below.tolist())
    connection.close()


def as_list(value):
    return value if isinstance(value, list) else [value]
