"""From files to a pair table: items, links, ids, and what is left out and why."""

import csv
import gzip
import io
import random
import time
import unicodedata
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridgehead.errors import ArgumentError, ColumnError, DataError, DecodeError, DuplicateIdError
from bridgehead.pairs import PairTable, Skipped, read_pairs


def write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def read(tmp_path: Path, text: str, **settings: Any) -> PairTable:
    return read_pairs(write(tmp_path / "pairs.csv", text), "a", "b", **settings)


def linked(table: PairTable) -> set[tuple[str, str]]:
    return {(table.a.items[i], table.b.items[j]) for i, j in table.links.pairs.tolist()}


def test_equal_values_are_one_item_and_links_are_many_to_many(tmp_path: Path) -> None:
    table = read(tmp_path, "a,b\nx,p\ny,p\nx,q\nx,p\n")
    assert (table.a.items, table.b.items) == (["x", "y"], ["p", "q"])
    assert linked(table) == {("x", "p"), ("y", "p"), ("x", "q")}
    assert table.links.pairs.tolist() == [[0, 0], [0, 1], [1, 0]]
    assert table.link_records.tolist() == [0, 2, 1]
    assert table.a.records.tolist() == [0, 1]
    assert table.a.carriers.tolist() == [[0, 0], [1, 1], [0, 2], [0, 3]]
    assert table.n_records == 4


def test_items_are_raw_values_so_spaces_and_case_count(tmp_path: Path) -> None:
    assert read(tmp_path, "a,b\nx,p\n x,p\nX,p\n").a.items == ["x", " x", "X"]


def test_without_an_id_column_records_are_numbered_and_with_one_ids_stay_text(tmp_path: Path) -> None:
    text = "a,b,id\nx,p,007\n,,NA\ny,p,1e5\n"
    assert read(tmp_path, text).a.ids == ["0", "2"]
    table = read(tmp_path, text, id="id")
    assert (table.a.ids, table.b.ids) == (["007", "1e5"], ["007"])
    assert table.records["_id"].to_list() == ["007", "1e5"]
    assert table.skipped == [Skipped(1, "NA", "both", "a and b are empty")]


def test_ids_that_occur_twice_are_listed_up_to_twenty(tmp_path: Path) -> None:
    rows = "".join(f"x{i},p,id{i % 25}\n" for i in range(50))
    with pytest.raises(
        DuplicateIdError, match=r"25 ids occur more than once in column 'id': id0, id1, .*id19 and 5 more"
    ):
        read(tmp_path, "a,b,id\n" + rows, id="id")


def test_records_without_an_id_are_an_error_that_numbers_them(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"1 records have no id in column 'id' \(records 1, counted from 0\)"):
        read(tmp_path, "a,b,id\nx,p,1\ny,q,\n", id="id")


def test_a_record_with_one_valid_side_is_kept_and_one_with_none_is_skipped(tmp_path: Path) -> None:
    table = read(tmp_path, 'a,b,c\nx,p,1\ny,,2\n" \t",q,3\n\u200b\x00,  ,4\n')
    assert (table.a.items, table.b.items) == (["x", "y"], ["p", "q"])
    assert linked(table) == {("x", "p")}
    assert table.unpaired == [Skipped(1, "1", "b", "b is empty"), Skipped(2, "2", "a", "a is empty")]
    assert table.skipped == [Skipped(3, "3", "both", "a and b are empty")]
    assert table.unlinked("a").tolist() == [1]
    assert table.unlinked("b").tolist() == [1]
    assert table.records["c"].to_list() == ["1", "2", "3"]


def test_one_bad_record_shifts_none(tmp_path: Path) -> None:
    lines = [f"x{i},p{i},{i}" for i in range(10)]
    lines[5] = "too,many,fields,here"
    table = read(tmp_path, "a,b,id\n" + "\n".join(lines), id="id")
    assert linked(table) == {(f"x{i}", f"p{i}") for i in range(10) if i != 5}
    assert table.a.ids == [str(i) for i in range(10) if i != 5]
    assert table.skipped == [Skipped(5, "", "both", "4 fields where the header has 3")]
    assert table.n_records == 10


