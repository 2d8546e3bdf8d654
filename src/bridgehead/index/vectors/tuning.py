"""Choosing how much an index looks at, by measurement: recall@10 against exact search, for queries of each modality.

An index tuned with its own rows can fail for queries of the other modality, and the other way round, so both are
measured and the floor holds for both. A query of the own side is an item of the side: it and whatever is identical to
it count neither as truth nor as found, since finding itself is trivial. The floor must be passed by one standard error
where that can be had, so that it also holds for other queries than the sample.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bridgehead.errors import ArgumentError
from bridgehead.index.vectors.base import BaseVectors
from bridgehead.index.vectors.plan import VectorFacts
from bridgehead.index.vectors.reach import Reach
from bridgehead.index.vectors.scoring import widened
from bridgehead.index.vectors.sources import RowSource
from bridgehead.vectors import FloatArray, IntArray, unit_rows

OWN_SIDE = "own side"
OTHER_SIDE = "other side"
N_QUERIES = 256
_DEPTH = 10
_BLOCK = 8192
_ROUNDING = 1e-6
_MOST_TIED = 4096
_PRUNED_FROM = 1 << 20
_WIDTHS = {"ivf-sq8": (128, 256, 512), "ivf-pq": (128, 256, 512, 1024, 2048, 4096), "hnsw": (64, 128, 256)}


@dataclass(frozen=True, eq=False)
class Sample:
    """Queries of one modality (m, d) with the truth: sorted keys query * n + position, and how many each query has."""

    queries: FloatArray
    keys: IntArray
    depth: IntArray
    n_rows: int

    def recall(self, found: list[IntArray]) -> tuple[float, float]:
        """Return mean recall@10 of candidates, one array of positions a query, and its standard error."""
        if not len(self.queries):
            return 1.0, 0.0
        owner = np.repeat(np.arange(len(found)), [len(rows) for rows in found])
        keys = owner * self.n_rows + np.concatenate(found)
        hit = np.isin(keys, self.keys)
        share = np.minimum(np.bincount(owner[hit], minlength=len(found)), self.depth) / self.depth
        return float(share.mean()), float(share.std() / np.sqrt(len(share)))


def spread_rows(rows: Any, count: int = N_QUERIES) -> tuple[FloatArray, IntArray]:
    """Return about `count` unit float32 rows spread over an array (m, d), and their positions; without zero rows."""
    chosen = np.unique(np.linspace(0, max(len(rows) - 1, 0), min(count, len(rows))).astype(np.int64))
    unit = unit_rows(np.asarray(rows)[chosen], "sample queries", np.float32)
    kept = unit.any(axis=1)
    return unit[kept], chosen[kept]


def true_sample(source: RowSource, queries: FloatArray, group: IntArray | None = None,
                group_of: IntArray | None = None) -> Sample:  # fmt: skip
    """Return unit float32 `queries` with the positions of their ten nearest of the stored rows, those tied included.

    `group` (m,): where the queries are rows of the side, the group of identical rows that each is one of, and
    `group_of` (n,) that of each row. Reads all rows once, in blocks. A query whose last place is shared by more than
    4,096 rows says nothing about an index and is left out.
    """
    search = _Nearest(queries)
    start = 0
    for block in source.blocks(_BLOCK):
        scores = queries @ unit_rows(widened(block)).T
        if group is not None and group_of is not None:
            scores[group[:, None] == group_of[start : start + len(block)]] = -np.inf
        search.add(scores, start)
        start += len(block)
    return search.sample(source.shape[0])


class _Nearest:
    """The nearest rows of each query so far: their scores (m, 10), and the pairs that may be among them."""

    def __init__(self, queries: FloatArray) -> None:
        self.queries = queries
        self.best = np.full((len(queries), _DEPTH), -np.inf, np.float32)
        self.told = np.ones(len(queries), bool)
        self.pairs: list[tuple[IntArray, IntArray, FloatArray]] = []

    def add(self, scores: FloatArray, start: int) -> None:
        """Take in scores (m, block) of the rows from position `start` on."""
        together = np.concatenate([self.best, scores], axis=1)
        self.best = np.partition(together, together.shape[1] - _DEPTH, axis=1)[:, -_DEPTH:]
        mask = (scores >= self._least()[:, None]) & np.isfinite(scores) & self.told[:, None]
        owner, place = np.nonzero(mask)
        self.pairs.append((owner, place + start, scores[owner, place]))
        if sum(len(pair[0]) for pair in self.pairs) > _PRUNED_FROM:
            self._prune()

    def _least(self) -> FloatArray:
        return np.asarray(self.best.min(axis=1) - _ROUNDING)

    def _prune(self) -> None:
        owner, place, score = (np.concatenate(parts) for parts in zip(*self.pairs, strict=True))
        kept = score >= self._least()[owner]
        self.told &= np.bincount(owner[kept], minlength=len(self.queries)) <= _MOST_TIED
        kept &= self.told[owner]
        self.pairs = [(owner[kept], place[kept], score[kept])]

    def sample(self, n: int) -> Sample:
        """Return the queries that have a truth, with it."""
        if not self.pairs:
            return Sample(self.queries[:0], np.zeros(0, np.int64), np.zeros(0, np.int64), n)
        self._prune()
        owner, place, _ = self.pairs[0]
        depth = np.minimum(np.bincount(owner, minlength=len(self.queries)), _DEPTH)
        asked = np.flatnonzero(depth)
        number = np.zeros(len(self.queries), np.int64)
        number[asked] = np.arange(len(asked))
        return Sample(self.queries[asked], np.sort(number[owner] * n + place), depth[asked], n)


@dataclass(frozen=True)
class _Measured:
    facts: VectorFacts
    passes: bool
    surely: bool


class _Tuning:
    """Measures one index with all samples at different efforts."""

    def __init__(self, base: BaseVectors, samples: Mapping[str, Sample], floor: float) -> None:
        self.base = base
        self.samples = samples
        self.floor = floor

    def at(self, effort: int, width: int) -> _Measured:
        graph = self.base.facts.method == "hnsw"
        facts = replace(
            self.base.facts, candidates=width, nprobe=None if graph else effort, ef=effort if graph else None
        )
        trial = Reach(self.base.with_facts(facts))
        found = {k: s.recall(trial.candidates(s.queries, width)) for k, s in self.samples.items()}
        facts = replace(
            facts,
            recall={kind: round(mean, 4) for kind, (mean, _) in found.items()},
            n_queries={kind: len(sample.queries) for kind, sample in self.samples.items()},
        )
        passes = all(mean >= self.floor for mean, _ in found.values())
        return _Measured(facts, passes, passes and all(mean - off >= self.floor for mean, off in found.values()))

    def efforts(self, width: int) -> Iterator[int]:
        """Yield efforts, each twice the one before, up to all there is."""
        graph = self.base.facts.method == "hnsw"
        effort, most = (width, self.base.found.ntotal) if graph else (1, self.base.found.nlist)
        most = min(most, 4096) if graph else most
        while effort < most:
            yield effort
            effort *= 2
        yield most

    def least(self, width: int) -> _Measured:
        """Return the smallest effort (to an eighth of its size) that reaches the floor, or the best there is."""
        for effort in self.efforts(width):
            measured = self.at(effort, width)
            if measured.surely:
                return self._refined(effort, width, measured)
        return measured

    def _refined(self, effort: int, width: int, measured: _Measured) -> _Measured:
        for step in (effort // 4, effort // 8):
            current = measured.facts.nprobe or measured.facts.ef or 1
            if step and (lower := self.at(current - step, width)).surely:
                measured = lower
        return measured

    def may_reach(self, width: int) -> bool:
        """Return whether a generous effort reaches the floor with `width` candidates."""
        return self.at(list(self.efforts(width))[-3:][0], width).surely


def tuned(base: BaseVectors, samples: Mapping[str, Sample], floor: float) -> VectorFacts:
    """Return the facts of `base` with the least effort and candidates that reach `floor` for every sample.

    Raises `ArgumentError`, saying what can be reached and what to change.
    """
    facts = base.facts
    if facts.method == "flat":
        return replace(facts, recall=dict.fromkeys(samples, 1.0), n_queries=dict.fromkeys(samples, 0))
    tuning = _Tuning(base, samples, floor)
    widths = [width for width in _WIDTHS[facts.method] if width <= max(base.found.ntotal, 64)] or [64]
    for width in widths[:-1]:
        if tuning.may_reach(width) and (measured := tuning.least(width)).surely:
            return measured.facts
    measured = tuning.least(widths[-1])
    if not measured.passes:
        raise ArgumentError(_out_of_reach(measured.facts, floor))
    return measured.facts


def _out_of_reach(facts: VectorFacts, floor: float) -> str:
    reached = ", ".join(f"{recall:.4f} ({kind})" for kind, recall in facts.recall.items())
    other = {"ivf-pq": "give more memory (memory_gib) or take kind = 'ivf-sq8'"}.get(facts.method, "take kind = 'flat'")
    return (
        f"recall@10 of {facts.method} against exact search reaches {reached} at most, and recall_floor = {floor} is "
        f"asked for: ask for at most {np.floor(min(facts.recall.values()) * 1e4) / 1e4}, or {other}"
    )
