"""`Work`: a run under way in one process, with what its stages share, made when it is first needed.

This module is not about what the stages do (`stages`, `evaluating`, `auditing`, `indexing`).
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from bridgehead.align.twin import NumpyHeads
from bridgehead.encode import Encoder
from bridgehead.errors import LinksError
from bridgehead.evaluate import RetrievalReport, retrieval_report
from bridgehead.evaluate.geometry import GapCorrection, Geometry
from bridgehead.links import Links
from bridgehead.runs.classes import classes_of
from bridgehead.runs.encoded import PartRows, Rows, encode_table, load_encoders
from bridgehead.runs.entities import entities_of
from bridgehead.runs.evaluation import Evaluation, Untrained, measure, unseen_texts, untrained
from bridgehead.runs.fitting import HEADS_FILE, Start
from bridgehead.runs.folder import RunFolder
from bridgehead.runs.pools import Asked, Further, SideName, asked_of, further_of
from bridgehead.runs.prepare import Prepared, Progress, prepare
from bridgehead.runs.space import space_of


class Work:
    """A run under way in this process."""

    def __init__(self, run: RunFolder, progress: Progress, controls: Sequence[str] | None = None) -> None:
        """Take a run up; `controls` are those that the audits train, where they are not those of the config."""
        self.run = run
        self.progress = progress
        self.controls: tuple[str, ...] = run.config.audit.controls if controls is None else tuple(controls)
        self._further: dict[str, Further] = {}

    @cached_property
    def prepared(self) -> Prepared:
        """The table, its identities and its split."""
        return prepare(self.run, self.progress)

    @cached_property
    def first_encoders(self) -> dict[str, Encoder]:
        """The encoders fitted on the training part, as stored by the stage encode: before any training."""
        return load_encoders(self.run, *first_folder(self.run))

    @cached_property
    def encoders(self) -> dict[str, Encoder]:
        """The evaluated encoders, which with `[live]` are those that the stage train left."""
        return self.first_encoders if self.run.config.live is None else load_encoders(self.run)

    @cached_property
    def start(self) -> Start:
        """The encoders and the rows of all items before any training."""
        table = self.prepared.table
        return Start(self.first_encoders, encode_table(self.run, table, self.first_encoders, self.progress), table)

    @cached_property
    def rows(self) -> Rows:
        """Rows of all items under the evaluated encoders."""
        if self.run.config.live is None:
            return self.start.rows
        return encode_table(self.run, self.prepared.table, self.encoders, self.progress)

    def part(self, name: Any) -> PartRows:
        """Rows and links of train, valid or test."""
        return self.rows.of(self.prepared.part(name))

    def first_part(self, name: Any) -> PartRows:
        """Rows before any training, and links, of train, valid or test."""
        return self.start.rows.of(self.prepared.part(name))

    def classes(self, part: PartRows) -> tuple[Any, Any] | None:
        """Coarse classes of a part's items, where the loss reads them."""
        config = self.run.config
        if config.train.loss.name != "hierarchical":
            return None
        of_a, of_b = classes_of(self.prepared.table, config.pairs.class_a, config.pairs.class_b)
        return None if of_a is None else of_a[part.items_a], None if of_b is None else of_b[part.items_b]

    @cached_property
    def heads(self) -> NumpyHeads:
        """The evaluated heads."""
        return NumpyHeads.load(self.run.path(HEADS_FILE))

    def further(self, side: SideName) -> Further:
        """The further candidates of a side."""
        if side not in self._further:
            self._further[side] = further_of(self, side)
        return self._further[side]

    @cached_property
    def asked(self) -> Asked:
        """The queries and candidates of the evaluation, under the evaluated encoders."""
        return asked_of(self, self.encoders, self.rows)

    @cached_property
    def first_asked(self) -> Asked:
        """The same before any training."""
        return self.asked if self.run.config.live is None else asked_of(self, self.first_encoders, self.start.rows)

    def items(self, side: SideName) -> list[str]:
        """The raw items of the rows of a side of `asked`."""
        numbers = self.asked.part.items_a if side == "a" else self.asked.part.items_b
        n_own = self.part("test").links.n_a if side == "a" else self.part("test").links.n_b
        own = self.prepared.table.side(side).items
        return [own[n] for n in numbers[:n_own].tolist()] + list(self.asked.further[side])

    @cached_property
    def entities(self) -> tuple[list[str], list[str]]:
        """Whose view each row of `asked` is."""
        return entities_of(self, self.asked.part)

    @cached_property
    def unseen(self) -> Any:
        """Which rows of b in `asked` are items of the test part whose text no training link carries."""
        numbers = self.asked.part.items_b
        found = np.zeros(len(numbers), dtype=bool)
        own = np.arange(len(numbers)) < len(self.part("test").items_b)
        found[own] = unseen_texts(self.prepared.table.b.items, self.prepared.train[1], numbers[own])
        return found

    @cached_property
    def evaluation(self) -> Evaluation:
        """The measurements on the test part, made anew where this process did not make them."""
        self.progress("evaluate", "retrieval on the test part", None, None)
        return measure(self.heads, self.asked, self.entities, self.unseen, self.run.config)

    @cached_property
    def untrained(self) -> Untrained:
        """The untrained baseline on the same queries: dear with a large pool, so the record of evaluate keeps it."""
        self.progress("evaluate", "the untrained baseline", None, None)
        return untrained(self.first_part("train"), self.first_asked, self.entities, self.unseen, self.run.config)

    @cached_property
    def alone(self) -> RetrievalReport:
        """Retrieval among the items of the test part alone: without further candidates and lists, as one whole pool."""
        measured, test, config = self.evaluation, self.part("test"), self.run.config
        n_a, n_b = test.links.n_a, test.links.n_b
        if (len(measured.z_a), len(measured.z_b)) == (n_a, n_b) and self.asked.candidates is None:
            return measured.all
        return retrieval_report(
            measured.z_a[:n_a], measured.z_b[:n_b], test.links, ks=config.evaluate.ks, names=config.pairs.shown,
            entities_a=self.entities[0][:n_a], entities_b=self.entities[1][:n_b], n_resamples=0,
        )  # fmt: skip

    @cached_property
    def space(self) -> tuple[Geometry, GapCorrection]:
        """The shape of the space of the test part, and what a correction of its gap would change."""
        return space_of(self)


def first_folder(run: RunFolder) -> tuple[str, ...]:
    """Return the subfolder of the encoders before any training: none where they are the evaluated ones."""
    return () if run.config.live is None else ("first",)


def check_part(links: Links, name: str) -> None:
    """Raise `LinksError` where a part has no links."""
    if not len(links):
        raise LinksError(
            f"the {name} part has no links; give it a share in split.fractions, or more pairs that are not left out "
            "(see: bridgehead check)"
        )
