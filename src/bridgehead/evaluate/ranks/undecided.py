"""What is counted for the queries of a tile: what float32 settled, and the pairs that float64 has to decide.

A pair is decided by its `pair_cosines`, which does not depend on the direction or the tile. Where most pairs of a tile
are undecided (rows that nearly coincide), a float64 product of the tile screens them first, with a bound on its error,
and only those at the very edge of a threshold are scored one by one. This module is not about comparing tiles
(`tiles`).
"""

from functools import cached_property

import numpy as np

from bridgehead.evaluate.ranks.cosine_rows import pair_cosines, product64_error
from bridgehead.evaluate.ranks.layout import Layout
from bridgehead.evaluate.ranks.levels import TIE
from bridgehead.evaluate.ties import Float64Array
from bridgehead.vectors import IntArray

_CROWDED = 1 / 64
_WAITING = 1 << 16


class Product64:
    """The float64 product of a tile (rows of `a` by rows of `b`), made when it is first read."""

    def __init__(self, a: Layout, b: Layout, rows: slice, columns: slice) -> None:
        self._a, self._b, self._rows, self._columns = a, b, rows, columns

    @cached_property
    def scores(self) -> Float64Array:
        """All scores, (rows, columns); each within `product64_error` of the pair's cosine."""
        left = self._a.rows.unit64(self._a.first[self._rows])
        product: Float64Array = left @ self._b.rows.unit64(self._b.first[self._columns]).T
        return product


class Asked:
    """The thresholds of the queries of a tile in one direction, and the counts for them.

    `part` and `others` are the places of queries and candidates; `back` says that queries are the columns of
    `product`. `above` and `tied` (T,) are for the thresholds from number `first` on.
    """

    def __init__(
        self, queries: Layout, candidates: Layout, part: slice, others: slice, product: Product64, back: bool = False
    ) -> None:
        self.queries, self.candidates, self.part, self.others = queries, candidates, part, others
        self._product, self._back = product, back
        self.first = int(queries.edges[part.start])
        self.above = np.zeros(int(queries.edges[part.stop]) - self.first, dtype=np.int64)
        self.tied = np.zeros_like(self.above)
        copies = candidates.copies[others]
        self.weights = copies.astype(np.float64) if int(copies.max()) > 1 else None
        self._n_pairs = (part.stop - part.start) * (others.stop - others.start)
        self._found = 0
        self._n_waiting = 0
        self._waiting: list[tuple[IntArray, IntArray, IntArray]] = []

    def add(self, thresholds: IntArray, n_above: IntArray) -> None:
        """Add candidates that are surely above to the counts of `thresholds`, of which none comes twice."""
        self.above[thresholds - self.first] += n_above

    def wait(self, thresholds: IntArray, query: IntArray, candidate: IntArray) -> None:
        """Note pairs that have yet to be decided for `thresholds`; places are counted from the tile's edges."""
        self._waiting.append((thresholds, query, candidate))
        self._n_waiting += len(thresholds)
        self._found += len(thresholds)
        if self._n_waiting > _WAITING:
            self.decide()

    def decide(self) -> None:
        """Score the pairs that wait in float64 and count them as above, tied or neither."""
        if not self._n_waiting:
            return
        thresholds, query, candidate = (np.concatenate(column) for column in zip(*self._waiting, strict=True))
        self._waiting, self._n_waiting = [], 0
        high = self.queries.high[thresholds] + TIE
        low = self.queries.low[thresholds] - TIE
        scores = self._exact(query, candidate, high, low)
        higher = scores > high
        equal = ~higher & (scores >= low)
        weights = self.candidates.copies[self.others.start + candidate].astype(np.float64)
        for counts, chosen in ((self.above, higher), (self.tied, equal)):
            found = np.bincount(thresholds[chosen] - self.first, weights[chosen], len(counts))
            counts += found.astype(np.int64)

    def _exact(self, query: IntArray, candidate: IntArray, high: Float64Array, low: Float64Array) -> Float64Array:
        """Return scores of pairs that lie on the same side of `high` and `low` as the pairs' cosines do."""
        if self._found <= _CROWDED * self._n_pairs:
            return self._cosines(query, candidate)
        scores = self._product.scores[(candidate, query) if self._back else (query, candidate)]
        error = product64_error(self.queries.rows.n_columns)
        close = np.flatnonzero((np.abs(scores - high) <= error) | (np.abs(scores - low) <= error))
        scores[close] = self._cosines(query[close], candidate[close])
        return scores

    def _cosines(self, query: IntArray, candidate: IntArray) -> Float64Array:
        rows = self.queries.first[self.part.start + query]
        return pair_cosines(
            self.queries.rows, self.candidates.rows, rows, self.candidates.first[self.others.start + candidate]
        )
