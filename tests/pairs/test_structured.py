"""Reading jsonl and parquet: numbers as printed, missing values as null, lists as lists."""

import io
from typing import Any

import polars as pl
import pytest

from bridgehead.errors import DataError
from bridgehead.pairs.structured import read_jsonl, read_parquet


def parquet(columns: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    pl.DataFrame(columns).write_parquet(buffer)
    return buffer.getvalue()


def test_json_numbers_are_the_text_that_stands_in_the_file() -> None:
    lines = b'{"a": 1e5, "b": 1.50}\n{"a": 12345678901234567890123, "b": -0}\n{"a": true, "b": "x"}\n'
    assert read_jsonl(lines, "x").frame.rows() == [("1e5", "1.50"), ("12345678901234567890123", "-0"), ("true", "x")]


def test_json_null_nan_and_absent_keys_are_missing() -> None:
    frame = read_jsonl(b'{"a": null, "b": NaN}\n{"c": 1}\n', "x").frame
    assert frame.columns == ["a", "b", "c"]
    assert frame.rows() == [(None, None, None), (None, None, "1")]


def test_json_lists_make_the_column_lists_and_objects_stay_json() -> None:
    frame = read_jsonl(b'{"a": ["x", 1], "b": {"k": [1.50, null, "y"]}}\n\n{"a": "y"}\n{"a": []}\n', "x").frame
    assert frame["a"].to_list() == [["x", "1"], ["y"], []]
    assert frame["b"].to_list() == ['{"k": [1.50, null, "y"]}', None, None]


def test_json_lines_that_are_no_objects_are_listed_and_move_nothing() -> None:
    records = read_jsonl(b'{"a": "x"}\n{"a": \n[1]\n{"a": "y"}\n', "x")
    assert records.frame["a"].to_list() == ["x", "y"]
    assert records.rows.tolist() == [0, 3]
    assert [row for row, _ in records.ragged] == [1, 2]
    assert "not JSON" in records.ragged[0][1] and "not a JSON object" in records.ragged[1][1]


def test_json_with_half_a_surrogate_pair_and_nul_is_read() -> None:
    records = read_jsonl(b'{"a": "x\\ud800y", "b": "p\\u0000q", "c": "\\ud83e\\uddea"}\n', "x")
    assert records.frame.row(0) == ("x\ufffdy", "p\x00q", "🧪")


def test_an_empty_jsonl_is_refused() -> None:
    with pytest.raises(DataError, match="is empty"):
        read_jsonl(b"\n\n", "x.jsonl")


def test_parquet_numbers_become_text_and_nan_is_missing() -> None:
    frame = read_parquet(parquet({"i": [1, 2], "f": [1.5, float("nan")], "t": [True, None]}), "x").frame
    assert frame.rows() == [("1", "1.5", "true"), ("2", None, None)]


def test_parquet_lists_structs_categories_and_dates_have_a_text_form() -> None:
    table = {
        "l": [[1.0, float("nan")], None],
        "s": [{"k": 1}, {"k": 2}],
        "c": pl.Series(["x", "y"], dtype=pl.Categorical),
        "d": pl.Series([0, 1]).cast(pl.Date),
    }
    frame = read_parquet(parquet(table), "x").frame
    assert frame["l"].to_list() == [["1.0", None], None]
    assert frame["s"].to_list() == ['{"k":1}', '{"k":2}']
    assert frame["c"].to_list() == ["x", "y"]
    assert frame["d"].to_list() == ["1970-01-01", "1970-01-02"]


def test_what_is_not_parquet_is_refused() -> None:
    with pytest.raises(DataError, match="cannot be read as parquet"):
        read_parquet(b"PAR1 cut off", "x.parquet")


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(DataError, match="column 'a' of type Binary has no text form"):
        read_parquet(parquet({"a": [b"\xff\xfe"]}), "x.parquet")
