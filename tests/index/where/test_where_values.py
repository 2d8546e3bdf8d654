"""Which values of a payload a filter sees, how the table keeps them, and that ranges are stretches of it."""

import sqlite3

import pytest

from bridgehead.errors import ArgumentError, DataError
from bridgehead.index.where import (
    FIELDS_SCHEMA,
    field_facts,
    field_records,
    matching_numbers,
    parse_where,
    remove_fields,
    write_fields,
)
from bridgehead.index.where.sql import compile_equal, compile_range
from bridgehead.index.where.values import MAX_LEVELS


@pytest.fixture
def connection():
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(FIELDS_SCHEMA)
    yield connection
    connection.close()


def found(connection, text, side=0):
    return matching_numbers(connection, side, parse_where(text)).tolist()


def test_nested_mappings_are_fields_by_path_and_elements_of_lists_are_values(connection):
    payload = {"assay": [{"type": "IC50", "value": {"nM": 12}}, {"type": "Ki"}], "tags": [["a", ["b"]], None], "e": {}}
    write_fields(connection, 0, [(4, payload)])
    for text in ("assay.type = 'Ki'", "assay.value.nM < 13", "tags = 'b'", "tags = 'a' and assay.type = 'IC50'"):
        assert found(connection, text) == [4]
    assert [facts.name for facts in field_facts(connection, 0)] == ["assay.type", "assay.value.nM", "tags"]


def test_what_is_nested_deeper_than_is_sensible_is_not_seen_and_no_error(connection):
    payload = {"a": 1}
    for _ in range(3000):
        payload = {"x": [payload]}
    write_fields(connection, 0, [(0, payload | {"b": 1})])
    assert found(connection, "b = 1") == [0]
    shallow = {"y": "deep"}
    for _ in range(MAX_LEVELS):
        shallow = [shallow]
    assert list(field_records(0, {"x": shallow})) == []


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [1, float("-inf")], {"x": float("nan")}])
def test_a_payload_with_nan_or_infinity_is_refused(connection, value):
    with pytest.raises(DataError, match="field 'a"):
        write_fields(connection, 0, [(0, {"a": value})])
    with pytest.raises(DataError):
        parse_where("exists a").matches({"a": value})


def test_items_without_any_payload_are_those_of_a_not(connection):
    write_fields(connection, 0, [(0, {"a": 1}), (1, {}), (2, {"a": []})])
    assert found(connection, "not a = 1") == [1, 2]
    assert found(connection, "not exists a") == [1, 2]


def test_sides_are_apart(connection):
    write_fields(connection, 0, [(0, {"a": 1})])
    write_fields(connection, 1, [(1, {"a": 1, "b": 1}), (2, {})])
    assert found(connection, "a = 1", side=0) == [0]
    assert found(connection, "not a = 1", side=1) == [2]
    with pytest.raises(ArgumentError, match=r"no item searched has the field b; there are: a$"):
        found(connection, "b = 1", side=0)


def test_an_item_that_is_removed_and_comes_again_is_found_by_what_it_has_now(connection):
    before, now = {"a": ["x", "x", "1"], "b": 1}, {"a": "y"}
    write_fields(connection, 0, [(0, before), (1, {"a": "x"})])
    remove_fields(connection, 0, [(0, before)])
    write_fields(connection, 0, [(0, now), (2, before)])
    assert found(connection, "a = 'x'") == [1, 2]
    assert found(connection, "a = 'y'") == [0]
    remove_fields(connection, 0, [(2, before)])
    assert found(connection, "a = 'x'") == [1]
    with pytest.raises(ArgumentError, match="has the field b"):
        found(connection, "b = 1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n = 'high'", "compares n with a text, and its values are numbers; write a number without quotes"),
        ("t < 5", "compares t with a number, and its values are texts; put it in quotes"),
        ("f = 1", "and its values are truth values; write true or false"),
        ("n = true", "with a truth value"),
        ("t in (1, 2)", "with a number"),
        ("not t > 3", "with a number"),
        ("N = 1", "there are: n, f, t$"),
        ("text = 1", "the field text; there are: "),
    ],
)
def test_a_comparison_that_can_never_be_true_is_an_error_that_helps(connection, text, message):
    write_fields(connection, 0, [(0, {"n": 1, "t": "abc", "f": True})])
    with pytest.raises(ArgumentError, match=message):
        found(connection, text)


def test_a_list_of_which_one_value_fits_the_field_is_no_error(connection):
    write_fields(connection, 0, [(0, {"n": 1})])
    assert found(connection, "n in (1, 'x')") == [0]
    assert found(connection, "n in (2, 'x')") == []


