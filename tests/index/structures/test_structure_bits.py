"""Bits of structures as they are stored."""

import subprocess
import sys

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import rdFingerprintGenerator

from bridgehead.index.structures import structure_bits

SMILES = ["CCO", "CC(=O)Oc1ccccc1C(=O)O", "no structure", "", "C", "[Na+].[Cl-]", "C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O"]


def on_bits(row: np.ndarray) -> list[int]:
    return np.flatnonzero(np.unpackbits(row, bitorder="little")).tolist()


def test_the_bits_are_those_of_rdkit_pattern_first_then_morgan() -> None:
    morgan = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    rows = structure_bits(SMILES)
    assert rows.shape == (len(SMILES), 512) and rows.dtype == np.uint8
    for text, row in zip(SMILES, rows, strict=True):
        molecule = Chem.MolFromSmiles(text) if text and " " not in text else None
        pattern = [] if molecule is None else list(Chem.PatternFingerprint(molecule, fpSize=2048).GetOnBits())
        circles = [] if molecule is None else list(morgan.GetFingerprint(molecule).GetOnBits())
        assert on_bits(row[:256]) == pattern
        assert on_bits(row[256:]) == circles


def test_what_does_not_parse_is_a_row_of_zeros_and_shifts_no_other() -> None:
    rows = structure_bits(["nonsense", "CCO", "C1CC", "OCC"])
    assert not rows[[0, 2]].any()
    assert np.array_equal(rows[1], rows[3]) and rows[1].any()


def test_no_structure_gives_no_row() -> None:
    assert structure_bits([]).shape == (0, 512)


def test_stereochemistry_is_in_no_bit() -> None:
    rows = structure_bits(SMILES)
    assert np.array_equal(rows[-1], rows[-2])


def test_processes_do_not_shape_the_bits() -> None:
    many = ["C" * (1 + n % 40) + "O" for n in range(1100)]
    assert np.array_equal(structure_bits(many, processes=1), structure_bits(many, processes=2))


@pytest.mark.parametrize("module", ["bridgehead.index", "bridgehead.index.structures"])
def test_rdkit_is_loaded_with_the_first_structure_only(module: str) -> None:
    code = f"import sys, {module}; sys.exit('rdkit' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
