"""The only place that parses a structure: SMILES with limits, and the levels of identity of a molecule.

Levels: `exact` (InChIKey), `parent` (salts, solvents and charge removed; mixtures flagged), `skeleton` (first block of
the parent's key). RDKit is loaded when the first structure is read. This module is not about fingerprints (`encode`)
or pictures (`depict`). The size limits bound the time as well: at 1,000 atoms an identity takes under a second.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from bridgehead.errors import MissingExtraError, StructureError
from bridgehead.workers import Progress, map_chunks

MAX_ATOMS = 1000
MAX_LENGTH = 10_000
_CHUNK = 512
_SHOWN = 60
_FEWEST_ATOMS = 5

_INCHIKEY = re.compile(r"[A-Z]{14}-[A-Z]{8}[SN][A-Z]-[A-Z]")
_BOND_RING_BRACKET = re.compile(r"[-=#$:/\\~\[\]()0-9%]")
_BOND_OR_BRACKET = re.compile(r"[=#\[\]]|\(.+\)")
# The tokens of a SMILES. Most words fail here already, and RDKit is not loaded for them.
_SMILES_TOKENS = re.compile(r"(?:\[[^\[\]]+\]|Br|Cl|[BCNOPSFIbcnops*]|->|<-|[-=#$:/\\~().%0-9+])+")
_LOG_STAMP = re.compile(r"^\[\d\d:\d\d:\d\d\]\s*")

# Everything that is not a metal, metalloids included; s-block metals are counter-ions even when drawn with a bond.
_NON_METALS = frozenset([0, 1, 2, 5, 6, 7, 8, 9, 10, 14, 15, 16, 17, 18, 32, 33, 34, 35, 36, 51, 52, 53, 54, 85, 86])
_S_BLOCK = frozenset([3, 4, 11, 12, 19, 20, 37, 38, 55, 56, 87, 88])

# What goes, level by level, as long as something else stays. Stereochemistry, isotopes and charge do not count here.
_SOLVENTS = (
    "CO CCO CCCO CC(C)O CCCCO CC(C)CO CC(C)(C)O OCCO CC(O)CO OCC(O)CO CC(C)=O CCC(C)=O CC#N CN(C)C=O CC(=O)N(C)C "
    "CS(C)=O C1CCOC1 C1COCCO1 CCOCC COC(C)(C)C CCOC(C)=O CC(=O)OC(C)C ClCCl ClC(Cl)Cl Cc1ccccc1 c1ccccc1 CCCCCC "
    "CCCCCCC C1CCCCC1 c1ccncc1 CN1CCCC1=O NC=O O=C=O"
)
_PLAIN_ACIDS = (
    "C(=O)O CC(=O)O CCC(=O)O CCCC(=O)O OC(=O)C(F)(F)F OC(=O)O OC(=O)C(=O)O OC(=O)CC(=O)O OC(=O)CCC(=O)O "
    "OC(=O)CCCCC(=O)O OC(=O)C=CC(=O)O CC(O)C(=O)O OCC(=O)O OC(=O)CC(O)C(=O)O OC(=O)C(O)C(O)C(=O)O "
    "OC(=O)CC(O)(C(=O)O)CC(=O)O OCC(O)C(O)C(O)C(O)C(=O)O OC(=O)C(O)C(O)C(O)C(O)C(=O)O OCC(O)C(O)C(O)C(O)C(O)C(=O)O "
    "CCCCCCCCCCCC(=O)O CCCCCCCCCCCCCCCC(=O)O CCCCCCCCCCCCCCCCCC(=O)O CS(=O)(=O)O CCS(=O)(=O)O OCCS(=O)(=O)O "
    "OS(=O)(=O)CCS(=O)(=O)O OS(=O)(=O)C(F)(F)F OS(=O)(=O)c1ccccc1 Cc1ccc(cc1)S(=O)(=O)O Clc1ccc(cc1)S(=O)(=O)O "
    "OS(=O)(=O)c1ccc2ccccc2c1 OS(=O)(=O)c1cccc2ccccc12 OS(=O)(=O)c1cccc2c1cccc2S(=O)(=O)O CC1(C)C2CCC1(CS(=O)(=O)O)"
    "C(=O)C2 COS(=O)(=O)O CCOS(=O)(=O)O CCCCCCCCCCCCOS(=O)(=O)O C#N SC#N OC#N OC(=O)c1cc2ccccc2c(Cc2c3ccccc3cc(C(=O)O)"
    "c2O)c1O"
)
_ACIDS_ALSO_DRUGS = (
    "OC(=O)c1ccccc1 OC(=O)c1ccccc1O OC(=O)c1ccccc1C(=O)O OC(=O)c1ccc(O)cc1 OC(=O)c1ccc2ccccc2c1O OC(=O)C(O)c1ccccc1 "
    "OC(=O)C=Cc1ccccc1 OC(=O)c1cccnc1 O=S1(=O)NC(=O)c2ccccc12 NC(CC(=O)O)C(=O)O NC(CCC(=O)O)C(=O)O OC(=O)C1CCC(=O)N1 "
    "OC(=O)CNC(=O)c1ccccc1 CC1=CC(=O)NS(=O)(=O)O1 CC(=O)NCC(=O)O OC(=O)c1cc(O)c(O)c(O)c1 OCC(O)C1OC(=O)C(O)=C1O"
)
_BASES_ALSO_DRUGS = (
    "NCCCCC(N)C(=O)O NC(CCCNC(N)=N)C(=O)O NC(Cc1c[nH]cn1)C(=O)O NCC(=O)O CNCC(O)C(O)C(O)C(O)CO NC(CO)(CO)CO NCCO "
    "OCCNCCO OCCN(CCO)CCO C[N+](C)(C)CCO C[N+](C)(C)CC(=O)[O-] CN(C)CCO CCN(CC)CCO OCCN1CCCC1 OCCN1CCOCC1 NCCN CN CCN "
    "CNC CCNCC CN(C)C CCN(CC)CC CC(C)(C)N CC(C)N C1CNCCN1 C1CCNCC1 C1CCNC1 C1COCCN1 C1CCCCC1NC1CCCCC1 "
    "c1ccc(cc1)CNCCNCc1ccccc1 c1ccccc1CNCCc1ccccc1 NCc1ccccc1 C[N+](C)(C)C CC[N+](CC)(CC)CC CCCC[N+](CCCC)(CCCC)CCCC "
    "NC(N)=N NC(N)=O"
)
_ACID_GROUPS = (
    "[CX3](=O)[OX2H1,OX1-]", "[S,P,B]~[OX2H1,OX1-]", "[OX2H1,OX1-]c", "[#7-]", "[nH]",
    "[NX3;H1,H2]([C,S]=O)[C,S]=O", "[NX3;H1,H2]S(=O)=O", "[OX2H1][NX3]C=O", "[OX2H1]C=C",
)  # fmt: skip


@dataclass(frozen=True)
class Identity:
    """Who a molecule is, level by level.

    `exact` is the InChIKey of the structure as given, `parent` that of what is left without salts, solvents and
    charge, `skeleton` the first block (14 letters) of the parent's key. `components` are the skeletons of the parent's
    organic parts, one for most molecules; a `mixture` has several, and belongs to each of them. `canonical` is RDKit's
    canonical SMILES of the structure as given, `formula` its molecular formula. `fallback` says that the structure has
    no InChIKey (dummy atoms, polymers, dative metal complexes): `exact` is then `smiles-` and a hash of `canonical`.
    """

    exact: str
    parent: str
    skeleton: str
    components: tuple[str, ...]
    canonical: str
    mixture: bool
    fallback: bool
    formula: str


def parse(smiles: str, *, max_atoms: int = MAX_ATOMS, max_length: int = MAX_LENGTH) -> Any:
    """Return the RDKit molecule of a SMILES; white space at the ends is ignored.

    Raises `StructureError` with RDKit's own reason, or when the text is empty, longer than `max_length` characters,
    holds white space inside (a name after the SMILES), or the molecule has more than `max_atoms` heavy atoms.
    Nothing is printed.
    """
    chem, base = _rdkit()
    text = smiles.strip() if isinstance(smiles, str) else ""
    if not text:
        raise StructureError(f"{smiles!r} is no structure; expected a SMILES such as 'CCO'")
    if len(text) > max_length:
        raise StructureError(f"a SMILES of {len(text):,} characters; at most {max_length:,} are read")
    if "\0" in text or len(text.split(None, 1)) > 1:
        raise StructureError(f"{_short(text)!r} holds white space; expected a SMILES alone, without a name after it")
    if any(0xD800 <= ord(character) <= 0xDFFF for character in text):
        raise StructureError(f"{_short(text)!r} holds half a character; expected text that UTF-8 can write")
    with base.BlockLogs():
        molecule = chem.MolFromSmiles(text)
    if molecule is None:
        raise StructureError(f"{_short(text)!r} is not a valid SMILES: {_reason(text)}")
    if molecule.GetNumAtoms() > max_atoms:
        raise StructureError(f"{_short(text)!r} has {molecule.GetNumAtoms():,} atoms; at most {max_atoms:,} are read")
    return molecule


def canonical_smiles(smiles: str) -> str:
    """Return RDKit's canonical SMILES, stereochemistry included; raises `StructureError`."""
    chem, base = _rdkit()
    with base.BlockLogs():
        return str(chem.MolToSmiles(parse(smiles)))


