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


def test_a_column_that_is_called_smiles_may_hold_the_smallest_molecules(tmp_path: Path) -> None:
    rows = ["00123,C,a gas", "NA,CC,another gas", "1e5,CCO,a solvent"]
    guess = guess_columns(write(tmp_path / "x.csv", "id,Canonical_SMILES,description", rows))
    assert (guess.a, guess.b, guess.id) == ("Canonical_SMILES", "description", "id")
    assert guess.kinds == ("molecule", "text")


def test_an_id_is_no_side_where_two_columns_are_left_without_it(tmp_path: Path) -> None:
    rows = [f"{i:07d}-longer-than-the-words,w{i},some text number {i}" for i in range(4)]
    guess = guess_columns(write(tmp_path / "x.csv", "key,word,text", rows))
    assert (guess.a, guess.b, guess.id) == ("word", "text", "key")
    assert guess_columns(write(tmp_path / "x.csv", "key,text", ["a,x y", "b,z w"])).a == "key"


def test_columns_of_one_name_are_refused_here_as_they_are_in_reading(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="column 'a' occurs twice"):
        guess_columns(write(tmp_path / "x.csv", "a,a,n", ["some words,other words,1"]))


def test_another_separator_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="expected two, one for each side; the header holds ';': "):
        guess_columns(write(tmp_path / "x.csv", "smiles;text", ["CCO;a solvent"]))


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
