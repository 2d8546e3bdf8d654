"""Pages, filters, the three lists and folding, against what a plain sort of everything gives."""

import itertools

import numpy as np
import pytest

from bridgehead.errors import ArgumentError
from bridgehead.search import Query
from lettered_space import ALPHABET, N_LEFT, N_RIGHT

QUERIES = ["abc", "aab bd", "zz", "d", "zz abc", "hhh", "yy zz abcd cc"]
WHERES = [None, "number < 40", "colour = 'red'", "not exists colour", "number >= 1000"]


def everything(space, text, **options):
    return space.answer(text, k=10_000, **options)


def ids(hits):
    return [hit.id for hit in hits]


def plain(hits):
    return [(hit.rank, hit.id, hit.score, hit.percentile, hit.read_as) for hit in hits]


@pytest.mark.parametrize("mode", ["space", "words", "hybrid"])
@pytest.mark.parametrize("where", WHERES)
@pytest.mark.parametrize("distinct", [False, True])
def test_pages_are_parts_of_one_list_whatever_their_size(lettered, mode, where, distinct):
    for text, size in itertools.product(QUERIES[:4], (7, 40)):
        options = {"mode": mode, "where": where, "distinct": distinct}
        whole = everything(lettered, text, **options)
        pages, offset = [], 0
        while True:
            page = lettered.answer(text, k=size, offset=offset, **options)
            pages += page.hits
            assert page.more == (offset + size < len(whole.hits))
            if not page.more:
                break
            offset += size
        assert plain(pages) == plain(whole.hits)
        assert [hit.rank for hit in pages] == list(range(1, len(pages) + 1))
        assert len(set(ids(pages))) == len(pages) and not whole.more


@pytest.mark.parametrize("mode", ["space", "words", "hybrid"])
@pytest.mark.parametrize("distinct", [False, True])
def test_a_page_after_the_last_hit_is_empty(lettered, mode, distinct):
    for offset in (N_LEFT + N_RIGHT, 10**30):
        answer = lettered.answer("abc", offset=offset, mode=mode, distinct=distinct)
        assert answer.hits == () and not answer.more
    assert len(lettered.answer("abc", k=10**30, mode="space").hits) == N_RIGHT


def test_the_list_by_the_space_is_the_order_of_cosines_then_of_numbers(lettered):
    with lettered.index.state() as state:
        numbers = state.numbers("a")
        rows = state.rows("a", numbers).astype(np.float64)
    for text in ("abc", "aab bd", "d"):
        query = np.array([text.count(letter) for letter in ALPHABET], dtype=np.float64) + 1e-3
        scores = rows @ query / np.linalg.norm(query)
        found = everything(lettered, text, of="left").hits
        assert [hit.score for hit in found] == pytest.approx(sorted(scores, reverse=True), abs=1e-6)
        numbers_found = [int(hit.id[1:]) for hit in found]
        for (one, n), (other, m) in itertools.pairwise(zip(found, numbers_found, strict=True)):
            assert one.score > other.score or (one.score == other.score and n < m)


@pytest.mark.parametrize("where", WHERES[1:])
def test_a_filter_leaves_of_the_list_by_the_space_what_passes(lettered, where):
    for text in ("abc", "d"):
        every, passing = everything(lettered, text), everything(lettered, text, where=where)
        kept = [hit for hit in every.hits if Query("x", where=where).condition.matches(hit.payload)]
        assert ids(passing.hits) == ids(kept) and passing.n_searched == len(kept)
        assert [hit.score for hit in passing.hits] == [hit.score for hit in kept]


def test_a_field_that_no_item_has_is_an_error_of_that_query_alone(lettered):
    with pytest.raises(ArgumentError, match="weight"):
        lettered.answer("abc", where="weight < 3")
    found = lettered.answer_all([Query("abc", where="weight < 3"), Query("abc", where="number < 3")])
    assert isinstance(found[0], ArgumentError) and len(found[1].hits) == 3


@pytest.mark.parametrize("where", WHERES)
def test_hybrid_sums_reciprocal_ranks_of_both_lists(lettered, where):
    for text in ("abc", "aab bd", "zz abc"):
        scores = {}
        for mode in ("space", "words"):
            for hit in everything(lettered, text, mode=mode, where=where).hits:
                scores[hit.id] = scores.get(hit.id, 0) + 1 / (60 + hit.rank)
        expected = sorted(scores, key=lambda id: (-scores[id], int(id[1:])))
        found = everything(lettered, text, mode="hybrid", where=where).hits
        assert ids(found) == expected
        assert [hit.score for hit in found] == pytest.approx([scores[id] for id in expected], abs=1e-12)


def test_hybrid_goes_on_after_the_depth_to_which_lists_are_fused(lettered, monkeypatch):
    monkeypatch.setattr("bridgehead.search.ranking.DEPTH", 12)
    by_space, by_words = (ids(everything(lettered, "abc", mode=mode).hits) for mode in ("space", "words"))
    found = everything(lettered, "abc", mode="hybrid").hits
    fused = set(by_space[:12]) | set(by_words[:12])
    assert set(ids(found[: len(fused)])) == fused
    assert ids(found[len(fused) :]) == [id for id in by_space if id not in fused]
    assert all(one.score >= other.score for one, other in itertools.pairwise(found))
    pages = [lettered.answer("abc", k=5, offset=offset, mode="hybrid").hits for offset in range(0, N_RIGHT, 5)]
    assert ids(itertools.chain(*pages)) == ids(found)


@pytest.mark.parametrize("mode", ["space", "words", "hybrid"])
@pytest.mark.parametrize("where", WHERES)
def test_distinct_keeps_the_first_of_each_thing_and_lists_the_others(lettered, mode, where):
    for text in ("abc", "aab bd", "zz"):
        every = everything(lettered, text, mode=mode, where=where).hits
        expected = {}
        for hit in every:
            entity = lettered.item(hit.id).entity
            expected.setdefault(hit.id if entity is None else (entity,), []).append(hit.id)
        found = everything(lettered, text, mode=mode, where=where, distinct=True).hits
        assert [[hit.id, *hit.also] for hit in found] == list(expected.values())
        assert all(hit.also == () for hit in every)


def test_distinct_looks_deeper_where_the_first_items_are_one_thing(lettered, monkeypatch):
    whole = plain(everything(lettered, "abc", distinct=True).hits)
    monkeypatch.setattr("bridgehead.search.ranking._FIRST_FOLDED", 2)
    pages = [lettered.answer("abc", k=3, offset=offset, distinct=True) for offset in range(0, len(whole), 3)]
    assert plain(itertools.chain(*(page.hits for page in pages))) == whole
    assert [page.more for page in pages] == [True] * (len(pages) - 1) + [False]