def random_smiles(smiles: str, seed: int) -> str:
    """Return another SMILES of the same molecule: its atoms in an order drawn from `seed` (any integer of 0 or more).

    Stereochemistry, charges and isotopes stay; equal seeds give equal texts. A molecule of one atom has one SMILES.
    Raises `StructureError` as `parse` does. Source: SMILES enumeration, Bjerrum 2017 (arXiv:1703.07076).
    """
    chem, base = _rdkit()
    molecule = parse(smiles)
    order = np.random.default_rng(seed).permutation(molecule.GetNumAtoms())
    with base.BlockLogs():
        # RDKit's own random order draws from a generator that the whole process shares.
        return str(chem.MolToSmiles(chem.RenumberAtoms(molecule, order.tolist()), canonical=False))


def is_inchikey(text: str) -> bool:
    """Say whether `text` (white space at the ends ignored) has the form of a standard or non-standard InChIKey."""
    return _INCHIKEY.fullmatch(text.strip()) is not None


def reads_as_smiles(text: str) -> bool:
    """Say whether a query is to be read as a structure: it parses and cannot well be a word.

    It needs a bond sign, a ring closure, a bracket or at least five heavy atoms: `CO` and `NO` are words.
    """
    word = text.strip()
    if len(word) > MAX_LENGTH or _SMILES_TOKENS.fullmatch(word) is None:
        return False
    try:
        molecule = parse(word)
    except StructureError:
        return False
    return _BOND_RING_BRACKET.search(word) is not None or molecule.GetNumAtoms() >= _FEWEST_ATOMS


