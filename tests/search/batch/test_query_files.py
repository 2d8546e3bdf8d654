"""Files of queries: every record is a query or a failure with its row, and none shifts another."""

import json

import polars as pl
import pytest

from bridgehead.errors import ArgumentError, ColumnError, DataError, InputFileNotFoundError
from bridgehead.search.batch import query_files, read_queries


def read(path, **columns):
    return [(one.row, one.id, one.text, one.failure) for one in read_queries(path, **columns)]


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_lines_of_text_are_queries(tmp_path):
    path = write(tmp_path / "q.TXT", b'\xef\xbb\xbfpain\r\n\n"5-HT1A"\tx, y\ncaf\xe9\n\xe5\xa4\xb4\xe7\x97\x9b\nlast')
    assert read(path) == [
        (0, "0", "pain", ""), (1, "1", "", "the query is empty"), (2, "2", '"5-HT1A"\tx, y', ""),
        (3, "3", "", "the query is not UTF-8"), (4, "4", "头痛", ""), (5, "5", "last", ""),
    ]  # fmt: skip


def test_a_line_beyond_all_measure_is_a_failure_and_the_next_one_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(query_files, "LONGEST_LINE", 64)
    long = "x" * 200
    for name, content in (("q.txt", f"a\n{long}\nb\n"), ("q.csv", f"query\na\n{long}\nb\n"),
                          ("q.jsonl", f'"a"\n"{long}"\n"b"\n')):  # fmt: skip
        found = read(write(tmp_path / name, content))
        assert [(row, text) for row, _, text, _ in found] == [(0, "a"), (1, ""), (2, "b")]
        assert "longer than 64 bytes" in found[1][3]


def test_columns_of_csv_are_found_by_name_or_by_being_the_only_one(tmp_path):
    path = write(tmp_path / "q.csv", 'id,query,note\nq1,"a, b\n""c""",x\n,pain,y\n')
    assert read(path) == [(0, "q1", 'a, b\n"c"', ""), (1, "1", "pain", "")]
    assert read(path, column="note", id_column="query") == [(0, 'a, b\n"c"', "x", ""), (1, "pain", "y", "")]
    assert read(write(tmp_path / "one.csv", "words\npain\n")) == [(0, "0", "pain", "")]
    assert read(write(tmp_path / "two.csv", "words,id\npain,7\n")) == [(0, "7", "pain", "")]
    with pytest.raises(ColumnError, match=r"no column 'query'; pass column='NAME' with the one that .* 'x', 'y'"):
        read(write(tmp_path / "none.csv", "x,y\n1,2\n"))
    with pytest.raises(ColumnError, match="no column 'smile'; it has: 'id', 'query', 'note'"):
        read(path, column="smile")


def test_a_record_of_csv_with_other_fields_is_a_failure_of_that_row(tmp_path):
    path = write(tmp_path / "q.csv", 'id,query\n1,a\n2\n3,b,c\n\n4,"d"e\n5,f\n')
    found = read(path)
    assert [(row, text) for row, _, text, _ in found] == [(0, "a"), (1, ""), (2, ""), (3, ""), (4, "f")]
    assert "1 fields; the header has 2" in found[1][3] and "3 fields" in found[2][3] and "no csv" in found[3][3]


def test_a_quote_that_is_never_closed_is_told_with_its_row(tmp_path):
    rows = "".join(f"{i},text\n" for i in range(50))
    with pytest.raises(DataError, match=r"a quote that opens in row 1 \(line 3\) is never closed"):
        read(write(tmp_path / "q.csv", f'id,query\n1,a\n2,"b\n{rows}'))
    assert len(read(write(tmp_path / "q.tsv", f'id\tquery\n1\ta\n2\t"b\n{rows}'.replace(",", "\t")))) == 52


def test_tabs_separate_and_quotes_of_tsv_are_characters(tmp_path):
    path = write(tmp_path / "q.tsv", 'id\tquery\nx\t"5-HT" a\ny\tb, c\n')
    assert read(path) == [(0, "x", '"5-HT" a', ""), (1, "y", "b, c", "")]


def test_lines_of_json_are_objects_or_texts(tmp_path):
    lines = ['{"query": "pain", "id": 7}', '"ache"', "{", "", '{"q": 1}', "[1]", '{"query": null}', '{"query": 3}',
             '{"id": [1], "query": "x"}', "[" * 100_000, json.dumps({"query": "\ud800 y"})]  # fmt: skip
    found = read(write(tmp_path / "q.jsonl", "\n".join(lines)))
    assert [(row, id, text) for row, id, text, failure in found if not failure] == [
        (0, "7", "pain"), (1, "1", "ache"), (8, "8", "x"), (10, "10", "? y"),
    ]  # fmt: skip
    reasons = {row: failure for row, _, _, failure in found if failure}
    assert reasons.keys() == {2, 3, 4, 5, 6, 7, 9}
    assert "no field 'query'; it has: 'q'" in reasons[4] and "holds a list" in reasons[5] and "a int" in reasons[7]
    assert read(tmp_path / "q.jsonl", column="q")[4][3] == "the query is a int; expected text"


def test_parquet_is_read_in_slices(tmp_path, monkeypatch):
    monkeypatch.setattr(query_files, "_ROWS_AT_ONCE", 7)
    frame = pl.DataFrame({"id": range(50), "query": [None if i % 9 == 8 else f"text {i}" for i in range(50)]})
    frame.write_parquet(tmp_path / "q.parquet")
    found = read(tmp_path / "q.parquet")
    assert [(row, id) for row, id, _, _ in found] == [(i, str(i)) for i in range(50)]
    assert [text for _, _, text, _ in found] == [text or "" for text in frame["query"]]
    assert {failure for _, _, _, failure in found} == {"", "the query is empty"}
    pl.DataFrame({"l": [["a"]]}).write_parquet(tmp_path / "l.parquet")
    with pytest.raises(DataError, match=r"column 'l' holds List"):
        read(tmp_path / "l.parquet")
    with pytest.raises(DataError, match="no parquet file"):
        read(write(tmp_path / "bad.parquet", "nothing"))


def test_what_is_no_file_of_queries_is_refused(tmp_path):
    with pytest.raises(InputFileNotFoundError):
        read(tmp_path / "q.txt")
    with pytest.raises(ArgumentError, match=r"ends in '.xlsx'; expected one of .txt, .csv"):
        read(write(tmp_path / "q.xlsx", "x"))
    with pytest.raises(DataError, match="is empty"):
        read(write(tmp_path / "q.csv", ""))
    with pytest.raises(ArgumentError, match=r"column = 'x', and .* is plain text"):
        read(write(tmp_path / "q.txt", "x"), column="x")
