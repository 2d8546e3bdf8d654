"""Many queries, one state of the index: read, encoded together, looked up together, each with its own answer or error.

A query's answer does not depend on which others are asked with it. How many hits of which list make a page is in
`ranking`; why a hit is there in `explain`.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bridgehead.errors import BridgeheadError, StructureError
from bridgehead.index import IndexState, Item
from bridgehead.search.answer import Answer, Explanation, Hit
from bridgehead.search.explain import explanations, similarities
from bridgehead.search.query import Query
from bridgehead.search.ranking import Asked, Page, find_pages
from bridgehead.search.reading import Reading, other_readings, read_query
from bridgehead.search.references import References

if TYPE_CHECKING:
    from bridgehead.search.space import Space

Outcome = Answer | BridgeheadError


def answers(space: "Space", state: IndexState, queries: Sequence[Query]) -> list[Outcome]:
    """Return for each query its answer, or the error that it deserves."""
    return answers_to(space, state, [_attempted(space, state, query) for query in queries])


def answers_to(space: "Space", state: IndexState, asked: Sequence[Asked | BridgeheadError]) -> list[Outcome]:
    """As `answers`, for queries that were read, some with an error."""
    going = [one for one in asked if isinstance(one, Asked)]
    give_rows(space, state, going)
    find_pages(state, [one for one in going if one.error is None and not _is_unknown(one)], space.verify_substructure)
    items = _items(state, going)
    return [one if isinstance(one, BridgeheadError) else one.error or _answer(space, state, one, items)
            for one in asked]  # fmt: skip


def _attempted(space: "Space", state: IndexState, query: Query) -> Asked | BridgeheadError:
    try:
        return _asked(space, state, query)
    except BridgeheadError as error:
        return error


def _asked(space: "Space", state: IndexState, query: Query) -> Asked:
    wanted = space.side(query.of) if query.of is not None else None
    reading = read_query(query.text, state, space.kinds, query.read_as, wanted)
    others = other_readings(reading, state, space.kinds, query.read_as is not None)
    target = wanted or space.other_side(reading.side)
    return Asked(query, reading, target, words_of(space, reading), others=others)


def words_of(space: "Space", reading: Reading) -> str:
    """Return the words by which what was read is looked up: an id or key says nothing, its item's text or name does."""
    item = reading.item
    if item is None or reading.kind not in ("id", "inchikey"):
        return reading.value
    if space.kinds[item.side] == "text":
        return item.item
    return item.names[0] if item.names else reading.value


def _is_unknown(one: Asked) -> bool:
    """Say whether a query names by its key what is not here: there is neither a row nor a word of it."""
    return one.reading.kind == "inchikey" and one.reading.item is None


def give_rows(space: "Space", state: IndexState, asked: Sequence[Asked]) -> None:
    """Give each query its row in the space, or the reason why it has none; those of one side are encoded together."""
    to_encode: dict[str, list[Asked]] = {}
    for one in asked:
        reading = one.reading
        if _is_unknown(one) or (one.query.mode == "words" and not one.query.explain):
            continue
        if reading.item is not None:
            row = state.row(reading.item.side, reading.item.number)
            one.row = row if row.any() else None
            one.reason = "" if row.any() else "the encoder knew nothing of this item when it was indexed"
        elif reading.side is None:
            one.reason = "no side of this space has an encoder for words"
        else:
            to_encode.setdefault(reading.side, []).append(one)
    for side, group in to_encode.items():
        _encode(space, side, group)


