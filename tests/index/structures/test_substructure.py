"""Substructures: what is found is what RDKit finds in a plain loop, whatever the pattern."""

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from rdkit import Chem, rdBase

from bridgehead.errors import ArgumentError, RunStateError, StructureError
from bridgehead.index.structures import has_substructure, matching, substructure_candidates, substructure_numbers
from compounds import FIRST, State, compounds, matches, state

AS_SMILES = [
    "c1ccccc1", "C1=CC=CC=C1", "C(=O)N", "c1ccc2[nH]ccc2c1", "CC(=O)Oc1ccccc1C(=O)O", "S(=O)(=O)N", "C#N", "CCO", "C",
    "[Na+]", "[Cl-]", "C[N+](C)(C)C", "[nH]1cccc1", "[13CH4]", "C/C=C/C", "C[C@H](N)C(=O)O", "N->[Pt]",
    "[Na+].[Cl-]", "C1CCCCC1", "FC(F)F", "[O-][N+](=O)c1ccccc1", "O=C1CCCCC1", "C12CCC(CC1)C2", "BrCCBr",
]  # fmt: skip
AS_SMARTS = [
    "[CH3]", "[OH]", "[#7]", "[C,N]=O", "[R]", "[!#6;!#1]", "[CX4;R2]", "[$([NX3;H2]),$([NX4+])]", "c-c", "c:n",
    "[$(c1ccccc1O),$(c1ccncc1)]", "*~*~*~*~*~*", "[n]", "cc", "[O-]", "[+]", "[D4]", "a1aaaaa1", "[r5]!@[r6]", "C!@-C",
    "[#6]~[#7;!$(N=O)]", "[Cl,Br,I]", "[N;H1]C(=O)", "[$([CX3]=[OX1]),$([CX3+]-[OX1-])]", "[13C]", "[#1]", "[2H]",
    "C=,#N", "[#200]",
]  # fmt: skip


@pytest.mark.parametrize("pattern", AS_SMILES)
def test_a_smiles_finds_what_a_loop_over_rdkit_finds(pattern: str) -> None:
    found = substructure_numbers(state(), "a", pattern)
    assert found.tolist() == matches(Chem.MolFromSmiles(pattern))
    assert len(found) or pattern in ("N->[Pt]",)


@pytest.mark.parametrize("pattern", AS_SMARTS)
def test_a_smarts_finds_what_a_loop_over_rdkit_finds(pattern: str) -> None:
    assert substructure_numbers(state(), "a", pattern).tolist() == matches(Chem.MolFromSmarts(pattern, mergeHs=True))


@pytest.mark.parametrize(
    ("pattern", "same"),
    [("*C(=O)N", "[*]~C(=O)[N,n]"), ("[H]OC", "[O;!H0]-,=C"), ("smarts:[nH]1cccc1", "[nH]1cccc1")],
)
def test_any_atom_and_written_hydrogens_are_conditions(pattern: str, same: str) -> None:
    found = substructure_numbers(state(), "a", pattern)
    loop = matches(Chem.MolFromSmarts(same))
    assert len(found) > 50 or pattern.startswith("smarts")
    # The SMARTS beside is narrower in what it says of aromatic atoms.
    assert set(loop) <= set(found.tolist())


def fragments(n: int) -> list[str]:
    """Connected parts of the compounds, each as SMILES and as SMARTS."""
    draw = random.Random(3)
    molecules = [molecule for molecule in compounds()[2] if molecule and molecule.GetNumAtoms() > 3]
    texts: list[str] = []
    while len(texts) < n:
        molecule = draw.choice(molecules)
        atoms = [draw.randrange(molecule.GetNumAtoms())]
        for _ in range(draw.randrange(1, 12)):
            atom = molecule.GetAtomWithIdx(draw.choice(atoms))
            atoms = sorted({*atoms, draw.choice([near.GetIdx() for near in atom.GetNeighbors()] or [atom.GetIdx()])})
        texts += [Chem.MolFragmentToSmiles(molecule, atoms), Chem.MolFragmentToSmarts(molecule, atoms)]
    return texts


def test_the_screen_never_loses_a_match() -> None:
    here = state()
    some = random.Random(5).sample([at for at, molecule in enumerate(compounds()[2]) if molecule], 400)
    n_matches = 0
    with rdBase.BlockLogs():
        for text in fragments(240):
            kept = set(substructure_candidates(here, "a", "smarts:" + text).tolist())
            queries = [Chem.MolFromSmarts(text, mergeHs=True)]
            if (query := Chem.MolFromSmiles(text)) is not None:
                queries.append(query)
                kept_smiles = set(substructure_candidates(here, "a", text).tolist())
            for query in queries:
                screened = kept if query is queries[0] else kept_smiles
                held = {FIRST + at for at in some if compounds()[2][at].HasSubstructMatch(query)}
                n_matches += len(held)
                assert held <= screened, text
    assert n_matches > 5_000


