"""Hard negatives: for each anchor the nearest rows that it is not linked with, found without an N x N matrix.

`mine_across` looks across the sides, under heads that have learnt something; `mine_within` within one side, in the
encoder's own space, which means something before any training. A linked row is never returned; what is short is
counted. This module is not about the search itself (`nearest`) or about batches (`anchored`).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from bridgehead.errors import ArgumentError
from bridgehead.links import Links
from bridgehead.negatives.arguments import only_links, whole
from bridgehead.negatives.nearest import NearestRows, faiss_threads, pair_scores, unit_any, zero_rows
from bridgehead.vectors import IntArray, check_rows

_SLACK = 16
_BLOCK_ENTRIES = 1 << 21
_BLOCK_ROWS = 8192


@dataclass(frozen=True)
class NegativeRange:
    """Which non-matching rows may be taken.

    `lowest_rank` to `highest_rank`: ranks among the non-matching rows, 1 the hardest, both ends included. `max_score`:
    highest cosine, in [-1, 1]. `margin` m >= 0: at most p - m, and `relative_margin` r in [0, 1]: at most p - r |p|
    (so that a negative p is lowered too), where p is the lowest cosine of the anchor with any of its positives.
    `semi_hard`: below p (Schroff et al. 2015, section 3.2), whatever the margins; an anchor without positives has no p.
    """

    lowest_rank: int = 1
    highest_rank: int = 100
    max_score: float | None = None
    margin: float | None = None
    relative_margin: float | None = None
    semi_hard: bool = False

    def __post_init__(self) -> None:
        if not 1 <= whole("lowest_rank", self.lowest_rank, 0) <= whole("highest_rank", self.highest_rank, 0):
            raise ArgumentError(
                f"lowest_rank = {self.lowest_rank}, highest_rank = {self.highest_rank}; expected 1 <= lowest <= highest"
            )
        for name, low, high in (("max_score", -1, 1), ("margin", 0, 2), ("relative_margin", 0, 1)):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, Real) and low <= float(value) <= high):
                raise ArgumentError(f"{name} = {value!r:.80}; expected a number from {low} to {high}, or None")

    @property
    def compares_with_positive(self) -> bool:
        """Whether the score of the positive sets a limit."""
        return self.semi_hard or self.margin is not None or self.relative_margin is not None

    def reach(self, k: int) -> int:
        """Return the lowest rank that has to be looked at to find k."""
        limited = self.compares_with_positive or self.max_score is not None
        return self.highest_rank if limited else min(self.highest_rank, self.lowest_rank + k - 1)

    def allowed(self, scores: Any, positive: Any) -> npt.NDArray[np.bool_]:
        """Return which scores (m, w) may be taken beside the positive scores (m,), inf where there is none."""
        ok = np.ones(scores.shape, dtype=bool)
        p = positive[:, None]
        if self.max_score is not None:
            ok &= scores <= self.max_score
        if self.margin is not None:
            ok &= scores <= p - np.float32(self.margin)
        if self.relative_margin is not None:
            with np.errstate(invalid="ignore"):
                limit = np.where(np.isinf(p), p, p - np.float32(self.relative_margin) * np.abs(p))
            ok &= scores <= limit
        if self.semi_hard:
            ok &= scores < p
        return ok


@dataclass(frozen=True, eq=False)
class MinedNegatives:
    """The hard negatives of n anchors.

    `neighbours` (n, k) int64: row numbers, hardest first, -1 where there are no more. `scores` (n, k) float32: their
    cosines, -inf there. `exact`: whether the search was; `recall`: its share of the exact neighbours, measured on a
    sample. `notes`: sentences for the user.
    """

    neighbours: IntArray
    scores: npt.NDArray[np.float32]
    exact: bool
    recall: float
    notes: tuple[str, ...]

    @cached_property
    def counts(self) -> IntArray:
        """How many negatives each anchor has, (n,) int64, 0 to k."""
        return np.asarray((self.neighbours >= 0).sum(axis=1), dtype=np.int64)

    @cached_property
    def shortage(self) -> IntArray:
        """(m, 2) int64: each anchor with fewer than k, and how many it lacks."""
        lacking = self.neighbours.shape[1] - self.counts
        short = np.flatnonzero(lacking)
        return np.stack([short, lacking[short]], axis=1).astype(np.int64)


def mine_across(
    rows_a: Any,
    rows_b: Any,
    links: Any = None,
    *,
    k: int,
    lowest_rank: int = 1,
    highest_rank: int = 100,
    max_score: float | None = None,
    margin: float | None = None,
    relative_margin: float | None = None,
    semi_hard: bool = False,
    exact_up_to: int | None = None,
    threads: int | None = None,
    seed: int = 0,
) -> MinedNegatives:
    """Return for each row of a the k hardest rows of b that it does not match.

    Rows (n_a, d) and (n_b, d), dense or CSR, live in one space; the score is the cosine, and hardest is highest. For
    the other direction swap the sides and `links.swapped()`. `links`: None (row i with row i), `Links` or pairs; rows
    matched through groups are positives too. The ranks, scores and margins are those of `NegativeRange`. `exact_up_to`:
    with more rows of b an index is used (`nearest.NearestRows`); None is 50,000, and 20,000 for CSR rows. `threads`: of
    FAISS, None as many as it takes.

    A row is never its anchor's positive. Fewer than k are counted in `shortage` (also where k > n_b), and a zero
    row, which has no direction, gets none. Time is O(n_a n_b d) up to `exact_up_to`; memory beyond the rows is
    O(n_a k) and a block. Raises `ArgumentError`, `ShapeError`, `LinksError`, `NonFiniteRowsError`.

    >>> rows_a, rows_b = np.eye(2), np.array([[1.0, 0.2], [0.8, 1.0], [1.0, 0.5]])
    >>> mine_across(rows_a, rows_b, [[0, 0], [1, 1]], k=2).neighbours.tolist()
    [[2, 1], [2, 0]]

    Source: mining with an index from current encoders is ANCE (Xiong et al. 2021, arXiv:2007.00808); margins relative
    to the positive are those of NV-Retriever (Moreira et al. 2024, arXiv:2407.15831, section 3), ours by the magnitude
    of p.
    """
    spread = NegativeRange(lowest_rank, highest_rank, max_score, margin, relative_margin, semi_hard)
    queries, candidates = unit_any(rows_a, "rows_a"), unit_any(rows_b, "rows_b")
    truth = Links.of(links, queries.shape[0], candidates.shape[0]).matrix.tocsr()
    with faiss_threads(threads):
        near = NearestRows(queries, candidates, exact_up_to=exact_up_to, seed=seed)
        return _mined(near, k, spread, np.diff(truth.indptr), lambda rows: truth[rows])


def mine_within(
    rows: Any,
    links: Links | None = None,
    *,
    k: int,
    lowest_rank: int = 1,
    highest_rank: int = 100,
    max_score: float | None = None,
    exact_up_to: int | None = None,
    threads: int | None = None,
    seed: int = 0,
) -> MinedNegatives:
    """Return for each row (n, d) the k nearest rows of its own side that are not the same thing.

    `links` are from this side to the other (`links.swapped()` for side b): a row that shares a match with the anchor,
    or its group, would be no negative for what the anchor is linked with, and is left out as the anchor itself is.
    None: each row is an item of its own. The rest is as in `mine_across`.
    """
    unit = unit_any(rows, "rows")
    n = int(unit.shape[0])
    if links is not None and only_links(links).n_a != n:
        raise ArgumentError(f"links are from {links.n_a} rows, and there are {n}; expected links of this side")
    same = _sameness(links, n)
    others = sparse.csr_array(same.T)
    bound = np.asarray(same.astype(np.int64) @ np.diff(others.indptr)).ravel()
    with faiss_threads(threads):
        near = NearestRows(unit, unit, exact_up_to=exact_up_to, seed=seed)
        spread = NegativeRange(lowest_rank, highest_rank, max_score)
        return _mined(near, k, spread, np.minimum(bound, n), lambda chosen: same[chosen] @ others)


def mine_sides(
    rows_a: Any, rows_b: Any, links: Any = None, *, across: bool = True, k: int, **options: Any
) -> tuple[MinedNegatives, MinedNegatives]:
    """Return the hard negatives of both sides' rows: `mine_across` in both directions, or else `mine_within` each side.

    `options` are those of the function that is called.
    """
    rows_a, rows_b = check_rows(rows_a, "rows_a"), check_rows(rows_b, "rows_b")
    truth = Links.of(links, rows_a.shape[0], rows_b.shape[0])
    if across:
        return mine_across(rows_a, rows_b, truth, k=k, **options), mine_across(
            rows_b, rows_a, truth.swapped(), k=k, **options
        )
    return mine_within(rows_a, truth, k=k, **options), mine_within(rows_b, truth.swapped(), k=k, **options)


def _sameness(links: Links | None, n: int) -> sparse.csr_array:
    """Return (n, features): rows are the same thing where they share a feature, a match or a group."""
    groups = None if links is None else links.groups_a
    keys = -1 - np.arange(n) if groups is None else np.where(groups >= 0, groups, -1 - np.arange(n))
    units = np.unique(keys, return_inverse=True)[1]
    own = sparse.csr_array((np.ones(n, dtype=bool), (np.arange(n), units)), shape=(n, int(units.max(initial=-1)) + 1))
    return own if links is None else sparse.csr_array(sparse.hstack([own, links.matrix], format="csr"))


def _mined(
    near: NearestRows, k: int, spread: NegativeRange, bound: Any, left_out: Callable[[IntArray], Any]
) -> MinedNegatives:
    """Mine block after block; `left_out(rows)` is the sparse (m, N) of what is no negative, of at most `bound` each."""
    k = whole("k", k, 1, ", the negatives for each anchor")
    taken = _Taken(int(near.queries.shape[0]), k, spread)
    zero = zero_rows(near.queries)
    for rows in _blocks(np.flatnonzero(~zero), bound, spread.reach(k) + _SLACK, near.n if near.in_blocks else 0):
        excluded = sparse.csr_array(left_out(rows))
        positive = _lowest_positive(near, rows, excluded) if spread.compares_with_positive else np.zeros(len(rows))
        _mine_block(near, rows, excluded, positive, taken, spread.reach(k))
    notes = _notes(taken, near, int(zero.sum()))
    return MinedNegatives(taken.neighbours, taken.scores, near.exact, near.recall, notes)


def _mine_block(near: NearestRows, rows: IntArray, excluded: Any, positive: Any, taken: "_Taken", reach: int) -> None:
    """Fetch a few more than are needed, and four times as many for those whose nearest rows are mostly positives."""
    most = np.minimum(near.n, reach + np.diff(excluded.indptr))
    pending, width = np.arange(len(rows)), min(near.n, reach + _SLACK)
    while len(pending):
        short = []
        step = max(1, _BLOCK_ENTRIES // max(1, width))
        for start in range(0, len(pending), step):
            part = pending[start : start + step]
            numbers, scores = near.search(rows[part], width)
            free = (numbers >= 0) & ~_held(excluded[part], numbers)
            enough = (free.sum(axis=1) >= reach) | (width >= most[part])
            done = part[enough]
            taken.take(rows[done], numbers[enough], scores[enough], free[enough], positive[done])
            short.append(part[~enough])
        pending, width = np.concatenate(short), min(near.n, 4 * width)


class _Taken:
    """What has been taken so far: rows of the result, and how many anchors had something nearer than they may take."""

    def __init__(self, n: int, k: int, spread: NegativeRange) -> None:
        self.neighbours, self.scores = np.full((n, k), -1, np.int64), np.full((n, k), -np.inf, np.float32)
        self.spread = spread
        self.n_passed_over = 0

    def take(self, rows: IntArray, numbers: IntArray, scores: Any, free: Any, positive: Any) -> None:
        """Write the first k of the found `numbers` (m, w) that are `free` and within ranks and scores."""
        rank = np.cumsum(free, axis=1)
        within = free & (rank >= self.spread.lowest_rank) & (rank <= self.spread.highest_rank)
        allowed = within & self.spread.allowed(scores, positive)
        self.n_passed_over += int((within & ~allowed).any(axis=1).sum())
        place = np.cumsum(allowed, axis=1)
        at, column = np.nonzero(allowed & (place <= self.neighbours.shape[1]))
        to = place[at, column] - 1
        self.neighbours[rows[at], to], self.scores[rows[at], to] = numbers[at, column], scores[at, column]


def _blocks(rows: IntArray, bound: Any, width: int, scores_a_row: int) -> Iterator[IntArray]:
    """Cut `rows` so that a block's left-out entries, its neighbours and, where they are held, scores are bounded."""
    cost = np.cumsum(np.asarray(bound)[rows] + width + scores_a_row)
    start = 0
    while start < len(rows):
        before = cost[start - 1] if start else 0
        stop = int(np.searchsorted(cost, before + _BLOCK_ENTRIES, side="right"))
        stop = min(max(stop, start + 1), start + _BLOCK_ROWS)
        yield rows[start:stop]
        start = stop


