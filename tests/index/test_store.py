"""Items by id, name, key and words."""

from contextlib import contextmanager

import numpy as np
import pytest

from bridgehead.errors import ArgumentError, DataError, RunStateError
from bridgehead.index.items import Item, ItemLookup, item_hash, write_store
from bridgehead.index.items.readers import Readers
from bridgehead.index.side import IndexSide

MOLECULES = IndexSide(
    "molecule",
    np.eye(4),
    ["CC(=O)Oc1ccccc1C(=O)O", "CC(C)NCC(O)COc1cccc2ccccc12", "C", "CO"],
    ["4139", "00123", "NA", "x\ud800"],
    kind="molecule",
    names=[
        ["aspirin", "Acetylsalicylic acid", "aspirin"],
        ["propranolol", "β-propranolol"],
        [],
        ["Aspirin", "wood spirit"],
    ],
    payload=[{"action": ["Inhibitor of COX-2", "reduces fever"], "mass": 180.16}, {"action": "beta blocker"}, {}, {}],
    keys=["BSYNRYMUTXBXSQ-UHFFFAOYSA-N", "AQHHHDLHHXJYJD-UHFFFAOYSA-N", None, ""],
    word_columns=("action", "missing"),
)
TEXTS = IndexSide("text", np.eye(2), ["COX-2 inhibitor, reduces fever", "lowers blood pressure"], ["4139", "t2"])


@contextmanager
def lookup(path):
    readers = Readers(path)
    try:
        with readers.transaction() as connection:
            yield ItemLookup(connection, path)
    finally:
        readers.close()


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("a folder with 100% of # and ?") / "items.sqlite"
    write_store(path, {"a": MOLECULES, "b": TEXTS}, "f1")
    with lookup(path) as opened:
        yield opened


def test_items_come_back_as_they_went_in_and_in_the_order_asked_for(store):
    second, first = store.items("a", [1, 0])
    assert (second.id, first.id) == ("00123", "4139")
    assert first == Item("a", 0, "4139", MOLECULES.items[0], MOLECULES.keys[0],
                         ("aspirin", "Acetylsalicylic acid", "aspirin"), MOLECULES.payload[0])  # fmt: skip
    assert store.items("a", [2])[0].names == () and store.items("a", [2])[0].id == "NA"
    assert store.items("b", [5])[0].item == "lowers blood pressure"


def test_ids_are_text_and_may_be_on_both_sides(store):
    assert [(i.side, i.number) for i in store.by_id("4139")] == [("a", 0), ("b", 4)]
    assert store.by_id("123") == []
    assert [i.number for i in store.by_id("00123")] == [1]


def test_a_lone_surrogate_neither_breaks_the_file_nor_a_query(store):
    assert [i.number for i in store.by_id("x\ud800")] == [3]
    assert store.by_name("\ud800") == [] and store.by_key("\ud800") == [] and store.words("\ud800", "a", 3) == []


def test_a_shared_name_gives_every_item_with_main_names_first(store):
    assert [i.number for i in store.by_name("ASPIRIN ")] == [0, 3]
    assert [i.number for i in store.by_name("acetylsalicylic  acid")] == [0]
    assert [i.number for i in store.by_name("beta‐propranolol")] == [1]
    assert store.by_name("") == [] and store.by_name("aspiri") == []


def test_names_of_equal_hash_are_told_apart(tmp_path, monkeypatch):
    for module in ("records", "lookup"):
        monkeypatch.setattr(f"bridgehead.index.items.{module}.name_hash", lambda form: 7)
    side = IndexSide("m", np.eye(2), ["C", "N"], ["1", "2"], names=[["methane"], ["ammonia"]])
    write_store(tmp_path / "s", {"a": side}, "f")
    with lookup(tmp_path / "s") as store:
        assert [i.id for i in store.by_name("ammonia")] == ["2"]
        assert store.by_name("water") == []


def test_items_are_found_by_exact_key_and_an_empty_key_is_none(store):
    assert [i.id for i in store.by_key("BSYNRYMUTXBXSQ-UHFFFAOYSA-N")] == ["4139"]
    assert store.by_key("") == []
    assert store.items("a", [3])[0].key is None


def test_words_cover_names_texts_and_the_chosen_payload_of_one_side(store):
    assert [hit.number for hit in store.words("COX-2", "a", 10)] == [0]
    assert [hit.number for hit in store.words("propranolol", "a", 10)] == [1]
    assert [hit.number for hit in store.words("cox2 fever", "b", 10)] == [4]
    assert store.words("aspirin", "b", 10) == []
    assert store.words("CC", "a", 10) == []  # a structure has no words


def test_any_word_counts_where_no_item_has_all(store):
    assert {hit.number for hit in store.words("fever pressure", "b", 10)} == {4, 5}
    assert all(hit.score >= 0 for hit in store.words("fever pressure", "b", 10))
    assert len(store.words("fever pressure", "b", 1, offset=1)) == 1


@pytest.mark.parametrize("query", ["*", '"', "NOT", "a AND", "NEAR(", "text:x", "-", "\x00 (C#N) 'éß🧪", "a" * 10_000])
def test_query_syntax_is_never_an_error(store, query):
    assert store.words(query, "a", 5) == []


