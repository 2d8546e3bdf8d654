"""Reading csv and tsv: cells exactly as they stand, and no record that moves another."""

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgehead.errors import ArgumentError, DataError
from bridgehead.pairs.delimited import Records, quote_mode, read_delimited


def read(text: str, separator: str = ",", quote: str | bool = "auto") -> Records:
    return read_delimited(text.encode(), separator, quote_mode(quote), "x.csv")


def cells(records: Records) -> list[tuple[str, ...]]:
    return [tuple(cell or "" for cell in row) for row in records.frame.rows()]


def test_nothing_is_taken_for_a_number_or_a_missing_value() -> None:
    records = read("id,b\n00123,NA\n1e5,NaN\n1.50,null\n-0,TRUE\n")
    assert records.frame.rows() == [("00123", "NA"), ("1e5", "NaN"), ("1.50", "null"), ("-0", "TRUE")]


def test_an_empty_cell_is_null_quoted_or_not() -> None:
    assert read('a,b\n"",x\n,y\n').frame["a"].to_list() == [None, None]


def test_quoted_cells_hold_separators_line_ends_and_quotes() -> None:
    assert cells(read('a,b\n"x,y\r\nz","say ""hi"""\n')) == [("x,y\r\nz", 'say "hi"')]


def test_quotes_inside_a_field_are_characters() -> None:
    assert cells(read('a,b\n5" pipe,x"y"z\nnext,row\n')) == [('5" pipe', 'x"y"z'), ("next", "row")]


def test_text_after_a_closing_quote_is_joined_and_said() -> None:
    records = read('a,b\n"Foo" is a b,1\nnext,2\n')
    assert cells(records) == [("Foo is a b", "1"), ("next", "2")]
    assert "a quote is followed by other text" in records.notes[0]


def test_a_quote_that_is_never_closed_is_an_error_with_the_option() -> None:
    with pytest.raises(DataError, match=r"closing quote; .*quote='off'"):
        read('a,b\n"open,1\nnext,2\n')
    assert cells(read('a,b\n"open,1\nnext,2\n', quote="off")) == [('"open', "1"), ("next", "2")]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_all_line_ends_give_the_same_records(end: str) -> None:
    assert cells(read(end.join(["a,b", "1,2", "", "3,4", ""]))) == [("1", "2"), ("3", "4")]


def test_nul_bytes_stay_in_their_cell() -> None:
    assert cells(read("a,b\nx\x00y,2\n\x00,4\n")) == [("x\x00y", "2"), ("\x00", "4")]


def test_a_byte_order_mark_in_the_first_cell_is_its_content() -> None:
    assert cells(read("a,b\n\ufeffx,y\n")) == [("\ufeffx", "y")]


def test_ten_megabytes_in_one_cell_are_read_quoted_unquoted_and_with_stray_quotes() -> None:
    long = "CCO " * 2_500_000
    for text in (f"a,b\n{long},1\nx,2\n", f'a,b\n"{long}",1\nx,2\n', f'a,b\n{long}5" x,1\nx,2\n'):
        records = read(text)
        assert [len(cell) // 4 for cell in records.frame["a"]] in ([2_500_000, 0], [2_500_001, 0])


def test_ragged_records_are_listed_and_move_nothing() -> None:
    records = read("a,b,c\n1,2,3\nshort,x\n4,5,6\n\ntoo,many,f,g\n7,8,9\n")
    assert cells(records) == [("1", "2", "3"), ("4", "5", "6"), ("7", "8", "9")]
    assert records.rows.tolist() == [0, 2, 4]
    assert records.n_records == 5
    assert records.ragged == [(1, "2 fields where the header has 3"), (3, "4 fields where the header has 3")]


def test_ragged_records_are_counted_the_same_where_quotes_are_irregular() -> None:
    records = read('a,b\n5" x,1\nshort\n3,4\n')
    assert (records.rows.tolist(), records.n_records, len(records.ragged)) == ([0, 2], 3, 1)


@pytest.mark.parametrize("text", ["", "\n\n", " \r\n"])
def test_an_empty_file_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="is empty"):
        read(text)


def test_a_header_alone_has_no_records() -> None:
    records = read("a,b\n")
    assert (records.frame.columns, records.frame.height, records.n_records) == (["a", "b"], 0, 0)


def test_columns_without_a_name_and_repeated_names_are_told_apart() -> None:
    records = read("a,,a\n1,2,3\n")
    assert records.frame.columns == ["a", "column_2", "a#2"]
    assert records.notes == ["x.csv: column 'a' occurs again; column 3 is called 'a#2'"]


def test_tsv_with_quotes_that_are_characters_is_read_unquoted_and_says_so() -> None:
    records = read('a\tb\nx\t2"-deoxy\ny\tz\n', "\t")
    assert cells(records) == [("x", '2"-deoxy'), ("y", "z")]
    assert records.notes == ["x.csv was read unquoted, 2 records: no cell begins with a quote"]


def test_tsv_where_quoted_reading_fails_is_read_unquoted() -> None:
    records = read('a\tb\nx\t"Foo" is a b\ny\tz\n', "\t")
    assert cells(records) == [("x", '"Foo" is a b'), ("y", "z")]
    assert "quoted reading fails" in records.notes[0]


def test_tsv_with_an_open_quote_is_read_unquoted() -> None:
    records = read('a\tb\nx\t"open\ny\tz\n', "\t")
    assert records.n_records == 2
    assert "search of a closing quote" in records.notes[0]


def test_tsv_where_quoted_reading_swallows_records_is_read_unquoted() -> None:
    records = read('a\tb\nx\t"open\ny\tclose"\n', "\t")
    assert cells(records) == [("x", '"open'), ("y", 'close"')]
    assert "finds 1 records in 2 lines" in records.notes[0]


def test_tsv_with_quoted_line_ends_stays_quoted_and_needs_no_note() -> None:
    records = read('a\tb\nx\t"two\nlines"\ny\t"q ""z"""\n', "\t")
    assert cells(records) == [("x", "two\nlines"), ("y", 'q "z"')]
    assert records.notes == []


def test_quote_can_be_given() -> None:
    assert cells(read('a\tb\n"x"\ty\n', "\t", quote=True)) == [("x", "y")]
    assert cells(read('a,b\n"x",y\n', quote=False)) == [('"x"', "y")]
    with pytest.raises(ArgumentError, match=r"quote = 'yes'; expected 'auto'"):
        read("a,b\n1,2\n", quote="yes")


CELL = st.text(st.characters(codec="utf-8"), max_size=8) | st.text('ab",\t\n\r \x00é', max_size=8)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=5), st.sampled_from(",\t"))
def test_what_the_csv_module_writes_is_read_back(rows: list[tuple[str, str, str]], separator: str) -> None:
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=separator)
    writer.writerows([("x", "y", "z"), *rows])
    records = read(file.getvalue(), separator, quote="on")
    assert cells(records) == rows
    assert records.rows.tolist() == list(range(len(rows)))
    assert records.ragged == []


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text('ab",\n ', max_size=6), min_size=1, max_size=6))
def test_any_text_is_read_or_refused_and_records_are_accounted_for(lines: list[str]) -> None:
    try:
        records = read("x,y\n" + "\n".join(lines))
    except DataError:
        return
    numbers = sorted([*records.rows.tolist(), *(row for row, _ in records.ragged)])
    assert numbers == list(range(records.n_records))
    assert records.frame.height == len(records.rows)
