"""From the file of pairs to a table with identities, a split, and the links that train.

Every stage makes this anew from the file (reading takes a second; what is slow is cached), so a run folder never holds
a second copy of the data that could differ from the first. This module is not about rows (`encoded`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from bridgehead import molecules
from bridgehead.errors import ColumnError, ConfigError, LinksError, StructureError
from bridgehead.files import hash_array, hash_texts
from bridgehead.links import Links
from bridgehead.pairs import PairTable, Split, read_pairs, split_table, text_quality
from bridgehead.pairs.sources import find_files
from bridgehead.pairs.starter_data import starter_path
from bridgehead.pairs.table import RESERVED
from bridgehead.runs.config import CHEMICALS, STARTER, PairsConfig, RunConfig
from bridgehead.runs.evidence_config import UNPAIRED
from bridgehead.runs.folder import RunFolder, stage_key
from bridgehead.runs.identities import identities_of
from bridgehead.texts import normalise
from bridgehead.vectors import IntArray

Progress = Callable[[str, str, int | None, int | None], None]
BoolArray = npt.NDArray[np.bool_]
Part = tuple[IntArray, IntArray, Links]
"""Numbers of the items of a and of b that take part, ascending, and the links renumbered to them."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A table ready for encoding: items that cannot be read as what they are have gone, with their reasons listed.

    `identities` maps side -> identity per item for sides of molecules. `train` are the links that train: those of the
    split, less those of generic or too short texts where the config says so (`dropped`, per link of the table).
    `key` is the hash of the data, the split and what was left out.
    """

    table: PairTable
    identities: dict[str, list[molecules.Identity]]
    split: Split
    dropped: BoolArray
    train: Part
    key: str

    @property
    def sources(self) -> list[str]:
        """Hashes of the files that the table was read from: names and further columns are not in `key`."""
        return [source.sha256 for source in self.table.sources]

    def part(self, name: Literal["train", "valid", "test"]) -> Part:
        """Return (items of a, items of b, links among them) of a part."""
        return self.train if name == "train" else self.split.links(name)

    def everything(self) -> Part:
        """Return all items and links that may train, whatever their part: what a refit trains on."""
        return numbered(self.table.links.pairs[~self.dropped])


def prepare(run: RunFolder, progress: Progress) -> Prepared:
    """Read, identify and split as the config says. Raises as `read_pairs` and `split_pairs`, `ConfigError`, and
    `LinksError` where no record joins two items.
    """
    config = run.config
    table = read_table(config.pairs)
    evaluate = config.evaluate
    lists = [file for file in (evaluate.candidates_a, evaluate.candidates_b) if file is not None]
    saved = [] if config.index.saved_queries is None else [config.index.saved_queries]
    for place in (*config.index.extra_a, *evaluate.pool_a, *evaluate.pool_b, *lists, *saved):
        if place not in (CHEMICALS, UNPAIRED):
            # Said now, not after the training.
            find_files(place)
    identities: dict[str, list[molecules.Identity]] = {}
    for side, kind in (("a", config.pairs.kind_a), ("b", config.pairs.kind_b)):
        if kind == "molecule":
            table, identities[side] = _identified(table, side, run, progress)
    _check_links(table)
    split = split_table(
        table,
        hold_out=config.split.hold_out,
        fractions=config.split.fractions,
        seed=config.split.seed,
        **split_keys(config, table, identities),
        test_keys=_test_keys(config, table),
    )
    pairs = table.links.pairs
    dropped = _weak_links(table, config.pairs) if config.pairs.quality == "drop" else np.zeros(len(pairs), dtype=bool)
    key = stage_key(
        _joined_by(table, config),
        hash_texts(table.a.items),
        hash_texts(table.b.items),
        hash_array(table.links.pairs),
        hash_array(split.part_link),
        hash_array(dropped),
    )
    train = numbered(pairs[(split.part_link == 0) & ~dropped])
    return Prepared(table, identities, split, dropped, train, key)


def split_keys(
    config: RunConfig, table: PairTable, identities: dict[str, list[molecules.Identity]]
) -> dict[str, list[tuple[str, ...]] | None]:
    """Return what makes items one entity in the split, as `split_table` takes it: `keys_a` and `keys_b`."""
    keys = {side: [_keys_of(one, config.split.identity) for one in found] for side, found in identities.items()}
    return {"keys_a": None if table.a.entities is not None else keys.get("a"), "keys_b": keys.get("b")}


def _check_links(table: PairTable) -> None:
    if not len(table.links):
        left_out = [*table.unpaired, *table.skipped]
        first = f" (the first: record {left_out[0].row}: {left_out[0].reason})" if left_out else ""
        raise LinksError(
            f"none of the {table.n_records:,} records joins a {table.a.name} to a {table.b.name}{first}; expected "
            "records with both sides: check the columns and kinds of the config"
        )


def _joined_by(table: PairTable, config: RunConfig) -> list[str]:
    """Return what else shapes the rows of an encoder that looks them up by id or record number."""
    if "rows:" not in config.encode.a + config.encode.b:
        return []
    sides = [(hash_texts(side.ids), hash_array(side.records)) for side in (table.a, table.b)]
    return [*sides[0], *sides[1], str(table.n_records)]


def read_table(config: PairsConfig) -> PairTable:
    """Read the pairs of a config; the path `starter` is the packaged table. Raises as `read_pairs`."""
    path = starter_path() if config.path == STARTER else config.path
    table = read_pairs(
        path,
        a=config.a,
        b=config.b,
        id=config.id,
        entity=config.entity,
        group=config.group or None,
        quote=config.quote,
        encoding=config.encoding,
        names=config.shown,
    )
    columns = [name for name in table.records.columns if name not in RESERVED]
    if unknown := [name for name in config.names if name not in columns]:
        raise ColumnError(
            f"pairs.names: no further column {', '.join(map(repr, unknown))}; those beside the sides and the id are "
            f"{', '.join(columns) or 'none'}"
        )
    return table


def _identified(
    table: PairTable, side: str, run: RunFolder, progress: Progress
) -> tuple[PairTable, list[molecules.Identity]]:
    def step(done: int, total: int) -> None:
        progress("check", "identities of molecules", done, total)

    identities, failures = identities_of(table.side(side).items, run.cache, step)  # type: ignore[arg-type]
    if failures:
        rows, reasons = zip(*failures, strict=True)
        table = table.without(side, rows, reasons)  # type: ignore[arg-type]
    return table, [one for one in identities if one is not None]


def _keys_of(identity: molecules.Identity, level: str) -> tuple[str, ...]:
    return identity.components if level == "skeleton" else (str(getattr(identity, level)),)


def _test_keys(config: RunConfig, table: PairTable) -> tuple[str, ...]:
    """Return the keys that the items of `split.test` have in the split, on the side or sides that are held out."""
    sides = ("a", "b") if config.split.hold_out == "both" else (config.split.hold_out,)
    found: list[str] = []
    for item in config.split.test:
        keys: list[str] = []
        wrong: StructureError | None = None
        for side in sides:
            try:
                keys += _keys_of_item(item, side, config, table)
            except StructureError as error:
                wrong = error
        if not keys and wrong is not None:
            raise ConfigError(f"split.test holds {item!r}, which is no structure: {wrong}") from wrong
        # A key that no item has is said by the split.
        found += keys or [item]
    return tuple(dict.fromkeys(found))


def _keys_of_item(item: str, side: str, config: RunConfig, table: PairTable) -> tuple[str, ...]:
    """Return the keys of an item as `split_table` makes them, none where no item is meant.

    Raises `StructureError` for a molecule that cannot be parsed.
    """
    if side == "a" and table.a.entities is not None:
        known = dict(zip(table.a.items, table.a.entities, strict=True))
        return (known.get(item, item),)
    if (config.pairs.kind_a if side == "a" else config.pairs.kind_b) == "molecule":
        return _keys_of(molecules.identify(item), config.split.identity)
    if side == "a":
        return (item,) if item in table.a.items else ()
    key = normalise(item)
    return (key,) if key in {normalise(text) for text in table.b.items} else ()


def _weak_links(table: PairTable, config: PairsConfig) -> BoolArray:
    """Mark the links of which a text is generic or too short."""
    found = np.zeros(len(table.links), dtype=bool)
    for column, (items, kind) in enumerate(((table.a.items, config.kind_a), (table.b.items, config.kind_b))):
        if kind == "text":
            found |= text_quality(items).weak[table.links.pairs[:, column]]
    return found


def numbered(pairs: IntArray) -> Part:
    """Return the part of these links (n, 2): the items that they join, ascending, and the links renumbered to them."""
    rows_a, at_a = np.unique(pairs[:, 0], return_inverse=True)
    rows_b, at_b = np.unique(pairs[:, 1], return_inverse=True)
    return rows_a, rows_b, Links(np.stack([at_a.reshape(-1), at_b.reshape(-1)], axis=1), len(rows_a), len(rows_b))