def _held(matrix: Any, numbers: IntArray) -> npt.NDArray[np.bool_]:
    """Return which of `numbers` (m, w) are columns that row i of a sparse (m, N) holds."""
    width = matrix.shape[1]
    held = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)) * width + matrix.indices
    return np.isin(np.arange(len(numbers))[:, None] * width + numbers, held) & (numbers >= 0)


def _lowest_positive(near: NearestRows, rows: IntArray, positives: Any) -> npt.NDArray[np.float32]:
    lowest = np.full(len(rows), np.inf, dtype=np.float32)
    left = np.repeat(np.arange(len(rows)), np.diff(positives.indptr))
    np.minimum.at(lowest, left, pair_scores(near.queries, near.candidates, rows[left], positives.indices))
    return lowest


def _notes(taken: _Taken, near: NearestRows, n_zero: int) -> tuple[str, ...]:
    notes = []
    n, k = taken.neighbours.shape
    missing = (taken.neighbours < 0).sum(axis=1)
    if n_short := int((missing > 0).sum()):
        notes.append(
            f"{n_short:,} of {n:,} anchors have fewer than {k} hard negatives within the ranks and scores asked for "
            f"({int(missing.sum()):,} of {n * k:,} are missing)"
        )
    if taken.n_passed_over:
        notes.append(
            f"{taken.n_passed_over:,} of {n:,} anchors have rows that are not linked and yet nearer than the limits "
            "allow, which may match unseen: those rows were passed over"
        )
    if n_zero:
        notes.append(f"{n_zero:,} of {n:,} anchors are zero rows, which have no direction: they get no hard negatives")
    if not near.exact:
        notes.append(
            f"{near.n:,} rows were searched through an index, which finds {near.recall:.1%} of the exact neighbours"
        )
    return tuple(notes)
