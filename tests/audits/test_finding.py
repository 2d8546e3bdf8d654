"""A finding says its verdict and holds nothing that JSON cannot."""

import json

import pytest

from bridgehead.audits import Finding, Listing
from bridgehead.errors import ArgumentError, ShapeError


def test_a_finding_is_one_line_and_plain_json() -> None:
    finding = Finding("shuffled links, mrr", 0.0123, "at most 0.02", "pass", "wrong links find nothing")
    assert finding.line() == "PASS  shuffled links, mrr: 0.0123 (expected at most 0.02); wrong links find nothing"
    assert json.loads(json.dumps(finding.to_dict()))["verdict"] == "pass"


def test_other_verdicts_and_values_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(ArgumentError, match="expected one of pass, warn, fail"):
        Finding("x", 1.0, "y", "good", "z")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="finite"):
        Finding("x", float("nan"), "y", "pass", "z")


def test_a_finding_comes_back_from_its_stored_form_with_the_cases_behind_it() -> None:
    listed = Listing(("id", "rank"), [["m1", 40], ["m2", 39]], total=7, note="worst first")
    found = Finding("mispairs", 7.0, "none", "warn", "look at these", "data", 0.25, listed)
    assert Finding.of(json.loads(json.dumps(found.to_dict()))) == found


def test_an_unknown_group_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ArgumentError, match="leakage"):
        Finding("x", 1.0, "y", "pass", "z", group="leaks")  # type: ignore[arg-type]


def test_a_row_of_a_listing_has_a_cell_for_each_column() -> None:
    with pytest.raises(ShapeError, match="row 1 of a listing has 1 cells; expected 2"):
        Listing(("id", "rank"), [["m1", 2], ["m2"]], total=2)
