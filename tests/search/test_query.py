"""What a query may be is checked when it is made."""

import dataclasses

import pytest

from bridgehead.errors import ArgumentError
from bridgehead.index.where import parse_where
from bridgehead.search import MODES, Query


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"text": ""}, "the query is empty"),
        ({"text": " \n "}, "the query is empty"),
        ({"text": "x" * 10_001}, "the query has 10,001 characters"),
        ({"text": 3}, "the query is a int; expected text"),
        ({"k": 0}, "k = 0"),
        ({"k": 2.0}, "k = 2.0"),
        ({"offset": -1}, "offset = -1"),
        ({"of": ""}, "of is empty; expected the name of a side, or None"),
        ({"of": 1}, "of = 1"),
        ({"read_as": "guess"}, "read_as = 'guess'; expected one of id, name"),
        ({"mode": "both"}, "mode = 'both'; expected one of space, words, hybrid"),
        ({"distinct": 1}, "distinct = 1; expected True or False"),
        ({"explain": "yes"}, "explain = 'yes'"),
        ({"substructure": " "}, "substructure is empty; expected a SMILES or SMARTS, or None"),
        ({"similar_to": b"CC"}, "similar_to = b'CC'"),
        ({"least_similarity": 1.5}, r"least_similarity = 1.5; expected a Tanimoto similarity in \[0, 1\]"),
        ({"least_similarity": float("nan")}, "least_similarity = nan"),
        ({"least_similarity": True}, "least_similarity = True"),
        ({"where": 3}, "where is a int"),
        ({"where": "x <"}, "in the filter"),
        ({"where": {"field": "x"}}, "filter"),
    ],
)
def test_what_no_space_could_answer_is_refused(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        Query(**{"text": "x", **arguments})


def test_a_condition_is_the_same_as_text_as_record_and_as_json():
    text = Query("x", where="n < 3 and not (c = 'red')")
    assert text.condition == parse_where("n < 3 and not (c = 'red')")
    assert Query("x", where=text.condition).condition == text.condition
    assert Query("x", where=text.condition.to_json()).condition == text.condition
    assert Query("x").condition is None


def test_a_query_is_a_value():
    query = Query("  pain ", mode="hybrid", where="n < 3")
    assert query.text == "pain" and query == Query("pain", mode="hybrid", where="n<3")
    assert hash(query) == hash(Query("pain", mode="hybrid", where="n<3"))
    with pytest.raises(dataclasses.FrozenInstanceError):
        query.k = 3
    assert query.asking("ache") == Query("ache", mode="hybrid", where="n < 3")
    with pytest.raises(ArgumentError, match="empty"):
        query.asking(" ")
    assert MODES == ("space", "words", "hybrid")
