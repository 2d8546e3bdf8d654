"""Similarity of structures: RDKit's own Tanimoto coefficients, over everything."""

import numpy as np
import pytest
from rdkit import DataStructs
from rdkit.Chem import rdFingerprintGenerator

from bridgehead.errors import ArgumentError, StructureError
from bridgehead.index.structures import similar_numbers
from compounds import FIRST, compounds, state

ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"


def by_rdkit(smiles: str) -> dict[int, float]:
    morgan = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    texts, _, molecules = compounds()
    query = morgan.GetFingerprint(molecules[texts.index(smiles)])
    return {
        FIRST + at: DataStructs.TanimotoSimilarity(query, morgan.GetFingerprint(molecule))
        for at, molecule in enumerate(molecules)
        if molecule is not None
    }


@pytest.mark.parametrize("least", [0, 0.1, 1 / 3, 0.5, 1])
@pytest.mark.parametrize("at", [3, 700, 2500])
def test_similarities_are_those_of_rdkit_to_the_last_digit(at: int, least: float) -> None:
    smiles = compounds()[0][at]
    expected = {number: score for number, score in by_rdkit(smiles).items() if score >= least}
    numbers, scores = similar_numbers(state(), "a", smiles, least)
    assert dict(zip(numbers.tolist(), scores.tolist(), strict=True)) == expected
    assert numbers.tolist() == sorted(expected)


def test_allowed_removed_and_added_items_keep_their_similarities() -> None:
    numbers, scores = similar_numbers(state(), "a", ASPIRIN, 0.2)
    known = dict(zip(numbers.tolist(), scores.tolist(), strict=True))
    gone, allowed = numbers[::2], np.unique(np.concatenate([numbers[1::2], numbers[:4], [0, 10**9]]))
    found, similar = similar_numbers(state(added=900, removed=gone.tolist()), "a", ASPIRIN, 0.2, allowed)
    assert found.tolist() == sorted(set(numbers.tolist()) & set(allowed.tolist()) - set(gone.tolist()))
    assert similar.tolist() == [known[number] for number in found.tolist()]


@pytest.mark.parametrize("least", [-0.1, 1.1, float("nan"), True, "0.5", None])
def test_a_least_similarity_outside_0_to_1_is_refused(least: object) -> None:
    with pytest.raises(ArgumentError, match="0 to 1"):
        similar_numbers(state(), "a", ASPIRIN, least)  # type: ignore[arg-type]


def test_a_text_that_is_no_structure_is_refused() -> None:
    with pytest.raises(StructureError, match="benzene"):
        similar_numbers(state(), "a", "benzene", 0.5)


def test_a_side_without_structures_is_refused() -> None:
    with pytest.raises(ArgumentError, match="no structures"):
        similar_numbers(state(), "b", ASPIRIN, 0.5)
