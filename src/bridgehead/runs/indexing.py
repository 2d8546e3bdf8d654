"""The stage index: what can be searched, merged by identity, with rows under the evaluated and the refit heads.

This module is not about how an index is stored (`index`) or searched (`search`).
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bridgehead.align.twin import NumpyHeads
from bridgehead.encode import Encoder
from bridgehead.errors import InputFileNotFoundError, MismatchError, RunStateError
from bridgehead.files import hash_file, hash_json, hash_texts
from bridgehead.index import IndexSide, build_index, open_index
from bridgehead.molecules import Identity
from bridgehead.pairs import PairTable, read_pairs
from bridgehead.pairs.chemicals_data import read_chemicals
from bridgehead.pairs.sources import find_files
from bridgehead.runs.config import CHEMICALS, RunConfig
from bridgehead.runs.encoded import SideRows, encode_items, encode_table, load_encoders, shown_name
from bridgehead.runs.examples import answer_examples, example_lines
from bridgehead.runs.fitting import HEADS_FILE
from bridgehead.runs.folder import RunFolder, stage_key
from bridgehead.runs.identities import identities_of
from bridgehead.runs.work import Work
from bridgehead.search import open_space
from bridgehead.search.opening import canary_attachments, item_kind, model_attachment, model_fingerprint
from bridgehead.vectors import FloatArray

_FOLDERS = {"refit": ("index", ("refit",)), "evaluated": ("index-evaluated", ())}
_SAMPLE = 1000


@dataclass
class Entry:
    """One item of side a on its way into the index: what all records and pools that hold it say of it."""

    id: str
    item: str
    key: str | None
    names: dict[str, None] = field(default_factory=dict)
    payload: dict[str, Any] = field(default_factory=dict)
    row: int = -1


def index(work: Work) -> dict[str, Any]:
    """Build the indexes of the refit and, where the config says so, of the evaluated heads (`index/`)."""
    run, config = work.run, work.run.config
    models = ("refit", "evaluated") if config.index.evaluated else ("refit",)
    files = [hash_file(run.path(*_FOLDERS[name][1], HEADS_FILE)) for name in models]
    key = stage_key(
        work.prepared.key,
        work.prepared.sources,
        files,
        config.index.model_dump(),
        config.pairs.model_dump(),
        [example.model_dump() for example in config.examples],
        _extra_hash(config),
    )
    if (found := run.done("index", key)) and all(_is_whole(run, name) for name in models):
        return found
    entries, extra, notes = _entries(work)
    content: dict[str, Any] = {"n_items": {}, "notes": notes}
    lines = list(notes)
    for name in models:
        facts = _build(work, name, entries, extra)
        content["n_items"][name] = {side: facts.vectors[side].n_rows for side in facts.vectors}
        lines += [f"index with the {name} heads:", *(f"  {line}" for line in facts.lines())]
    content["examples"] = _answered(work, models)
    lines += example_lines(content["examples"])
    return run.finish("index", key, {**content, "lines": lines})


def _is_whole(run: RunFolder, name: str) -> bool:
    """Say whether the index of these heads is there with all its files, and of this model."""
    folder, parts = _FOLDERS[name]
    encoders = load_encoders(run, *parts)
    try:
        expected = model_fingerprint(encoders["a"], encoders["b"], run.path(*parts, HEADS_FILE))
        open_index(run.path(folder), expected).close()
    except (MismatchError, RunStateError, InputFileNotFoundError):
        return False
    return True


def _answered(work: Work, models: Sequence[str]) -> list[dict[str, Any]]:
    if not work.run.config.examples:
        return []
    with ExitStack() as opened:
        # Evaluated first: what heads that never saw the test items answer is the honest one.
        spaces = {name: opened.enter_context(open_space(work.run.folder, name)) for name in reversed(models)}
        return answer_examples(work, spaces)


def _build(work: Work, name: str, entries: list[Entry], extra: list[Entry]) -> Any:
    run, config, table = work.run, work.run.config, work.prepared.table
    folder, parts = _FOLDERS[name]
    encoders = load_encoders(run, *parts)
    heads = NumpyHeads.load(run.path(*parts, HEADS_FILE))
    rows = work.rows if name == "evaluated" else encode_table(run, table, encoders, work.progress, "index")
    z_a, kept = _projected_a(heads, rows.a, entries)
    if extra:
        further = encode_items(run, encoders["a"], [e.item for e in extra], [e.id for e in extra], work.progress)
        z_a = np.concatenate([z_a, heads.project_a(further.rows)])
        kept += [extra[position] for position in further.index]
    z_b = heads.project_b(rows.b.encoded.rows)
    sides = {
        "a": _side_a(config, encoders["a"], z_a, kept),
        "b": _side_b(config, encoders["b"], z_b, table, rows.b),
    }
    rng = np.random.default_rng(0)
    samples = {"a": _sample(z_b, rng), "b": _sample(z_a, rng)}
    other = next(
        (run.path(f) for f, _ in _FOLDERS.values() if f != folder and run.path(f, "index.json").is_file()), None
    )
    return build_index(
        run.path(folder),
        sides,
        model_fingerprint(encoders["a"], encoders["b"], run.path(*parts, HEADS_FILE)),
        sample_queries=samples,
        recall_floor=config.index.recall_floor,
        progress=lambda line: work.progress("index", f"{name}: {line}", None, None),
        attachments={
            **canary_attachments(encoders["a"], sides["a"].items, encoders["b"], sides["b"].items),
            **model_attachment(run.path(*parts)),
        },
        reuse=other,
    )


def _projected_a(heads: NumpyHeads, own: SideRows, entries: list[Entry]) -> tuple[FloatArray, list[Entry]]:
    """Return the rows of the table's own items, and the entries that have one."""
    with_row = [entry for entry in entries if own.position[entry.row] >= 0]
    return heads.project_a(own.encoded.rows[own.position[[entry.row for entry in with_row]]]), with_row


