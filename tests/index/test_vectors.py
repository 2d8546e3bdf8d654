"""Candidates, scores, ties and pages, against brute force."""

import numpy as np
import pytest

from bridgehead.errors import ArgumentError, NonFiniteRowsError, ShapeError
from bridgehead.index.tuning import make_vectors
from bridgehead.index.vectors import SideVectors, exact_scores
from bridgehead.vectors import unit_rows


def side(rows, sample=None, flat_below=50_000, floor=0.98):
    stored = unit_rows(np.asarray(rows, dtype=np.float32)).astype(np.float16)
    found, facts = make_vectors(stored, sample, floor, flat_below)
    return SideVectors(found, stored, facts.nprobe), facts


def brute(vectors, query):
    """All rows by float64 cosine, then row number: a plain loop."""
    query = np.asarray(query, dtype=np.float64)
    query = query / np.linalg.norm(query)
    scores = []
    for row in np.asarray(vectors.rows, dtype=np.float64):
        norm = np.linalg.norm(row)
        scores.append(round(float(row @ query / norm), 12) if norm else 0.0)
    return sorted(range(len(scores)), key=lambda i: (-scores[i], i)), scores


def clustered(n, dim, seed, spread=0.6):
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(7).standard_normal((60, dim))
    return (centres[rng.integers(0, 60, n)] + spread * rng.standard_normal((n, dim))).astype(np.float32)


def test_flat_search_equals_a_plain_loop():
    vectors, facts = side(clustered(500, 16, 0))
    queries = clustered(5, 16, 1)
    assert facts.method == "flat"
    for query, ranked in zip(queries, vectors.search(queries, 20), strict=True):
        order, scores = brute(vectors, query)
        assert ranked.rows.tolist() == order[:20]
        np.testing.assert_allclose(ranked.scores, [scores[i] for i in order[:20]], atol=2e-12)


def test_scores_are_cosines_whatever_the_norms():
    vectors, _ = side([[3, 0], [0, 0.01], [1e20, 1e20]])
    ranked = vectors.search(np.array([[1e-20, 0]]), 3)[0]
    assert ranked.rows.tolist() == [0, 2, 1]
    np.testing.assert_allclose(ranked.scores, [1, np.sqrt(0.5), 0], atol=1e-6)


@pytest.mark.parametrize("flat_below", [50_000, 1])
def test_k_over_n_gives_n_hits_and_never_a_negative_row(flat_below):
    rows = clustered(3, 8, 0) if flat_below > 1 else clustered(400, 8, 0)
    vectors, _ = side(rows, flat_below=flat_below)
    ranked = vectors.search(clustered(1, 8, 1), 10_000)[0]
    assert sorted(ranked.rows.tolist()) == list(range(len(rows)))
    assert len(vectors.search(clustered(1, 8, 1), 10, offset=10_000)[0]) == 0


def test_an_empty_side_gives_no_hits():
    vectors, _ = side(np.zeros((0, 4)))
    assert [len(ranked) for ranked in vectors.search(np.ones((2, 4)), 10)] == [0, 0]


def test_a_zero_query_gives_no_hits_and_a_zero_item_scores_zero():
    vectors, _ = side([[1, 0], [0, 0], [-1, 0]])
    zero, one = vectors.search(np.array([[0, 0], [1, 0]]), 3)
    assert len(zero) == 0
    assert one.rows.tolist() == [0, 1, 2]
    assert one.scores.tolist() == [1, 0, -1]


@pytest.mark.parametrize(("k", "offset"), [(0, 0), (-3, 0), (1, -1), (2.0, 0), ("1", 0), (1, 0.5), (None, 0)])
def test_k_under_one_or_a_negative_offset_is_refused(k, offset):
    vectors, _ = side(np.eye(3))
    with pytest.raises(ArgumentError, match="expected"):
        vectors.search(np.eye(3), k, offset)


def test_queries_of_another_width_or_with_nan_are_refused():
    vectors, _ = side(np.eye(3))
    with pytest.raises(ShapeError, match="4 columns; the index has 3"):
        vectors.search(np.eye(4), 1)
    with pytest.raises(NonFiniteRowsError, match="query rows"):
        vectors.search(np.array([[np.nan, 0, 0]]), 1)


