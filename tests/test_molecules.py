"""Structures: parsing within limits, and the levels of identity."""

import subprocess
import sys
import time

import pytest

from bridgehead.errors import StructureError
from bridgehead.molecules import (
    canonical_smiles,
    identify,
    identify_all,
    is_inchikey,
    parse,
    parse_pattern,
    random_smiles,
    reads_as_smiles,
)

ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"
ASPIRIN_KEY = "BSYNRYMUTXBXSQ-UHFFFAOYSA-N"
QUININE = "COc1ccc2nccc([C@@H](O)[C@@H]3C[C@@H]4CC[N@]3C[C@@H]4C=C)c2c1"
QUINIDINE = "COc1ccc2nccc([C@H](O)[C@H]3C[C@@H]4CC[N@]3C[C@@H]4C=C)c2c1"
CISPLATIN = ["[NH3][Pt](Cl)(Cl)[NH3]", "N.N.Cl[Pt]Cl", "[NH3+][Pt-2](Cl)(Cl)[NH3+]", "N->[Pt](Cl)(Cl)<-N"]


def test_the_same_molecule_in_other_smiles_is_the_same_exactly() -> None:
    written = [ASPIRIN, "O=C(C)Oc1ccccc1C(O)=O", "OC(=O)C1=CC=CC=C1OC(C)=O", " " + ASPIRIN + "\n"]
    assert {identify(smiles).exact for smiles in written} == {ASPIRIN_KEY}
    assert len({canonical_smiles(smiles) for smiles in written}) == 1


@pytest.mark.parametrize(
    "salt",
    [
        "CC(=O)Oc1ccccc1C(=O)[O-].[Na+]",
        "CC(=O)Oc1ccccc1C(=O)O[Na]",
        "CC(=O)Oc1ccccc1C(=O)O.NCCCCC(N)C(=O)O",
        "CC(=O)Oc1ccccc1C(=O)[O-].[NH3+]CCCC[C@H](N)C(=O)O",
        "CC(=O)Oc1ccccc1C(=O)O.CNC[C@H](O)[C@@H](O)[C@H](O)[C@H](O)CO",
        "CC(=O)Oc1ccccc1C(=O)O.NC(CO)(CO)CO",
        "CC(=O)Oc1ccccc1C(=O)[O-].CC(=O)Oc1ccccc1C(=O)[O-].[Ca+2].NC(N)=O",
        "CC(=O)Oc1ccccc1C(=O)O.CCO.O",
    ],
)
def test_aspirin_and_its_salts_and_solvates_are_one_parent_and_different_exactly(salt: str) -> None:
    found = identify(salt)
    assert (found.parent, found.skeleton) == (ASPIRIN_KEY, "BSYNRYMUTXBXSQ")
    assert found.components == ("BSYNRYMUTXBXSQ",) and not found.mixture
    assert found.exact != ASPIRIN_KEY


@pytest.mark.parametrize(
    "salt, alone",
    [
        ("O=C([O-])c1ccccc1.[Na+]", "O=C(O)c1ccccc1"),
        ("[Na]OC(=O)c1ccccc1", "O=C(O)c1ccccc1"),
        ("CC(=O)[O-].[K+]", "CC(=O)O"),
        ("NCCCCC(N)C(=O)O.CC(=O)O", "NCCCCC(N)C(=O)O"),
        ("C1CNCCN1.OC(=O)CC(O)(C(=O)O)CC(=O)O", "C1CNCCN1"),
        ("CN1CCC[C@H]1c1cccnc1.OC(=O)c1ccccc1O", "CN1CCC[C@H]1c1cccnc1"),
        ("CCO.Cl", "CCO"),
        ("C[N+](C)(C)CCOC(C)=O.[Cl-]", "C[N+](C)(C)CCOC(C)=O"),
    ],
)
def test_what_is_left_of_a_salt_is_never_nothing(salt: str, alone: str) -> None:
    assert identify(salt).parent == identify(alone).parent


@pytest.mark.parametrize("alone", ["NCCCCC(N)C(=O)O", "CS(C)=O", "OC(=O)c1ccccc1", "O", "[Na+].[Cl-]", "[2H]O[2H]"])
def test_a_counter_ion_or_solvent_alone_is_itself(alone: str) -> None:
    found = identify(alone)
    assert found.parent == found.exact and not found.mixture


