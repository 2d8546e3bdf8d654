"""What was added and removed since the build: found, or never found again, in exact order."""

import numpy as np
import pytest

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.index.vectors import SideView
from vector_sides import brute, clustered, half, written_side

KINDS = ["flat", "ivf-sq8", "hnsw"]


def changed_side(kind, n=1500, n_added=120, seed=0):
    """Return a view of `n` rows, numbered from 10, of which every seventh is gone, with others added; and its truth."""
    rows, added = clustered(n, 16, seed), half(clustered(n_added, 16, seed + 1))
    numbers, removed = np.arange(10, 10 + n), np.arange(10, 10 + n, 7)
    fresh = np.arange(5000, 5000 + 2 * n_added, 2)
    view, _ = written_side(rows, kind=kind, first=10, added_numbers=fresh, added_rows=added, removed_numbers=removed)
    kept = ~np.isin(numbers, removed)
    return view, np.concatenate([half(rows)[kept], added]), np.concatenate([numbers[kept], fresh]), removed


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_side_is_searched_as_if_it_had_been_built_so(kind):
    view, stored, numbers, removed = changed_side(kind)
    assert len(view) == len(numbers) and view.numbers().tolist() == numbers.tolist()
    for query in clustered(3, 16, 9):
        order, scores = brute(stored, query, numbers)
        ranked = view.search(query[None], 8)[0]
        assert ranked.numbers.tolist() == order[:8]
        np.testing.assert_allclose(ranked.scores, [scores[number] for number in order[:8]], atol=2e-12)
        everything = view.search(query[None], 10_000)[0].numbers
        assert sorted(everything.tolist()) == numbers.tolist()
        assert view.rank_of(query, int(order[4])) == 5
    for number in (int(removed[3]), 4999):
        assert number not in view
        with pytest.raises(ArgumentError):
            view.rank_of(clustered(1, 16, 1)[0], number)
    assert 5002 in view and 11 in view


def test_removing_the_nearest_five_hundred_shows_those_after_them():
    rows = clustered(3000, 16, 0)
    query = clustered(1, 16, 2)
    order, _ = brute(half(rows), query[0])
    for kind in KINDS:
        view, _ = written_side(rows, kind=kind, removed_numbers=np.sort(order[:500]))
        found = view.search(query, 5)[0].numbers.tolist()
        assert len(set(found) & set(order[500:505])) >= 4 and not set(found) & set(order[:500])


def test_everything_may_be_removed_and_only_added_items_be_left():
    rows = np.eye(4)
    view, _ = written_side(rows, removed_numbers=np.arange(4))
    assert len(view) == 0 and len(view.search(rows, 3)[0]) == 0
    view, _ = written_side(rows, added_numbers=[9], added_rows=half([[1, 1, 0, 0]]), removed_numbers=np.arange(4))
    assert view.search(rows[:1], 3)[0].numbers.tolist() == [9]
    assert view.row(9)[0] == pytest.approx(np.sqrt(0.5), abs=1e-3)


def test_added_items_alone_make_a_side_that_was_built_empty():
    view, _ = written_side(np.zeros((0, 3)), added_numbers=[0, 1], added_rows=half([[1, 0, 0], [0, 1, 0]]))
    assert view.search(np.array([[0, 2, 0.1]]), 5)[0].numbers.tolist() == [1, 0]
    assert view.search(np.array([[0, 2, 0.1]]), 5, allowed=np.array([0, 7]))[0].numbers.tolist() == [0]


def test_an_added_item_that_ties_with_one_of_the_build_comes_after_it():
    view, _ = written_side([[1, 0], [0, 1]], first=3, added_numbers=[8], added_rows=half([[1, 0]]))
    assert view.search(np.array([[1, 0.2]]), 3)[0].numbers.tolist() == [3, 8, 4]
    assert [view.rank_of(np.array([1, 0.2]), number) for number in (3, 8, 4)] == [1, 2, 3]


def test_added_rows_of_another_shape_are_refused():
    base = written_side(np.eye(3))[0].base
    with pytest.raises(ShapeError, match="2 added numbers"):
        SideView(base, np.array([5, 6]), half(np.eye(3)))


def test_numbers_removed_that_were_never_there_change_nothing():
    view, _ = written_side(np.eye(3), removed_numbers=np.array([-1, 3, 99]))
    assert len(view) == 3
