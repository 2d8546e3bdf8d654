"""Scaffolds of molecules."""

import pytest

from bridgehead.errors import StructureError
from bridgehead.scaffolds import scaffold, scaffolds


def test_a_scaffold_is_what_is_left_of_a_molecule_without_its_side_chains():
    assert scaffold("CC(=O)Oc1ccccc1C(=O)O") == "c1ccccc1"
    # Two rings and the chain between them; the methyl goes.
    assert scaffold("Cc1ccccc1CCC1CCNCC1") == "c1ccc(CCC2CCNCC2)cc1"


def test_a_molecule_without_a_ring_has_no_scaffold():
    assert scaffold("CCCCO") == ""


def test_what_cannot_be_read_shifts_no_other():
    assert scaffolds(["c1ccccc1C", "C1CC(C", "CCO"], processes=1) == ["c1ccccc1", None, ""]
    with pytest.raises(StructureError):
        scaffold("C1CC(C")


def test_workers_give_what_one_process_gives():
    many = ["c1ccccc1C", "CCO", "C1CCCCC1O"] * 400
    assert scaffolds(many, processes=2) == ["c1ccccc1", "", "C1CCCCC1"] * 400
