"""Bringing one index of a run up to date with the items of a file, a block of them at a time.

Each block is durable before the next is encoded, so a sync that is killed goes on where it stopped. This module is not
about which items those are (`standing`).
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bridgehead.encode import RowCache
from bridgehead.errors import ArgumentError
from bridgehead.index import Index, IndexWriter, open_index
from bridgehead.runs.config import RunConfig
from bridgehead.runs.folder import RunFolder
from bridgehead.runs.indexing.carried import SYNC
from bridgehead.runs.indexing.known_ids import KNOWN_IDS, load_known_ids
from bridgehead.runs.indexing.rows import Model
from bridgehead.runs.indexing.sides import file_id, index_side
from bridgehead.runs.indexing.stage import vector_plan
from bridgehead.runs.prepare import Progress
from bridgehead.runs.syncing.far import FarItem, Training, training_of
from bridgehead.runs.syncing.reading import FailedRecord, FileItems
from bridgehead.runs.syncing.report import IndexSync
from bridgehead.runs.syncing.standing import Coming, Identities, Standing, all_items, standing_of
from bridgehead.search import OpenedSpace, open_space
from bridgehead.search.opening import space_folders
from bridgehead.vectors import FloatArray

MEASURED_AGAIN = 0.1
"""Growth of a side, as a share, at which a new build is made and its recall measured."""
_BLOCK = 4096


@dataclass
class Outcome:
    """What became of one index: counts, and lists that grow block by block."""

    standing: Standing
    failed: list[FailedRecord]
    unknown: list[str] = field(default_factory=list)
    far: list[FarItem] | None = None
    far_below: float | None = None
    added: int = 0
    changed: int = 0
    removed: int = 0
    model_note: str = ""

    def counts(self, heads: str, growth: float, compacted: tuple[str, ...]) -> IndexSync:
        """Return the record of this index."""
        own = self.standing.own
        unchanged = self.standing.unchanged + own
        return IndexSync(heads, self.added, self.changed, unchanged, own, self.removed, growth, compacted)


@dataclass(frozen=True)
class Update:
    """What is asked of every index: the items of a `side` ("a" or "b"), and how; `identities` are shared by all."""

    run: RunFolder
    given: FileItems
    side: str
    delete_missing: bool
    dry_run: bool
    progress: Progress
    identities: Identities


def apply_to(update: Update, heads: str) -> tuple[Outcome, IndexSync]:
    """Bring the index with these heads up to date, or with `dry_run` say what would become of it.

    Items are encoded by the model that the index carries, which is opened only where there is one to encode. Raises as
    `open_space` and `IndexWriter`.
    """
    _, folder = space_folders(update.run.folder, heads)
    held: AbstractContextManager[IndexWriter | None] = nullcontext() if update.dry_run else IndexWriter(folder)
    with held as writer, open_index(folder) as index:
        outcome = _compared(update, index, writer)
        if outcome.standing.coming:
            with open_space(update.run.folder, heads) as space:
                _write_all(update, space, writer, outcome)
        if update.delete_missing:
            missing = outcome.standing.missing
            outcome.removed = len(missing) if writer is None else writer.delete(update.side, missing)
        if writer is None:
            return outcome, outcome.counts(heads, 0.0, ())
        growth = max(writer.growth(side) for side in index.sides)
        counts = outcome.counts(heads, growth, ())
        if growth < MEASURED_AGAIN:
            return outcome, counts
        try:
            return outcome, replace(counts, compacted=compact_index(update.run.config, writer, heads, update.progress))
        except ArgumentError as error:
            # A floor or a memory that cannot be kept: what was written stays, and the other index has its turn.
            return outcome, replace(counts, not_compacted=str(error))


def compact_index(
    config: RunConfig, writer: IndexWriter, heads: str, progress: Progress, stage: str = "sync"
) -> tuple[str, ...]:
    """Write a new build of an index with all that was added to it, and return lines on its vectors, recall included."""
    facts = writer.compact(
        plan=vector_plan(config), progress=lambda line: progress(stage, f"{heads}: {line}", None, None)
    )
    return tuple(facts.lines())


def _compared(update: Update, index: Index, writer: IndexWriter | None) -> Outcome:
    with index.state() as state:
        synced: set[str] = set()
        if update.delete_missing:
            # A dry run holds no writer, which could list them without reading them.
            there = all_items(state, update.side) if writer is None else ()
            synced = set(writer.hashes(update.side, SYNC)) if writer else {i.id for i in there if i.origin == SYNC}
        known = load_known_ids(state.attached(KNOWN_IDS))
        kind = state.sides[update.side].kind
        standing = standing_of(state, update.side, kind, update.given, known, synced, update.identities)
    return Outcome(standing, list(standing.failed))


def _write_all(update: Update, space: OpenedSpace, writer: IndexWriter | None, outcome: Outcome) -> None:
    with space.index.state() as state:
        training = training_of(state, update.side)
    outcome.model_note = space.model_note
    if training is not None:
        outcome.far, outcome.far_below = [], training.threshold
    for block in _blocks(outcome.standing.coming):
        _write(update, space, writer, training, outcome, block)


def _write(
    update: Update,
    space: OpenedSpace,
    writer: IndexWriter | None,
    training: Training | None,
    outcome: Outcome,
    block: Sequence[Coming],
) -> None:
    """Encode a block of items and put those that have a row, or hold nothing that the encoder knows, into the index."""
    rows, kept = _encoded(update, space, outcome, block)
    known = np.asarray(rows.any(axis=1))
    outcome.unknown += [one.id for one, has in zip(kept, known.tolist(), strict=True) if not has]
    if training is not None and outcome.far is not None:
        nearest = training.nearest(rows)
        found = (known & (nearest < training.threshold)).nonzero()[0].tolist()
        outcome.far += [FarItem(kept[at].id, round(float(nearest[at]), 6)) for at in found]
    if writer is not None and kept:
        encoder = space.encoders[update.side]
        writer.put(update.side, index_side(update.run.config, update.side, encoder, rows, kept, SYNC))  # type: ignore[arg-type]
    outcome.added += sum(one.is_new for one in kept)
    outcome.changed += sum(not one.is_new for one in kept)


def _encoded(
    update: Update, space: OpenedSpace, outcome: Outcome, block: Sequence[Coming]
) -> tuple[FloatArray, list[Coming]]:
    encoder: Any = space.encoders[update.side]
    coming = outcome.standing.coming
    before = outcome.added + outcome.changed

    def step(done: int, total: int) -> None:
        update.progress("sync", f"encode new {space.names[update.side]} items", before + done, len(coming))

    encoded = encoder.encode(
        [one.item for one in block],
        ids=[file_id(update.run.config, update.side, one.id) for one in block],
        # A dry run writes nothing, rows that are kept for the next time included.
        cache=None if update.dry_run else RowCache(update.run.cache),
        progress=step,
    )
    outcome.failed += [
        FailedRecord(block[one.index].record, block[one.index].id, one.reason) for one in encoded.failures
    ]
    model = Model({update.side: encoder}, space.heads)  # type: ignore[arg-type]
    return model.project(update.side, encoded.rows), [block[position] for position in encoded.index.tolist()]


def _blocks(coming: Sequence[Coming]) -> Iterator[Sequence[Coming]]:
    for start in range(0, len(coming), _BLOCK):
        yield coming[start : start + _BLOCK]
