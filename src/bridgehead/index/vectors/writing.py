"""Writing the vectors of a side: rows, numbers and FAISS index, in bounded memory and so that a kill loses little.

Each step leaves a file that says how far it came: rows are synced every 131,072 of them, a trained index is kept, and
what has been added is saved every half minute. A second call on the same folder goes on from there; that the rows are
the same is the caller's word (`build`). `tidy_side` removes the files that only serve this.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.files import atomic_path, read_json, sync_folder, write_json, write_npy
from bridgehead.index.vectors.base import (
    MEMBER_FILE,
    NUMBER_FILE,
    ROW_FILE,
    START_FILE,
    VECTOR_FILE,
    Twins,
    open_base,
    open_twins,
)
from bridgehead.index.vectors.engine import faiss_library
from bridgehead.index.vectors.plan import VectorFacts, VectorPlan
from bridgehead.index.vectors.row_file import write_rows
from bridgehead.index.vectors.sources import RowShards, RowSource
from bridgehead.index.vectors.training import add_rows, find_twins, reused_index, trained_index
from bridgehead.index.vectors.tuning import OWN_SIDE, Sample, spread_rows, true_sample, tuned
from bridgehead.vectors import IntArray

TRAINED_FILE = "{side}.trained.faiss"
PARTIAL_FILE = "{side}.partial.faiss"
FACTS_FILE = "{side}.facts.json"
_FACTS_FORMAT = "bridgehead vectors of a side"
_LEAST_ROWS = 256

Progress = Callable[[str], None]


def write_side(
    part: Path,
    side: str,
    rows: RowSource,
    numbers: Any,
    samples: Mapping[str, Any],
    plan: VectorPlan,
    progress: Progress | None = None,
    trained_from: Path | None = None,
) -> VectorFacts:
    """Write the vectors of `side` into the folder `part` and return how they are indexed.

    `rows`: n rows in the order of `numbers` (n,), int64 and ascending; float16 rows are stored as they are, others as
    float16 unit rows. `samples`: name of a modality ("other side") -> (m, d) rows of queries; those of the "own side"
    are taken from `rows`. `trained_from`: FAISS file of an earlier build whose training is used where it fits. Fewer
    than 256 rows are always flat.

    Raises `ArgumentError` (a recall floor or memory that cannot be kept), `ShapeError` and `NonFiniteRowsError`.
    """
    n, dim = rows.shape
    numbers = np.asarray(numbers, np.int64)
    if numbers.shape != (n,) or (np.diff(numbers) <= 0).any():
        raise ShapeError(f"side {side}: numbers of shape {numbers.shape} for {n} rows; expected one each, ascending")
    done = part / FACTS_FILE.format(side=side)
    if done.is_file():
        return VectorFacts(**read_json(done, _FACTS_FORMAT))
    writer = _SideWriter(part, side, plan.chosen(n, dim) if n >= _LEAST_ROWS else "flat", progress or (lambda _: None))
    writer.write_rows(rows, numbers)
    facts = writer.measured(samples, plan.recall_floor, trained_from)
    write_json(done, asdict(facts), _FACTS_FORMAT)
    return facts


def tidy_side(part: Path, side: str) -> None:
    """Remove the files that only serve to go on after a kill."""
    for name in (TRAINED_FILE, PARTIAL_FILE, FACTS_FILE):
        (part / name.format(side=side)).unlink(missing_ok=True)


class _SideWriter:
    def __init__(self, part: Path, side: str, kind: str, say: Progress) -> None:
        self.part, self.side, self.kind, self.say = part, side, kind, say
        self.faiss = faiss_library()

    def path(self, name: str) -> Path:
        return self.part / name.format(side=self.side)

    @property
    def stored(self) -> RowShards:
        return RowShards([self.path(ROW_FILE)])

    def write_rows(self, rows: RowSource, numbers: IntArray) -> None:
        write_rows(self.path(ROW_FILE), rows, self.say)
        write_npy(self.path(NUMBER_FILE), numbers)

    def measured(self, samples: Mapping[str, Any], floor: float, trained_from: Path | None) -> VectorFacts:
        """Return the facts of the finished index; training that no longer reaches the floor is done anew."""
        if self.kind == "flat":
            self.finish(None)
            n, dim = self.stored.shape
            return VectorFacts("flat", n, dim, recall=dict.fromkeys([*samples, OWN_SIDE], 1.0))
        self.finish(trained_from)
        truths = self.truths(samples)
        try:
            return self.tuned(truths, floor)
        except ArgumentError:
            if trained_from is None:
                raise
        self.say("the training of the build before does not reach the recall floor; training anew")
        tidy_side(self.part, self.side)
        self.path(VECTOR_FILE).unlink()
        self.finish(None)
        return self.tuned(truths, floor)

    def finish(self, trained_from: Path | None) -> None:
        """Write the FAISS file, from what an earlier call has left."""
        if self.path(VECTOR_FILE).is_file():
            return
        twins = self.twins()
        found = self.started(trained_from)
        add_rows(found, self.stored, self.path(PARTIAL_FILE), twins, self.say)
        # Written beside the end's name first: who finds that finds all of it.
        atomic_path(self.path(PARTIAL_FILE), partial(self.faiss.write_index, found))
        os.replace(self.path(PARTIAL_FILE), self.path(VECTOR_FILE))
        sync_folder(self.part)

    def started(self, trained_from: Path | None) -> Any:
        for name in (PARTIAL_FILE, TRAINED_FILE):
            if self.path(name).is_file():
                found = self.faiss.read_index(str(self.path(name)))
                self.say(f"going on with an index of {self.kind} that holds {found.ntotal:,} rows")
                return found
        n, dim = self.stored.shape
        found = reused_index(self.kind, n, dim, trained_from) if trained_from is not None else None
        if found is None:
            found = trained_index(self.kind, self.stored, self.say)
        atomic_path(self.path(TRAINED_FILE), partial(self.faiss.write_index, found))
        return found

    def twins(self) -> Twins | None:
        twins = find_twins(self.stored) if self.kind != "flat" else None
        if twins is not None:
            write_npy(self.path(MEMBER_FILE), twins.members)
            write_npy(self.path(START_FILE), twins.starts)
        return twins

    def truths(self, samples: Mapping[str, Any]) -> dict[str, Sample]:
        """Return the queries of each modality with what exact search finds for them."""
        self.say("searching exactly for the sample queries, to measure recall against")
        own, positions = spread_rows(np.load(self.path(ROW_FILE), mmap_mode="r", allow_pickle=False))
        twins = open_twins(self.part, self.side)
        group_of = twins.group_of if twins is not None else np.arange(self.stored.shape[0])
        found = {name: true_sample(self.stored, spread_rows(rows)[0]) for name, rows in samples.items() if len(rows)}
        return {**found, OWN_SIDE: true_sample(self.stored, own, group_of[positions], group_of)}

    def tuned(self, truths: Mapping[str, Sample], floor: float) -> VectorFacts:
        n, dim = self.stored.shape
        some = {"ef": 64} if self.kind == "hnsw" else {"nprobe": 1}
        base = open_base(self.part, self.side, VectorFacts(self.kind, n, dim, **some))  # type: ignore[arg-type]
        return tuned(base.with_facts(replace(base.facts, n_lists=getattr(base.found, "nlist", None))), truths, floor)
