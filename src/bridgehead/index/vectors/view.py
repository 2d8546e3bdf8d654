"""One state of a side, ready to be searched: the rows of the build, without those removed, with those added since.

Candidates come from FAISS, and from a plain scan of the added rows; both are scored exactly and merged. Owns pages,
ties and filters. Where the state comes from (SQLite) is not its matter.
"""

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.index.vectors.base import BaseVectors
from bridgehead.index.vectors.ranked import Ranked, check_page, no_hits
from bridgehead.index.vectors.reach import Reach
from bridgehead.index.vectors.scoring import best_of, cosines, rank_among
from bridgehead.index.vectors.selection import Selection, places_of
from bridgehead.vectors import FloatArray, IntArray, check_rows, unit_rows

FIRST_PAGES = 32
GROWTH = 4
_NEARLY_TIED = 1e-6
_FEW_ALLOWED = 4096
_MOST_CANDIDATES = 1 << 15


class SideView:
    """One immutable state of a side, shared by threads.

    `base`: the vectors of the build. `added_numbers` (m,) ascending, all above those of the base or not in it,
    `added_rows` (m, d) float16: what was added since. `removed_numbers`: numbers of the base that are gone.
    """

    def __init__(
        self,
        base: BaseVectors,
        added_numbers: IntArray | None = None,
        added_rows: npt.NDArray[np.float16] | None = None,
        removed_numbers: IntArray | None = None,
    ) -> None:
        self.base = base
        self.dim = base.facts.dim
        self._added = _integers(added_numbers)
        given = added_rows if added_rows is not None else np.zeros((0, self.dim), np.float16)
        self._added_rows = np.asarray(given, dtype=np.float16)
        if self._added_rows.shape != (len(self._added), self.dim):
            raise ShapeError(
                f"{len(self._added)} added numbers and rows of shape {self._added_rows.shape}; expected one row of "
                f"{self.dim} columns for each"
            )
        gone = places_of(base.numbers, _integers(removed_numbers))
        self._reach = Reach(base, self._without(gone[gone >= 0]))
        self._reaches: dict[int, tuple[IntArray, Reach]] = {}

    def _without(self, places: IntArray) -> Selection | None:
        if not len(places):
            return None
        mask = np.ones(len(self.base), bool)
        mask[places] = False
        return Selection(mask)

    def _reach_of(self, allowed: IntArray) -> Reach:
        """Return the reach of a filter; that of an array that cannot change is remembered, eight of them."""
        known = self._reaches.get(id(allowed))
        if known is not None and known[0] is allowed:
            return known[1]
        places = places_of(self.base.numbers, allowed)
        mask = np.zeros(len(self.base), bool)
        mask[places[places >= 0]] = True
        if self._live is not None:
            mask &= self._live.mask
        reach = Reach(self.base, Selection(mask), filtered=True)
        if not allowed.flags.writeable:
            # Replaced as a whole, so that threads need no lock.
            self._reaches = dict([*self._reaches.items()][-7:] + [(id(allowed), (allowed, reach))])
        return reach

    @property
    def _live(self) -> Selection | None:
        return self._reach.selection

    def __len__(self) -> int:
        return self._reach.count + len(self._added)

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int | np.integer) and self._place(int(number)) is not None

    def numbers(self) -> IntArray:
        """Return the numbers of all items of this state, ascending."""
        return self._all_numbers

    @cached_property
    def _all_numbers(self) -> IntArray:
        kept = self.base.numbers if self._live is None else self.base.numbers[self._live.mask]
        return np.sort(np.concatenate([kept, self._added])) if len(self._added) else kept

    @cached_property
    def _added_unit(self) -> FloatArray:
        """The added rows as float32 unit rows: they are gone through in every search."""
        rows: FloatArray = unit_rows(self._added_rows.astype(np.float32))
        return rows

    def row(self, number: int) -> FloatArray:
        """Return the row (d,) of an item, float32 of unit length; a zero row stays zero. Raises `ArgumentError`."""
        row: FloatArray = self.rows(np.array([number], np.int64))[0]
        return row

    def rows(self, numbers: Any) -> FloatArray:
        """Return the rows (m, d) of items, float32 of unit length. Raises `ArgumentError` for one that is not there."""
        wanted = _integers(numbers)
        added, base = places_of(self._added, wanted), places_of(self.base.numbers, wanted)
        gone = base < 0 if self._live is None else (base < 0) | ~self._live.mask[base]
        if (missing := wanted[(added < 0) & gone]).size:
            raise ArgumentError(f"there is no item of number {missing[0]} in this side; it has {len(self):,} items")
        stored = np.zeros((len(wanted), self.dim), np.float32)
        stored[added < 0] = self.base.rows[base[added < 0]]
        stored[added >= 0] = self._added_rows[added[added >= 0]]
        rows: FloatArray = unit_rows(stored)
        return rows

    def _stored(self, number: int) -> npt.NDArray[np.float16]:
        found = self._place(number)
        if found is None:
            raise ArgumentError(f"there is no item of number {number} in this side; it has {len(self):,} items")
        rows, place = found
        stored: npt.NDArray[np.float16] = rows[place]
        return stored

    def _place(self, number: int) -> tuple[npt.NDArray[np.float16], int] | None:
        place = int(np.searchsorted(self._added, number))
        if place < len(self._added) and self._added[place] == number:
            return self._added_rows, place
        place = int(places_of(self.base.numbers, np.array([number]))[0])
        if place < 0 or (self._live is not None and not self._live.mask[place]):
            return None
        return self.base.rows, place

    def search(self, queries: Any, k: int, offset: int = 0, allowed: IntArray | None = None) -> list[Ranked]:
        """Return for each query row (m, d) the hits number offset + 1 to offset + k.

        The score is the cosine of the query with the stored row. `allowed`: ascending numbers that may be found, None
        for all. Fewer hits are returned when there are fewer items; a zero query has no direction and gets none. Pages
        of one query never overlap. Raises `ArgumentError` (k < 1, offset < 0), `ShapeError` and `NonFiniteRowsError`.
        """
        check_page(k, offset)
        queries = unit_rows(check_rows(queries, "query rows"), dtype=np.float64)
        if queries.shape[1] != self.dim:
            raise ShapeError(f"query rows have {queries.shape[1]} columns; the index has {self.dim}")
        scope = _Scope(self, allowed)
        first = scope.first_candidates(queries)
        return [
            scope.ranked(query, min(offset + k, scope.size), found).page(k, offset)
            for query, found in zip(queries, first, strict=True)
        ]

    def rank_of(self, query: Any, number: int) -> int:
        """Return the exact rank (from 1) of item `number` among all items for one query (d,), ties by number.

        Reads every row, in blocks. Raises `ArgumentError` (no such item), `ShapeError` and `NonFiniteRowsError`.
        """
        unit = unit_rows(check_rows(np.asarray(query)[None], "query rows"), dtype=np.float64)[0]
        own = float(cosines(self._stored(number)[None], unit)[0])
        live = self._live.mask if self._live is not None else None
        before = rank_among(self.base.rows, unit, own, self.base.numbers < number, live)
        return 1 + before + rank_among(self._added_rows, unit, own, self._added < number, None)


