"""What is counted in a pair table, and how it is said."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from bridgehead.errors import ArgumentError
from bridgehead.pairs import PairTable, check_table, read_pairs


@dataclass(frozen=True)
class Identity:
    exact: str
    parent: str
    skeleton: str
    mixture: bool = False
    fallback: bool = False


TEXT = """a,b,id
x,Inhibits the β-lactamase of bacteria,r0
y,inhibits the beta-lactamase  of bacteria,r1
x,compound,r2
z,,r3
,,r4
x,compound,r5
"""


@pytest.fixture
def table(tmp_path: Path) -> PairTable:
    (tmp_path / "x.csv").write_text(TEXT, encoding="utf-8")
    return read_pairs(tmp_path / "x.csv", "a", "b", id="id", names=("molecule", "text"))


def test_counts_are_those_one_counts_by_hand(table: PairTable) -> None:
    report = check_table(table)
    assert (report.n_records, report.n_links) == (6, 3)
    assert (report.a.n_items, report.a.n_records, report.a.n_repeats, report.a.n_unlinked) == (3, 5, 2, 1)
    assert (report.b.n_items, report.b.n_repeats, report.b.n_same_normalised) == (3, 1, 1)
    assert (report.a.links_per_item.mean, report.a.links_per_item.most) == (1.5, 2)
    assert (report.a.characters.least, report.b.words.most) == (1, 5)
    assert report.b.weak == {"generic words": 1}
    assert report.b.weak_share == pytest.approx(1 / 3)
    assert report.a.weak == {}


def test_identity_levels_are_counted_on_the_side_that_has_them(table: PairTable) -> None:
    identities = [Identity("X", "P", "S"), Identity("Y", "P", "S", mixture=True), None]
    report = check_table(table, identities_a=identities)
    levels = report.a.identity
    assert levels is not None
    assert (levels.exact, levels.parent, levels.skeleton, levels.n_failed) == (2, 1, 1, 1)
    assert levels.mixture_ids == ["r1"]
    assert report.b.identity is None
    assert any("Mixtures: 1 (r1)" in line for line in report.lines())
    with pytest.raises(ArgumentError, match="2 identities for the 3 items of a"):
        check_table(table, identities_a=identities[:2])


def test_the_lines_name_sides_reasons_and_ids(table: PairTable) -> None:
    text = "\n".join(check_table(table).lines())
    assert "6 records give 3 links between 3 distinct molecule and 3 distinct text items." in text
    assert "1 records have one valid side: kept as items without a link:\n  1 because b is empty (r3)" in text
    assert "1 because a and b are empty (r4)" in text
    assert "33.3 % say too little" in text


def test_the_dictionary_is_json_and_counts_what_it_cuts(table: PairTable) -> None:
    content = json.loads(json.dumps(check_table(table).to_dict(), allow_nan=False))
    assert content["n_unpaired"] == 1
    assert content["skipped"] == [{"row": 4, "id": "r4", "side": "both", "reason": "a and b are empty"}]
    assert content["sources"][0]["path"].endswith("x.csv")


def test_a_table_without_links_is_reported_too(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\nx,\n,some text of words\n")
    report = check_table(read_pairs(tmp_path / "x.csv", "a", "b"))
    assert (report.n_links, report.a.links_per_item.mean) == (0, 0)
    assert report.lines()