def why_no_smiles(text: str) -> str | None:
    """Return why a query that is written as a structure cannot be read as one; None for words and for structures.

    Written as one: all signs are of a SMILES, among them a double bond, bracket or branch, or five atoms and a sign.
    """
    word = text.strip()
    n_letters = sum(map(str.isalpha, word))
    few = not n_letters or (n_letters < _FEWEST_ATOMS and _BOND_OR_BRACKET.search(word) is None)
    if few or _BOND_RING_BRACKET.search(word) is None or _SMILES_TOKENS.fullmatch(word) is None:
        return None
    try:
        parse(word)
    except StructureError as error:
        return str(error)
    return None


def identify(smiles: str) -> Identity:
    """Return the identity of a molecule at every level; raises `StructureError`."""
    chem, base = _rdkit()
    molecule = parse(smiles)
    with base.BlockLogs():
        canonical = chem.MolToSmiles(molecule)
        exact = chem.MolToInchiKey(molecule)
        fallback = not exact
        exact = exact or _hash(canonical)
        parents = _parents(molecule)
        if parents is None:
            parent = exact
            components: tuple[str, ...] = (_skeleton(exact),)
        else:
            parent = _key(_joined(parents))
            components = tuple(sorted({_skeleton(_key(part)) for part in parents}))
        formula = chem.rdMolDescriptors.CalcMolFormula(molecule)
    return Identity(
        exact, parent, _skeleton(parent), components, canonical, len(components) > 1, fallback, str(formula)
    )


