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
    rest = epoch_order(len(pool.a), seed, epoch)
    batches: list[IntArray] = []
    while len(rest):
        batch, rest_after = pool.fill(rest, batch_size)
        if len(batch) < (least if len(rest_after) else 2):
            break
        batches.append(batch)
        rest = rest_after
    return DistinctEpoch(batches, np.sort(rest))


class _Pool:
    """All links by what counts as one item on each side, and what each item matches."""

    def __init__(self, links: Links) -> None:
        expanded = links.expanded().pairs
        units_a, units_b = _units(links.groups_a, links.n_a), _units(links.groups_b, links.n_b)
        self.a, self.b = units_a[expanded[:, 0]], units_b[expanded[:, 1]]
        n_a, n_b = int(units_a.max(initial=-1)) + 1, int(units_b.max(initial=-1)) + 1
        ones = np.ones(len(self.a), dtype=bool)
        self.matches_a = sparse.coo_array((ones, (self.a, self.b)), shape=(n_a, n_b)).tocsr()
        self.matches_b = sparse.csr_array(self.matches_a.T)

    def fill(self, rest: IntArray, size: int) -> tuple[IntArray, IntArray]:
        """Return a batch from `rest`, in its order, and what remains of it."""
        closed_a, closed_b = (np.zeros(n, dtype=bool) for n in self.matches_a.shape)
        taken = np.zeros(len(rest), dtype=bool)
        start, held = 0, 0
        while held < size and start < len(rest):
            # A stretch of the order at a time: whole passes over all that waits would be quadratic.
            stretch = np.arange(start, min(len(rest), start + 2 * (size - held) + 16))
            start = int(stretch[-1]) + 1
            while len(stretch) and held < size:
                numbers = rest[stretch]
                stretch = stretch[~(closed_a[self.a[numbers]] | closed_b[self.b[numbers]])]
                fit = stretch[self._first_of_conflicting(rest[stretch])][: size - held]
                taken[fit] = True
                held += len(fit)
                closed_b[self.matches_a[self.a[rest[fit]]].indices] = True
                closed_a[self.matches_b[self.b[rest[fit]]].indices] = True
        return rest[taken], rest[~taken]

    def _first_of_conflicting(self, numbers: IntArray) -> npt.NDArray[np.bool_]:
        """Return which links (m,) conflict with none before them in the list; at least the first does not."""
        m = len(numbers)
        a, b = self.a[numbers], self.b[numbers]
        places = np.arange(m)
        columns: Any = sparse.coo_array((np.ones(m, dtype=bool), (b, places)), shape=(self.matches_a.shape[1], m))
        left, right = (self.matches_a[a] @ columns.tocsr()).nonzero()
        ok = np.ones(m, dtype=bool)
        ok[np.maximum(left, right)[left != right]] = False
        return ok


def _units(groups: IntArray | None, n: int) -> IntArray:
    if groups is None:
        return np.arange(n, dtype=np.int64)
    return np.unique(np.where(groups >= 0, groups, -1 - np.arange(n)), return_inverse=True)[1].astype(np.int64)
