"""The only place that parses a structure: SMILES with limits, and the levels of identity of a molecule.

Levels: `exact` (InChIKey), `parent` (salts, solvents and charge removed; mixtures flagged), `skeleton` (first block of
the parent's key). RDKit is loaded when the first structure is read. This module is not about fingerprints (`encode`)
or pictures (`depict`). The size limits bound the time as well: at 1,000 atoms an identity takes under a second.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from bridgehead.counter_ions import ACID_GROUPS, KNOWN_PARTNERS, NON_METALS, S_BLOCK
from bridgehead.errors import MissingExtraError, StructureError
from bridgehead.workers import Progress, map_chunks

MAX_ATOMS = 1000
MAX_LENGTH = 10_000
MAX_PATTERN_ATOMS = 250
MAX_PATTERN_LENGTH = 2000
_MAX_RECURSIVE = 32
_CHUNK = 512
_SHOWN = 60
_FEWEST_ATOMS = 5

_INCHIKEY = re.compile(r"[A-Z]{14}-[A-Z]{8}[SN][A-Z]-[A-Z]")
_BOND_RING_BRACKET = re.compile(r"[-=#$:/\\~\[\]()0-9%]")
_BOND_OR_BRACKET = re.compile(r"[=#\[\]]|\(.+\)")
# The tokens of a SMILES. Most words fail here already, and RDKit is not loaded for them.
_SMILES_TOKENS = re.compile(r"(?:\[[^\[\]\s]+\]|Br|Cl|[BCNOPSFIbcnops*]|->|<-|[-=#$:/\\~().%0-9+])+")
_LOG_STAMP = re.compile(r"^\[\d\d:\d\d:\d\d\]\s*")


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


def parse(smiles: str, *, max_atoms: int = MAX_ATOMS, max_length: int = MAX_LENGTH, hydrogens: bool = False) -> Any:
    """Return the RDKit molecule of a SMILES; white space at the ends is ignored.

    `hydrogens` keeps those that are written as atoms of their own (`[H]`).

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
        molecule = _attempt(chem.MolFromSmiles, text, *([_with_hydrogens()] if hydrogens else []))
    if molecule is None:
        raise StructureError(f"{_short(text)!r} is not a valid SMILES: {_reason(text)}")
    if molecule.GetNumAtoms() > max_atoms:
        raise StructureError(f"{_short(text)!r} has {molecule.GetNumAtoms():,} atoms; at most {max_atoms:,} are read")
    return molecule


def parse_pattern(smarts: str) -> Any:
    """Return the RDKit query of a SMARTS: 1 to 250 atoms in 2,000 characters, `$(...)` 32 times at most.

    An atom `[H]` is a condition on its neighbour. Raises `StructureError` with RDKit's reason, or when the text is
    empty, holds white space or is beyond the limits. Nothing is printed. Whether a text is a SMILES or a SMARTS is
    decided elsewhere (`index.structures`).
    """
    chem, base = _rdkit()
    text = smarts.strip() if isinstance(smarts, str) else ""
    if not text.isascii() or not text.isprintable() or len(text.split()) != 1 or len(text) > MAX_PATTERN_LENGTH:
        expected = f"expected one such as 'c1ccccc1[OH]', at most {MAX_PATTERN_LENGTH:,} characters"
        raise StructureError(f"{_short(text)!r} is no SMARTS; {expected}")
    if text.count("$(") > _MAX_RECURSIVE:
        raise StructureError(f"{_short(text)!r} holds $(...) more than {_MAX_RECURSIVE} times; write it with fewer")
    with base.BlockLogs(), base.CaptureErrorLog() as log:
        query = _attempt(chem.MolFromSmarts, text, True)
        written = str(log.messages)
    if query is None:
        raise StructureError(f"{_short(text)!r} is not a valid SMARTS: {_first_line(written)}")
    if not 1 <= query.GetNumAtoms() <= MAX_PATTERN_ATOMS:
        raise StructureError(f"{_short(text)!r} has {query.GetNumAtoms():,} atoms; expected 1 to {MAX_PATTERN_ATOMS}")
    return query


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


def _attempt(read: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return read(*arguments)
    except (RuntimeError, ValueError):
        # RDKit breaks off at some texts, such as those with an element of number 200, instead of refusing them.
        return None


@lru_cache(maxsize=1)
def _with_hydrogens() -> Any:
    chem, _ = _rdkit()
    settings = chem.SmilesParserParams()
    settings.removeHs = False
    return settings


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
    with base.BlockLogs(), base.CaptureErrorLog() as log:
        unchecked = _attempt(chem.MolFromSmiles, text, False)
        written = str(log.messages)
    if unchecked is not None:
        with base.BlockLogs():
            problems = _attempt(chem.DetectChemistryProblems, unchecked)
        if problems:
            return str(problems[0].Message())
    return _first_line(written)


def _first_line(written: str) -> str:
    lines = (_LOG_STAMP.sub("", line).strip() for line in written.splitlines())
    return next((line[:200] for line in lines if line), "RDKit cannot read it")


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
    if any(atom.GetDegree() and atom.GetAtomicNum() not in NON_METALS | S_BLOCK for atom in atoms):
        return [_without_dative_bonds(molecule)]
    if any(atom.GetDegree() and atom.GetAtomicNum() in S_BLOCK for atom in atoms):
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
    return tuple(frozenset(_plain(chem.MolFromSmiles(text)) for text in known.split()) for known in KNOWN_PARTNERS)


@lru_cache(maxsize=1)
def _acid_patterns() -> tuple[Any, ...]:
    chem, _ = _rdkit()
    return tuple(chem.MolFromSmarts(pattern) for pattern in ACID_GROUPS)


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
        if not any(atom.GetAtomicNum() in S_BLOCK for atom in ends):
            continue
        for atom in ends:
            atom.SetFormalCharge(atom.GetFormalCharge() + (1 if atom.GetAtomicNum() in S_BLOCK else -1))
        edited.RemoveBond(ends[0].GetIdx(), ends[1].GetIdx())
    cut = edited.GetMol()
    chem.SanitizeMol(cut, catchErrors=True)
    return cut