def identify_all(
    smiles: Sequence[str], processes: int | None = None, progress: Progress | None = None
) -> tuple[list[Identity | None], list[tuple[int, str]]]:
    """Return the identity of each structure, None where there is none, and the failures as (position, reason).

    Long lists are worked on in `processes` (default: all cores) worker processes; the results are in the order of the
    input, and a structure that fails shifts no other. `progress(done, total)` is called as chunks come in.
    """
    identities: list[Identity | None] = []
    failures: list[tuple[int, str]] = []
    for part, results in map_chunks(_identify_chunk, smiles, chunk=_CHUNK, processes=processes):
        for offset, result in enumerate(results):
            identities.append(None if isinstance(result, str) else result)
            if isinstance(result, str):
                failures.append((part.start + offset, result))
        if progress is not None:
            progress(part.stop, len(smiles))
    return identities, failures


def _identify_chunk(smiles: Sequence[str]) -> list[Identity | str]:
    results: list[Identity | str] = []
    for text in smiles:
        try:
            results.append(identify(text))
        except (StructureError, RuntimeError, ValueError) as error:
            results.append(str(error))
    return results


@lru_cache(maxsize=1)
def _rdkit() -> tuple[Any, Any]:
    try:
        from rdkit import Chem, rdBase
        from rdkit.Chem import rdMolDescriptors  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("rdkit", "molecules") from error
    return Chem, rdBase


def _reason(text: str) -> str:
    """Ask RDKit why a SMILES was refused."""
    chem, base = _rdkit()
    with base.CaptureErrorLog() as log:
        unchecked = chem.MolFromSmiles(text, sanitize=False)
        written = str(log.messages)
    if unchecked is not None:
        with base.BlockLogs():
            problems = chem.DetectChemistryProblems(unchecked)
        if problems:
            return str(problems[0].Message())
    lines = [_LOG_STAMP.sub("", line).strip() for line in written.splitlines()]
    return next((line for line in lines if line), "RDKit cannot read it")


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _hash(canonical: str) -> str:
    return "smiles-" + hashlib.sha256(canonical.encode()).hexdigest()[:24]


def _key(molecule: Any) -> str:
    chem, _ = _rdkit()
    return str(chem.MolToInchiKey(molecule)) or _hash(chem.MolToSmiles(molecule))


def _skeleton(key: str) -> str:
    return key if key.startswith("smiles-") else key.split("-", 1)[0]


def _joined(parts: Sequence[Any]) -> Any:
    chem, _ = _rdkit()
    joined = parts[0]
    for part in parts[1:]:
        joined = chem.CombineMols(joined, part)
    return joined


