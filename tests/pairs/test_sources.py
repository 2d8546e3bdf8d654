"""From a name to UTF-8 bytes."""

import gzip
import hashlib
from pathlib import Path

import pytest

from bridgehead.errors import ArgumentError, DataError, DecodeError, InputFileNotFoundError
from bridgehead.pairs.sources import find_files, format_of, read_bytes, to_utf8


def test_a_glob_is_sorted_and_a_list_keeps_its_order(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", "c.txt"):
        (tmp_path / name).write_text("x")
    assert [file.name for file in find_files(str(tmp_path / "*.csv"))] == ["a.csv", "b.csv"]
    assert [file.name for file in find_files([tmp_path / "b.csv", tmp_path / "a.csv"])] == ["b.csv", "a.csv"]


def test_a_file_whose_name_looks_like_a_pattern_is_itself(tmp_path: Path) -> None:
    (tmp_path / "pairs[1].csv").write_text("x")
    assert find_files(tmp_path / "pairs[1].csv") == [tmp_path / "pairs[1].csv"]


def test_a_folder_whose_name_looks_like_a_pattern_is_itself(tmp_path: Path) -> None:
    for folder in ("batch [2] a*", "batch 2 a"):
        (tmp_path / folder / "deep").mkdir(parents=True)
        (tmp_path / folder / "deep" / "x.csv").write_text("x")
    assert find_files(str(tmp_path / "batch [2] a*" / "*" / "*.csv")) == [tmp_path / "batch [2] a*" / "deep" / "x.csv"]
    assert len(find_files(str(tmp_path / "batch*" / "**" / "*.csv"))) == 2


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputFileNotFoundError, match="does not exist"):
        find_files(tmp_path / "absent.csv")
    with pytest.raises(InputFileNotFoundError, match="matches no file"):
        find_files(str(tmp_path / "*.csv"))
    with pytest.raises(InputFileNotFoundError, match="is a folder"):
        find_files(tmp_path)
    with pytest.raises(ArgumentError, match="empty list of files"):
        find_files([])


@pytest.mark.parametrize(
    "name, expected",
    [("x.CSV", "csv"), ("x.tsv.gz", "tsv"), ("x.ndjson", "jsonl"), ("x.jsonl.GZ", "jsonl"), ("a.b.parquet", "parquet")],
)
def test_the_name_says_the_format(name: str, expected: str) -> None:
    assert format_of(Path(name)) == expected


def test_an_unknown_format_lists_those_that_are_read() -> None:
    with pytest.raises(ArgumentError, match=r"'\.xlsx'; expected \.csv, \.tsv"):
        format_of(Path("pairs.xlsx"))


def test_gz_is_unpacked_and_the_hash_is_of_the_file_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"hello"))
    data, source = read_bytes(path)
    assert data == b"hello"
    assert source.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("content", [b"plain text", gzip.compress(b"x" * 1000)[:-9]])
def test_a_damaged_gz_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.csv.gz").write_bytes(content)
    with pytest.raises(DataError, match="not a whole gzip file"):
        read_bytes(tmp_path / "x.csv.gz")


def test_latin_1_read_as_utf_8_names_byte_line_record_and_option() -> None:
    data = "a,b\nx,y\nCCO,caf\xe9\n".encode("latin-1")
    with pytest.raises(DecodeError, match=r"byte 0xe9 at offset 15, line 3 \(record 1 .*encoding='latin-1'"):
        to_utf8(data, "utf-8", Path("x.csv"))
    assert to_utf8(data, "latin-1", Path("x.csv")).decode().endswith("café\n")


def test_a_bad_byte_in_the_header_is_placed_there() -> None:
    with pytest.raises(DecodeError, match=r"offset 0, line 1 \(in the header\)"):
        to_utf8(b"\xe9,b\n", "utf-8", Path("x.csv"))


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", ["smiles,text\nCCO,a solvent\n", "smiles,text\nCCO,café β\n"])
def test_utf_16_without_a_mark_is_recognised_and_not_read_as_letters_and_nul(encoding: str, text: str) -> None:
    with pytest.raises(DecodeError, match=f"encoding='{encoding}'"):
        to_utf8(text.encode(encoding), "utf-8", Path("x.csv"))
    assert to_utf8(text.encode(encoding), encoding, Path("x.csv")).decode() == text


def test_a_few_nul_bytes_are_content() -> None:
    assert to_utf8(b"a,b\nx\0\0y,z\n", "utf-8", Path("x.csv")) == b"a,b\nx\0\0y,z\n"


@pytest.mark.parametrize(
    "start, what",
    [
        (b"\x89PNG\r\n\x1a\n", "a PNG image"),
        (b"PK\x03\x04\x14\0", "an Excel workbook or another zip archive"),
        (b"\x1f\x8b\x08\0", "gzip"),
        (b"%PDF-1.7\n", "a PDF"),
        (b"PAR1\x15\0 .. PAR1", "parquet"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_what_is_no_text_is_named_whatever_the_encoding(start: bytes, what: str, encoding: str) -> None:
    with pytest.raises(DataError, match=f"x.csv holds {what}, not text"):
        to_utf8(start, encoding, Path("x.csv"))


@pytest.mark.parametrize("encoding", ["utf-8", "UTF8", "utf-8-sig"])
def test_a_byte_order_mark_is_taken_off(encoding: str) -> None:
    assert to_utf8("\ufeffa,b".encode(), encoding, Path("x.csv")) == b"a,b"


def test_utf_16_is_recognised_and_read() -> None:
    data = "a,β".encode("utf-16")
    with pytest.raises(DecodeError, match="encoding='utf-16'"):
        to_utf8(data, "utf-8", Path("x.csv"))
    assert to_utf8(data, "utf-16", Path("x.csv")).decode() == "a,β"


def test_an_unknown_encoding_is_refused() -> None:
    with pytest.raises(ArgumentError, match="'klingon' is not known"):
        to_utf8(b"a", "klingon", Path("x.csv"))
