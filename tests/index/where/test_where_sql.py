"""Filters against payload in SQLite, compared with the meaning item by item."""

import sqlite3

import pytest

from bridgehead.errors import ArgumentError
from bridgehead.index.where import (
    FIELDS_SCHEMA,
    field_facts,
    matching_numbers,
    parse_where,
    remove_fields,
    where_from_json,
    write_fields,
)

PAYLOADS = [
    {"ic50_nM": "12.5", "species": ["human", "rat"], "approved": "false", "date": "2020-01-31"},
    {"ic50_nM": 250, "species": ["human"], "approved": True, "assay": {"ic50": 3}},
    {"ic50_nM": ">1000", "species": [], "note": ""},
    {"ic50_nM": None, "approved": 1, "date": "2021-06-01"},
    {},
]


@pytest.fixture
def connection():
    connection = sqlite3.connect(":memory:")
    connection.executescript(FIELDS_SCHEMA)
    write_fields(connection, 0, enumerate(PAYLOADS))
    write_fields(connection, 1, [(100, {"smiles": "CCO"})])
    yield connection
    connection.close()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ic50_nM < 100", [0]),
        ("ic50_nM >= 12.5", [0, 1]),
        ("ic50_nM = '12.5'", [0]),
        ("ic50_nM = '>1000'", [2]),
        ("exists ic50_nM", [0, 1, 2]),
        ("not exists ic50_nM", [3, 4]),
        ("not ic50_nM < 100", [1, 2, 3, 4]),
        ("species = 'human'", [0, 1]),
        ("species != 'rat'", [1]),
        ("species not in ('rat', 'mouse')", [1]),
        ("approved = true", [1]),
        ("approved = false", [0]),
        ("approved = 1", [3]),
        ("date >= '2020-01-01' and date < '2021-01-01'", [0]),
        ("assay.ic50 = 3", [1]),
        ("note = ''", [2]),
        ("species = 'rat' or approved = 1", [0, 3]),
    ],
)
def test_a_filter_finds_the_items_it_is_true_of(connection, text, expected):
    where = parse_where(text)
    assert matching_numbers(connection, 0, where).tolist() == expected
    assert [number for number, payload in enumerate(PAYLOADS) if where.matches(payload)] == expected
    assert parse_where(str(where)) == where == where_from_json(where.to_json())


def test_a_field_that_no_item_has_is_an_error_that_lists_those_there_are(connection):
    with pytest.raises(ArgumentError, match=r"field ic50_nm; there are: ic50_nM, approved"):
        matching_numbers(connection, 0, parse_where("ic50_nm < 1"))


def test_removed_items_are_not_found_and_their_fields_are_gone(connection):
    remove_fields(connection, 0, [(1, PAYLOADS[1])])
    assert matching_numbers(connection, 0, parse_where("ic50_nM > 0")).tolist() == [0]
    assert "assay.ic50" not in [facts.name for facts in field_facts(connection, 0)]
    assert connection.execute("SELECT count(*) FROM fields WHERE number = 1").fetchone() == (0,)
