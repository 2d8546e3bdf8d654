"""Reciprocal rank fusion against its definition in fractions, and pages that extend each other."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.search.hybrid import FUSED_DEPTH, fuse, hybrid

rankings = st.lists(st.permutations(range(12)).flatmap(lambda p: st.integers(0, 12).map(lambda n: p[:n])), max_size=4)


def by_definition(lists, k=60):
    scores = {}
    for one in lists:
        for rank, number in enumerate(one, start=1):
            scores[number] = scores.get(number, Fraction(0)) + Fraction(1, k + rank)
    return sorted(scores, key=lambda number: (-scores[number], number)), scores


@given(rankings)
@settings(max_examples=300, deadline=None)
def test_fusion_is_the_sum_of_reciprocal_ranks_and_ties_go_by_number(lists):
    found = fuse([np.array(one, dtype=np.int64) for one in lists])
    order, scores = by_definition(lists)
    assert found.numbers.tolist() == order
    assert found.scores.tolist() == pytest.approx([float(scores[number]) for number in order], abs=1e-15)


def test_two_long_lists_are_ordered_as_in_fractions():
    rng = np.random.default_rng(0)
    near, words = rng.permutation(1500)[:FUSED_DEPTH], rng.permutation(1500)[:FUSED_DEPTH]
    assert fuse([near, words]).numbers.tolist() == by_definition([near.tolist(), words.tolist()])[0]


def test_an_item_that_both_lists_have_comes_before_the_first_of_either():
    assert fuse([np.array([1, 2, 3]), np.array([4, 2, 5])]).numbers.tolist() == [2, 1, 4, 3, 5]


def test_ranks_of_a_smaller_constant_weigh_more():
    first_of_one, third_of_both = np.array([7, 1, 2]), np.array([3, 4, 2])
    assert fuse([first_of_one, third_of_both], k=0.5).numbers[0] in (3, 7)
    assert fuse([first_of_one, third_of_both], k=60).numbers[0] == 2


@pytest.mark.parametrize("empty", [[], [[]], [[], []]])
def test_nothing_fused_is_nothing(empty):
    found = fuse([np.array(one, dtype=np.int64) for one in empty])
    assert len(found.numbers) == len(found.scores) == 0
    assert found.numbers.dtype == np.int64


@pytest.mark.parametrize("k", [0, -1, float("nan"), float("inf")])
def test_a_constant_that_gives_no_scores_is_refused(k):
    with pytest.raises(ArgumentError, match="above 0"):
        fuse([np.array([1])], k)


def test_what_is_no_ranking_is_refused():
    with pytest.raises(ArgumentError, match="more than once"):
        fuse([np.array([1, 2, 1])])
    with pytest.raises(ShapeError):
        fuse([np.zeros((2, 2), np.int64)])
    with pytest.raises(ShapeError):
        fuse([np.array([0.5])])
    with pytest.raises(ArgumentError):
        hybrid(np.array([1]), np.array([1]), -1)
    with pytest.raises(ArgumentError):
        hybrid(np.array([1]), np.array([1]), 1, depth=0)


@pytest.mark.parametrize("n_words", [0, 1, 700, 5000])
def test_pages_of_any_size_are_cut_from_one_order_that_has_each_item_once(n_words):
    rng = np.random.default_rng(1)
    near, words = rng.permutation(5000), rng.permutation(5000)[:n_words]

    def page(start, end):
        # As a caller does: no more of the list by the space than the page needs.
        found = hybrid(near[: max(end, FUSED_DEPTH)], words[:FUSED_DEPTH], end)
        return found.numbers[start:end].tolist(), found.scores[start:end].tolist()

    whole = hybrid(near, words, 5000)
    assert sorted(whole.numbers.tolist()) == list(range(5000))
    assert (np.diff(whole.scores) <= 1e-12).all()
    for size in (1, 10, 997):
        for start in (0, 10, 990, 1000, 1995, 2500, 4990):
            numbers, scores = page(start, min(start + size, 5000))
            assert numbers == whole.numbers[start : start + size].tolist()
            assert scores == whole.scores[start : start + size].tolist()


def test_the_list_by_the_space_goes_on_where_the_fused_order_ends():
    near, words = np.arange(3000), np.array([2500, 5])
    found = hybrid(near, words, 3000).numbers
    assert found[:2].tolist() == [5, 0]
    assert 2500 in found[:70].tolist()
    assert found[1001:].tolist() == [n for n in range(1000, 3000) if n != 2500]


def test_words_alone_are_an_order_too():
    assert hybrid(np.zeros(0, np.int64), np.array([4, 2]), 10).numbers.tolist() == [4, 2]
