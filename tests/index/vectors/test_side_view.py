"""Candidates, scores, ties and pages, against brute force."""

import numpy as np
import pytest

from bridgehead.errors import ArgumentError, NonFiniteRowsError, ShapeError
from vector_sides import brute, clustered, half, shared, written_side

KINDS = ["flat", "ivf-sq8", "hnsw", "ivf-pq"]


def test_flat_search_equals_a_plain_loop():
    rows, queries = clustered(500, 16, 0), clustered(5, 16, 1)
    view, facts = written_side(rows, first=40)
    assert facts.method == "flat"
    for query, ranked in zip(queries, view.search(queries, 60), strict=True):
        order, scores = brute(half(rows), query, range(40, 540))
        assert ranked.numbers.tolist() == order[:60]
        np.testing.assert_allclose(ranked.scores, [scores[i] for i in order[:60]], atol=2e-12)


def test_scores_are_cosines_whatever_the_norms():
    view, _ = written_side([[3, 0], [0, 0.01], [1e20, 1e20]])
    ranked = view.search(np.array([[1e-20, 0]]), 3)[0]
    assert ranked.numbers.tolist() == [0, 2, 1]
    np.testing.assert_allclose(ranked.scores, [1, np.sqrt(0.5), 0], atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_k_over_n_gives_n_hits(kind):
    rows = clustered(600, 8, 0)
    view, facts = written_side(rows, kind=kind, floor=0.5, first=7)
    assert facts.method == kind
    ranked = view.search(clustered(1, 8, 1), 10_000)[0]
    assert sorted(ranked.numbers.tolist()) == list(range(7, 607))
    assert len(view.search(clustered(1, 8, 1), 10, offset=10_000)[0]) == 0


def test_fewer_than_256_rows_are_flat_whatever_is_asked_for():
    assert written_side(np.eye(5), kind="ivf-pq")[1].method == "flat"


def test_an_empty_side_gives_no_hits():
    view, facts = written_side(np.zeros((0, 4)), kind="ivf-sq8")
    assert [len(ranked) for ranked in view.search(np.ones((2, 4)), 10)] == [0, 0]
    assert (len(view), view.numbers().tolist(), facts.n_rows) == (0, [], 0)


def test_no_query_gives_no_ranking():
    assert written_side(np.eye(3))[0].search(np.zeros((0, 3)), 2) == []


def test_a_zero_query_gives_no_hits_and_a_zero_item_scores_zero():
    view, _ = written_side([[1, 0], [0, 0], [-1, 0]])
    zero, one = view.search(np.array([[0, 0], [1, 0]]), 3)
    assert len(zero) == 0
    assert one.numbers.tolist() == [0, 1, 2]
    assert one.scores.tolist() == [1, 0, -1]


@pytest.mark.parametrize(("k", "offset"), [(0, 0), (-3, 0), (1, -1), (2.0, 0), ("1", 0), (1, 0.5), (None, 0)])
def test_k_under_one_or_a_negative_offset_is_refused(k, offset):
    view, _ = written_side(np.eye(3))
    with pytest.raises(ArgumentError, match="expected"):
        view.search(np.eye(3), k, offset)


def test_queries_of_another_width_or_with_nan_are_refused():
    view, _ = written_side(np.eye(3))
    with pytest.raises(ShapeError, match="4 columns; the index has 3"):
        view.search(np.eye(4), 1)
    with pytest.raises(NonFiniteRowsError, match="query rows"):
        view.search(np.array([[np.nan, 0, 0]]), 1)


def test_tied_rows_come_in_the_order_of_their_numbers():
    view, _ = written_side(np.tile([[1.0, 2.0, 3.0]], (700, 1)))
    ranked = view.search(np.array([[0.3, 0.2, 0.1]]), 700)[0]
    assert ranked.numbers.tolist() == list(range(700))
    assert len(set(ranked.scores.tolist())) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_five_thousand_identical_rows_leave_the_other_hundred_findable(kind):
    rng = np.random.default_rng(0)
    others = rng.standard_normal((100, 32)).astype(np.float32)
    rows = np.concatenate([np.tile(rng.standard_normal((1, 32)), (5000, 1)), others]).astype(np.float32)
    view, facts = written_side(rows, sample=others, kind=kind)
    assert facts.method == kind
    for number, ranked in enumerate(view.search(others, 1)):
        assert ranked.numbers.tolist() == [5000 + number]


@pytest.mark.parametrize("kind", KINDS)
def test_pages_through_identical_rows_are_disjoint_and_ordered(kind):
    rng = np.random.default_rng(0)
    rows = np.concatenate([np.tile(rng.standard_normal((1, 16)), (3000, 1)), rng.standard_normal((100, 16))])
    view, _ = written_side(rows, kind=kind)
    pages = [view.search(rows[:1], 100, offset)[0].numbers for offset in range(0, 3100, 100)]
    assert sorted(np.concatenate(pages).tolist()) == list(range(3100))
    assert np.concatenate(pages)[:3000].tolist() == list(range(3000))


@pytest.mark.parametrize("kind", KINDS)
def test_pages_are_disjoint_and_together_everything(kind):
    view, _ = written_side(clustered(4000, 16, 0), sample=clustered(50, 16, 1), kind=kind, floor=0.9)
    query = clustered(1, 16, 2)
    seen = np.concatenate([view.search(query, 130, offset)[0].numbers for offset in range(0, 4000, 130)])
    assert sorted(seen.tolist()) == list(range(4000))
    np.testing.assert_array_equal(seen, view.search(query, 4000)[0].numbers)


@pytest.mark.parametrize("kind", ["ivf-sq8", "hnsw", "ivf-pq"])
def test_scores_are_those_of_exact_search_whatever_the_kind(kind):
    rows = clustered(3000, 16, 0)
    view, _ = written_side(rows, kind=kind, floor=0.9)
    query = clustered(1, 16, 3)
    _, scores = brute(half(rows), query[0])
    ranked = view.search(query, 10)[0]
    np.testing.assert_allclose(ranked.scores, [scores[i] for i in ranked.numbers], atol=2e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_query_among_many_is_answered_as_it_is_alone(kind):
    view, _ = written_side(clustered(3000, 32, 0), kind=kind, floor=0.9)
    queries = clustered(45, 32, 1, spread=1.5)
    for alone, among in zip([view.search(q[None], 40)[0] for q in queries], view.search(queries, 40), strict=True):
        assert alone.numbers.tolist() == among.numbers.tolist()
        assert alone.scores.tolist() == among.scores.tolist()


def test_scores_that_differ_in_the_twelfth_decimal_are_told_apart_in_a_crowd():
    # Rows that float32 cannot tell apart: the last of 2,000 is nearest by less than float32's rounding.
    dim = 64
    rng = np.random.default_rng(0)
    rows = np.tile(half(rng.standard_normal((1, dim))), (2000, 1)).astype(np.float32)
    view, _ = written_side(rows)
    query = rows[:1].astype(np.float64) + 1e-3 * rng.standard_normal((1, dim))
    nearer = rows[0].astype(np.float64).copy()
    nearer[3] = np.nextafter(np.float16(nearer[3]), np.float16(np.sign(query[0, 3] - nearer[3]) * 9))
    with_nearer, _ = written_side(np.concatenate([rows[:-1], nearer[None]]))
    order, _ = brute(half(np.concatenate([rows[:-1], nearer[None]])), query[0])
    assert with_nearer.search(query, 40)[0].numbers.tolist() == order[:40]
    assert view.search(query, 40)[0].numbers.tolist() == list(range(40))


def test_a_row_comes_back_of_unit_length_and_an_unknown_number_is_refused():
    view, _ = written_side([[3, 4], [0, 0]], first=5)
    np.testing.assert_allclose(view.row(5), [0.6, 0.8], atol=1e-3)
    assert np.linalg.norm(view.row(5)) == pytest.approx(1, abs=1e-6)
    assert view.rows([6, 5]).tolist()[0] == [0, 0]
    for number in (4, 7, -1):
        assert number not in view
        with pytest.raises(ArgumentError, match=f"no item of number {number}"):
            view.row(number)


def test_the_rank_of_an_item_is_where_a_full_search_finds_it():
    view, _ = written_side(np.concatenate([clustered(400, 16, 0), np.zeros((2, 16))]), first=3)
    query = clustered(1, 16, 5)
    order = view.search(query, 500)[0].numbers.tolist()
    for number in (3, 17, 250, 403, 404):
        assert view.rank_of(query[0], number) == order.index(number) + 1


def test_the_index_is_told_to_look_no_further_than_recall_asks_for():
    rows, queries = clustered(6000, 32, 0), clustered(400, 32, 1, spread=1.5)
    view, facts = written_side(rows, sample=queries[:200], kind="ivf-sq8")
    truth = [brute(half(rows), query)[0][:10] for query in queries[200:230]]
    assert shared(view.search(queries[200:230], 10), truth) >= 0.96
    assert facts.nprobe < facts.n_lists / 2