def test_a_mixture_is_flagged_and_belongs_to_the_skeleton_of_each_component() -> None:
    caffeine = "Cn1cnc2c1c(=O)n(C)c(=O)n2C"
    found = identify(f"{ASPIRIN}.{caffeine}.Cl")
    assert found.mixture
    assert set(found.components) == {identify(ASPIRIN).skeleton, identify(caffeine).skeleton}
    assert identify(f"{caffeine}.{ASPIRIN}").skeleton == found.skeleton


def test_a_base_with_a_partner_that_is_no_acid_is_a_mixture() -> None:
    assert identify("NCCCCC(N)C(=O)O.CCCCCCCCCCCCCCCC").mixture


def test_quinine_and_quinidine_share_the_skeleton_only() -> None:
    quinine, quinidine = identify(QUININE), identify(QUINIDINE)
    assert quinine.skeleton == quinidine.skeleton
    assert quinine.exact != quinidine.exact and quinine.parent != quinidine.parent


@pytest.mark.parametrize("smiles", CISPLATIN)
def test_cisplatin_in_every_notation_has_one_skeleton(smiles: str) -> None:
    found = identify(smiles)
    assert found.skeleton == "LXZZYRPGZAFOLE"
    assert found.fallback == found.exact.startswith("smiles-")


@pytest.mark.parametrize("smiles", ["*CC*", "[*]c1ccccc1", "N->[Pt](Cl)(Cl)<-N"])
def test_without_an_inchikey_the_canonical_smiles_is_the_identity(smiles: str) -> None:
    found = identify(smiles)
    assert found.fallback and found.exact.startswith("smiles-") and not is_inchikey(found.exact)
    assert identify(canonical_smiles(smiles)).exact == found.exact


def test_two_molecules_without_an_inchikey_are_not_merged() -> None:
    assert identify("*CC*").skeleton != identify("*CCC*").skeleton


