"""The stage index: an index under the refit heads and one under the evaluated ones, each built beside the one before.

This module is not about which items there are (`entries`, `carried`), how an index is stored (`index`) or searched
(`search`).
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridgehead.align.twin import NumpyHeads
from bridgehead.errors import FormatVersionError, InputFileNotFoundError, MismatchError, RunStateError
from bridgehead.files import hash_file
from bridgehead.index import IndexFacts, VectorPlan, build_index, open_index
from bridgehead.runs.config import RunConfig
from bridgehead.runs.encoded import SideRows, encode_items, encode_table, load_encoders, shown_name
from bridgehead.runs.examples import answer_examples, example_lines
from bridgehead.runs.fitting import HEADS_FILE
from bridgehead.runs.folder import RunFolder, stage_key
from bridgehead.runs.indexing.carried import SYNC, carried_of
from bridgehead.runs.indexing.entries import Entries, entries_b, entries_of, pools_hash
from bridgehead.runs.indexing.known_ids import known_ids_attachment
from bridgehead.runs.indexing.rows import Model, pairs_at, positions_of, spread
from bridgehead.runs.indexing.saved_queries import (
    First,
    SavedQuery,
    change_lines,
    changes,
    first_hits,
    hits_before,
    saved_queries,
)
from bridgehead.runs.indexing.sides import Entry, file_id, index_side
from bridgehead.runs.work import Work
from bridgehead.search import canary_attachments, model_attachment, model_fingerprint, open_space
from bridgehead.search.references import REFERENCES, reference_attachment
from bridgehead.vectors import FloatArray, IntArray

FOLDERS = {"refit": ("index", ("refit",)), "evaluated": ("index-evaluated", ())}
"""Heads -> the folder of their index in the run folder, and the subfolder of their model."""
_SAMPLE = 1000


@dataclass(frozen=True)
class Built:
    """What became of one index: its facts, how many items of each side came by sync, and notes."""

    facts: IndexFacts
    synced: Mapping[str, int]
    notes: tuple[str, ...]


def index(work: Work) -> dict[str, Any]:
    """Build the indexes of the refit and, where the config says so, of the evaluated heads (`index/`).

    What came by sync into the indexes before is carried over. The record says what changed among the first hits of
    saved queries.
    """
    run, config = work.run, work.run.config
    models = ("refit", "evaluated") if config.index.evaluated else ("refit",)
    key = _key(work, models)
    if (found := run.done("index", key)) and all(_is_whole(run, name) for name in models):
        return found
    entries, queries = entries_of(work), saved_queries(config)
    before = {name: hits_before(run.folder, name, queries) for name in models}
    content: dict[str, Any] = {"n_items": {}, "synced": {}, "notes": entries.notes}
    lines = list(entries.notes)
    for name in models:
        built = _build(work, name, entries)
        content["n_items"][name] = {side: facts.n_rows for side, facts in built.facts.vectors.items()}
        content["synced"][name] = dict(built.synced)
        content["notes"] += built.notes
        lines += [f"index with the {name} heads:", *(f"  {line}" for line in (*built.facts.lines(), *built.notes))]
    lines += _ask(work, models, queries, before, content)
    return run.finish("index", key, {**content, "lines": lines})


def _key(work: Work, models: Sequence[str]) -> str:
    run, config = work.run, work.run.config
    return stage_key(
        work.prepared.key,
        work.prepared.sources,
        [hash_file(run.path(*FOLDERS[name][1], HEADS_FILE)) for name in models],
        # Which queries are compared changes nothing in an index.
        config.index.model_dump(exclude={"saved_queries"}),
        config.pairs.model_dump(),
        [example.model_dump() for example in config.examples],
        pools_hash(config),
    )


def _is_whole(run: RunFolder, name: str) -> bool:
    """Say whether the index of these heads is there with all its files, and of this model."""
    folder, parts = FOLDERS[name]
    encoders = load_encoders(run, *parts)
    try:
        expected = model_fingerprint(encoders["a"], encoders["b"], run.path(*parts, HEADS_FILE))
        open_index(run.path(folder), expected).close()
    except (MismatchError, RunStateError, InputFileNotFoundError, FormatVersionError):
        return False
    return True


def _ask(
    work: Work,
    models: Sequence[str],
    queries: Sequence[SavedQuery],
    before: Mapping[str, list[First] | None],
    content: dict[str, Any],
) -> list[str]:
    """Answer the examples and the saved queries with the new indexes, enter them in the record, return lines."""
    content["examples"], content["saved_queries"] = [], {}
    if not queries:
        return []
    lines = []
    with ExitStack() as opened:
        # Evaluated first: what heads that never saw the test items answer is the honest one.
        spaces = {name: opened.enter_context(open_space(work.run.folder, name)) for name in reversed(models)}
        for name in models:
            found = changes(queries, before[name], first_hits(spaces[name], queries))
            content["saved_queries"][name] = found
            lines += change_lines(name, found)
        if work.run.config.examples:
            content["examples"] = answer_examples(work, spaces)
    return [*lines, *example_lines(content["examples"])]


def _build(work: Work, name: str, entries: Entries) -> Built:
    run, config = work.run, work.run.config
    folder, parts = FOLDERS[name]
    model = Model(load_encoders(run, *parts), NumpyHeads.load(run.path(*parts, HEADS_FILE)))
    other = next(
        (run.path(f) for f, _ in FOLDERS.values() if f != folder and run.path(f, "index.json").is_file()), None
    )
    # A build that is killed leaves the index before, and with it all that came by sync.
    carried = carried_of(run.path(folder), other)
    rows = (
        work.rows
        if name == "evaluated"
        else encode_table(run, work.prepared.table, model.encoders, work.progress, "index")
    )
    own = {"a": _own_a(work, model, rows.a, entries), "b": _own_b(work, model, rows.b)}
    for side in own:
        carried = carried.without(side, {entry.id for entry in own[side][0]}, shown_name(config, side))
    sides, notes = {}, list(carried.notes)
    for side, (items, z) in own.items():
        added = carried.items.get(side, [])
        z_added, failed = _rows_of(work, model, side, added)
        if failed:
            notes.append(
                f"{failed:,} {shown_name(config, side)} items that came by sync have no row with these heads: they "
                "stay, found by id, names and words alone"
            )
        origins = ["run"] * len(items) + [SYNC] * len(added)
        sides[side] = index_side(
            config, side, model.encoders[side], np.concatenate([z, z_added]), [*items, *added], origins
        )
        if added:
            notes.append(f"{len(added):,} {shown_name(config, side)} items that came by sync are carried over")
    facts = build_index(
        run.path(folder),
        sides,
        model_fingerprint(model.encoders["a"], model.encoders["b"], run.path(*parts, HEADS_FILE)),
        sample_queries=_samples(own["a"][1], own["b"][1]),
        plan=vector_plan(config),
        progress=lambda line: work.progress("index", f"{name}: {line}", None, None),
        attachments={
            **canary_attachments(model.encoders["a"], sides["a"].items, model.encoders["b"], sides["b"].items),
            **model_attachment(run.path(*parts)),
            **known_ids_attachment(work, own["a"][0], own["b"][0]),
            REFERENCES: reference_attachment(
                sides["a"].rows, sides["b"].rows, _trained(work, name, own["a"][0], own["b"][0])
            ),
        },
        reuse=other,
    )
    return Built(facts, {side: len(carried.items.get(side, [])) for side in own}, tuple(notes))


def vector_plan(config: RunConfig) -> VectorPlan:
    """Return how a config wants vectors to be indexed."""
    asked = config.index
    return VectorPlan(kind=asked.kind, memory_gib=asked.memory_gib, recall_floor=asked.recall_floor)


def _own_a(work: Work, model: Model, own: SideRows, entries: Entries) -> tuple[list[Entry], FloatArray]:
    """Return the run's items of side a that have a row, those of the table first, and their rows in the space."""
    first = [next((m for m in entry.members if own.position[m] >= 0), None) for entry in entries.own]
    kept = [entry for entry, member in zip(entries.own, first, strict=True) if member is not None]
    z = model.project("a", own.encoded.rows[own.position[[member for member in first if member is not None]]])
    if not entries.further:
        return kept, z
    further = encode_items(
        work.run, model.encoders["a"], [e.item for e in entries.further], [e.id for e in entries.further], work.progress
    )
    kept += [entries.further[position] for position in further.index]
    return kept, np.concatenate([z, model.project("a", further.rows)])


