"""The compounds of the PyPI package `chemicals`: a pool of real molecules with names, read from its files.

The package is found but not imported: its identifier files are plain tab-separated text. It is MIT-licensed; its table
was made from PubChem. This module is not about pairs: none of these compounds has a description.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from bridgehead.errors import MissingExtraError

CHEMICALS_ATTRIBUTION = "Compounds, names and structures from the Python package chemicals (MIT), made from PubChem."
"""The line that names the source of the compounds."""

# In the order in which the package itself lets one file override another: the first to have a key keeps it.
_FILES = (
    "chemical identifiers pubchem large.tsv",
    "chemical identifiers pubchem small.tsv",
    "chemical identifiers example user db.tsv",
    "Cation db.tsv",
    "Anion db.tsv",
    "Inorganic db.tsv",
)
_PUBCHEM, _CAS, _FORMULA, _SMILES, _KEY, _NAMES = 0, 1, 2, 4, 6, 7


@dataclass(frozen=True)
class Compound:
    """One compound: CAS number as `id`, SMILES, InChIKey, formula, and its names, the common name first."""

    id: str
    smiles: str
    inchikey: str
    formula: str
    names: tuple[str, ...]


def read_chemicals() -> list[Compound]:
    """Return the compounds that have a SMILES and an InChIKey, one per InChIKey, in the order of the files.

    Raises `MissingExtraError` when the package is not installed.
    """
    found: dict[str, Compound] = {}
    for compound in _all_compounds():
        found.setdefault(compound.inchikey, compound)
    return list(found.values())


def _all_compounds() -> Iterator[Compound]:
    folder = _folder()
    for name in _FILES:
        if not (folder / name).is_file():
            continue
        with open(folder / name, encoding="utf-8") as file:
            for line in file:
                fields = line.rstrip("\n").split("\t")
                if len(fields) <= _KEY or not fields[_SMILES] or not fields[_KEY]:
                    continue
                iupac, common, *further = [*fields[_NAMES:], "", ""][: max(2, len(fields) - _NAMES)]
                names = tuple(dict.fromkeys(name for name in (common, iupac, *further) if name.strip()))
                yield Compound(fields[_CAS], fields[_SMILES], fields[_KEY], fields[_FORMULA], names)


def _folder() -> Path:
    spec = find_spec("chemicals")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError("chemicals", "molecules")
    return Path(spec.submodule_search_locations[0]) / "Identifiers"
