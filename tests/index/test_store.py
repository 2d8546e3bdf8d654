"""Items by id, name, key and words."""

import numpy as np
import pytest

from bridgehead.errors import ArgumentError, DataError, RunStateError
from bridgehead.index.side import IndexSide
from bridgehead.index.store import Item, ItemStore, write_store

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


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("a folder with 100% of # and ?") / "items.sqlite"
    write_store(path, {"a": MOLECULES, "b": TEXTS}, "f1")
    opened = ItemStore(path, {"a": 4, "b": 2}, "f1")
    yield opened
    opened.close()


def test_items_come_back_as_they_went_in_and_in_the_order_asked_for(store):
    second, first = store.items("a", [1, 0])
    assert (second.id, first.id) == ("00123", "4139")
    assert first == Item("a", 0, "4139", MOLECULES.items[0], MOLECULES.keys[0],
                         ("aspirin", "Acetylsalicylic acid", "aspirin"), MOLECULES.payload[0])  # fmt: skip
    assert store.items("a", [2])[0].names == () and store.items("a", [2])[0].id == "NA"
    assert store.items("b", [1])[0].item == "lowers blood pressure"


def test_ids_are_text_and_may_be_on_both_sides(store):
    assert [(i.side, i.row) for i in store.by_id("4139")] == [("a", 0), ("b", 0)]
    assert store.by_id("123") == []
    assert [i.row for i in store.by_id("00123")] == [1]


def test_a_lone_surrogate_neither_breaks_the_file_nor_a_query(store):
    assert [i.row for i in store.by_id("x\ud800")] == [3]
    assert store.by_name("\ud800") == [] and store.by_key("\ud800") == [] and store.words("\ud800", "a", 3) == []


def test_a_shared_name_gives_every_item_with_main_names_first(store):
    assert [i.row for i in store.by_name("ASPIRIN ")] == [0, 3]
    assert [i.row for i in store.by_name("acetylsalicylic  acid")] == [0]
    assert [i.row for i in store.by_name("beta‐propranolol")] == [1]
    assert store.by_name("") == [] and store.by_name("aspiri") == []


def test_names_of_equal_hash_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.setattr("bridgehead.index.store._name_hash", lambda form: 7)
    side = IndexSide("m", np.eye(2), ["C", "N"], ["1", "2"], names=[["methane"], ["ammonia"]])
    write_store(tmp_path / "s", {"a": side}, "f")
    store = ItemStore(tmp_path / "s", {"a": 2}, "f")
    assert [i.id for i in store.by_name("ammonia")] == ["2"]
    assert store.by_name("water") == []
    store.close()


def test_items_are_found_by_exact_key_and_an_empty_key_is_none(store):
    assert [i.id for i in store.by_key("BSYNRYMUTXBXSQ-UHFFFAOYSA-N")] == ["4139"]
    assert store.by_key("") == []
    assert store.items("a", [3])[0].key is None


def test_words_cover_names_texts_and_the_chosen_payload_of_one_side(store):
    assert [hit.row for hit in store.words("COX-2", "a", 10)] == [0]
    assert [hit.row for hit in store.words("propranolol", "a", 10)] == [1]
    assert [hit.row for hit in store.words("cox2 fever", "b", 10)] == [0]
    assert store.words("aspirin", "b", 10) == []
    assert store.words("CC", "a", 10) == []  # a structure has no words


def test_any_word_counts_where_no_item_has_all(store):
    assert {hit.row for hit in store.words("fever pressure", "b", 10)} == {0, 1}
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
    opened = ItemStore(path, {"a": 4, "b": 2}, "f1")
    path.write_bytes(content)
    try:
        for look in (
            lambda: opened.items("a", [0]), lambda: opened.by_id("4139"), lambda: opened.by_name("aspirin"),
            lambda: opened.by_key("AQHHHDLHHXJYJD-UHFFFAOYSA-N"), lambda: opened.words("reduces", "a", 3),
        ):  # fmt: skip
            with pytest.raises(RunStateError, match=r"items\.sqlite is damaged .*; build the index again"):
                look()
    finally:
        opened.close()


def test_rows_that_are_not_there_are_refused(store):
    with pytest.raises(ArgumentError, match="side b has no row 2; expected 0 to 1"):
        store.items("b", [2])
    with pytest.raises(ArgumentError, match="side b has no row -1"):
        store.items("b", [-1])
    with pytest.raises(ArgumentError, match="k = 0"):
        store.words("x", "a", 0)


def test_asked_for_more_hits_than_sqlite_can_count_to_it_gives_all_or_none(store):
    assert len(store.words("reduces fever", "a", 10**30)) == 1
    assert store.words("reduces fever", "a", 10, 10**30) == []


@pytest.mark.parametrize("value", [float("nan"), {1, 2}])
def test_payload_that_json_cannot_hold_is_refused_with_the_id(tmp_path, value):
    side = IndexSide("m", np.eye(1), ["C"], ["m7"], payload=[{"mass": value}])
    with pytest.raises(DataError, match=r"payload of item m7 .* cannot be stored as JSON"):
        write_store(tmp_path / "s", {"a": side}, "f")


def test_a_file_of_another_build_or_another_count_or_none_of_ours_is_refused(tmp_path):
    write_store(tmp_path / "s", {"b": TEXTS}, "f1")
    with pytest.raises(RunStateError, match="another build"):
        ItemStore(tmp_path / "s", {"b": 2}, "f2")
    with pytest.raises(RunStateError, match="holds 2 items and the vectors 3 rows"):
        ItemStore(tmp_path / "s", {"b": 3}, "f1")
    (tmp_path / "not").write_bytes(b"pickled? " * 500)
    with pytest.raises(RunStateError, match="not the item file"):
        ItemStore(tmp_path / "not", {"b": 2}, "f1")
