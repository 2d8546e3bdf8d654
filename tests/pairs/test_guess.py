"""Which column is which."""

from pathlib import Path

import pytest

from bridgehead.errors import DataError
from bridgehead.pairs import guess_columns

SMILES = ["CC(=O)Oc1ccccc1C(=O)O", "CN1C=NC2=C1C(=O)N(C(=O)N2C)C", "c1ccccc1", "CC(C)Cc1ccc(cc1)C(C)C(=O)O"]
TEXTS = ["lowers fever and pain", "wakes people up", "a solvent that burns", "lowers fever and swelling"]


def write(path: Path, header: str, rows: list[str]) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def test_smiles_text_and_id_are_found_whatever_their_order_and_names(tmp_path: Path) -> None:
    rows = [f"{text},{i:03d},{smiles},x" for i, (smiles, text) in enumerate(zip(SMILES, TEXTS, strict=True))]
    guess = guess_columns(write(tmp_path / "x.csv", "what,number,structure,constant", rows))
    assert (guess.a, guess.b, guess.id, guess.kinds) == ("structure", "what", "number", ("molecule", "text"))
    assert "100 % of its values read as SMILES" in guess.why[0]
    assert len(guess.why) == 3


def test_inchikeys_and_words_are_no_smiles(tmp_path: Path) -> None:
    rows = [f"BSYNRYMUTXBXSQ-UHFFFAOYSA-N,{text},Cobalt{i}" for i, text in enumerate(TEXTS)]
    guess = guess_columns(write(tmp_path / "x.csv", "key,text,name", rows))
    assert guess.kinds == ("text", "text")


def test_without_a_unique_column_records_are_numbered(tmp_path: Path) -> None:
    rows = [f"{smiles},{text}" for smiles, text in zip(SMILES, TEXTS, strict=True)]
    guess = guess_columns(write(tmp_path / "x.csv", "s,t", rows))
    assert (guess.a, guess.b, guess.id) == ("s", "t", None)
    assert "records are numbered" in guess.why[2]


def test_a_column_named_like_an_id_is_preferred(tmp_path: Path) -> None:
    rows = [f"{smiles},{text},u{i},v{i}" for i, (smiles, text) in enumerate(zip(SMILES, TEXTS, strict=True))]
    assert guess_columns(write(tmp_path / "x.csv", "s,t,other,ligand_id", rows)).id == "ligand_id"


def test_one_column_is_not_enough(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="expected two, one for each side"):
        guess_columns(write(tmp_path / "x.csv", "s,t", ["CCO,", "CCC,"]))


@pytest.mark.parametrize(
    "file, expected",
    [
        ("molecule_text/test_open.tsv.gz", ("smiles", "description", "cid")),
        ("pharmacology/ligands.tsv.gz", ("smiles", "synonyms", "ligand_id")),
    ],
)
def test_real_files_are_guessed(shared_data: Path, file: str, expected: tuple[str, str, str]) -> None:
    guess = guess_columns(shared_data / file)
    assert (guess.a, guess.b, guess.id) == expected