def test_the_screen_never_loses_a_match_of_a_smarts_made_at_random() -> None:
    atoms = ["C", "c", "O", "N", "n", "[#6]", "[C,N]", "[!C]", "[CX4]", "*", "[R]", "[$(C=O)]", "a", "[c;r6]", "[N+0]"]
    bonds = ["", "-", "=", "~", "@", "!@", ":", "=,:", "!=", "~=", "=~", "-;@", "#", "!-", "/", "@-", "-=", "=&@"]
    draw, here, n_matches = random.Random(13), state(), 0
    some = [at for at, molecule in enumerate(compounds()[2]) if molecule][::25]
    for pattern in ["O~=[#6]c", *("".join(draw.choice(atoms) + draw.choice(bonds) for _ in range(draw.randint(1, 5)))
                                  + draw.choice(atoms) for _ in range(300))]:  # fmt: skip
        query = Chem.MolFromSmarts(pattern, mergeHs=True)
        kept = set(substructure_candidates(here, "a", "smarts:" + pattern).tolist())
        held = {FIRST + at for at in some if compounds()[2][at].HasSubstructMatch(query)}
        n_matches += len(held)
        assert held <= kept, pattern
    assert n_matches > 2_000


def test_the_screen_leaves_little_to_match() -> None:
    here = state()
    for pattern in ("c1ccc2[nH]ccc2c1", "S(=O)(=O)N", "C(=O)N", "c1ccccc1"):
        found = substructure_numbers(here, "a", pattern)
        assert len(substructure_candidates(here, "a", pattern)) < 1.3 * len(found) + 20


def test_removed_items_are_not_found_and_added_ones_are() -> None:
    every = substructure_numbers(state(), "a", "c1ccccc1")
    gone = every[::3]
    assert substructure_numbers(state(added=700), "a", "c1ccccc1").tolist() == every.tolist()
    left = substructure_numbers(state(added=700, removed=gone.tolist()), "a", "c1ccccc1")
    assert left.tolist() == sorted(set(every.tolist()) - set(gone.tolist()))


def test_only_allowed_items_are_found_and_a_limit_takes_the_lowest_numbers() -> None:
    every = substructure_numbers(state(), "a", "C(=O)N")
    allowed = np.arange(FIRST + 50, FIRST + 2000, 2, dtype=np.int64)
    expected = [number for number in every.tolist() if number in set(allowed.tolist())]
    assert substructure_numbers(state(), "a", "C(=O)N", allowed).tolist() == expected
    for limit in (1, 7, 400, 10**9):
        assert substructure_numbers(state(), "a", "C(=O)N", allowed, limit).tolist() == expected[:limit]
    assert not len(substructure_numbers(state(), "a", "C", np.zeros(0, dtype=np.int64)))
    with pytest.raises(ArgumentError, match="limit"):
        substructure_numbers(state(), "a", "C", limit=0)


def test_an_empty_side_has_no_match() -> None:
    assert not len(substructure_numbers(State([]), "a", "[R]"))


def test_a_side_without_structures_is_refused() -> None:
    with pytest.raises(ArgumentError, match="no structures"):
        substructure_numbers(state(), "b", "C")


@pytest.mark.parametrize("pattern", ["", "  ", "benzene", "C C", "C(", "[", "[$(C", "c1ccccc", "C>>N", "C\0"])
def test_what_cannot_be_read_is_refused_with_the_reason(pattern: str) -> None:
    with pytest.raises(StructureError, match=r"(?s)SMILES.*SMARTS"):
        substructure_numbers(state(), "a", pattern)


def test_bits_of_another_rdkit_are_refused_rather_than_lose_items() -> None:
    smiles, bits, _ = compounds()
    with pytest.raises(RunStateError, match="build the index again"):
        substructure_numbers(State(smiles, np.roll(bits, 1, axis=1)), "a", "C")


def test_worker_processes_and_threads_do_not_change_what_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    smiles = compounds()[0]
    expected = [number - FIRST for number in substructure_numbers(state(), "a", "c1ccccc1")]
    monkeypatch.setattr(matching, "_MANY", 100)
    matching._store.emptied()
    assert np.flatnonzero(has_substructure("c1ccccc1", smiles, processes=2)).tolist() == expected
    monkeypatch.setattr(matching, "_KEPT", 500)
    matching._store.emptied()
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: has_substructure("c1ccccc1", smiles, processes=1), range(4)):
            assert np.flatnonzero(found).tolist() == expected
    matching._store.emptied()