def test_pages_that_were_damaged_after_the_file_was_opened_are_said(tmp_path):
    path = tmp_path / "items.sqlite"
    write_store(path, {"a": MOLECULES, "b": TEXTS}, "f1")
    content = bytearray(path.read_bytes())
    for page in range(4096, len(content), 4096):
        content[page : page + 64] = b"\xff" * 64
    with lookup(path) as opened:
        path.write_bytes(content)
        for look in (
            lambda: opened.items("a", [0]), lambda: opened.by_id("4139"), lambda: opened.by_name("aspirin"),
            lambda: opened.by_key("AQHHHDLHHXJYJD-UHFFFAOYSA-N"), lambda: opened.words("reduces", "a", 3),
            lambda: opened.word_text(0),
        ):  # fmt: skip
            with pytest.raises(RunStateError, match=r"items\.sqlite is damaged .*; build the index again"):
                look()


def test_numbers_that_a_side_does_not_have_are_refused(store):
    for number in (2, -1, 10**15):
        with pytest.raises(ArgumentError, match=f"side b has no item of number {number}"):
            store.items("b", [4, number])
    with pytest.raises(ArgumentError, match="k = 0"):
        store.words("x", "a", 0)


def test_words_among_allowed_numbers_are_paged_and_fall_back_to_any_word_within_them(store):
    def found(query, k=10, offset=0, allowed=(4, 5)):
        return [hit.number for hit in store.words(query, "b", k, offset, np.array(allowed, dtype=np.int64))]

    assert found("lowers blood pressure") == [5]
    assert set(found("fever pressure")) == {4, 5}
    assert found("fever pressure", 1, 0) + found("fever pressure", 1, 1) == found("fever pressure")
    assert found("lowers fever", allowed=[5]) == [5]
    assert found("fever", allowed=[5]) == [] == found("fever", allowed=[])


def test_the_indexed_words_of_an_item_are_kept(store):
    assert store.word_text(5) == "lowers blood pressure"
    assert store.word_text(2) == "" == store.word_text(10**15)


def test_words_of_equal_score_come_in_the_order_of_numbers(tmp_path):
    side = IndexSide("text", np.eye(5), ["same words"] * 5, list("edcba"))
    write_store(tmp_path / "s", {"b": side}, "f")
    with lookup(tmp_path / "s") as store:
        assert [hit.number for hit in store.words("same words", "b", 3, 1)] == [1, 2, 3]
        allowed = np.array([0, 2, 4])
        assert [hit.number for hit in store.words("same words", "b", 3, 0, allowed)] == [0, 2, 4]


def test_entity_and_origin_are_kept(tmp_path):
    side = IndexSide("m", np.eye(2), ["C", "N"], ["1", "2"], entities=["methane", None], origin=["run", "sync"])
    write_store(tmp_path / "s", {"a": side}, "f")
    with lookup(tmp_path / "s") as store:
        found = store.items("a", [0, 1])
        assert [(item.entity, item.origin) for item in found] == [("methane", "run"), (None, "sync")]


@pytest.mark.parametrize(
    "other", [("N", ["n"], {"x": 1}, "K", "e"), ("C", ["m"], {"x": 1}, "K", "e"), ("C", ["n"], {"x": 2}, "K", "e"),
              ("C", ["n"], {"x": 1}, None, "e"), ("C", ["n"], {"x": 1}, "K", None), ("C", [], {"x": 1}, "K", "e"),
              ("C", ["n"], {"x": "1"}, "K", "e")],
)  # fmt: skip
def test_the_hash_of_an_item_differs_with_anything_that_it_holds(other):
    assert item_hash(*other) != item_hash("C", ["n"], {"x": 1}, "K", "e")


def test_the_hash_of_an_item_does_not_depend_on_the_order_of_fields_or_on_kinds_of_sequence():
    assert item_hash("C", ("n",), {"x": [1], "y": 2}) == item_hash("C", ["n"], {"y": 2, "x": (1,)}, "", None)


def test_asked_for_more_hits_than_sqlite_can_count_to_it_gives_all_or_none(store):
    assert len(store.words("reduces fever", "a", 10**30)) == 1
    assert store.words("reduces fever", "a", 10, 10**30) == []


@pytest.mark.parametrize("value", [float("nan"), {1, 2}])
def test_payload_that_json_cannot_hold_is_refused_with_the_id(tmp_path, value):
    side = IndexSide("m", np.eye(1), ["C"], ["m7"], payload=[{"mass": value}])
    with pytest.raises(DataError, match=r"payload of item m7 .* cannot be stored as JSON"):
        write_store(tmp_path / "s", {"a": side}, "f")


def test_a_file_that_is_none_of_ours_or_is_not_there_is_refused(tmp_path):
    (tmp_path / "not").write_bytes(b"pickled? " * 500)
    (tmp_path / "empty").write_bytes(b"")
    for name in ("not", "empty"):
        with pytest.raises(RunStateError, match="not the item file"):
            Readers(tmp_path / name)
    with pytest.raises(RunStateError, match="none is missing"):
        Readers(tmp_path / "none")