def _own_b(work: Work, model: Model, own: SideRows) -> tuple[list[Entry], FloatArray]:
    return entries_b(work, own.encoded.index.tolist()), model.project("b", own.encoded.rows)


def _rows_of(work: Work, model: Model, side: str, items: Sequence[Any]) -> tuple[FloatArray, int]:
    """Return rows of items that came by sync, zero for those that have none, and how many those are."""
    if not items:
        return np.zeros((0, model.heads.embed_dim), dtype=np.float32), 0
    encoded = encode_items(
        work.run,
        model.encoders[side],
        [item.item for item in items],
        [file_id(work.run.config, side, item.id) for item in items],
        work.progress,
    )
    return spread(model.project(side, encoded.rows), encoded.index, len(items)), len(encoded.failures)


def _trained(work: Work, name: str, own_a: Sequence[Entry], own_b: Sequence[Entry]) -> IntArray:
    """Return the links that these heads were trained on, as positions of the two items in the build."""
    prepared = work.prepared
    items_a, items_b, links = prepared.train if name == "evaluated" else prepared.everything()
    at_a = positions_of([entry.members for entry in own_a], len(prepared.table.a))
    at_b = positions_of([entry.members for entry in own_b], len(prepared.table.b))
    return pairs_at(np.stack([items_a[links.pairs[:, 0]], items_b[links.pairs[:, 1]]], axis=1), at_a, at_b)


def _samples(z_a: FloatArray, z_b: FloatArray) -> dict[str, FloatArray]:
    rng = np.random.default_rng(0)
    return {"a": _sample(z_b, rng), "b": _sample(z_a, rng)}


def _sample(rows: FloatArray, rng: np.random.Generator) -> FloatArray:
    return rows[np.sort(rng.choice(len(rows), min(_SAMPLE, len(rows)), replace=False))]