class _Scope:
    """What one search may find: the whole view, or the allowed part of it."""

    def __init__(self, view: SideView, allowed: IntArray | None) -> None:
        self.view, self.base = view, view.base
        self.added, self.added_rows = view._added, view._added_rows
        self.kept: IntArray | slice = slice(None)
        self.reach = view._reach
        if allowed is not None:
            self._narrow(_integers(allowed))
        self.size = self.reach.count + len(self.added)
        # Few rows are gone through about as fast as FAISS is asked, and nothing is missed.
        self.exact = self.reach.selection is not None and self.reach.count <= _FEW_ALLOWED

    def _narrow(self, allowed: IntArray) -> None:
        kept = places_of(self.added, allowed)
        self.kept = kept = np.sort(kept[kept >= 0])
        self.added, self.added_rows = self.added[kept], self.added_rows[kept]
        self.reach = self.view._reach_of(allowed)

    def first_candidates(self, queries: FloatArray) -> list[IntArray | None]:
        """Return the candidates of the first pages, found for all queries together; None where there are none."""
        wanted = [bool(query.any()) and bool(self.reach.count) and not self.exact for query in queries]
        asked = queries[wanted].astype(np.float32)
        found = iter(self.reach.candidates(asked, self._width(FIRST_PAGES)) if len(asked) else [])
        return [next(found) if want else None for want in wanted]

    def _width(self, limit: int) -> int:
        return max(self.base.facts.candidates, limit * self.base.facts.candidates // FIRST_PAGES)

    def ranked(self, query: FloatArray, end: int, first: IntArray | None) -> Ranked:
        """Return at least `end` hits. A deeper page extends the order of the pages before it, so none overlap."""
        if not end or not query.any():
            return no_hits()
        if self.exact or not self.reach.count:
            return self._merged(self._scanned(query, end), query, end)
        ranked = no_hits()
        limit, factor = FIRST_PAGES, 1
        while len(ranked) < end:
            found = self._merged(self._from_base(query, limit, factor, first), query, limit)
            fresh = ~np.isin(found.numbers, ranked.numbers)
            room = limit - len(ranked)
            ranked = Ranked(
                np.concatenate([ranked.numbers, found.numbers[fresh][:room]]),
                np.concatenate([ranked.scores, found.scores[fresh][:room]]),
            )
            limit, factor, first = limit * GROWTH, factor * 2, None
        return ranked

    def _merged(self, base: Ranked, query: FloatArray, limit: int) -> Ranked:
        if not len(self.added):
            return base
        rough = np.einsum("ij,j->i", self.view._added_unit, query.astype(np.float32))
        added, _ = best_of(self.added_rows, slice(None), query, limit, rough[self.kept])
        numbers = np.concatenate([base.numbers, self.added[added.numbers]])
        return Ranked(numbers, np.concatenate([base.scores, added.scores])).ordered()

    def _scanned(self, query: FloatArray, limit: int) -> Ranked:
        """Return the best `limit` of all that may be found in the base, by a scan of their rows."""
        where = self.reach.selection.positions if self.reach.selection is not None else slice(None)
        best, _ = best_of(self.base.rows, where, query, limit)
        return self._numbered(best)

    def _from_base(self, query: FloatArray, limit: int, factor: int, first: IntArray | None) -> Ranked:
        """Return the best `limit` of the base in exact order; those tied with the last are all looked at."""
        width = self._width(limit)
        query32 = query[None].astype(np.float32)
        found = first
        # What FAISS does not sort in good time (a deep page, many ties) or does not reach, a scan does.
        while width <= _MOST_CANDIDATES:
            if found is None:
                found = self.reach.candidates(query32, width, factor)[0]
            best, lowest = best_of(self.base.rows, found, query, limit)
            enough = len(found) >= min(limit, self.reach.count)
            if len(found) >= self.reach.count or (enough and not self._cut_in_tie(best, lowest, limit)):
                return self._numbered(best)
            if self.reach.is_exhaustive(width, factor):
                break
            width, factor, found = width * GROWTH, factor * GROWTH, None
        return self._scanned(query, limit)

    def _cut_in_tie(self, best: Ranked, lowest: float, limit: int) -> bool:
        return len(best) >= limit and bool(best.scores[limit - 1] - lowest <= _NEARLY_TIED)

    def _numbered(self, best: Ranked) -> Ranked:
        return Ranked(self.base.numbers[best.numbers], best.scores)


def _integers(numbers: Any) -> IntArray:
    return np.asarray(numbers if numbers is not None else (), dtype=np.int64)