def test_tied_rows_come_in_the_order_of_their_numbers():
    vectors, _ = side(np.tile([[1.0, 2.0, 3.0]], (700, 1)))
    ranked = vectors.search(np.array([[0.3, 0.2, 0.1]]), 700)[0]
    assert ranked.rows.tolist() == list(range(700))
    assert len(set(ranked.scores.tolist())) == 1


@pytest.mark.parametrize("flat_below", [50_000, 1])
def test_five_thousand_identical_rows_leave_the_other_hundred_findable(flat_below):
    rng = np.random.default_rng(0)
    others = rng.standard_normal((100, 32)).astype(np.float32)
    rows = np.concatenate([np.tile(rng.standard_normal((1, 32)), (5000, 1)), others]).astype(np.float32)
    vectors, _ = side(rows, sample=others, flat_below=flat_below)
    for number, ranked in enumerate(vectors.search(others, 1)):
        assert ranked.rows.tolist() == [5000 + number]


@pytest.mark.parametrize("flat_below", [50_000, 1])
def test_pages_through_identical_rows_are_disjoint_and_ordered(flat_below):
    rng = np.random.default_rng(0)
    rows = np.concatenate([np.tile(rng.standard_normal((1, 16)), (3000, 1)), rng.standard_normal((100, 16))])
    vectors, _ = side(rows, flat_below=flat_below)
    query = rows[:1]
    pages = [vectors.search(query, 100, offset)[0].rows for offset in range(0, 3100, 100)]
    assert sorted(np.concatenate(pages).tolist()) == list(range(3100))
    assert np.concatenate(pages)[:3000].tolist() == list(range(3000))


def test_pages_of_an_ivf_index_are_disjoint_and_together_everything():
    rows = clustered(4000, 16, 0)
    vectors, facts = side(rows, sample=clustered(50, 16, 1), flat_below=1000)
    query = clustered(1, 16, 2)
    assert facts.method == "ivf-sq8"
    seen = np.concatenate([vectors.search(query, 130, offset)[0].rows for offset in range(0, 4000, 130)])
    assert sorted(seen.tolist()) == list(range(4000))
    np.testing.assert_array_equal(seen, vectors.search(query, 4000)[0].rows)


def test_ivf_reaches_its_recall_with_queries_of_the_other_modality():
    rows, queries = clustered(6000, 32, 0), clustered(200, 32, 1, spread=1.5)
    vectors, facts = side(rows, sample=queries, flat_below=1000)
    assert facts.queries == "other side" and facts.n_queries == 200 and facts.recall >= 0.98
    truth = np.argsort(-np.concatenate(list(exact_scores(vectors.rows, unit_rows(queries))), axis=1), axis=1)[:, :10]
    hits = [len(set(r.rows) & set(t)) for r, t in zip(vectors.search(queries, 10), truth, strict=True)]
    assert np.mean(hits) / 10 >= 0.975
    assert f"nprobe {facts.nprobe}" in facts.line("molecule")


def test_ivf_scores_are_those_of_exact_search():
    vectors, _ = side(clustered(3000, 16, 0), flat_below=1000)
    query = clustered(1, 16, 3)
    _, scores = brute(vectors, query[0])
    ranked = vectors.search(query, 10)[0]
    np.testing.assert_allclose(ranked.scores, [scores[i] for i in ranked.rows], atol=2e-12)


def test_without_sample_queries_the_facts_say_that_own_rows_were_used():
    _, facts = side(clustered(2000, 16, 0), flat_below=1000)
    assert facts.queries == "own rows"


def test_a_floor_out_of_reach_names_what_can_be_reached(monkeypatch):
    # One candidate for ten wanted: recall@10 cannot pass 0.1 with any number of lists.
    monkeypatch.setattr("bridgehead.index.tuning._CANDIDATES", 1)
    with pytest.raises(ArgumentError, match=r"reaches 0\.\d+ with all .* 0.98 is asked for: ask for at most"):
        side(clustered(2000, 16, 0), sample=clustered(40, 16, 1), flat_below=1000)


def test_a_row_comes_back_of_unit_length():
    vectors, _ = side([[3, 4], [0, 0]])
    np.testing.assert_allclose(vectors.row(0), [0.6, 0.8], atol=1e-3)
    assert np.linalg.norm(vectors.row(0)) == pytest.approx(1, abs=1e-6)
    assert vectors.row(1).tolist() == [0, 0]
