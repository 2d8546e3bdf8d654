"""Searches among allowed numbers only: the right ones, whatever share they are and wherever they lie."""

import numpy as np
import pytest

from vector_sides import brute, clustered, half, nearest, shared, written_side

N = 20_000


@pytest.fixture(scope="module")
def rows():
    return clustered(N, 32, 0)


@pytest.fixture(scope="module")
def queries():
    return clustered(60, 32, 1, spread=1.5)


@pytest.fixture(scope="module", params=["ivf-sq8", "hnsw"])
def view(request, rows, queries):
    return written_side(rows, sample=clustered(200, 32, 2, spread=1.5), kind=request.param)[0]


@pytest.mark.parametrize("share", [0.5, 0.05, 0.005, 0.0001])
def test_recall_under_a_filter_is_that_without_one(view, rows, queries, share):
    allowed = np.sort(np.random.default_rng(3).choice(N, int(share * N), replace=False))
    found = view.search(queries, 10, allowed=allowed)
    assert all(np.isin(ranked.numbers, allowed).all() and len(ranked) == min(10, len(allowed)) for ranked in found)
    assert shared(found, nearest(half(rows), queries, min(10, len(allowed)), allowed)) >= 0.97


@pytest.mark.parametrize("n_groups", [20, 40])
def test_a_filter_whose_rows_all_lie_far_from_the_query_is_answered_as_well(view, rows, queries, n_groups):
    centres = clustered(60, 32, 5, spread=0.0)
    centres = np.unique(centres, axis=0)
    group = nearest(centres, rows, 1)[:, 0]
    found, truth = [], []
    for query in queries[:20]:
        far = nearest(centres, query[None], len(centres))[0][-min(n_groups, len(centres) - 5) :]
        allowed = np.flatnonzero(np.isin(group, far))
        assert len(allowed) > 4096
        found += view.search(query[None], 10, allowed=allowed)
        truth.append(nearest(half(rows), query[None], 10, allowed)[0])
    assert shared(found, truth) >= 0.95


def test_pages_under_a_filter_are_disjoint_and_together_all_that_is_allowed(view, queries):
    allowed = np.arange(0, N, 3)
    seen = np.concatenate(
        [view.search(queries[:1], 1000, offset, allowed)[0].numbers for offset in range(0, len(allowed), 1000)]
    )
    assert sorted(seen.tolist()) == allowed.tolist()


def test_what_is_allowed_but_removed_or_unknown_is_not_found():
    rows = clustered(300, 16, 0)
    view, _ = written_side(rows, removed_numbers=np.arange(0, 300, 2))
    ranked = view.search(rows[:1], 50, allowed=np.array([-4, 0, 1, 2, 3, 400]))[0]
    assert ranked.numbers.tolist() == [n for n in brute(half(rows), rows[0])[0] if n in (1, 3)]


def test_nothing_allowed_gives_no_hits(view, queries):
    assert [len(ranked) for ranked in view.search(queries[:2], 5, allowed=np.zeros(0, np.int64))] == [0, 0]


def test_added_items_are_filtered_too():
    view, _ = written_side(np.eye(4), added_numbers=[10, 11], added_rows=half([[1, 0.1, 0, 0], [0.9, 0, 0, 0.1]]))
    assert view.search(np.eye(4)[:1], 9, allowed=np.array([1, 11]))[0].numbers.tolist() == [11, 1]


def test_a_filter_that_comes_again_finds_the_same_and_one_that_was_changed_does_not(view, queries):
    first = np.arange(0, N, 2)
    before = view.search(queries[:1], 10, allowed=first)[0].numbers.tolist()
    first += 1
    after = view.search(queries[:1], 10, allowed=first)[0].numbers.tolist()
    assert not set(before) & set(after)
    for start in range(12):
        kept = np.arange(start % 2, N, 2)
        kept.setflags(write=False)
        for _ in range(2):
            assert view.search(queries[:1], 10, allowed=kept)[0].numbers.tolist() == (after if start % 2 else before)
