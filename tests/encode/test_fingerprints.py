"""molecule:fingerprints against RDKit in a plain loop, and at its edges."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import MACCSkeys, rdFingerprintGenerator
from scipy import sparse

from bridgehead.encode import RowCache, load_encoder, make_encoder
from bridgehead.encode.fingerprints import KINDS, FingerprintEncoder
from bridgehead.errors import EncoderError

ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"
SMILES = [
    ASPIRIN,
    "OC(=O)c1ccccc1O",
    "CC(C)Cc1ccc(cc1)[C@H](C)C(=O)O",
    "CC(C)Cc1ccc(cc1)[C@@H](C)C(=O)O",
    "CN1CCC[C@H]1c1cccnc1",
    "NCCc1ccc(O)c(O)c1",
    "CC(C)NCC(O)COc1cccc2ccccc12",
    "N.N.Cl[Pt]Cl",
    "C",
]


def plain_loop(smiles: list[str]) -> list[dict[tuple[str, int], float]]:
    generators = {
        "morgan": rdFingerprintGenerator.GetMorganGenerator(radius=2, includeChirality=True),
        "atom_pairs": rdFingerprintGenerator.GetAtomPairGenerator(includeChirality=True),
        "torsions": rdFingerprintGenerator.GetTopologicalTorsionGenerator(includeChirality=True),
    }
    rows = []
    for text in smiles:
        molecule = Chem.MolFromSmiles(text)
        held: dict[tuple[str, int], float] = {}
        for kind in KINDS:
            if kind == "maccs":
                counts = dict.fromkeys(MACCSkeys.GenMACCSKeys(molecule).GetOnBits(), 1)
            else:
                counts = generators[kind].GetSparseCountFingerprint(molecule).GetNonzeroElements()
            weights = {(kind, key): np.log1p(count) for key, count in counts.items()}
            length = np.sqrt(sum(weight**2 for weight in weights.values()))
            held |= {key: weight / length / 2 for key, weight in weights.items()}
        rows.append(held)
    return rows


def test_rows_are_those_of_a_plain_loop_over_rdkit() -> None:
    encoder = FingerprintEncoder(min_count=1, processes=1).fit(SMILES)
    expected = plain_loop(SMILES)
    columns = sorted({key for row in expected for key in row}, key=lambda key: (KINDS.index(key[0]), key[1]))
    assert encoder.column_kinds == [kind for kind, _ in columns]
    dense = np.array([[row.get(column, 0) for column in columns] for row in expected])
    rows = encoder.encode(SMILES).rows
    assert rows.dtype == np.float32 and rows.has_sorted_indices
    np.testing.assert_allclose(rows.toarray(), dense, atol=1e-6)


def test_a_row_with_all_kinds_has_length_one() -> None:
    rows = FingerprintEncoder(min_count=1, processes=1).fit(SMILES).encode([ASPIRIN]).rows
    assert rows.multiply(rows).sum() == pytest.approx(1, abs=1e-6)


def test_columns_are_features_of_enough_training_molecules() -> None:
    one, two = (FingerprintEncoder(min_count=n, processes=1).fit([ASPIRIN, "CCO"]) for n in (1, 2))
    assert two.n_columns < one.n_columns
    assert all(two.encode([text]).rows.nnz == two.n_columns for text in (ASPIRIN, "CCO"))


def test_the_same_molecule_in_other_smiles_has_the_same_row_and_is_reported() -> None:
    encoder = FingerprintEncoder(processes=1).fit(SMILES)
    encoded = encoder.encode([ASPIRIN, "OC(=O)C1=CC=CC=C1OC(C)=O", "CCO"], ids=["a", "b", "c"])
    assert (encoded.rows[0] != encoded.rows[1]).nnz == 0
    assert encoded.report.identical_groups == [["a", "b"]]


@pytest.mark.parametrize("chirality", [True, False])
def test_chirality_tells_stereoisomers_apart(chirality: bool) -> None:
    encoder = FingerprintEncoder(min_count=1, chirality=chirality, processes=1).fit(SMILES)
    rows = encoder.encode(SMILES[2:4]).rows
    assert ((rows[0] != rows[1]).nnz > 0) == chirality


def test_a_structure_that_cannot_be_read_is_a_failure_and_shifts_no_other() -> None:
    encoder = FingerprintEncoder(processes=1).fit([*SMILES, "C1CC"])
    items = [*SMILES[:5], "C1CC", *SMILES[5:]]
    encoded = encoder.encode(items, ids=[f"m{i}" for i in range(10)])
    assert [(f.index, f.id, f.item) for f in encoded.failures] == [(5, "m5", "C1CC")]
    assert "unclosed ring" in encoded.failures[0].reason
    assert encoded.index.tolist() == [0, 1, 2, 3, 4, 6, 7, 8, 9] and encoded.ids[5] == "m6"
    assert (encoded.rows != encoder.encode(SMILES).rows).nnz == 0
    assert encoded.report.n_items == 10 and encoded.report.n_rows == 9


def test_worker_processes_give_the_same_rows() -> None:
    smiles = [*("C" * (1 + n % 25) + "O" for n in range(600)), "C1CC", *SMILES]
    alone = FingerprintEncoder(processes=1).fit(smiles)
    many = FingerprintEncoder(processes=2).fit(smiles)
    assert alone.fingerprint() == many.fingerprint()
    assert (alone.encode(smiles).rows != many.encode(smiles).rows).nnz == 0


def test_a_molecule_of_which_nothing_is_known_keeps_a_zero_row_and_is_listed() -> None:
    encoder = FingerprintEncoder(kinds=["morgan"], processes=1).fit(["CCO", "CCO"])
    encoded = encoder.encode(["[Na+].[Cl-]", "CCO"])
    assert encoded.report.empty_ids == ["0"] and encoded.rows.shape[0] == 2
    assert encoded.report.unknown_share == pytest.approx(0.25, abs=0.25)


def test_no_items_and_only_failures_give_no_rows() -> None:
    encoder = FingerprintEncoder(processes=1).fit(SMILES)
    assert encoder.encode([]).rows.shape == (0, encoder.n_columns)
    assert encoder.encode(["C1CC"]).rows.shape == (0, encoder.n_columns)


def test_before_the_fit_nothing_is_encoded_and_nothing_can_be_learnt_from_nothing() -> None:
    with pytest.raises(EncoderError, match=r"call fit\(training_smiles\) first"):
        make_encoder("molecule:fingerprints").encode(["C"])
    with pytest.raises(EncoderError, match="no feature is in 2 or more"):
        make_encoder("molecule:fingerprints", processes=1).fit(["C1CC", "CCO"])


@pytest.mark.parametrize("settings", [{"kinds": ["ecfp"]}, {"kinds": []}, {"radius": -1}, {"min_count": 0}])
def test_settings_that_make_no_sense_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(EncoderError, match=next(iter(settings))):
        make_encoder("molecule:fingerprints", **settings)


def test_the_cache_serves_another_fit_without_computing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = RowCache(tmp_path, shard_items=4)
    expected = FingerprintEncoder(processes=1).fit(SMILES[:6]).encode(SMILES).rows
    FingerprintEncoder(processes=1).fit(SMILES, cache)
    monkeypatch.setattr("bridgehead.encode.fingerprints.count_features", None)
    assert (
        FingerprintEncoder(processes=1).fit(SMILES[:6], cache).encode(SMILES, cache=cache).rows != expected
    ).nnz == 0


def test_other_settings_do_not_share_cached_counts() -> None:
    steps = {FingerprintEncoder(radius=r, chirality=c).step_fingerprint() for r in (2, 3) for c in (True, False)}
    assert len(steps) == 4
    assert FingerprintEncoder(min_count=1).step_fingerprint() == FingerprintEncoder(min_count=5).step_fingerprint()


def test_saved_and_loaded_gives_the_same_rows_without_torch_or_scikit_learn(tmp_path: Path) -> None:
    encoder = FingerprintEncoder(processes=1).fit(SMILES)
    encoder.save(tmp_path)
    sparse.save_npz(tmp_path / "expected.npz", encoder.encode(SMILES).rows)
    assert load_encoder(tmp_path).fingerprint() == encoder.fingerprint()
    code = (
        "import sys\nfrom scipy import sparse\nfrom bridgehead.encode import load_encoder\n"
        f"rows = load_encoder({str(tmp_path)!r}).encode({SMILES!r}).rows\n"
        f"assert (rows != sparse.load_npz({str(tmp_path / 'expected.npz')!r})).nnz == 0\n"
        "assert not {'torch', 'sklearn', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
