"""Conditions that facets write, made by the page's own module in the browser and read by the service's parser."""

import pytest

from bridgehead.index.where import parse_where

pytestmark = pytest.mark.slow

MODULE = """async (given) => {
  const { between, filterOf, isOf, oneOf, rangeOf, valuesOf } = await import("/static/conditions.js");
  return {
    values: given.map(([field, values]) => {
      const text = oneOf(field, values);
      return [text, valuesOf(text, field), isOf(text, field), isOf(text, field + "x")];
    }),
    ranges: [[1.5, null], [null, -3e-9], [0, 7]].map(([least, most]) => between("mass", least, most))
      .map((text) => [text, rangeOf(text, "mass")]),
    others: ["a != 1", "a = 1 or b = 2", "a >= 1 or a <= 2", "exists a", "a > 1"].map((text) => isOf(text, "a")),
    joined: filterOf(["a = 1", "b = 2 or c = 3"]), one: filterOf(["a = 1"]), none: filterOf([]),
  };
}"""


def test_conditions_that_facets_write_are_read_by_the_service_and_by_the_page_again(desk):
    given = [["mass", [1, 2.5]], ["two words", ["it's", 'a "b"', "x, y)"]], ["in", [True]], ["a.b", ["(", "false"]]]
    found = desk.open().evaluate(MODULE, given)
    for (field, values), (text, again, own, other) in zip(given, found["values"], strict=True):
        assert again == values and own and not other
        where = parse_where(text)
        assert list(where.fields()) == [field]
        assert all(where.matches({field: value}) for value in values) and not where.matches({field: "else"})
    assert [ends for _, ends in found["ranges"]] == [
        {"least": 1.5, "most": None}, {"least": None, "most": -3e-9}, {"least": 0, "most": 7},
    ]  # fmt: skip
    assert all(parse_where(text) for text, _ in found["ranges"])
    assert found["others"] == [False] * 5, "what was typed is never taken for what a facet wrote"
    assert (found["joined"], found["one"], found["none"]) == ("(a = 1) and (b = 2 or c = 3)", "a = 1", None)
