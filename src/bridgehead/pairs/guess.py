"""Which column of a file is which: a proposal for a config that its user will read.

This module is not about reading the pairs (`read`): a wrong guess costs a line in the config, never data.
"""

import re
from dataclasses import dataclass
from typing import Literal

import polars as pl

from bridgehead.errors import DataError, MissingExtraError, StructureError
from bridgehead.pairs.delimited import Quote, separator_hint
from bridgehead.pairs.read import check_columns, read_records
from bridgehead.pairs.sources import PathsLike

Kind = Literal["molecule", "text"]

_SAMPLE = 1_000
_PARSED = 50
_SMILES = re.compile(r"[A-Za-z0-9@+\-\[\]()=#$:/\\.%*~]+")
_SMILES_MARKS = re.compile(r"[=#()\[\]]|[cnos][0-9]|[CNOcno]{4}")
_INCHIKEY = re.compile(r"[A-Z]{14}-[A-Z]{10}-[A-Z]")
_ID_NAMES = ("id", "cid", "accession", "key", "identifier", "name")
_LEAST_SMILES_SHARE = 0.7
_LONGEST_ID = 64


@dataclass(frozen=True)
class ColumnGuess:
    """The columns proposed: sides `a` and `b`, `id` (None where none is unique), `kinds` of a and b, and `why`.

    `why` has a sentence for each choice, for comments in a config.
    """

    a: str
    b: str
    id: str | None
    kinds: tuple[Kind, Kind]
    why: list[str]


def guess_columns(path: PathsLike, quote: Quote = "auto", encoding: str = "utf-8") -> ColumnGuess:
    """Return which columns of a file of pairs are most likely side a, side b and the id.

    Side a is the column with the largest share of values that read as SMILES (at least 0.7), side b the column of the
    longest texts with spaces. Where no column reads as SMILES, the two with the longest texts are taken, in the order
    of the file, and a column named as an id only where there are no two others. The id is a column of short values
    without spaces that are all different, one named like an id first. The share is measured on the first 1,000 records.
    Raises as `read_records` does, and `DataError` when there are fewer than two columns with values, or a name that
    was chosen occurs twice.
    """
    records, sources = read_records(path, quote, encoding)
    frame = records.frame
    samples = {name: _sample(frame[name]) for name in frame.columns}
    samples = {name: values for name, values in samples.items() if values}
    if len(samples) < 2:
        raise DataError(
            f"{len(samples)} of the columns {', '.join(frame.columns)} hold values; expected two, one for each side"
            f"{separator_hint(frame.columns)}"
        )
    smiles = {name: _smiles_share(values, "smiles" in name.lower()) for name, values in samples.items()}
    texts = {name: _text_length(values) for name, values in samples.items()}
    by_smiles = max(samples, key=lambda name: smiles[name])
    why: list[str] = []
    if smiles[by_smiles] >= _LEAST_SMILES_SHARE:
        a = by_smiles
        why.append(f"a = {a!r}: {100 * smiles[a]:.0f} % of its values read as SMILES")
    else:
        longest = sorted(samples, key=lambda name: (_is_an_id(name), -texts[name]))[:2]
        a = next(name for name in samples if name in longest)
        why.append(f"a = {a!r}: no column reads as SMILES, and this is one of the two with the longest texts")
    others = [name for name in samples if name != a]
    b = max(others, key=lambda name: (not _is_an_id(name), texts[name] if smiles[name] < 1 else 0))
    why.append(f"b = {b!r}: its texts are the longest with spaces, {texts[b]:.0f} characters on average")
    kinds: tuple[Kind, Kind] = (_kind(smiles[a]), _kind(smiles[b]))
    found = _id_column(frame, {a, b})
    check_columns(records, [a, b, *([found] if found is not None else [])], sources[0].path)
    why.append(
        f"id = {found!r}: short values, all different"
        if found is not None
        else "no id: no column has short values that are all different, so records are numbered"
    )
    return ColumnGuess(a, b, found, kinds, why)


def _sample(column: pl.Series) -> list[str]:
    if column.dtype != pl.String:
        column = column.explode()
    return [value for value in column.drop_nulls().head(_SAMPLE).to_list() if value.strip()]


def _kind(smiles_share: float) -> Kind:
    return "molecule" if smiles_share >= _LEAST_SMILES_SHARE else "text"


def _is_an_id(name: str) -> bool:
    return name.lower() in ("id", "cid", "accession", "key", "identifier") or name.lower().endswith("_id")


def _smiles_share(values: list[str], so_called: bool) -> float:
    """Return the share of values that look like SMILES by their characters, and that parse where rdkit is at hand.

    In a column that is `so_called`, a molecule of few atoms is no word.
    """
    looks = [value for value in values if _looks_like_smiles(value)]
    if len(looks) < _LEAST_SMILES_SHARE * len(values):
        return len(looks) / len(values)
    step = max(1, len(looks) // _PARSED)
    tried = looks[::step][:_PARSED]
    return len(looks) / len(values) * sum(_parses(value, so_called) for value in tried) / len(tried)


def _looks_like_smiles(value: str) -> bool:
    if not _SMILES.fullmatch(value) or _INCHIKEY.fullmatch(value):
        return False
    return bool(_SMILES_MARKS.search(value)) or len(value) <= 3


def _parses(value: str, so_called: bool) -> bool:
    from bridgehead.molecules import parse, reads_as_smiles  # loads rdkit, which a text-only file does not need

    try:
        return bool(parse(value)) if so_called else reads_as_smiles(value)
    except StructureError:
        return False
    except (MissingExtraError, ImportError):
        return True


def _text_length(values: list[str]) -> float:
    """Return the mean length, with values without a space counted a hundredth."""
    return sum(len(value) if " " in value.strip() else len(value) / 100 for value in values) / len(values)


def _id_column(frame: pl.DataFrame, taken: set[str]) -> str | None:
    unique = [
        name
        for name in frame.columns
        if name not in taken and frame[name].dtype == pl.String and _is_unique_and_short(frame[name])
    ]
    named = [name for name in unique if name.lower() in _ID_NAMES or name.lower().endswith(("_id", "id"))]
    return next(iter(named + unique), None)


def _is_unique_and_short(column: pl.Series) -> bool:
    if column.null_count() or column.n_unique() < len(column):
        return False
    longest = column.str.len_chars().max()
    return isinstance(longest, int) and longest <= _LONGEST_ID and not column.str.contains(r"\s|^$").any()
