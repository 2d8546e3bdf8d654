import polars as pl
import pytest

from bridgehead.errors import ColumnError
from bridgehead.pairs import read_pairs
from bridgehead.runs.classes import classes_of


@pytest.fixture
def table(tmp_path):
    frame = pl.DataFrame(
        {
            "drug": ["one", "two", "three", "one", "four"],
            "text": ["t1", "t2", "t3", "t4", "t2"],
            "family": [["kinase"], ["channel"], [], ["kinase"], ["channel", "kinase"]],
            "kind": ["x", "y", None, "z", "y"],
        }
    )
    frame.write_parquet(tmp_path / "pairs.parquet")
    return read_pairs(tmp_path / "pairs.parquet", a="drug", b="text")


def test_the_same_label_is_the_same_class_on_both_sides(table):
    a, b = classes_of(table, "family", "family")
    # Numbers by the order of labels: channel 0, kinase 1. Drugs: one, two, three, four; texts: t1, t2, t3, t4.
    assert a.tolist() == [1, 0, -1, -1]
    assert b.tolist() == [1, -1, -1, 1]


def test_an_item_whose_records_carry_several_labels_has_no_class(table):
    a, b = classes_of(table, "kind", None)
    assert a.tolist() == [-1, 0, -1, 0]
    assert b is None


def test_a_column_that_is_not_there_is_named_with_those_that_are(table):
    with pytest.raises(ColumnError, match=r"pairs\.class_b: no further column 'familly'; .*family, kind"):
        classes_of(table, None, "familly")
