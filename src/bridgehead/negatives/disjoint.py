"""Batches in which no two links are about the same thing: each anchor has one match, and the rest are true negatives.

Links conflict when they share a row or a group on a side, or when one's row of a matches the other's row of b. All
draws depend on (seed, epoch) alone. This module is not about hard negatives (`anchored`).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from bridgehead.links import Links
from bridgehead.negatives.ordering import epoch_order
from bridgehead.vectors import IntArray

_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class DistinctEpoch:
    """The batches of an epoch, as link numbers, and the links `left_out` (m,) that no batch could take."""

    batches: list[IntArray]
    left_out: IntArray


def distinct_batches(links: Links, batch_size: int, seed: int, epoch: int) -> DistinctEpoch:
    """Return batches of at most `batch_size` links of `links.expanded()`, none of which conflict within a batch.

    Links are taken in an order drawn from (seed, epoch); what conflicts with a batch waits for the next. Where one item
    has many of the links (a text of hundreds of molecules), the last batches would hold little else: batching stops
    when links are left and a batch would have fewer than an eighth of `batch_size` (at least 2) of them, and those are
    left out of this epoch. A batch of one link is none: that link is left out as well. Memory is O(links).
    """
    least = max(2, batch_size // 8)
    pool = _Pool(links)
    waiting, fresh = np.zeros(0, np.int64), epoch_order(len(pool.a), seed, epoch)
    batches: list[IntArray] = []
    while len(waiting) + len(fresh):
        batch, still_waiting, still_fresh = pool.fill(waiting, fresh, batch_size)
        some_left = len(still_waiting) + len(still_fresh) > 0
        if len(batch) < (least if some_left else 2):
            break
        batches.append(batch)
        waiting, fresh = still_waiting, still_fresh
    return DistinctEpoch(batches, np.sort(np.concatenate([waiting, fresh])))


class _Pool:
    """All links by what counts as one item on each side, and what each item matches."""

    def __init__(self, links: Links) -> None:
        expanded = links.expanded().pairs
        units_a, units_b = _units(links.groups_a, links.n_a), _units(links.groups_b, links.n_b)
        self.a, self.b = units_a[expanded[:, 0]], units_b[expanded[:, 1]]
        self.shape = (int(units_a.max(initial=-1)) + 1, int(units_b.max(initial=-1)) + 1)
        matches = sparse.coo_array((np.ones(len(self.a), dtype=bool), (self.a, self.b)), shape=self.shape)
        self.matches_a, self.matches_b = matches.tocsr(), matches.T.tocsr()
        self.first_a, self.first_b = (np.full(n, _NEVER) for n in self.shape)

    def fill(self, waiting: IntArray, fresh: IntArray, size: int) -> tuple[IntArray, IntArray, IntArray]:
        """Return a batch from `waiting`, then `fresh`, in their order; what then waits; and what was not looked at."""
        closed_a, closed_b = (np.zeros(n, dtype=bool) for n in self.shape)
        batch: list[IntArray] = []
        passed_over: list[IntArray] = []
        held = 0
        while held < size and len(waiting) + len(fresh):
            # A stretch at a time: whole passes over all that is left would be quadratic.
            width = 2 * (size - held) + 16
            source, rest = (waiting, waiting[width:]) if len(waiting) else (fresh, fresh[width:])
            stretch = source[:width]
            waiting, fresh = (rest, fresh) if len(waiting) else (waiting, rest)
            taken = np.zeros(len(stretch), dtype=bool)
            open_ = np.arange(len(stretch))
            while len(open_) and held < size:
                open_ = open_[~(closed_a[self.a[stretch[open_]]] | closed_b[self.b[stretch[open_]]])]
                fit = open_[~self._conflicts_before(stretch[open_])][: size - held]
                taken[fit] = True
                held += len(fit)
                closed_b[_entries(self.matches_a, self.a[stretch[fit]])[1]] = True
                closed_a[_entries(self.matches_b, self.b[stretch[fit]])[1]] = True
            batch.append(stretch[taken])
            passed_over.append(stretch[~taken])
        return np.concatenate(batch), np.concatenate([*passed_over, waiting]), fresh

    def _conflicts_before(self, numbers: IntArray) -> npt.NDArray[np.bool_]:
        """Return which links (m,) conflict with one before them in the list; the first does not."""
        a, b = self.a[numbers], self.b[numbers]
        places = np.arange(len(numbers))
        # Of several writes to one place the last stays: the first link of each item.
        self.first_a[a[::-1]], self.first_b[b[::-1]] = places[::-1], places[::-1]
        found = np.zeros(len(numbers), dtype=bool)
        for matches, items, first in ((self.matches_a, a, self.first_b), (self.matches_b, b, self.first_a)):
            place, matched = _entries(matches, items)
            found[place[first[matched] < place]] = True
        self.first_a[a], self.first_b[b] = _NEVER, _NEVER
        return found


def _entries(matrix: Any, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Return (place in `rows`, column) of all that the sparse `matrix` holds in these rows."""
    starts, sizes = matrix.indptr[rows], matrix.indptr[rows + 1] - matrix.indptr[rows]
    places = np.repeat(np.arange(len(rows)), sizes)
    within = np.arange(len(places)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return places, matrix.indices[np.repeat(starts, sizes) + within]


def _units(groups: IntArray | None, n: int) -> IntArray:
    if groups is None:
        return np.arange(n, dtype=np.int64)
    return np.unique(np.where(groups >= 0, groups, -1 - np.arange(n)), return_inverse=True)[1].astype(np.int64)
