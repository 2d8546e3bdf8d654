"""Settings written as TOML read back as they were."""

import math
import tomllib

from hypothesis import given
from hypothesis import strategies as st

from bridgehead.runs.toml import to_toml

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SCALAR = TEXT | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
VALUE = st.recursive(SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3))


@given(st.dictionaries(TEXT, VALUE, max_size=4))
def test_reading_back_gives_the_same_values(settings):
    assert tomllib.loads(to_toml(settings)) == settings


@given(TEXT, TEXT)
def test_lists_of_mappings_become_arrays_of_tables(name, value):
    settings = {name: [{"query": value, "deeper": {value: [1]}}, {"query": "second"}], "after": {"x": 1}}
    assert tomllib.loads(to_toml(settings)) == settings


def test_none_is_left_out_and_a_tuple_is_a_list():
    settings = {"folder": None, "split": {"fractions": (0.8, 0.1, 0.1), "test": None}}
    assert tomllib.loads(to_toml(settings)) == {"split": {"fractions": [0.8, 0.1, 0.1]}}


def test_every_control_character_and_quote_survives():
    text = "".join(map(chr, range(128))) + "\u0085\u2028\ufeff\U0001f9ea\"''\\n"
    assert tomllib.loads(to_toml({text: text, "in a list": [[text, {text: text}]]})) == {
        text: text,
        "in a list": [[text, {text: text}]],
    }


def test_no_settings_are_an_empty_document():
    assert tomllib.loads(to_toml({})) == {}


def test_small_and_large_numbers_keep_their_value_and_kind():
    settings = {"small": 1e-300, "large": 1e22, "whole": 3.0, "int": 3, "negative zero": -0.0}
    found = tomllib.loads(to_toml(settings))
    assert found == settings and isinstance(found["whole"], float) and isinstance(found["int"], int)
    assert math.copysign(1, found["negative zero"]) == -1