def _entries(work: Work) -> tuple[list[Entry], list[Entry], list[str]]:
    """Return the table's items of a merged by exact identity, the further ones merged with them, and notes."""
    table, config = work.prepared.table, work.run.config
    name = shown_name(config, "a")
    known: dict[str, Entry] = {}
    entries = list(_merged(_own_entries(table, config, work.prepared.identities.get("a")), known))
    notes = []
    if len(entries) < len(table.a):
        notes.append(
            f"{len(table.a) - len(entries):,} of {len(table.a):,} {name} items merged: the same exact identity"
        )
    extra: list[Entry] = []
    taken = {entry.id for entry in entries}
    for pool in config.index.extra_a:
        found = list(_pool(work, pool))
        fresh = list(_merged(iter(found), known))
        for entry in fresh:
            while entry.id in taken:
                entry.id += "'"
            taken.add(entry.id)
        extra += fresh
        shown = pool if pool == CHEMICALS else pool.rsplit("/", 1)[-1]
        notes.append(f"{len(fresh):,} further {name} items of {shown}; {len(found) - len(fresh):,} were there already")
    return entries, extra, notes


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
            for column, value in entry.payload.items():
                if isinstance(value, list) and isinstance(first.payload.get(column), list):
                    first.payload[column] = list(dict.fromkeys([*first.payload[column], *value]))
                elif first.payload.get(column) is None:
                    first.payload[column] = value


def _own_entries(table: PairTable, config: RunConfig, identities: Sequence[Identity] | None) -> Iterator[Entry]:
    partners: list[list[str]] = [[] for _ in range(len(table.a))]
    for a, b in table.links.pairs.tolist():
        partners[a].append(table.b.items[b])
    for number, (id_, item, payload) in enumerate(zip(table.a.ids, table.a.items, table.payloads("a"), strict=True)):
        names = _names(payload, config.pairs.names)
        shown = {column: value for column, value in payload.items() if column not in config.pairs.names}
        shown[config.pairs.b] = partners[number]
        key = None if identities is None else identities[number].exact
        yield Entry(id_, item, key, dict.fromkeys(names), shown, number)


def _pool(work: Work, pool: str) -> Iterator[Entry]:
    if pool == CHEMICALS:
        for compound in read_chemicals():
            payload = {"formula": compound.formula, "source": CHEMICALS}
            yield Entry(compound.id, compound.smiles, compound.inchikey, dict.fromkeys(compound.names), payload)
        return
    config = work.run.config.pairs
    table = read_pairs(pool, a=config.a, b=config.b, id=config.id, quote=config.quote, encoding=config.encoding)
    identities, failures = identities_of(table.a.items, work.run.cache)
    bad = {position for position, _ in failures}
    for number, payload in enumerate(table.payloads("a")):
        identity = identities[number]
        if number not in bad and identity is not None:
            names = dict.fromkeys(_names(payload, config.names))
            yield Entry(table.a.ids[number], table.a.items[number], identity.exact, names, payload)


def _names(payload: dict[str, Any], columns: Sequence[str]) -> list[str]:
    found: list[str] = []
    for column in columns:
        value = payload.get(column)
        found += [name for name in (value if isinstance(value, list) else [value]) if name]
    return found


def _side_a(config: RunConfig, encoder: Encoder, rows: FloatArray, entries: list[Entry]) -> IndexSide:
    return IndexSide(
        name=shown_name(config, "a"),
        rows=rows,
        items=[entry.item for entry in entries],
        ids=[entry.id for entry in entries],
        kind=item_kind(encoder),
        names=[list(entry.names) for entry in entries],
        payload=[entry.payload for entry in entries],
        keys=[entry.key for entry in entries],
        word_columns=(config.pairs.b,),
    )


def _side_b(config: RunConfig, encoder: Encoder, rows: FloatArray, table: PairTable, encoded: SideRows) -> IndexSide:
    numbers = encoded.encoded.index.tolist()
    partners: dict[int, list[str]] = {}
    for a, b in table.links.pairs.tolist():
        partners.setdefault(b, []).append(table.a.ids[a])
    return IndexSide(
        name=shown_name(config, "b"),
        rows=rows,
        items=[table.b.items[number] for number in numbers],
        ids=[f"{config.pairs.b}:{table.b.ids[number]}" for number in numbers],
        kind=item_kind(encoder),
        payload=[{config.pairs.a: partners.get(number, [])} for number in numbers],
    )


def _sample(rows: FloatArray, rng: np.random.Generator) -> FloatArray:
    return rows[np.sort(rng.choice(len(rows), min(_SAMPLE, len(rows)), replace=False))]


def _extra_hash(config: RunConfig) -> str:
    parts = []
    for pool in config.index.extra_a:
        if pool == CHEMICALS:
            parts.append(hash_texts(c.smiles for c in read_chemicals()))
        else:
            parts += [hash_file(path) for path in find_files(pool)]
    return hash_json(parts)
