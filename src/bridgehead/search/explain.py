"""Why hits are there: similarity against random pairs, the nearest training pair, matched words, ranks in both lists.

What of this is shown of a hit is its `Explanation`. Finding hits is in `ranking`.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from bridgehead.index import IndexState, Item, Ranked
from bridgehead.search.answer import Explanation, NearestPair
from bridgehead.search.ranking import DEPTH, Asked, Lists, Page
from bridgehead.search.references import References
from bridgehead.vectors import FloatArray, IntArray

_BLOCK = 16_384
_CELLS = 1 << 22
_DECIMALS = 6
_SCORE_DECIMALS = 12
Floats = npt.NDArray[np.float64]


def similarities(state: IndexState, one: Asked, page: Page) -> Floats | None:
    """Return the cosine of the query with each hit of a page (m,), None where the query has no row."""
    if one.row is None:
        return None
    if page.scored_by == "space":
        return page.found.scores
    return _cosines(state.rows(one.target, page.found.numbers), one.row)


def _cosines(rows: FloatArray, others: FloatArray) -> Floats:
    """Return the cosine of each unit row (m, d) with another one or with its own of others (m, d).

    Summed within each row, so that it does not depend on how many rows there are.
    """
    found = (rows.astype(np.float64) * others.astype(np.float64)).sum(axis=1)
    return np.asarray(np.round(np.clip(found, -1, 1), _SCORE_DECIMALS) + 0.0)


def explanations(
    state: IndexState,
    one: Asked,
    page: Page,
    references: References | None,
    cosines: Floats | None,
    percentiles: list[Any],
) -> list[Explanation]:
    """Return for each hit of a page why it is there."""
    from bridgehead.index.words import matched_words

    numbers = page.found.numbers
    nearest = nearest_pairs(state, one, numbers, references)
    ranks = _ranks(state, one, page)
    return [
        Explanation(
            similarity=None if cosines is None else float(cosines[position]),
            percentile=percentiles[position],
            nearest_pair=nearest[position],
            matched_words=matched_words(one.words, state.word_text(number)),
            ranks=ranks[position],
        )
        for position, number in enumerate(numbers.tolist())
    ]


def nearest_pairs(
    state: IndexState, one: Asked, numbers: IntArray, references: References | None
) -> list[NearestPair | None]:
    """Return for each hit the training pair whose smaller cosine, of its ends with query and hit, is largest.

    The query is compared with the end on its own side, the hit with the end on its side: the same end where both are on
    one. Equal to six decimals is tied, then the pair of the lower numbers. Pairs of which an end is gone do not count.
    Takes a pass over the rows of the training pairs, in blocks, so memory does not grow with them.
    """
    nothing: list[NearestPair | None] = [None] * len(numbers)
    if references is None or one.row is None or one.reading.side is None or not len(numbers):
        return nothing
    pairs = _live(state, references.training_pairs)
    if not len(pairs):
        return nothing
    own, other = "ab".index(one.reading.side), "ab".index(one.target)
    hits = state.rows(one.target, numbers)
    to_query = _cosines_with(state, one.reading.side, pairs[:, own], one.row)
    ends = pairs[_nearest(state, one.target, pairs[:, other], to_query, hits)]
    near_query = _cosines(state.rows(one.reading.side, ends[:, own]), one.row)
    near_hit = _cosines(state.rows(one.target, ends[:, other]), hits)
    first, second = (_by_number(state, side, ends[:, column]) for column, side in enumerate("ab"))
    return [
        NearestPair(first[a].id, first[a].item, second[b].id, second[b].item, with_query, with_hit)
        for (a, b), with_query, with_hit in zip(ends.tolist(), near_query.tolist(), near_hit.tolist(), strict=True)
    ]


def _by_number(state: IndexState, side: str, numbers: IntArray) -> dict[int, Item]:
    distinct = np.unique(numbers).tolist()
    return dict(zip(distinct, state.items(side, distinct), strict=True))


def _live(state: IndexState, pairs: IntArray) -> IntArray:
    """Return the pairs whose ends are both there."""
    there = np.ones(len(pairs), dtype=bool)
    for column, side in enumerate("ab"):
        numbers = state.numbers(side)
        place = np.searchsorted(numbers, pairs[:, column])
        there &= place < len(numbers)
        there[there] = numbers[place[there]] == pairs[there, column]
    return np.asarray(pairs[there])


def _cosines_with(state: IndexState, side: str, ends: IntArray, row: FloatArray) -> FloatArray:
    """Return the cosine (n,) of a row with the row of each end; items that occur in many pairs are looked up once."""
    distinct, position = np.unique(ends, return_inverse=True)
    found = np.zeros(len(distinct), dtype=np.float32)
    for start in range(0, len(distinct), _BLOCK):
        found[start : start + _BLOCK] = state.rows(side, distinct[start : start + _BLOCK]) @ row.astype(np.float32)
    return found[position]


def _nearest(state: IndexState, side: str, ends: IntArray, to_query: FloatArray, hits: FloatArray) -> IntArray:
    """Return for each hit row (m, d) the position of its nearest pair."""
    best = np.full(len(hits), -np.inf, dtype=np.float32)
    chosen = np.zeros(len(hits), dtype=np.int64)
    order = np.argsort(ends, kind="stable")
    step = max(1, min(_BLOCK, _CELLS // len(hits)))
    for start in range(0, len(order), step):
        part = order[start : start + step]
        distinct, position = np.unique(ends[part], return_inverse=True)
        to_hit = (hits @ state.rows(side, distinct).T)[:, position]
        joint = np.round(np.minimum(to_hit, to_query[part]), _DECIMALS)
        first = joint.argmax(axis=1)
        found = joint[np.arange(len(hits)), first]
        better = found > best
        best[better], chosen[better] = found[better], part[first[better]]
    return chosen


def _ranks(state: IndexState, one: Asked, page: Page) -> list[dict[str, int]]:
    """Return for each hit its rank in the list by the space and in that by words, where it is in the first part."""
    depth = max(DEPTH, one.query.offset + len(page.found))
    modes = ("words",) if one.row is None else ("space", "words")
    ranks: list[dict[str, int]] = [{} for _ in page.found.numbers]
    for mode in modes:
        listed: Ranked = Lists(state, one.target, mode, page.filters, one.without).first([one], depth)[0]
        rank_of = {number: rank for rank, number in enumerate(listed.numbers.tolist(), start=1)}
        for place, number in zip(ranks, page.found.numbers.tolist(), strict=True):
            if (rank := rank_of.get(number)) is not None:
                place[mode] = rank
    return ranks
