"""Identities of a table's molecules, computed once and kept as Parquet beside the encoded rows.

This module is not about what an identity is (`molecules`).
"""

from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

import polars as pl

from bridgehead.files import atomic_path, hash_texts
from bridgehead.molecules import Identity, identify_all

_COLUMNS = ("exact", "parent", "skeleton", "components", "canonical", "mixture", "fallback", "formula")
_RULES = "2"


def identities_of(
    items: Sequence[str], cache: Path, progress: Callable[[int, int], None] | None = None
) -> tuple[list[Identity | None], list[tuple[int, str]]]:
    """Return what `identify_all` returns for `items` (SMILES), from the cache folder where it is there.

    The file is keyed by the items, RDKit's version and the version of our rules; a damaged one is made again.
    """
    path = cache / "identities" / f"{hash_texts([_RULES, version('rdkit'), *items])[:32]}.parquet"
    found = _read(path, len(items))
    if found is None:
        found = identify_all(items, progress=progress)
        _write(path, *found)
    return found


def _write(path: Path, identities: Sequence[Identity | None], failures: Sequence[tuple[int, str]]) -> None:
    reasons = dict(failures)
    columns = {name: [None if one is None else _plain(getattr(one, name)) for one in identities] for name in _COLUMNS}
    frame = pl.DataFrame(
        {**columns, "reason": [reasons.get(position) for position in range(len(identities))]},
        schema={
            **dict.fromkeys(_COLUMNS, pl.String),
            "components": pl.List(pl.String),
            "mixture": pl.Boolean,
            "fallback": pl.Boolean,
            "reason": pl.String,
        },
    )
    atomic_path(path, lambda name: frame.write_parquet(name))


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _read(path: Path, n: int) -> tuple[list[Identity | None], list[tuple[int, str]]] | None:
    if not path.is_file():
        return None
    try:
        frame = pl.read_parquet(path)
        rows = frame.select(*_COLUMNS, "reason").to_dicts()
    except (pl.exceptions.PolarsError, OSError):
        return None
    if len(rows) != n:
        return None
    identities: list[Identity | None] = []
    failures: list[tuple[int, str]] = []
    for position, row in enumerate(rows):
        reason = row.pop("reason")
        if reason is None:
            identities.append(Identity(**{**row, "components": tuple(row["components"])}))
        else:
            identities.append(None)
            failures.append((position, reason))
    return identities, failures
