"""The text form of a filter: what it says, and where it is wrong."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgehead.errors import ArgumentError
from bridgehead.index.where import Where, parse_where
from bridgehead.index.where.expression import All, Among, AnyOf, Compare, Exists, Not


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ic50_nM < 100", Compare("ic50_nM", "<", 100)),
        ("ic50_nM<1e2", Compare("ic50_nM", "<", 100.0)),
        ("x >= -.5", Compare("x", ">=", -0.5)),
        ("x == +3", Compare("x", "=", 3)),
        ("x <> 'a'", Compare("x", "!=", "a")),
        ("\"IC50 (nM)\" <= 5", Compare("IC50 (nM)", "<=", 5)),
        ("`a``b` = \"it is\"", Compare("a`b", "=", "it is")),
        ("name = 'O''Neil \"x\" \\'", Compare("name", "=", "O'Neil \"x\" \\")),
        ("name = \"say \"\"hi\"\"\"", Compare("name", "=", 'say "hi"')),
        ("assay.ic50 > 1", Compare("assay.ic50", ">", 1)),
        ("活性 = '高'", Compare("活性", "=", "高")),
        ("x = TRUE", Compare("x", "=", True)),
        ("x = null", Not(Exists("x"))),
        ("x != NULL", Exists("x")),
        ("x in ('a', 1, false)", Among("x", ("a", 1, False))),
        ("x NOT IN (1)", Among("x", (1,), negated=True)),
        ("exists x and not exists \"y z\"", All((Exists("x"), Not(Exists("y z"))))),
        ("\"and\" = 1", Compare("and", "=", 1)),
        ("not a = 1 and b = 2 or c = 3",
         AnyOf((All((Not(Compare("a", "=", 1)), Compare("b", "=", 2))), Compare("c", "=", 3)))),
        ("not (a = 1 or b = 2)", Not(AnyOf((Compare("a", "=", 1), Compare("b", "=", 2))))),
        ("a = 1 and (b = 2 and c = 3)", All((Compare("a", "=", 1), All((Compare("b", "=", 2), Compare("c", "=", 3)))))),
        ("x = 9223372036854775807", Compare("x", "=", 2**63 - 1)),
        ("  \n x\t=\u00a01 ", Compare("x", "=", 1)),
    ],
)  # fmt: skip
def test_a_filter_is_read_as_it_is_meant(text, expected):
    assert parse_where(text) == expected
    assert parse_where(str(expected)) == expected


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", 1, "the filter is empty"),
        ("   ", 1, "the filter is empty"),
        ("ic50", 5, "found the end after the field ic50; expected one of ="),
        ("ic50 <", 7, "found the end; expected a number, a text in quotes"),
        ("ic50 < 100nM", 8, "this is no number"),
        ("date > 2020-01-01", 8, "a text or a date goes in single quotes"),
        ("species = human", 11, "a text goes in quotes: 'human'"),
        ("ligand type = 'x'", 8, "a name of several words goes in double quotes"),
        ("IC50 (nM) < 5", 6, "a name of several words goes in double quotes"),
        ("ligand-type = 'x'", 7, "a name with other characters goes in double quotes"),
        ("'ligand type' = 'x'", 1, 'in double quotes unless it is one word: "ligand type"'),
        ("a = 'x", 5, "the quote ' is not closed"),
        ("a = 1 && b = 2", 7, "write and"),
        ("!a = 1", 1, "write not"),
        ("a = 1 b = 2", 7, "found b after a whole comparison"),
        ("(a = 1", 7, "expected and, or, or a closing bracket"),
        ("a = 1)", 6, "found ) after a whole comparison"),
        ("()", 2, "expected the name of a field"),
        ("a = 1 and", 10, "found the end; expected the name of a field"),
        ("not", 4, "expected the name of a field"),
        ("a is null", 3, "missing values: exists field"),
        ("a like 'x%'", 3, "words are searched by the query"),
        ("a between 1 and 2", 3, "field >= 1 and field <= 2"),
        ("a not 5", 7, "found 5 after not; expected in"),
        ("a in 5", 6, "expected an opening bracket"),
        ("a in ()", 7, "expected a number"),
        ("a in (1 2)", 9, "expected a comma or a closing bracket"),
        ("a in (1, null)", 10, "null cannot be in a list; use exists"),
        ("a < true", 5, "true and false have no order"),
        ("a > null", 5, "null has no order"),
        ("a = 1e999", 5, "this number is too big"),
        ("100 > a", 1, "expected the name of a field"),
        ("a = 1; DROP TABLE items", 6, "';' cannot be part"),
        ("a = \x00", 5, "has no meaning here"),
        (f"a < '{'x' * 101}'", 5, "of over 100 characters can be compared by = and != only"),
    ],
)
def test_an_error_says_what_is_wrong_and_points_to_the_place(text, place, message):
    with pytest.raises(ArgumentError) as caught:
        parse_where(text)
    said, shown, caret = str(caught.value).split("\n")
    assert said.startswith(f"in the filter, at character {place}: ")
    assert message in said
    assert len(caret) == 2 + min(place, 61) and caret.strip() == "^"
    assert len(shown) <= 100


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000,
        "(" * 4000 + "a = 1" + ")" * 4000,
        "not " * 2000 + "a = 1",
        "a = 1 or " * 1000 + "a = 1",
        "a in (" + "1," * 4000 + "1)",
        "'" * 9999,
        "\"\"" * 4999,
        "1e" * 4999,
        "1" * 9999,
        "a = " + "9" * 9000,
        "a" * 9999,
        "a." * 4999,
        " " * 9999 + "'",
        "x" * 10_001,
        "x" * 1_000_000,
    ],
    ids=lambda text: text[:8],
)  # fmt: skip
def test_a_huge_or_deep_filter_is_refused_at_once(text):
    start = time.perf_counter()
    with pytest.raises(ArgumentError):
        parse_where(text)
    assert time.perf_counter() - start < 1


def test_as_deep_and_as_long_as_allowed_is_read():
    deep = "not (" * 25 + "a = 1" + ")" * 25
    assert parse_where(str(parse_where(deep))) == parse_where(deep)
    assert len(list(parse_where(" and ".join(["a = 1"] * 100)).fields())) == 100


@given(st.text(max_size=40) | st.text(alphabet="ab01.'\"`()<>=!, -+eE\\", max_size=40))
@settings(max_examples=500, deadline=None)
def test_any_text_is_a_filter_or_an_error_of_ours(text):
    try:
        where = parse_where(text)
    except ArgumentError:
        return
    assert isinstance(where, Where)
    assert parse_where(str(where)) == where


def test_filters_that_python_would_call_equal_are_told_apart():
    assert parse_where("a = 1") != parse_where("a = true")
    assert len({parse_where("a = 1"), parse_where("a = true"), parse_where("a  = 1")}) == 2


@pytest.mark.parametrize(
    ("op", "value"),
    [("; DROP TABLE fields", 1), ("like", "x"), ("<", True), ("=", None), ("=", float("nan")), ("=", [1])],
)
def test_a_filter_made_by_hand_is_checked_as_well(op, value):
    with pytest.raises(ArgumentError):
        Compare("a", op, value)


def test_parts_made_by_hand_are_filters():
    for made in (lambda: All(()), lambda: AnyOf(("a = 1",)), lambda: Not(None)):
        with pytest.raises(ArgumentError, match="expected filters"):
            made()
