"""Counting the candidates above and inside thresholds, tile by tile of a float32 product, for both directions at once.

A tile of scores is made and compared while it is in the processor's cache. Scores further from a threshold than the
bound on their rounding are settled by the comparison (`screen`), the few others in float64 (`undecided`). What is
counted are whole numbers, so neither tiles nor threads can change them. This module is not about where thresholds come
from (`layout`).
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bridgehead.evaluate.ranks.cosine_rows import Float32Array, slices
from bridgehead.evaluate.ranks.layout import Layout
from bridgehead.evaluate.ranks.screen import MOST_LINES, Screen
from bridgehead.evaluate.ranks.threads import each_in_threads
from bridgehead.evaluate.ranks.undecided import Asked, Product64
from bridgehead.vectors import IntArray

_ROWS = 1024
_TILE = 1 << 21
_WIDEST = 1 << 14
# A strip of scores and its two masks are 0.75 MB, which stays in a core's own cache.
_STRIP = 1 << 17
_SMALL = 1 << 28


@dataclass(frozen=True, eq=False)
class Counts:
    """The candidates strictly above each threshold of a side and those tied with it, (T,) each."""

    above: IntArray
    tied: IntArray


@dataclass(frozen=True)
class _Tile:
    rows: slice
    columns: slice
    asked_a: int
    asked_b: int


def count_both_ways(a: Layout, b: Layout, block: int | None = None) -> tuple[Counts, Counts]:
    """Return the counts for the thresholds of `a` among the rows of `b`, and for those of `b` among the rows of `a`.

    `block` is the number of rows of `a` in a tile (default 1,024); a tile has about two million scores. Memory is that
    of the thresholds and of one tile a thread. Parts in which neither side has a threshold are not computed.
    """
    found = (_zeros(len(a.high)), _zeros(len(b.high)))
    lock = threading.Lock()
    small = len(a.first) * len(b.first) * a.rows.n_columns < _SMALL
    each_in_threads(lambda: _Counter(a, b, found, lock).count, _tiles(a, b, block), 1 if small else None)
    return found


def _zeros(n: int) -> Counts:
    return Counts(np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64))


def _tiles(a: Layout, b: Layout, block: int | None) -> Iterator[_Tile]:
    for span_a in a.spans:
        step_a = min(block or _ROWS, span_a.stop - span_a.start)
        step_b = max(1, min(_WIDEST, _TILE // step_a))
        for span_b in b.spans:
            if span_a.asked or span_b.asked:
                for rows in slices(span_a.stop, step_a, span_a.start):
                    for columns in slices(span_b.stop, step_b, span_b.start):
                        yield _Tile(rows, columns, span_a.asked, span_b.asked)


class _Counter:
    """Counts tiles in one thread, into counts that all threads share."""

    def __init__(self, a: Layout, b: Layout, found: tuple[Counts, Counts], lock: threading.Lock) -> None:
        self._a, self._b, self._found, self._lock = a, b, found, lock
        self._scores: Float32Array = np.empty(0, dtype=np.float32)
        self._screen = Screen()

    def count(self, tile: _Tile) -> None:
        """Count one tile for both directions."""
        a, b, rows, columns = self._a, self._b, tile.rows, tile.columns
        product = Product64(a, b, rows, columns)
        forth = Asked(a, b, rows, columns, product)
        back = Asked(b, a, columns, rows, product, back=True)
        scores = self._product(rows, columns)
        if tile.asked_a == 2:
            _rank(scores, forth)
        if tile.asked_b == 2:
            _rank(scores.T, back)
        across = _columns(b, columns) if tile.asked_b == 1 else []
        for part in slices(len(scores), max(1, min(MOST_LINES, _STRIP // scores.shape[1]))):
            if tile.asked_a == 1:
                self._compare_rows(scores, part, forth)
            for strip in across:
                self._compare_columns(scores, part, strip, back)
        for strip in across:
            back.add(strip.thresholds, strip.above)
        for asked in (forth, back):
            asked.decide()
        self._keep(forth, back)

    def _product(self, rows: slice, columns: slice) -> Float32Array:
        n, m = rows.stop - rows.start, columns.stop - columns.start
        if self._scores.size < n * m:
            self._scores = np.empty(n * m, dtype=np.float32)
        scores = self._scores[: n * m].reshape(n, m)
        return np.matmul(self._a.unit32[rows], self._b.unit32[columns].T, out=scores)

    def _compare_rows(self, scores: Float32Array, part: slice, asked: Asked) -> None:
        """Compare the lines `part` of a tile with each of their thresholds."""
        layout, first = asked.queries, asked.part.start + part.start
        for skipped, thresholds in layout.passes(first, asked.part.start + part.stop):
            start = part.start + skipped
            high, low = layout.high32[thresholds], layout.low32[thresholds]
            n_above, line, column = self._screen.compare(scores[start : part.stop], high, low, False, asked.weights)
            asked.add(thresholds, n_above)
            if len(line):
                asked.wait(thresholds[line], start + line, column)

    def _compare_columns(self, scores: Float32Array, part: slice, columns: "_Columns", asked: Asked) -> None:
        """Compare the lines `part` of `columns` with the columns' thresholds."""
        weights = None if asked.weights is None else asked.weights[part]
        strip = scores[part, columns.skipped :]
        n_above, line, column = self._screen.compare(strip, columns.high, columns.low, True, weights)
        columns.above += n_above
        if len(line):
            asked.wait(columns.thresholds[column], columns.skipped + column, part.start + line)

    def _keep(self, forth: Asked, back: Asked) -> None:
        with self._lock:
            for asked, total in zip((forth, back), self._found, strict=True):
                here = slice(asked.first, asked.first + len(asked.above))
                total.above[here] += asked.above
                total.tied[here] += asked.tied


@dataclass(eq=False)
class _Columns:
    """One threshold of each column of a tile but the first `skipped`, and what is surely above it so far."""

    skipped: int
    thresholds: IntArray
    high: Float32Array
    low: Float32Array
    above: IntArray


def _columns(b: Layout, columns: slice) -> list[_Columns]:
    return [
        _Columns(skipped, index, b.high32[index], b.low32[index], np.zeros(len(index), dtype=np.int64))
        for skipped, index in b.passes(columns.start, columns.stop)
    ]


def _rank(scores: Float32Array, asked: Asked) -> None:
    """Place the many thresholds of each line of `scores` among its sorted scores."""
    layout = asked.queries
    for line, row in enumerate(scores):
        place = asked.part.start + line
        here = slice(int(layout.edges[place]), int(layout.edges[place + 1]))
        order = np.argsort(row)
        ascending = row[order]
        start = np.searchsorted(ascending, layout.low32[here], side="left")
        stop = np.searchsorted(ascending, layout.high32[here], side="right")
        weights = np.ones(len(row)) if asked.weights is None else asked.weights[order]
        below = np.append(0.0, np.cumsum(weights))
        thresholds = np.arange(here.start, here.stop)
        asked.add(thresholds, (below[-1] - below[stop]).astype(np.int64))
        # Places start .. stop - 1 of the sorted scores are unsure; they are listed threshold after threshold.
        n = stop - start
        if n.any():
            within = np.arange(int(n.sum())) - np.repeat(np.cumsum(n) - n, n)
            found = order[np.repeat(start, n) + within]
            asked.wait(np.repeat(thresholds, n), np.full(len(found), line), found)
