"""Which items of a run are searched: those of the table, on side a merged by exact identity, and further ones.

This module is not about rows (`stage`) or about items that came by sync (`carried`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bridgehead.files import hash_file, hash_json, hash_texts
from bridgehead.pairs import read_pairs
from bridgehead.pairs.chemicals_data import Compound, read_chemicals
from bridgehead.pairs.sources import find_files
from bridgehead.runs.config import CHEMICALS, RunConfig
from bridgehead.runs.encoded import shown_name
from bridgehead.runs.identities import identities_of
from bridgehead.runs.indexing.sides import Entry, index_id, text_entity
from bridgehead.runs.work import Work


@dataclass(frozen=True)
class Entries:
    """The table's items (`own`), those that the config adds (`further`), and `notes` on what was merged."""

    own: list[Entry]
    further: list[Entry]
    notes: list[str]


def entries_of(work: Work) -> Entries:
    """Return the items of side a of a run's index, merged by exact identity."""
    table, config = work.prepared.table, work.run.config
    name = shown_name(config, "a")
    known: dict[str, Entry] = {}
    own = list(_merged(_own_entries(work), known))
    notes = []
    if len(own) < len(table.a):
        notes.append(f"{len(table.a) - len(own):,} of {len(table.a):,} {name} items merged: the same exact identity")
    further: list[Entry] = []
    taken = {entry.id for entry in own}
    for pool in config.index.extra_a:
        found = list(_pool(work, pool))
        fresh = list(_merged(iter(found), known))
        for entry in fresh:
            while entry.id in taken:
                entry.id += "'"
            taken.add(entry.id)
        further += fresh
        shown = pool if pool == CHEMICALS else pool.rsplit("/", 1)[-1]
        notes.append(f"{len(fresh):,} further {name} items of {shown}; {len(found) - len(fresh):,} were there already")
    return Entries(own, further, notes)


def entries_b(work: Work, numbers: Sequence[int]) -> list[Entry]:
    """Return the items of side b at these numbers of the table; their payload holds the ids of their partners."""
    table, config = work.prepared.table, work.run.config
    partners: dict[int, list[str]] = {}
    for a, b in table.links.pairs.tolist():
        partners.setdefault(b, []).append(table.a.ids[a])
    keys = [_identity(work, "b", number) for number in numbers]
    return [
        Entry(
            index_id(config, "b", table.b.ids[number]),
            table.b.items[number],
            key,
            entity,
            payload={config.pairs.a: partners.get(number, [])},
            members=[number],
        )
        for number, (key, entity) in zip(numbers, keys, strict=True)
    ]


def pools_hash(config: RunConfig) -> str:
    """Return the hash of the content of the further items that a config names."""
    parts = []
    for pool in config.index.extra_a:
        if pool == CHEMICALS:
            parts.append(hash_texts(c.smiles for c in read_chemicals()))
        else:
            parts += [hash_file(path) for path in find_files(pool)]
    return hash_json(parts)


def names_in(payload: dict[str, Any], columns: Sequence[str]) -> list[str]:
    """Return the names that the columns of names hold, in order."""
    found: list[str] = []
    for column in columns:
        value = payload.get(column)
        found += [name for name in (value if isinstance(value, list) else [value]) if name]
    return found


def _merged(found: Iterator[Entry], known: dict[str, Entry]) -> Iterator[Entry]:
    """Yield entries of a new key; those of a known one give it their names and what it does not say yet."""
    for entry in found:
        if entry.key is None:
            yield entry
        elif (first := known.get(entry.key)) is None:
            known[entry.key] = entry
            yield entry
        else:
            first.names |= entry.names
            first.members += entry.members
            for column, value in entry.payload.items():
                if isinstance(value, list) and isinstance(first.payload.get(column), list):
                    first.payload[column] = list(dict.fromkeys([*first.payload[column], *value]))
                elif first.payload.get(column) is None:
                    first.payload[column] = value


def _own_entries(work: Work) -> Iterator[Entry]:
    table, config = work.prepared.table, work.run.config
    partners: list[list[str]] = [[] for _ in range(len(table.a))]
    for a, b in table.links.pairs.tolist():
        partners[a].append(table.b.items[b])
    for number, (id_, item, payload) in enumerate(zip(table.a.ids, table.a.items, table.payloads("a"), strict=True)):
        names = names_in(payload, config.pairs.names)
        shown = {column: value for column, value in payload.items() if column not in config.pairs.names}
        shown[config.pairs.b] = partners[number]
        key, entity = _identity(work, "a", number)
        yield Entry(id_, item, key, entity, dict.fromkeys(names), shown, [number])


def _identity(work: Work, side: str, number: int) -> tuple[str | None, str | None]:
    """Return the exact key and the entity of an item of the table, None for what it has not.

    The entity is that of its column where there is one, else the skeleton of a molecule, or the normalised text.
    """
    items, identities = work.prepared.table.side(side), work.prepared.identities.get(side)  # type: ignore[arg-type]
    kind = work.run.config.pairs.kind_a if side == "a" else work.run.config.pairs.kind_b
    key = None if identities is None else identities[number].exact
    if items.entities is not None:
        return key, items.entities[number]
    if identities is not None:
        return key, identities[number].skeleton
    return key, text_entity(items.items[number]) if kind == "text" else None


def _pool(work: Work, pool: str) -> Iterator[Entry]:
    if pool == CHEMICALS:
        yield from _chemicals(work)
        return
    config = work.run.config.pairs
    table = read_pairs(pool, a=config.a, b=config.b, id=config.id, quote=config.quote, encoding=config.encoding)
    identities, failures = identities_of(table.a.items, work.run.cache)
    bad = {position for position, _ in failures}
    for number, payload in enumerate(table.payloads("a")):
        identity = identities[number]
        if number not in bad and identity is not None:
            names = dict.fromkeys(names_in(payload, config.names))
            item = table.a.items[number]
            yield Entry(table.a.ids[number], item, identity.exact, identity.skeleton, names, payload)


def _chemicals(work: Work) -> Iterator[Entry]:
    compounds = read_chemicals()
    # Where nothing is to be taken off, the first block of a compound's own key is its skeleton.
    salts = [compound for compound in compounds if "." in compound.smiles]
    skeletons = _skeletons(work, salts)
    for compound in compounds:
        payload = {"formula": compound.formula, "source": CHEMICALS}
        entity = skeletons.get(compound.inchikey, compound.inchikey.split("-")[0])
        names = dict.fromkeys(compound.names)
        yield Entry(compound.id, compound.smiles, compound.inchikey, entity, names, payload)


def _skeletons(work: Work, compounds: list[Compound]) -> dict[str, str]:
    def step(done: int, total: int) -> None:
        work.progress("index", "identities of salts and mixtures", done, total)

    identities, _ = identities_of([compound.smiles for compound in compounds], work.run.cache, step)
    pairs = zip(compounds, identities, strict=True)
    return {compound.inchikey: identity.skeleton for compound, identity in pairs if identity is not None}
