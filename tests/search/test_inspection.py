"""What RDKit does with texts from outside, as tasks on plain data."""

import json

import pytest

from bridgehead.errors import StructureError
from bridgehead.search.inspection import held, inspect_pattern, inspect_texts


def test_each_text_gets_its_own_reason_or_none() -> None:
    reasons = inspect_texts(["CCO", "C1CC", "benzene", "", "\ud800", "[#200]", "CO"])
    assert [reason is None for reason in reasons] == [True, False, False, False, False, False, True]
    assert "benzene" in str(reasons[2]) and inspect_texts([]) == []


def test_a_pattern_is_told_how_it_is_read_or_why_it_is_none() -> None:
    assert inspect_pattern("c1ccccc1") == {"read_as": "SMILES", "note": "", "reason": None}
    assert inspect_pattern("[CX4]")["read_as"] == "SMARTS"
    refused = inspect_pattern("C(")
    assert refused["read_as"] is None and "SMARTS" in refused["reason"]


def test_positions_of_structures_that_hold_a_pattern_are_plain_numbers() -> None:
    assert json.dumps(held("c1ccccc1", ["CCO", "Cc1ccccc1", "no structure", "Oc1ccccc1"])) == "[1, 3]"
    with pytest.raises(StructureError):
        held("C(", ["CCO"])
