"""How a text is read as a substructure."""

import numpy as np
import pytest

from bridgehead.errors import StructureError
from bridgehead.index.structures import read_pattern


@pytest.mark.parametrize(
    "text",
    ["c1ccccc1", "C1=CC=CC=C1", " CCO ", "[nH]1cccc1", "[Na+].[Cl-]", "*C", "[H]OC", "C~C", "[2H]C", "C[C@H](N)C(=O)O"],
)
def test_what_is_a_smiles_is_read_as_one(text: str) -> None:
    pattern = read_pattern(text)
    assert (pattern.read_as, pattern.text, pattern.note) == ("SMILES", text.strip(), "")


@pytest.mark.parametrize(
    "text", ["[CH3]", "[#7]", "[OH]", "[C,N]", "[CX4]", "[R]", "cc", "c1cccc1", "[$(CO)]", "C=,:C"]
)
def test_all_else_is_smarts_with_a_note_that_says_why(text: str) -> None:
    pattern = read_pattern(text)
    assert pattern.read_as == "SMARTS" and pattern.note.startswith("read as SMARTS; as SMILES: ")


@pytest.mark.parametrize("prefix", ["smarts:", "SMARTS: ", " Smarts:"])
def test_smarts_can_be_asked_for(prefix: str) -> None:
    pattern = read_pattern(prefix + "[nH]1cccc1")
    assert (pattern.read_as, pattern.text, pattern.note) == ("SMARTS", "[nH]1cccc1", "")


def test_a_ring_written_with_double_bonds_is_the_aromatic_ring() -> None:
    assert np.array_equal(read_pattern("C1=CC=CC=C1").bits, read_pattern("c1ccccc1").bits)


def test_a_pattern_of_which_a_screen_could_use_nothing_keeps_every_candidate() -> None:
    assert np.unpackbits(read_pattern("[R]").bits).sum() <= 1


def test_both_reasons_are_given_for_what_cannot_be_read() -> None:
    with pytest.raises(StructureError) as refused:
        read_pattern("c1ccc(")
    assert "SMILES" in str(refused.value) and "SMARTS" in str(refused.value) and len(str(refused.value)) < 900


def test_something_that_is_no_text_is_refused() -> None:
    with pytest.raises(StructureError):
        read_pattern(5)  # type: ignore[arg-type]