@pytest.mark.parametrize(
    "smiles, reason",
    [
        ("C1CC", "unclosed ring"),
        ("CX", "syntax error"),
        ("c1cccc1", "kekulize"),
        ("C(C)(C)(C)(C)C", "valence for atom # 0 C, 5"),
        ("", "expected a SMILES"),
        ("  \t", "expected a SMILES"),
        ("CCO ethanol", "white space"),
        ("CC\0O", "white space"),
        ("阿司匹林", "not a valid SMILES"),
        ("C" * 10_001, "10,001 characters; at most 10,000"),
        ("C" * 1_001, "1,001 atoms; at most 1,000"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(smiles: str, reason: str) -> None:
    with pytest.raises(StructureError, match=reason):
        parse(smiles)


def test_one_bad_structure_shifts_no_other() -> None:
    smiles = ["C" * (n + 1) for n in range(10)]
    smiles[5] = "C1CC"
    identities, failures = identify_all(smiles, processes=1)
    assert [i for i, found in enumerate(identities) if found is None] == [5]
    assert [position for position, _ in failures] == [5] and "unclosed ring" in failures[0][1]
    assert [f.formula for f in identities if f][5] == "C7H16"


def test_worker_processes_give_what_one_process_gives() -> None:
    smiles = [ASPIRIN, "C1CC", *("C" * (1 + n % 30) for n in range(1200))]
    calls: list[tuple[int, int]] = []
    alone = identify_all(smiles, processes=1)
    assert identify_all(smiles, processes=2, progress=lambda done, total: calls.append((done, total))) == alone
    assert calls[-1] == (len(smiles), len(smiles))
    assert identify_all([]) == ([], [])


def test_a_script_without_a_main_guard_can_use_worker_processes(tmp_path) -> None:  # type: ignore[no-untyped-def]
    script = tmp_path / "script.py"
    script.write_text(
        "import threading, bridgehead.molecules as m\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "print(len(m.identify_all(['CCO'] * 1100, processes=2)[0]))\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", str(script)], capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.stderr) == ("1100", "")


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    for smiles in ["*CC*", "C1CC", "c1cccc1", "CC(=O)[O-].[Na+]", "C(Br)(F)Cl", *CISPLATIN]:
        identify_all([smiles])
        reads_as_smiles(smiles)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("text", ["C=O", "c1ccccc1", "[Na+]", "CC(C)O", "CCCCC", "N#N", ASPIRIN, " CC=C "])
def test_structures_are_read_as_smiles(text: str) -> None:
    assert reads_as_smiles(text)


@pytest.mark.parametrize(
    "text", ["CO", "NO", "CCO", "COX-2", "aspirin", "5-HT1A", "", "NOT", "C=O and CO", "*", "C1CC"]
)
def test_words_are_not_read_as_smiles(text: str) -> None:
    assert not reads_as_smiles(text)


def test_an_inchikey_is_known_by_its_form() -> None:
    assert is_inchikey(ASPIRIN_KEY) and is_inchikey(f" {ASPIRIN_KEY}\n")
    assert not is_inchikey("BSYNRYMUTXBXSQ") and not is_inchikey("aspirin")


def test_words_are_told_apart_without_loading_rdkit() -> None:
    code = (
        "import sys\nfrom bridgehead.molecules import reads_as_smiles\n"
        "assert not any(map(reads_as_smiles, ['cyclooxygenase', 'inhibits COX', '5-HT1A', 'beta-blocker', '']))\n"
        "assert 'rdkit' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_missing_value_is_a_failure() -> None:
    assert identify_all([None, "C"])[1][0][0] == 0  # type: ignore[list-item]


def test_large_and_symmetric_structures_take_a_moment_only() -> None:
    fullerene = (
        "c12c3c4c5c1c1c6c7c2c2c8c3c3c9c4c4c%10c5c5c1c1c6c6c%11c7c2c2c7c8c3c3c8c9c4c4c9c%10c5c5c1c1c6c6c%11c2c2c7c3c3c8"
        "c4c4c9c5c1c1c6c2c3c41"
    )
    start = time.monotonic()
    identities, failures = identify_all([fullerene, "C" * 1000, "C1CC1" * 300, "C(F)(F)" * 330], processes=1)
    assert not failures and all(identities)
    assert time.monotonic() - start < 20


@pytest.mark.parametrize("smiles", [ASPIRIN, QUININE, CISPLATIN[3], "C/C=C/C(=O)[O-].[Na+]", "[13CH4]", "F/C=C\\Cl"])
def test_random_smiles_are_other_texts_of_the_same_molecule(smiles: str) -> None:
    written = [random_smiles(smiles, seed) for seed in range(20)]
    assert {canonical_smiles(text) for text in written} == {canonical_smiles(smiles)}
    assert len(set(written)) > 5 or smiles in ("[13CH4]", "F/C=C\\Cl", CISPLATIN[3])


def test_random_smiles_depend_on_the_seed_alone() -> None:
    assert random_smiles(QUININE, 7) == random_smiles(" " + QUININE, 7)
    assert random_smiles(QUININE, 7) != random_smiles(QUININE, 2**63)


def test_random_smiles_of_no_structure_are_refused() -> None:
    with pytest.raises(StructureError, match="not a valid SMILES"):
        random_smiles("CC(", 0)


def test_half_a_character_is_no_structure():
    with pytest.raises(StructureError, match="half a character"):
        parse("CC\ud800O")


@pytest.mark.parametrize("text", ["[#200]", "C[#119]C", "[999999999999C]", "C%(99999999999)C"])
def test_a_text_at_which_rdkit_breaks_off_is_refused_like_any_other(text: str) -> None:
    with pytest.raises(StructureError) as refused:
        parse(text)
    assert "Code/" not in str(refused.value) and "\n" not in str(refused.value)
    assert not reads_as_smiles(text)


@pytest.mark.parametrize("smarts", ["[CX4]", "[$(c1ccccc1O),$([NX3;H2])]", "c1ccccc1C(=O)[OH]", "[#6]~[!#6]"])
def test_a_smarts_is_parsed_as_a_query(smarts: str) -> None:
    assert parse_pattern(f" {smarts} ").GetNumAtoms() >= 1


@pytest.mark.parametrize(
    "smarts",
    [
        "",
        " ",
        "C C",
        "[",
        "C(",
        "benzene",
        "C\0",
        "é",
        "C" * 2001,
        "C" * 251,
        "[$(" * 33 + "C" + ")]" * 33,
        "\ud800",
    ],
)
def test_a_smarts_that_cannot_be_read_or_is_beyond_the_limits_is_refused_in_one_line(smarts: str) -> None:
    with pytest.raises(StructureError) as refused:
        parse_pattern(smarts)
    assert len(str(refused.value)) < 400 and "Code/" not in str(refused.value)


def test_hydrogens_written_as_atoms_are_kept_where_asked() -> None:
    assert parse("[H]OC").GetNumAtoms() == 2
    assert parse("[H]OC", hydrogens=True).GetNumAtoms() == 3
