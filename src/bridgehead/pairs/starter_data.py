"""The packaged starter data: where it lies, how it is read, and who it comes from.

One table of ligands (structures) and statements about what they do (English), derived from the Guide to
PHARMACOLOGY. This module only finds and reads the file; how the table is made is `scripts/build_starter.py`,
and turning it into pairs is the readers' part.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from bridgehead.errors import InputFileNotFoundError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ATTRIBUTION", "LEXICON_PATH", "STARTER_COLUMNS", "read_starter_frame", "starter_path"]

ATTRIBUTION = (
    "Contains information from the IUPHAR/BPS Guide to PHARMACOLOGY (https://www.guidetopharmacology.org), "
    "release 2020.5, which is made available here under the Open Database License (ODbL) 1.0, "
    "its contents under CC BY-SA 4.0; changed: see the NOTICE of the starter table."
)
"""What has to be shown wherever the starter table, or what is derived from it, is shown."""

STARTER_COLUMNS = (
    "id",
    "name",
    "synonyms",
    "smiles",
    "inchikey",
    "approved",
    "withdrawn",
    "ligand_type",
    "families",
    "targets",
    "statement",
)
"""The columns of the starter table, in order."""

_FOLDER = Path(str(files("bridgehead"))) / "pairs" / "starter"

LEXICON_PATH = _FOLDER / "lexicon.toml"
"""The reviewed phrases from which the statements are composed."""


def starter_path() -> Path:
    """The path of the packaged table `starter.parquet`.

    Raises:
        InputFileNotFoundError: when the installation lacks the file.
    """
    path = _FOLDER / "starter.parquet"
    if not path.is_file():
        raise InputFileNotFoundError(
            f"the packaged starter table is missing at {path}: expected a complete installation of bridgehead; "
            "install it again, or build the table with scripts/build_starter.py"
        )
    return path


def read_starter_frame() -> pl.DataFrame:
    """The starter table, one row a ligand, in ascending order of the numeric id.

    Columns (`STARTER_COLUMNS`): `id`, `name`, `smiles`, `inchikey` and `ligand_type` are text; `synonyms`,
    `families`, `targets` and `statement` are lists of text without duplicates in a list (empty where nothing
    is known, so a ligand with an empty `statement` is an unpaired item); `approved` and `withdrawn` are booleans.
    The same statement occurs in the lists of several ligands: truth is many-to-many.

    Raises:
        InputFileNotFoundError: when the installation lacks the file.
    """
    import polars as pl

    return pl.read_parquet(starter_path())
