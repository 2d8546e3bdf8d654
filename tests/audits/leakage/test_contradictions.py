"""One raw item under several entities: planted, clean, across parts, and as it is in real spectra."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from bridgehead.audits import items_of_several_entities
from bridgehead.errors import ArgumentError, ShapeError


def test_the_same_item_under_two_entities_warns_and_is_listed() -> None:
    found = items_of_several_entities(
        ["p1", "p2", "p1", "p3", "p2", "p2"],
        ["M", "N", "O", "M", "N", "N"],
        ids=list("abcdef"),
        names=("spectrum", "molecule"),
    )[0]
    assert (found.verdict, found.value, found.group) == ("warn", 1.0, "leakage")
    assert found.why.startswith("1 distinct raw values of spectrum, in 2 of 6 records, have more than one molecule")
    assert found.listed is not None
    assert found.listed.rows == (("a, c", 2, 2, "M, O"),)


def test_each_item_under_one_entity_passes() -> None:
    found = items_of_several_entities(["p1", "p1", "p2"], ["M", "M", "M"])[0]
    assert (found.verdict, found.value, found.listed) == ("pass", 0.0, None)


def test_an_item_in_two_parts_of_the_split_fails() -> None:
    items, entities = ["p", "p", "q", "q"], ["M", "N", "O", "P"]
    within = items_of_several_entities(items, entities, parts=[0, 0, 2, 2])[0]
    across = items_of_several_entities(items, entities, parts=[0, 2, 2, -1])[0]
    assert (within.verdict, across.verdict) == ("warn", "fail")
    assert "1 of them lie in two parts" in across.why


def test_records_whose_entities_hang_together_do_not_contradict() -> None:
    chain = [("M",), ("N", "O"), ("M", "N")]
    assert items_of_several_entities(["p"] * 3, chain)[0].verdict == "pass"
    assert items_of_several_entities(["p"] * 3, [("M",), ("N", "O"), ("O",)])[0].verdict == "warn"


def test_records_without_item_or_entity_are_left_out_and_nothing_to_judge_is_no_finding() -> None:
    assert items_of_several_entities(["", None, "p"], ["M", "N", None]) == []
    assert items_of_several_entities([], []) == []
    assert items_of_several_entities(["", "", "p", "p"], ["M", "N", "O", ""])[0].value == 0.0


def test_the_item_with_most_entities_comes_first() -> None:
    items = ["two"] * 2 + ["five"] * 5
    found = items_of_several_entities(items, list("abcdefg"))[0]
    assert found.listed is not None
    assert [row[2] for row in found.listed.rows] == [5, 2]
    assert found.listed.rows[0][3] == "c, d, e, ..."


def test_real_spectra_hold_95_peak_lists_of_more_than_one_molecule(shared_data: Path) -> None:
    with gzip.open(shared_data / "massbank" / "spectra.tsv.gz", "rt", encoding="utf-8") as file:
        header = file.readline().rstrip("\n").split("\t")
        records = [line.rstrip("\n").split("\t") for line in file]
    columns = {name: [record[i] for record in records] for i, name in enumerate(header)}
    parts = np.array([("train", "valid", "test_open").index(part) for part in columns["split"]])
    found = items_of_several_entities(
        columns["peaks"], columns["ik14"], parts=parts, ids=columns["accession"], names=("spectrum", "molecule")
    )[0]
    assert found.value == 95
    assert found.listed is not None
    assert found.listed.total == 95
    assert found.verdict == "fail"
    assert "lie in two parts of the split" in found.why


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ShapeError, match="entities has 1 entries; expected 2"):
        items_of_several_entities(["p", "q"], ["M"])
    with pytest.raises(ShapeError, match=r"expected \(2,\) whole numbers"):
        items_of_several_entities(["p", "q"], ["M", "N"], parts=[0])
    with pytest.raises(ArgumentError, match="item 0 is a list"):
        items_of_several_entities([["p"], "q"], ["M", "N"])
