"""Dropping items from a pair table without moving any other."""

from pathlib import Path

import pytest

from bridgehead.errors import ArgumentError
from bridgehead.pairs import PairTable, Skipped, read_pairs

LINES = """{"id": "r0", "a": "x", "b": ["p", "q"], "n": "0", "g": "G"}
{"id": "r1", "a": "bad", "b": ["p"], "n": "1", "g": "G"}
{"id": "r2", "a": "bad", "b": ["r"], "n": "2", "g": "H"}
{"id": "r3", "a": "bad", "b": [], "n": "3", "g": "H"}
{"id": "r4", "a": "y", "b": ["q"], "n": "4", "g": "K"}
"""


@pytest.fixture
def table(tmp_path: Path) -> PairTable:
    (tmp_path / "x.jsonl").write_text(LINES)
    return read_pairs(tmp_path / "x.jsonl", "a", "b", id="id", group="g")


def linked(table: PairTable) -> set[tuple[str, str]]:
    return {(table.a.items[i], table.b.items[j]) for i, j in table.links.pairs.tolist()}


def test_a_dropped_item_takes_its_links_and_its_partners_stay(table: PairTable) -> None:
    left = table.without("a", [1], ["does not parse"])
    assert (left.a.items, left.a.ids, left.a.records.tolist()) == (["x", "y"], ["r0", "r4"], [0, 4])
    assert left.b.items == ["p", "q", "r"]
    assert linked(left) == {("x", "p"), ("x", "q"), ("y", "q")}
    assert left.unlinked("b").tolist() == [2]
    assert left.link_records.tolist() == [0, 0, 4]


def test_each_record_of_a_dropped_item_is_listed_with_what_it_still_has(table: PairTable) -> None:
    left = table.without("a", [1], ["does not parse"])
    assert left.unpaired == [Skipped(1, "r1", "a", "a: does not parse"), Skipped(2, "r2", "a", "a: does not parse")]
    assert left.skipped == [Skipped(3, "r3", "both", "b is empty; a: does not parse")]


def test_records_groups_and_payload_follow(table: PairTable) -> None:
    left = table.without("a", [1], ["does not parse"])
    assert left.records["_id"].to_list() == ["r0", "r1", "r2", "r4"]
    assert left.groups == {"g": ["G", "G", "H", "K"]}
    assert left.payload("a", 1)["n"] == "4"
    assert [payload["n"] for payload in left.payloads("b")] == ["0", "0", "2"]
    assert left.group_labels("b") == [("g=G",), ("g=G", "g=K"), ("g=H",)]


def test_a_dropped_value_of_a_list_cell_leaves_its_record_paired(table: PairTable) -> None:
    left = table.without("b", [0], ["empty row"])
    assert left.skipped == [Skipped(0, "r0", "b", "b: empty row")]
    assert [entry.row for entry in left.unpaired] == [1, 3]
    assert left.b.ids == ["r0#2", "r2"]


def test_dropping_both_sides_of_a_record_skips_it_once(table: PairTable) -> None:
    left = table.without("a", [2], ["no structure"]).without("b", [1, 2], ["no words", "no words"])
    assert [entry for entry in left.skipped if entry.row == 4] == [
        Skipped(4, "r4", "both", "a: no structure; b: no words")
    ]
    assert left.records["_id"].to_list() == ["r0", "r1", "r2", "r3"]


def test_dropping_nothing_changes_nothing_and_dropping_all_leaves_empty_links(table: PairTable) -> None:
    same = table.without("a", [], [])
    assert (same.a.items, same.links, same.skipped) == (table.a.items, table.links, table.skipped)
    none = table.without("a", [0, 1, 2], ["x"] * 3)
    assert (len(none.a), len(none.b), len(none.links)) == (0, 3, 0)


def test_rows_and_reasons_must_fit(table: PairTable) -> None:
    with pytest.raises(ArgumentError, match="1 rows and 0 reasons"):
        table.without("a", [0], [])
    with pytest.raises(ArgumentError, match="rows from 3 to 3; side a has 3 items"):
        table.without("a", [3], ["x"])
    with pytest.raises(ArgumentError, match="side = 'c'; expected 'a' or 'b'"):
        table.without("c", [0], ["x"])  # type: ignore[arg-type]
