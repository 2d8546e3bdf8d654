"""Search over a tiny space whose encoders count letters, so that every score is known."""

from types import SimpleNamespace

import numpy as np
import pytest

from bridgehead.errors import ArgumentError, StructureError
from bridgehead.index import IndexSide, build_index, open_index
from bridgehead.search import Hit, Space

SMILES = ["CCO", "CCN", "OO", "NN", "CC(=O)Oc1ccccc1C(=O)O"]
TEXTS = ["ccc", "ooo", "nnn and zzz", "词"]


class Letters:
    """The row of a text: how often c, n and o occur."""

    def encode(self, items):
        failures = [SimpleNamespace(index=i, reason="too inert") for i, item in enumerate(items) if item == "N#N"]
        rows = [[item.lower().count(letter) for letter in "cno"] for item in items if item != "N#N"]
        return SimpleNamespace(rows=np.array(rows, dtype=np.float32).reshape(-1, 3), failures=failures)


class Biased:
    """Heads that, like trained ones, do not map zero to zero."""

    def project_a(self, rows):
        return rows + 1e-3

    project_b = project_a


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    folder = tmp_path_factory.mktemp("index")
    encode = Letters().encode
    molecules = IndexSide(
        "molecule",
        encode(SMILES).rows,
        SMILES,
        ["m0", "m1", "m2", "m3", "m4"],
        kind="molecule",
        names=[["ethanol", "alcohol"], ["ethylamine"], ["peroxide"], ["hydrazine", "肼"], ["aspirin"]],
        payload=[{"statement": ["dissolves"]}, {}, {}, {}, {"name": "my own"}],
    )
    texts = IndexSide("text", encode(TEXTS).rows, TEXTS, ["t0", "t1", "t2", "t3"])
    build_index(folder, {"a": molecules, "b": texts}, "m")
    with Space(open_index(folder), Letters(), Letters(), Biased()) as opened:
        yield opened


def ids(hits):
    return [hit.id for hit in hits]


def test_words_find_molecules_with_the_cosine_as_score(space):
    hits = space.search("o o o", k=2)
    assert ids(hits) == ["m2", "m0"]
    assert hits[0] == Hit(
        1, "m2", pytest.approx(1, abs=1e-5), "OO", {"name": "peroxide", "names": ["peroxide"]}, "text"
    )
    assert hits[1].score == pytest.approx(1 / np.sqrt(5), abs=1e-3)
    assert hits[1].payload == {"statement": ["dissolves"], "name": "ethanol", "names": ["ethanol", "alcohol"]}


def test_a_name_or_structure_finds_texts_unless_told_otherwise(space):
    assert ids(space.search("peroxide", k=1)) == ["t1"]
    assert space.search("peroxide", k=1)[0].read_as == "name"
    assert ids(space.search("N=N", k=1)) == ["t2"]
    assert space.search("N=N", k=1)[0].read_as == "smiles"


def test_of_chooses_the_side_by_name_or_letter(space):
    assert ids(space.search("peroxide", k=1, of="molecule")) == ["m2"]
    assert ids(space.search("peroxide", k=1, of="a")) == ["m2"]
    assert ids(space.search("ooo of course", k=1, of="text")) == ["t1"]
    assert space.answer("peroxide").of == "text"
    with pytest.raises(ArgumentError, match=r"no side 'protein'.*'molecule' \(a\), 'text' \(b\)"):
        space.search("ooo", of="protein")


def test_an_item_is_its_own_first_hit_through_its_stored_row(space):
    hits = space.search("m4", k=1, of="molecule")
    assert (hits[0].id, hits[0].read_as) == ("m4", "id")
    assert hits[0].score == pytest.approx(1, abs=1e-9)
    assert hits[0].payload["name"] == "my own"


def test_read_as_text_searches_for_the_words_of_a_name(space):
    assert ids(space.search("ethanol", k=5, read_as="text"))[0] != "t0"
    assert space.answer("ethanol", read_as="text").of == "molecule"


def test_pages_are_disjoint_and_ranks_go_on(space):
    first, second = space.search("cno", k=3), space.search("cno", k=3, offset=3)
    assert [hit.rank for hit in first + second] == [1, 2, 3, 4, 5]
    assert sorted(ids(first + second)) == ["m0", "m1", "m2", "m3", "m4"]
    assert ids(first + second) == ids(space.search("cno", k=100))


def test_a_query_that_the_encoder_does_not_know_is_answered_from_words(space):
    answer = space.answer("zzz", of="text")
    assert ids(answer.hits) == ["t2"]
    assert answer.hits[0].read_as == "words"
    assert "knows nothing of it: answered from the words alone" in answer.explanation


def test_a_query_that_nothing_knows_is_answered_by_no_hit_that_says_so(space):
    for query in ("头痛药", "🧪", "*", '"', "\x00 '"):
        answer = space.answer(query)
        assert answer.hits == ()
        assert "no molecule holds its words: nothing to show" in answer.explanation


def test_an_item_with_a_zero_row_is_answered_from_its_own_words(space):
    answer = space.answer("t3", of="text")
    assert ids(answer.hits) == ["t3"] and answer.hits[0].read_as == "words"
    assert "knew nothing of this item when it was indexed: answered from the words alone" in answer.note
    assert space.answer("t3").hits == ()


def test_a_structure_that_cannot_be_encoded_is_an_error_with_the_reason(space):
    with pytest.raises(StructureError, match="'N#N' cannot be encoded: too inert"):
        space.search("N#N")


def test_words_that_cannot_be_encoded_are_looked_up(space):
    answer = space.answer("N#N", read_as="text")
    assert "cannot read it (too inert)" in answer.note


def test_an_inchikey_that_is_not_here_has_no_hits(space):
    answer = space.answer("AAAAAAAAAAAAAA-UHFFFAOYSA-N")
    assert answer.hits == () and "no item here has it" in answer.explanation


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k = 0"),
        ({"offset": -1}, "offset = -1"),
        ({"k": "3"}, "k = '3'"),
        ({"k": 3.0}, "k = 3.0; expected the number of hits, a whole number of at least 1"),
        ({"k": None}, "k = None"),
        ({"k": True}, "k = True"),
        ({"offset": 1.5}, "offset = 1.5"),
        ({"offset": "1"}, "offset = '1'"),
        ({"offset": float("nan")}, "offset = nan"),
    ],
)
def test_k_and_offset_out_of_range_are_refused(space, options, message):
    with pytest.raises(ArgumentError, match=message):
        space.search("zzz", **options)


@pytest.mark.parametrize("query", ["", "   ", "x" * 10_001])
def test_an_empty_or_overlong_query_is_refused(space, query):
    with pytest.raises(ArgumentError, match="query"):
        space.search(query)


@pytest.mark.parametrize(
    "query", ["5-HT1A", "β-blocker", "NOT", "\u0000 (C#N) 'éß🧪", "a OR b*", "2',3'-cAMP", "\ud800"]
)
def test_odd_characters_are_never_an_error(space, query):
    assert isinstance(space.search(query), list)
