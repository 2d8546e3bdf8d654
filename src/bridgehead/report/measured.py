"""What was measured of retrieval, as plain data: a figure, one direction of ranking, and a set of queries.

Not about what stands behind the figures (`evidence`) or about the whole page (`content`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from bridgehead.errors import ArgumentError
from bridgehead.vectors import FloatArray, IntArray

Field = tuple[str, str]


@dataclass(frozen=True)
class Measure:
    """One figure: its value, its 95 % interval (`low`, `high`), and what chance would give; None where unknown."""

    value: float
    low: float | None = None
    high: float | None = None
    chance: float | None = None


@dataclass(frozen=True)
class PoolRecall:
    """The recall that is expected among a pool of `size` candidates drawn at random, and that of random order."""

    size: int
    value: float
    chance: float | None = None


@dataclass(frozen=True)
class PoolCurve:
    """recall@`k` as the pool grows, smallest pool first. Raises `ArgumentError` when the sizes do not rise."""

    k: int
    points: Sequence[PoolRecall]

    def __post_init__(self) -> None:
        sizes = [point.size for point in self.points]
        if any(later <= earlier for earlier, later in pairwise(sizes)):
            raise ArgumentError(f"pool sizes {sizes}; expected each larger than the one before")


@dataclass(frozen=True)
class Direction:
    """How well `n_queries` items of the side `query` found their partners among `n_candidates` of `candidate`.

    `measures`, `baseline` and `closed_form` map a name ("recall@10", "mrr", "r_precision", "median_rank") to a figure,
    in the order of showing; on the same queries and pool, `baseline` is the untrained nearest-neighbour scorer and
    `closed_form` are two linear maps without training, each empty when not measured. `corrected` maps a name to
    (value - chance) / (1 - chance): 0 at chance, 1 at best.
    `ranks` (n_queries,) are expected ranks of the best true candidate, from 1, and `n_true` (n_queries,) how many
    true candidates each query has; both may be empty.
    `pools` are the curves of recall by pool size. `pool` (n_queries,) is how many candidates each query ranked, empty
    where all ranked all `n_candidates`; `n_true_missing` counts the true items that their query's list does not hold,
    and which therefore count as not found.
    """

    query: str
    candidate: str
    n_queries: int
    n_candidates: int
    measures: Mapping[str, Measure]
    baseline: Mapping[str, Measure] = field(default_factory=dict)
    ranks: Sequence[float] | FloatArray = ()
    n_true: Sequence[int] | IntArray = ()
    n_without_truth: int = 0
    n_ties: int = 0
    closed_form: Mapping[str, Measure] = field(default_factory=dict)
    corrected: Mapping[str, float] = field(default_factory=dict)
    pools: Sequence[PoolCurve] = ()
    pool: Sequence[int] | IntArray = ()
    n_true_missing: int = 0

    @property
    def pool_sizes(self) -> tuple[int, int, int] | None:
        """The least, median and largest number of candidates of a query; None where all rank all `n_candidates`."""
        sizes = np.asarray(self.pool, dtype=np.int64)
        if not len(sizes) or sizes.min() == sizes.max() == self.n_candidates:
            return None
        return int(sizes.min()), round(float(np.median(sizes))), int(sizes.max())


@dataclass(frozen=True)
class QuerySet:
    """The same measurement over one set of queries ("all queries", "text unseen in training"), both directions."""

    title: str
    directions: Sequence[Direction]
    note: str = ""