def test_hundreds_of_fields_make_a_short_message(connection):
    write_fields(connection, 0, [(0, {f"field {'x' * 200} {n}": n for n in range(500)})])
    with pytest.raises(ArgumentError, match="and 450 more") as caught:
        found(connection, "nothing = 1")
    assert len(str(caught.value)) < 10_000
    assert len(field_facts(connection, 0)) == 200


def test_facts_say_kind_range_and_common_values(connection):
    payloads = [
        {"n": str(k), "m": k if k % 2 else "n/a", "d": f"2020-01-{k + 1:02}", "f": "TRUE", "t": ["x", "y"][k > 3 :]}
        for k in range(10)
    ]
    write_fields(connection, 0, enumerate(payloads))
    facts = {one.name: one for one in field_facts(connection, 0)}
    assert (facts["n"].kind, facts["n"].least, facts["n"].most) == ("number", 0, 9)
    assert facts["n"].common[:2] == ((0, 1), (1, 1)) and len(facts["n"].common) == 10
    assert (facts["m"].kind, facts["m"].least, facts["m"].most) == ("mixed", 1, 9)
    assert facts["m"].common == (("n/a", 5),)
    assert (facts["d"].kind, facts["d"].least, facts["d"].most) == ("text", "2020-01-01", "2020-01-10")
    assert (facts["f"].kind, facts["f"].least, facts["f"].common) == ("boolean", None, ((True, 10),))
    assert (facts["t"].n_items, facts["t"].common) == (10, (("y", 10), ("x", 4)))


def test_common_values_of_many_are_right_and_long_texts_are_left_out(connection):
    payloads = [{"t": [f"value {k % 150}", "x" * 150], "n": k} for k in range(400)]
    write_fields(connection, 0, enumerate(payloads))
    facts = {one.name: one for one in field_facts(connection, 0)}
    assert facts["t"].common == tuple(sorted((f"value {k}", 3) for k in range(100)))[:10]
    assert facts["t"].most == "x" * 100
    assert facts["n"].common == ()


@pytest.mark.parametrize(
    ("compiled", "plan"),
    [
        (compile_equal(7, ("a", 1, True)), "(field=? AND value=?)"),
        (compile_range(7, [("<", 1)]), "(field=? AND value<?)"),
        (compile_range(7, [("<=", "a")]), "(field=? AND value>? AND value<?)"),
        (compile_range(7, [(">", 1.5)]), "(field=? AND value>? AND value<?)"),
        (compile_range(7, [(">=", "a")]), "(field=? AND value>? AND value<?)"),
        (compile_range(7, [(">=", 1), ("<", 5), (">", 1), ("<=", 9)]), "(field=? AND value>? AND value<?)"),
    ],
)
def test_every_comparison_reads_one_stretch_of_the_table(connection, compiled, plan):
    condition, bound = compiled
    rows = connection.execute(f"EXPLAIN QUERY PLAN SELECT number FROM fields WHERE {condition}", bound).fetchall()
    assert [row[-1] for row in rows] == [f"SEARCH fields USING PRIMARY KEY {plan}"]


def test_the_narrowest_of_several_ranges_counts():
    condition, bound = compile_range(7, [(">=", 2), (">", 2), (">", 1), ("<=", 5.5), ("<", 5.5), ("<", 9)])
    assert condition == "field = ? AND value > ? AND value < ?" and bound == (7, 2, 5.5)


def test_two_ranges_of_a_field_with_lists_may_be_met_by_two_elements(connection):
    write_fields(connection, 0, [(0, {"y": 2005, "d": "b"}), (1, {"y": 1995, "d": "d"})])
    assert found(connection, "y >= 2000 and y < 2010") == [0]
    assert found(connection, "d > 'a' and d < 'c' and y > 0") == [0]
    write_fields(connection, 0, [(2, {"y": [1995, 2015], "d": ["a", "d"]})])
    assert found(connection, "y >= 2000 and y < 2010") == [0, 2]
    assert found(connection, "d > 'a' and d < 'c'") == [0, 2]
    assert found(connection, "y >= 2000 and y < 2010 and not y = 2015") == [0]


def test_hostile_names_and_values_are_names_and_values(connection):
    hostile = "x\" OR 1=1; DROP TABLE fields; --'`\0"
    write_fields(connection, 0, [(0, {hostile: hostile}), (1, {hostile: "other"})])
    for quoted in ('"' + hostile.replace('"', '""') + '"', "`" + hostile.replace("`", "``") + "`"):
        assert found(connection, f"{quoted} = '{hostile.replace(chr(39), chr(39) * 2)}'") == [0]
    assert connection.execute("SELECT count(*) FROM fields").fetchone() == (4,)
