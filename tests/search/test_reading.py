"""How a query is read."""

import re

import numpy as np
import pytest

from bridgehead.errors import ArgumentError, StructureError
from bridgehead.index import IndexSide, build_index, open_index
from bridgehead.search import read_query

KINDS = {"a": "molecule", "b": "text"}
ASPIRIN_KEY = "BSYNRYMUTXBXSQ-UHFFFAOYSA-N"


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("index")
    molecules = IndexSide(
        "molecule",
        np.eye(4),
        ["CC(=O)Oc1ccccc1C(=O)O", "C[O]", "O", "CCCCC"],
        ["4139", "12", "NO", "c1ccccc1"],
        kind="molecule",
        names=[["aspirin"], ["methoxy", "β-thing"], ["CO"], ["Aspirin", "pentane"]],
        keys=[ASPIRIN_KEY, None, None, None],
    )
    texts = IndexSide("text", np.eye(4)[:2], ["reduces fever", "blocks beta receptors"], ["4139", "s2"])
    build_index(folder, {"a": molecules, "b": texts}, "m")
    with open_index(folder) as opened:
        yield opened


@pytest.mark.parametrize(
    ("query", "kind", "side", "item_id"),
    [
        ("4139", "id", "a", "4139"),
        ("s2", "id", "b", "s2"),
        ("NO", "id", "a", "NO"),
        ("c1ccccc1", "id", "a", "c1ccccc1"),
        ("aspirin", "name", "a", "4139"),
        ("  ASPIRIN\n", "name", "a", "4139"),
        ("beta‐thing", "name", "a", "12"),
        ("CO", "name", "a", "NO"),
        (ASPIRIN_KEY, "inchikey", "a", "4139"),
        ("AAAAAAAAAAAAAA-UHFFFAOYSA-N", "inchikey", "a", None),
        ("C1CC1", "smiles", "a", None),
        ("[Na+]", "smiles", "a", None),
        ("C=O", "smiles", "a", None),
        ("CCCCO", "smiles", "a", None),
        ("CN", "text", "b", None),
        ("CCO", "text", "b", None),
        ("*CC*", "text", "b", None),
        ("inhibits cyclooxygenase", "text", "b", None),
        ("C1CC", "text", "b", None),
        ("аспирин", "text", "b", None),
        ("NOT *", "text", "b", None),
    ],
)
def test_a_query_is_read_as_the_first_that_fits(index, query, kind, side, item_id):
    reading = read_query(query, index, KINDS)
    assert (reading.kind, reading.side, reading.item.id if reading.item else None) == (kind, side, item_id)
    assert reading.value == query.strip()


def test_the_explanation_says_what_it_was_and_how_to_ask_otherwise(index):
    said = read_query("aspirin", index, KINDS).explanation
    assert said == (
        "read as the name aspirin (id 4139); 2 items carry it, further ids: c1ccccc1; "
        "pass read_as='text' to search for the words"
    )
    assert "text has an item of this id too" in read_query("4139", index, KINDS).explanation
    assert "no item here has it" in read_query("AAAAAAAAAAAAAA-UHFFFAOYSA-N", index, KINDS).explanation


def test_an_inchikey_in_small_letters_is_one(index):
    reading = read_query(ASPIRIN_KEY.lower(), index, KINDS)
    assert (reading.kind, reading.value, reading.item.id) == ("inchikey", ASPIRIN_KEY, "4139")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("c1ccccc1C(C)(C)(C)C", r"^read as words; as a structure, 'c1ccccc1C\(C\)\(C\)\(C\)C' is not .*valence"),
        ("CC(=O)Oc1ccccc1C(=O", r"^read as words; as a structure, .* is not a valid SMILES"),
        ("C" * 2000 + "=O", r"^read as words; as a structure, .* has 2,001 atoms; at most 1,000 are read$"),
        ("InChI=1S/C2H6O/c1-2-3/h3H,2H2,1H3", "^read as words; an InChI is not read: .* InChIKey or SMILES$"),
    ],
)
def test_words_that_were_meant_as_a_structure_are_told_why_they_are_none(index, query, said):
    assert re.search(said, read_query(query, index, KINDS).explanation)
    assert read_query(query, index, {"b": "text"}).explanation == "read as words"


@pytest.mark.parametrize("query", ["p53", "CB1", "CB1/CB2", "5-HT1A", "NO2", "(", "()", "=", "no-op", "COX-2", "C1CC"])
def test_words_that_only_look_a_little_like_a_structure_are_words(index, query):
    assert read_query(query, index, KINDS).explanation == "read as words"


def test_read_as_leaves_the_other_readings_out(index):
    assert read_query("aspirin", index, KINDS, "text").kind == "text"
    assert read_query("CO", index, KINDS, "smiles").kind == "smiles"
    assert read_query("4139", index, KINDS, "id").kind == "id"
    assert read_query("CO", index, KINDS, "name").item.id == "NO"
    assert read_query(ASPIRIN_KEY, index, KINDS, "inchikey").item.id == "4139"


@pytest.mark.parametrize(
    ("query", "read_as", "message"),
    [
        ("unicorn", "id", "no item has the id 'unicorn'"),
        ("unicorn", "name", "no item has the name 'unicorn'"),
        ("unicorn", "inchikey", "no InChIKey: 'unicorn'"),
        ("aspirin", "words", "read_as = 'words'; expected one of id, name, inchikey, smiles, text"),
        ("", None, "the query is empty"),
        (" \t\n", None, "the query is empty"),
        ("x" * 10_000_000, None, "10,000,000 characters; at most 10,000"),
        (None, None, "the query is a NoneType"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_message(index, query, read_as, message):
    with pytest.raises(ArgumentError, match=message):
        read_query(query, index, KINDS, read_as)


def test_what_is_no_structure_is_refused_when_a_structure_is_asked_for(index):
    with pytest.raises(StructureError):
        read_query("C1CC", index, KINDS, "smiles")


def test_without_a_side_of_molecules_a_smiles_is_words(index):
    kinds = {"a": "rows", "b": "text"}
    assert read_query("C1CC1", index, kinds).kind == "text"
    with pytest.raises(ArgumentError, match="no side of this space holds molecules"):
        read_query("C1CC1", index, kinds, "smiles")


def test_with_texts_on_both_sides_words_are_read_by_the_side_that_is_not_searched(index):
    kinds = {"a": "text", "b": "text"}
    assert read_query("fever", index, kinds, of="a").side == "b"
    assert read_query("fever", index, kinds, of="b").side == "a"
    assert read_query("fever", index, {"a": "rows", "b": "molecule"}).side is None