def test_further_columns_travel_as_text_payload(tmp_path: Path) -> None:
    table = read(tmp_path, "a,b,n,note\nx,p,007,\ny,p,NA,z\n")
    assert table.payload("a", 1) == {"n": "NA", "note": "z"}
    assert table.payload("b", 0) == {"n": "007", "note": None}
    assert table.payloads("a") == [{"n": "007", "note": None}, {"n": "NA", "note": "z"}]


def test_a_payload_column_under_one_of_our_names_is_renamed_with_a_note(tmp_path: Path) -> None:
    table = read(tmp_path, "a,b,_id\nx,p,mine\n")
    assert table.payload("a", 0) == {"_id_": "mine"}
    assert table.notes == ["the column '_id' is called '_id_': the name is our own"]


def test_a_missing_column_lists_those_there_are_and_the_nearest(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "SMILES,descripton\nC,p\n")
    with pytest.raises(
        ColumnError, match="no column 'smiles'; its columns are SMILES, descripton; did you mean 'SMILES'"
    ):
        read_pairs(path, "smiles", "descripton")
    with pytest.raises(ColumnError, match="did you mean 'descripton'"):
        read_pairs(path, "SMILES", "description")
    with pytest.raises(ColumnError, match="no column 'donor'"):
        read_pairs(path, "SMILES", "descripton", group=["donor"])


@pytest.mark.parametrize("separator", [";", "|", "\t"])
def test_another_separator_is_said_beside_the_missing_column(tmp_path: Path, separator: str) -> None:
    (tmp_path / "x.csv").write_text(f"a{separator}b\n1{separator}2\n")
    with pytest.raises(ColumnError, match=r"the header holds .*: fields of csv are separated by commas"):
        read_pairs(tmp_path / "x.csv", "a", "b")


def test_lines_of_json_that_are_none_are_not_blamed_on_a_separator(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text("[1]\n[2]\n")
    with pytest.raises(DataError, match=r"none of the 2 records could be read .*; expected a JSON object on each line"):
        read_pairs(tmp_path / "x.jsonl", "a", "b")


def test_a_named_column_that_occurs_twice_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the column 'b' occurs twice"):
        read(tmp_path, "a,b,b\nx,p,q\n")
    assert read(tmp_path, "a,b,c,c\nx,p,q,r\n").payload("a", 0) == {"c": "q", "c#2": "r"}


@pytest.mark.parametrize("path", [None, 3, b"pairs.csv", {"path": "x"}, [b"x"], [None]])
def test_what_is_no_path_is_refused(path: Any) -> None:
    with pytest.raises(ArgumentError, match=r"expected the path of a file of pairs"):
        read_pairs(path, "a", "b")


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"id": 3}, ColumnError, "no column 3"),
        ({"entity": 1.5}, ColumnError, r"no column 1\.5"),
        ({"group": [None]}, ColumnError, "no column None"),
        ({"group": 3}, ArgumentError, "group = 3; expected"),
        ({"encoding": None}, ArgumentError, "encoding = None is not known"),
    ],
)
def test_names_of_another_type_are_errors_of_the_arguments(
    tmp_path: Path, settings: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        read(tmp_path, "a,b\nx,p\n", **settings)


def test_one_column_cannot_be_both_sides(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="a and b are both 'a'"):
        read_pairs(write(tmp_path / "x.csv", "a,b\nx,p\n"), "a", "a")


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "is empty"),
        ("a,b\n", "has a header but no records"),
        ("a,b\n,\n,\n", "both 'a' and 'b' are empty in all 2 records"),
        ("a,b\n1,2,3\n4,5,6\n", "none of the 2 records could be read"),
    ],
)
def test_a_file_without_a_usable_record_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, text)


def test_a_byte_order_mark_crlf_and_latin_1_give_the_same_pairs(tmp_path: Path) -> None:
    text = "a,b\r\nx,caf\u00e9\r\n"
    expected = {("x", "café")}
    assert linked(read_pairs(write(tmp_path / "1.csv", "\ufeff" + text), "a", "b")) == expected
    latin = write(tmp_path / "2.csv", text, "latin-1")
    assert linked(read_pairs(latin, "a", "b", encoding="latin-1")) == expected
    with pytest.raises(DecodeError, match="encoding='latin-1'"):
        read_pairs(latin, "a", "b")