def _encode(space: "Space", side: str, group: Sequence[Asked]) -> None:
    texts = list(dict.fromkeys(one.reading.value for one in group))
    try:
        encoded = space.encoded(texts, side)
    except BridgeheadError as error:
        if len(texts) == 1:
            for one in group:
                one.error = error
            return
        # An encoder that refuses all for the sake of one is asked for each.
        for text in texts:
            _encode(space, side, [one for one in group if one.reading.value == text])
        return
    rows = dict(zip(texts, encoded.rows, strict=True))
    failures = {texts[failure.position]: failure for failure in encoded.failures}
    for one in group:
        failure = failures.get(one.reading.value)
        if failure is None:
            one.row = rows[one.reading.value]
        elif failure.unreadable and one.reading.kind == "smiles":
            shown = one.reading.value[:80]
            one.error = StructureError(f"the structure {shown!r} cannot be encoded: {failure.reason}")
        elif failure.unreadable:
            one.reason = f"the encoder of {space.names[side]} cannot read it ({failure.reason})"
        else:
            one.reason = failure.reason


def _items(state: IndexState, asked: Sequence[Asked]) -> dict[tuple[str, int], Item]:
    """Return (side, number) -> item of all hits."""
    wanted: dict[str, dict[int, None]] = {}
    for one in asked:
        if one.page is not None and one.error is None:
            wanted.setdefault(one.target, {}).update(dict.fromkeys(one.page.found.numbers.tolist()))
    return {
        (side, number): item
        for side, numbers in wanted.items()
        for number, item in zip(numbers, state.items(side, list(numbers)), strict=True)
    }


def _answer(space: "Space", state: IndexState, one: Asked, items: Mapping[tuple[str, int], Item]) -> Answer:
    of = space.names[one.target]
    if one.page is None:
        return Answer((), one.reading, of, readings=one.others)
    page = one.page
    hits = _hits(space, state, one, page, [items[one.target, number] for number in page.found.numbers.tolist()])
    return Answer(hits, one.reading, of, _note(one, page, of), one.others, page.more, page.n_searched)


def _hits(space: "Space", state: IndexState, one: Asked, page: Page, items: Sequence[Item]) -> tuple[Hit, ...]:
    references = space.references.of(state)
    cosines = similarities(state, one, page) if page.scored_by != "words" or one.query.explain else None
    shares = _percentiles(one, references, cosines, len(items))
    reasons: Sequence[Explanation | None] = [None] * len(items)
    if one.query.explain:
        reasons = explanations(state, one, page, references, cosines, shares)
    read_as = one.reading.kind if page.scored_by != "words" else "words"
    of_hits = shares if page.scored_by != "words" else [None] * len(items)
    return tuple(
        Hit(rank, item.id, score, item.item, shown_payload(item), read_as, share, also, reason)
        for rank, (item, score, share, also, reason) in enumerate(
            zip(items, page.found.scores.tolist(), of_hits, page.also, reasons, strict=True), one.query.offset + 1
        )
    )


def _percentiles(one: Asked, references: References | None, cosines: Any, n_hits: int) -> list[float | None]:
    if references is None or cosines is None or one.reading.side is None:
        return [None] * n_hits
    found = references.percentile(one.reading.side, one.target, cosines)
    return [None] * n_hits if found is None else found.tolist()


def _note(one: Asked, page: Page, of: str) -> str:
    """Return why an answer is from words alone or empty, "" where there is nothing to say."""
    query = one.query
    reason = "" if query.mode == "words" else one.reason
    if len(page.found):
        return f"{reason}: answered from the words alone; scores are BM25, not cosines" if reason else ""
    if query.offset:
        return f"there is no hit number {query.offset + 1:,}"
    filtered = " that passes the filters" if page.filters.allowed is not None else ""
    if page.scored_by != "words":
        return f"there is no {of}{filtered}: nothing to show"
    nobody = f"no {of}{filtered} holds its words: nothing to show"
    return f"{reason}, and {nobody}" if reason else nobody


def shown_payload(item: Item) -> dict[str, Any]:
    """Return the payload of an item with its `name` and `names`, where it has any."""
    payload = dict(item.payload)
    if item.names:
        payload.setdefault("name", item.names[0])
        payload.setdefault("names", list(item.names))
    return payload
