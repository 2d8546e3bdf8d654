"""Which items make a page: filters, the three lists (space, words, both fused), and folding what is one thing.

It sees numbers of items and scores, and looks everything up in one state of the index. A deeper page extends the order
of those before it, in every mode. What is shown of an item is in `answering`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bridgehead.errors import BridgeheadError
from bridgehead.index import IndexState, Ranked
from bridgehead.search.filters import BoolArray, Filters, filters_of
from bridgehead.search.hybrid import FUSED_DEPTH, hybrid
from bridgehead.search.query import Query
from bridgehead.search.reading import Reading
from bridgehead.vectors import FloatArray

if TYPE_CHECKING:
    from bridgehead.index.structures import Verify

DEPTH = FUSED_DEPTH
"""How many of each list are fused in mode "hybrid"; after these the list by the space goes on."""

_FIRST_FOLDED = 128
_DEEPER = 4
_NO_ITEMS = Ranked(np.zeros(0, np.int64), np.zeros(0))


@dataclass(frozen=True, eq=False)
class Page:
    """What was found for one query: the hits of its page, the ids folded into each, and whether there are further.

    `scored_by`: "space", "words" or "hybrid". `n_searched`: how many items pass the `filters` (of a
    substructure: its screen).
    """

    found: Ranked
    also: tuple[tuple[str, ...], ...]
    more: bool
    n_searched: int
    scored_by: str
    filters: Filters


@dataclass(eq=False)
class Asked:
    """A query on its way to an answer.

    `row` (d,) is its row in the space, None where it has none, for the `reason`. `words`: the text that is looked up in
    mode words. `without`: the number of an item that is no hit. An `error` ends the way.
    """

    query: Query
    reading: Reading
    target: str
    words: str
    row: FloatArray | None = None
    reason: str = ""
    without: int | None = None
    page: Page | None = None
    error: BridgeheadError | None = None
    others: tuple[str, ...] = ()

    @property
    def mode(self) -> str:
        """The list that answers: that by words where there is no row."""
        return self.query.mode if self.row is not None else "words"

    @property
    def alike(self) -> tuple[Any, ...]:
        """What queries must share to be looked up together."""
        query = self.query
        filters = (query.where, query.substructure, query.similar_to, query.least_similarity)
        return (self.target, self.mode, query.k, query.offset, query.distinct, self.without, *filters)


def find_pages(state: IndexState, asked: Sequence[Asked], verify: "Verify | None" = None) -> None:
    """Give each query its page, or the error of its filters; queries that are alike are looked up together."""
    groups: dict[tuple[Any, ...], list[Asked]] = {}
    for one in asked:
        groups.setdefault(one.alike, []).append(one)
    for group in groups.values():
        try:
            _find(state, group, verify)
        except BridgeheadError as error:
            for one in group:
                one.error = error


def _find(state: IndexState, group: Sequence[Asked], verify: "Verify | None") -> None:
    first = group[0]
    query, target = first.query, first.target
    filters = filters_of(state, target, query, verify)
    n_searched = state.size(target) if filters.allowed is None else len(filters.allowed)
    if first.without is not None and (filters.allowed is None or first.without in filters.allowed):
        n_searched -= 1
    end = int(min(query.offset + query.k, n_searched))
    start = int(min(query.offset, n_searched))
    lists = Lists(state, target, first.mode, filters, first.without)
    if query.distinct:
        for one in group:
            found, also, more = _folded(lists, one, start, end)
            one.page = Page(found, also, more, n_searched, first.mode, filters)
        return
    # These lists hold every item; of the others it takes one hit more to know whether there is one.
    is_whole = first.mode != "words" and filters.passes is None
    for one, found in zip(group, lists.first(group, end if is_whole else end + 1), strict=True):
        page = found.page(end - start, start)
        more = end < n_searched if is_whole else len(found) > end
        one.page = Page(page, ((),) * len(page), more, n_searched, first.mode, filters)


@dataclass(frozen=True)
class Lists:
    """The list of one mode over what `filters` let pass of a side, less the item `without`."""

    state: IndexState
    side: str
    mode: str
    filters: Filters
    without: int | None

    def first(self, asked: Sequence[Asked], depth: int) -> list[Ranked]:
        """Return for each query its first `depth` items; fewer where there are no more."""
        allowed = self.filters.allowed
        if depth < 1 or (allowed is not None and not len(allowed)):
            return [_NO_ITEMS] * len(asked)
        if self.filters.passes is None:
            return self._first(asked, depth)
        return [self._passing(one, depth) for one in asked]

    def _passing(self, one: Asked, depth: int) -> Ranked:
        """Return the first items that pass, looking at more and more of the list; each is looked at once."""
        assert self.filters.passes is not None
        looked_at, size = 0, 2 * depth
        kept: list[Ranked] = []
        while True:
            listed = self._first([one], size)[0]
            fresh = listed.page(size, looked_at)
            kept.append(_chosen(fresh, self.filters.passes(fresh.numbers)))
            if sum(map(len, kept)) >= depth or len(listed) < size:
                found = Ranked(
                    np.concatenate([part.numbers for part in kept]), np.concatenate([part.scores for part in kept])
                )
                return found.page(depth, 0)
            looked_at, size = size, _DEEPER * size

    def _first(self, asked: Sequence[Asked], depth: int) -> list[Ranked]:
        more = depth + (self.without is not None)
        if self.mode == "space":
            found = self._space(asked, more)
        elif self.mode == "words":
            found = [self._words(one, more) for one in asked]
        else:
            found = self._hybrid(asked, more)
        if self.without is None:
            return [one.page(depth, 0) for one in found]
        return [_chosen(one, one.numbers != self.without).page(depth, 0) for one in found]

    def _space(self, asked: Sequence[Asked], depth: int) -> list[Ranked]:
        rows = np.stack([one.row for one in asked if one.row is not None])
        found: list[Ranked] = self.state.search(self.side, rows, depth, 0, self.filters.allowed)
        return found

    def _words(self, one: Asked, depth: int) -> Ranked:
        found = self.state.words(one.words, self.side, depth, 0, self.filters.allowed)
        scores = np.array([hit.score for hit in found], dtype=np.float64)
        return Ranked(np.array([hit.number for hit in found], dtype=np.int64), scores)

    def _hybrid(self, asked: Sequence[Asked], depth: int) -> list[Ranked]:
        by_space = self._space(asked, max(depth, DEPTH))
        by_words = [self._words(one, DEPTH) for one in asked]
        pairs = zip(by_space, by_words, strict=True)
        return [hybrid(near.numbers, words.numbers, depth, DEPTH) for near, words in pairs]


def _chosen(found: Ranked, kept: BoolArray) -> Ranked:
    return Ranked(found.numbers[kept], found.scores[kept])


def _folded(lists: "Lists", one: Asked, start: int, end: int) -> tuple[Ranked, tuple[tuple[str, ...], ...], bool]:
    """Return a page of things, each by its first item, the ids folded into each, and whether there are further."""
    depth = _FIRST_FOLDED
    while True:
        found = lists.first([one], depth)[0]
        kept, members = _things(lists.state, lists.side, found.numbers.tolist())
        if len(kept) > end or len(found) < depth:
            break
        depth *= _DEEPER
    chosen = np.array(kept[start:end], dtype=np.int64)
    also = tuple(tuple(members[position]) for position in kept[start:end])
    return Ranked(found.numbers[chosen], found.scores[chosen]), also, len(kept) > end


def _things(state: IndexState, side: str, numbers: list[int]) -> tuple[list[int], dict[int, list[str]]]:
    """Return the positions of the first item of each thing, and the ids of the others under that position."""
    items = state.items(side, numbers)
    first_of: dict[Any, int] = {}
    members: dict[int, list[str]] = {}
    for position, item in enumerate(items):
        first = first_of.setdefault(position if item.entity is None else item.entity, position)
        if first == position:
            members[position] = []
        else:
            members[first].append(item.id)
    return list(members), members
