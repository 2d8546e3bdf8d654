"""Words as they are indexed and asked for."""

import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgehead.index.words import indexed_words, match_expression

TEXTS = {
    1: "5-HT1A receptor agonist",
    2: "beta-blocker that lowers blood pressure",
    3: "COX-2 inhibitor",
    4: "N,N-dimethyltryptamine",
    5: "2',3'-cAMP",
    6: "does NOT bind",
    7: "hépatite, 肝炎, гепатит",
    8: "COX2 inhibitor",
}


@pytest.fixture(scope="module")
def table() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize='unicode61')")
    connection.executemany(
        "INSERT INTO words (rowid, text) VALUES (?, ?)", [(n, indexed_words(t)) for n, t in TEXTS.items()]
    )
    return connection


def found(table: sqlite3.Connection, query: str, every_term: bool = True) -> set[int]:
    expression = match_expression(query, every_term)
    if not expression:
        return set()
    return {row[0] for row in table.execute("SELECT rowid FROM words WHERE words MATCH ?", (expression,))}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("5-HT1A", {1}),
        ("5‐HT1A", {1}),
        ("5HT1A", {1}),
        ("HT1A", {1}),
        ("beta-blocker", {2}),
        ("β blocker", {2}),
        ("betablocker", {2}),
        ("COX-2", {3, 8}),
        ("cox2", {3, 8}),
        ("COX 2", {3}),
        ("N,N-dimethyltryptamine", {4}),
        ("dimethyltryptamine", {4}),
        ("2',3'-cAMP", {5}),
        ("2′,3′‐cAMP", {5}),
        ("3',2'-cAMP", set()),
        ("NOT", {6}),
        ("bind NOT does", {6}),
        ('"COX-2" inhibitor', {3, 8}),
        ("*", set()),
        ("inhib*", set()),
        ('"', set()),
        ("text:COX", set()),
        ("(cox", {3}),
        ("{}^-+:AND", set()),
        ("肝炎", {7}),
        ("ГЕПАТИТ", {7}),
        ("\x00COX-2\x00", {3, 8}),
        ("🧪", set()),
    ],
)
def test_chemical_words_and_query_syntax_are_found_or_not_and_never_an_error(table, query, expected):
    assert found(table, query) == expected


def test_any_term_finds_what_every_term_does_not(table):
    assert found(table, "COX-2 unicorn") == set()
    assert found(table, "COX-2 unicorn", every_term=False) == {3, 8}


@given(st.text(max_size=60))
@settings(max_examples=300, deadline=None)
def test_no_text_is_an_error(text):
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize='unicode61')")
    connection.execute("INSERT INTO words (rowid, text) VALUES (1, ?)", (indexed_words(text),))
    for every_term in (True, False):
        if expression := match_expression(text, every_term):
            hits = connection.execute("SELECT rowid FROM words WHERE words MATCH ?", (expression,)).fetchall()
            assert hits in ([(1,)], [])
    connection.close()


def test_a_query_of_thousands_of_words_stays_within_what_fts_takes(table):
    query = " ".join(f"w{number}-{number}" for number in range(5000))
    assert found(table, query) == set()
    assert found(table, "-".join(str(number) for number in range(5000)), every_term=False) == set()
