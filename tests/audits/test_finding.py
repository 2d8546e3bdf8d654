"""A finding says its verdict and holds nothing that JSON cannot."""

import json

import pytest

from bridgehead.audits import Finding
from bridgehead.errors import ArgumentError


def test_a_finding_is_one_line_and_plain_json() -> None:
    finding = Finding("shuffled links, mrr", 0.0123, "at most 0.02", "pass", "wrong links find nothing")
    assert finding.line() == "PASS  shuffled links, mrr: 0.0123 (expected at most 0.02); wrong links find nothing"
    assert json.loads(json.dumps(finding.to_dict()))["verdict"] == "pass"


def test_other_verdicts_and_values_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(ArgumentError, match="expected one of pass, warn, fail"):
        Finding("x", 1.0, "y", "good", "z")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="finite"):
        Finding("x", float("nan"), "y", "pass", "z")