def test_greek_chinese_emoji_and_nul_stay_as_they_are(tmp_path: Path) -> None:
    texts = ["β-αναστολέας", "阿司匹林是一种药", "🧪 éß", "x\x00y"]
    table = read(tmp_path, "a,b\n" + "".join(f"x{i},{text}\n" for i, text in enumerate(texts)))
    assert table.b.items == texts


def test_numbers_where_text_should_be_are_text(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pl.DataFrame({"a": [1, 2, 3], "b": [0.5, float("nan"), None]}).write_parquet(path)
    table = read_pairs(path, "a", "b")
    assert (table.a.items, table.b.items) == (["1", "2", "3"], ["0.5"])
    assert [entry.row for entry in table.unpaired] == [1, 2]


def test_list_cells_hold_several_items(tmp_path: Path) -> None:
    lines = '{"id": "7", "a": "x", "b": ["p", "", "q", "p"]}\n{"id": "8", "a": "y", "b": []}\n'
    lines += '{"id": "9", "a": "z", "b": ["q"]}\n'
    table = read_pairs(write(tmp_path / "x.jsonl", lines), "a", "b", id="id")
    assert linked(table) == {("x", "p"), ("x", "q"), ("z", "q")}
    assert table.b.ids == ["7", "7#3"]
    assert table.unpaired == [Skipped(1, "8", "b", "b is empty")]


def test_an_id_that_looks_like_a_further_value_is_refused_where_it_collides(tmp_path: Path) -> None:
    lines = '{"id": "7", "a": "x", "b": ["p", "q"]}\n{"id": "7#2", "a": "y", "b": ["r"]}\n'
    with pytest.raises(DuplicateIdError, match="7#2"):
        read_pairs(write(tmp_path / "x.jsonl", lines), "a", "b", id="id")


def test_several_files_count_as_one_in_sorted_order(tmp_path: Path) -> None:
    write(tmp_path / "p2.csv", "b,a\nq,y\n")
    write(tmp_path / "p1.csv", "a,b\nx,p\nbad\n")
    table = read_pairs(str(tmp_path / "p*.csv"), "a", "b")
    assert (table.a.items, table.b.items, table.a.ids) == (["x", "y"], ["p", "q"], ["0", "2"])
    assert table.n_records == 3
    assert [entry.row for entry in table.skipped] == [1]
    assert [Path(source.path).name for source in table.sources] == ["p1.csv", "p2.csv"]


def test_files_of_different_kinds_are_read_together_when_their_columns_agree(tmp_path: Path) -> None:
    one = write(tmp_path / "1.jsonl", '{"a": "x", "b": ["p", "q"]}\n')
    two = write(tmp_path / "2.tsv", "a\tb\ny\tp\n")
    assert linked(read_pairs([one, two], "a", "b")) == {("x", "p"), ("x", "q"), ("y", "p")}
    other = write(tmp_path / "3.csv", "a,c\nx,p\n")
    with pytest.raises(DataError, match=r"has the columns a, c, .* has a, b; files that are read together"):
        read_pairs([two, other], "a", "b")


@pytest.mark.parametrize("name", ["x.csv.gz", "x.tsv.gz", "x.txt.gz", "x.jsonl.gz", "x.parquet.gz"])
def test_every_format_is_read_from_gz(tmp_path: Path, name: str) -> None:
    buffer = io.BytesIO()
    frame = pl.DataFrame({"a": ["x"], "b": ["p"]})
    if "parquet" in name:
        frame.write_parquet(buffer)
    elif "jsonl" in name:
        frame.write_ndjson(buffer)
    else:
        frame.write_csv(buffer, separator="," if "csv" in name else "\t")
    (tmp_path / name).write_bytes(gzip.compress(buffer.getvalue()))
    assert linked(read_pairs(tmp_path / name, "a", "b")) == {("x", "p")}


def test_entities_are_labels_of_the_items_of_a(tmp_path: Path) -> None:
    table = read(tmp_path, "a,b,e\nx,p,E1\ny,p,\nz,q,E1\nx,q,E2\n", entity="e")
    assert table.a.entities == ["E1", "no e: 1", "E1"]
    assert table.notes == ["1 items of a have several labels of 'e'; the first counts"]
    assert table.b.entities is None


def test_group_labels_stand_per_record_and_per_item(tmp_path: Path) -> None:
    table = read(tmp_path, "a,b,plate,donor\nx,p,1,D\ny,p,2,\nx,q,3,D\n,,9,Z\n", group=["plate", "donor"])
    assert table.groups == {"plate": ["1", "2", "3"], "donor": ["D", "", "D"]}
    assert table.group_labels("a") == [("donor=D", "plate=1", "plate=3"), ("plate=2",)]


def test_the_sides_carry_the_names_that_are_shown(tmp_path: Path) -> None:
    assert read(tmp_path, "a,b\nx,p\n").a.name == "a"
    assert read(tmp_path, "a,b\nx,p\n", names=("molecule", "text")).b.name == "text"
    assert read(tmp_path, "a,b\nx,p\n", names={"a": "molecule"}).a.name == "molecule"
    with pytest.raises(ArgumentError, match="expected two, for a and b"):
        read(tmp_path, "a,b\nx,p\n", names=("molecule",))


def test_one_pair_and_pairs_that_are_all_identical_are_one_link(tmp_path: Path) -> None:
    assert len(read(tmp_path, "a,b\nx,p\n").links) == 1
    table = read(tmp_path, "a,b\n" + "x,p\n" * 5)
    assert (len(table.links), len(table.a), len(table.a.carriers), table.n_records) == (1, 1, 5, 5)


def test_ten_megabytes_in_one_cell_are_an_item(tmp_path: Path) -> None:
    table = read(tmp_path, f"a,b\n{'C' * 10_000_000},p\nx,p\n")
    assert [len(item) for item in table.a.items] == [10_000_000, 1]


CELL = st.text(st.characters(codec="utf-8", exclude_categories=["Cn", "Co"]), max_size=6) | st.text(
    'ab",\t\n\r é', max_size=6
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(CELL, CELL), min_size=1, max_size=6))
def test_items_and_links_equal_a_plain_loop_over_the_rows(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    file = io.StringIO(newline="")
    csv.writer(file).writerows([("a", "b"), ("first", "first"), *rows])
    table = read(tmp_path, file.getvalue())
    kept = [("first", "first")] + [(left, right) for left, right in rows if says_something(left + right)]
    assert linked(table) == {row for row in kept if all(map(says_something, row))}
    assert table.a.items == list(dict.fromkeys(left for left, _ in kept if says_something(left)))
    assert len(table.unpaired) == sum(not all(map(says_something, row)) for row in kept)
    assert len(table.skipped) == len(rows) + 1 - len(kept)


def says_something(text: str) -> bool:
    return any(unicodedata.category(character) not in ("Zs", "Zl", "Zp", "Cc", "Cf") for character in text)


@pytest.mark.parametrize(
    "file, a, b, n_records, unquoted",
    [
        ("molecule_text/pairs.tsv.gz", "smiles", "description", 12_987, True),
        ("molecule_text/test_open.tsv.gz", "smiles", "description", 1_664, True),
        ("massbank/spectra.tsv.gz", "peaks", "smiles", 63_252, False),
        ("pharmacology/ligands.tsv.gz", "smiles", "name", 8_412, False),
        ("pharmacology/interactions.tsv.gz", "ligand_id", "target", 16_685, False),
    ],
)
def test_real_files_are_read_whole(
    shared_data: Path, file: str, a: str, b: str, n_records: int, unquoted: bool
) -> None:
    table = read_pairs(shared_data / file, a, b)
    assert table.n_records == n_records
    assert table.skipped == []
    assert any("read unquoted" in note for note in table.notes) == unquoted


def test_a_hundred_thousand_pairs_are_read_in_seconds_at_most(tmp_path: Path) -> None:
    words = random.Random(0)
    rows = "".join(f'C{i},"text, {words.random()} of {i % 1000}",{i}\n' for i in range(100_000))
    path = write(tmp_path / "x.csv", "a,b,id\n" + rows)
    start = time.perf_counter()
    table = read_pairs(path, "a", "b", id="id")
    # About half a second on one idle core; the limit only catches a loop over records.
    assert time.perf_counter() - start < 5
    assert len(table.links) == 100_000