def _parents(molecule: Any) -> list[Any] | None:
    """Return the distinct organic parts without salts, solvents and charge; None when the molecule is its own parent.

    A complex of a d- or p-block metal stays whole; its dative bonds are cut, because InChI has no key with them.
    """
    chem, _ = _rdkit()
    atoms = list(molecule.GetAtoms())
    if any(atom.GetDegree() and atom.GetAtomicNum() not in _NON_METALS | _S_BLOCK for atom in atoms):
        return [_without_dative_bonds(molecule)]
    if any(atom.GetDegree() and atom.GetAtomicNum() in _S_BLOCK for atom in atoms):
        molecule = _without_salt_bonds(molecule)
    parts = chem.GetMolFrags(molecule, asMols=True)
    charged = any(atom.GetFormalCharge() for atom in molecule.GetAtoms())
    if len(parts) == 1 and not charged:
        return None
    distinct: dict[str, Any] = {}
    for part in parts:
        if any(atom.GetAtomicNum() == 6 for atom in part.GetAtoms()):
            neutral = _uncharger().uncharge(part) if charged else part
            distinct.setdefault(chem.MolToSmiles(neutral), neutral)
    if not distinct:
        return None
    return _without_counter_ions([distinct[name] for name in sorted(distinct)])


def _without_counter_ions(parts: list[Any]) -> list[Any]:
    solvents, acids, acids_also_drugs, bases_also_drugs = _known_partners()
    for known in (solvents, acids):
        parts = [part for part in parts if _plain(part) not in known] or parts
    drugs = [part for part in parts if _plain(part) not in acids_also_drugs | bases_also_drugs]
    if not drugs:
        return parts
    acidic = any(_is_acid(part) for part in drugs)
    bases = [] if acidic else [part for part in parts if _plain(part) in bases_also_drugs]
    return drugs + bases


def _plain(molecule: Any) -> str:
    chem, _ = _rdkit()
    return str(chem.MolToSmiles(molecule, isomericSmiles=False))


@lru_cache(maxsize=1)
def _known_partners() -> tuple[frozenset[str], ...]:
    chem, _ = _rdkit()
    lists = (_SOLVENTS, _PLAIN_ACIDS, _ACIDS_ALSO_DRUGS, _BASES_ALSO_DRUGS)
    return tuple(frozenset(_plain(chem.MolFromSmiles(text)) for text in known.split()) for known in lists)


@lru_cache(maxsize=1)
def _acid_patterns() -> tuple[Any, ...]:
    chem, _ = _rdkit()
    return tuple(chem.MolFromSmarts(pattern) for pattern in _ACID_GROUPS)


def _is_acid(molecule: Any) -> bool:
    return any(molecule.HasSubstructMatch(pattern) for pattern in _acid_patterns())


@lru_cache(maxsize=1)
def _uncharger() -> Any:
    from rdkit.Chem.MolStandardize import rdMolStandardize

    return rdMolStandardize.Uncharger()


def _without_dative_bonds(molecule: Any) -> Any:
    chem, _ = _rdkit()
    edited = chem.RWMol(molecule)
    for bond in list(edited.GetBonds()):
        if bond.GetBondType() == chem.BondType.DATIVE:
            edited.RemoveBond(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx())
    cut = edited.GetMol()
    chem.SanitizeMol(cut, catchErrors=True)
    return cut


def _without_salt_bonds(molecule: Any) -> Any:
    """Turn bonds to s-block metals into ions: [Na]OC becomes [Na+].[O-]C."""
    chem, _ = _rdkit()
    edited = chem.RWMol(molecule)
    for bond in list(edited.GetBonds()):
        ends = (bond.GetBeginAtom(), bond.GetEndAtom())
        if not any(atom.GetAtomicNum() in _S_BLOCK for atom in ends):
            continue
        for atom in ends:
            atom.SetFormalCharge(atom.GetFormalCharge() + (1 if atom.GetAtomicNum() in _S_BLOCK else -1))
        edited.RemoveBond(ends[0].GetIdx(), ends[1].GetIdx())
    cut = edited.GetMol()
    chem.SanitizeMol(cut, catchErrors=True)
    return cut
