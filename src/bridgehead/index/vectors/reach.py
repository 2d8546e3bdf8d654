"""What of a base may be found by one search, and how much FAISS is made to look at for it.

Owns the effort: lists of an IVF index, width of a walk through a graph, more of either under a filter. What the
candidates are worth is in `scoring`; where added items come in, in `view`.
"""

from functools import cached_property
from math import ceil
from typing import Any

import numpy as np

from bridgehead.index.vectors.base import BaseVectors
from bridgehead.index.vectors.engine import candidate_rows, faiss_library
from bridgehead.index.vectors.selection import Selection
from bridgehead.vectors import FloatArray, IntArray

# What is left by a filter may lie far from the query, where the lists are less in order.
_FILTERED = 4


class Reach:
    """All of `base`, or the positions of `selection`; `filtered` where that is a choice and not all but a few."""

    def __init__(self, base: BaseVectors, selection: Selection | None = None, filtered: bool = False) -> None:
        self.base = base
        self.selection = selection
        self.count = len(base) if selection is None else selection.count
        self._filtered = filtered

    @cached_property
    def _inner(self) -> Selection | None:
        """The selection among what FAISS holds, which is one of each group of identical rows."""
        if self.selection is None or self.base.twins is None:
            return self.selection
        return self.base.twins.selected(self.selection)

    @cached_property
    def _found(self) -> Any:
        # A walk through a graph ends near the query, where a filter may leave nothing: then all codes are gone through.
        graph = self._filtered and self.base.facts.ef is not None
        return faiss_library().downcast_index(self.base.found.storage) if graph else self.base.found

    def candidates(self, queries: FloatArray, width: int, factor: int = 1) -> list[IntArray]:
        """Return for each float32 query (m, d) ascending positions that FAISS proposes, about `width` of them.

        `factor`: how many times the measured effort. Numbers that FAISS makes up are left out.
        """
        width = max(1, min(width, self.base.found.ntotal))
        bitmap = self._inner.bitmap if self._inner is not None else None
        if self._inner is None or not self._filtered or self.base.facts.nprobe is None:
            rows = candidate_rows(self._found, queries, width, self._effort(width, factor), bitmap)
            return [self._valid(found) for found in rows]
        efforts = [{"nprobe": self._lists_for(query, factor, self._inner)} for query in queries]
        return [
            self._valid(candidate_rows(self._found, query[None], width, effort, bitmap)[0])
            for query, effort in zip(queries, efforts, strict=True)
        ]

    def _valid(self, found: IntArray) -> IntArray:
        found = np.sort(found[(found >= 0) & (found < self.base.found.ntotal)])
        if (found[1:] == found[:-1]).any():
            found = np.unique(found)
        if self.base.twins is None:
            return found
        found = np.sort(self.base.twins.expanded(found))
        return found if self.selection is None else found[self.selection.mask[found]]

    def is_exhaustive(self, width: int, factor: int) -> bool:
        """Return whether nothing more can be looked at than with these."""
        if width < self.base.found.ntotal:
            return False
        return self.base.facts.nprobe is None or factor * self.base.facts.nprobe >= self.base.found.nlist

    def _effort(self, width: int, factor: int) -> dict[str, int]:
        facts, found = self.base.facts, self._found
        rare = found.ntotal / max(1, self._inner.count) if self._inner is not None else 1.0
        if facts.nprobe is not None:
            return {"nprobe": min(ceil(factor * facts.nprobe * rare), found.nlist)}
        if facts.ef is None or self._filtered:
            return {}
        return {"ef": min(ceil(max(factor * facts.ef, width) * rare), found.ntotal)}

    def _lists_for(self, query: FloatArray, factor: int, inner: Selection) -> int:
        """Return how many lists hold four times as many selected rows as are looked at without a filter.

        Counted list by list from the nearest, so that a filter whose rows lie far from the query is answered as well.
        """
        found, nprobe = self.base.found, self.base.facts.nprobe
        assert nprobe is not None
        order = found.quantizer.search(query[None], found.nlist)[1][0]
        held = np.cumsum(self._in_lists[order])
        wanted = min(_FILTERED * factor * nprobe * found.ntotal / found.nlist, inner.count)
        enough = max(factor * nprobe, int(np.searchsorted(held, wanted)) + 1)
        return min(enough, int(found.nlist))

    @cached_property
    def _in_lists(self) -> IntArray:
        """How many selected rows each list holds."""
        assert self._inner is not None
        places = self.base.lists[self._inner.positions]
        return np.bincount(places[places >= 0], minlength=self.base.found.nlist)
