"""The ceiling of recall@1: by hand, against enumeration of scorers, reached by one, and never exceeded."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from bridgehead.audits import ceiling_findings, recall_ceiling, row_classes
from bridgehead.errors import ArgumentError, NonFiniteRowsError, ShapeError
from bridgehead.evaluate import report_from_scores, retrieval_report
from bridgehead.links import Links


def test_distinct_rows_can_all_be_found() -> None:
    ceiling = recall_ceiling(Links.identity(5))
    assert (ceiling.value, ceiling.n_queries, len(ceiling.queries)) == (1.0, 5, 0)


def test_two_candidates_alike_are_each_found_half_of_the_time() -> None:
    ceiling = recall_ceiling(Links.identity(4), classes_b=[7, 7, 8, 9])
    assert ceiling.value == 0.75
    assert ceiling.queries.tolist() == [0, 1]
    assert ceiling.candidates.tolist() == [0, 0]
    assert ceiling.n_tied.tolist() == [2, 2]
    assert ceiling.lost.tolist() == [0.5, 0.5]


def test_queries_alike_share_one_ranking_so_one_of_them_is_right() -> None:
    ceiling = recall_ceiling(Links.identity(4), classes_a=[0, 0, 0, 1])
    assert ceiling.value == 0.5
    assert (ceiling.queries.tolist(), ceiling.n_alike.tolist(), ceiling.lost.tolist()) == ([0], [3], [2.0])


def test_candidates_alike_that_are_all_true_cost_nothing() -> None:
    links = Links([[0, 0], [0, 1], [1, 2]], 2, 3)
    assert recall_ceiling(links, classes_b=[0, 0, 1]).value == 1.0


def test_queries_without_truth_and_outside_the_mask_do_not_count() -> None:
    links = Links([[0, 0], [1, 1]], 4, 2)
    assert recall_ceiling(links, classes_b=[0, 0]).value == 0.5
    assert recall_ceiling(links, classes_b=[0, 0], queries=np.array([True, False, True, False])).n_queries == 1
    nothing = recall_ceiling(Links(np.zeros((0, 2), dtype=int), 3, 3), [0, 0, 0], [0, 1, 2])
    assert (nothing.value, nothing.n_queries) == (0.0, 0)
    assert recall_ceiling(Links(np.zeros((0, 2), dtype=int), 0, 0)).n_queries == 0


@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_it_is_the_best_of_all_scorers_of_classes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_a, n_b = rng.integers(1, 6, size=2)
    truth = rng.random((n_a, n_b)) < 0.5
    truth[0, 0] = True
    of_a, of_b = rng.integers(0, 3, n_a), rng.integers(0, 3, n_b)
    best = 0.0
    # A scorer's recall@1 depends on which class of candidates each class of queries puts first, and on nothing else.
    for choice in product(np.unique(of_b), repeat=3):
        hits = [truth[i][of_b == choice[of_a[i]]].mean() for i in range(n_a) if truth[i].any()]
        best = max(best, float(np.mean(hits)))
    assert recall_ceiling(Links(np.argwhere(truth), n_a, n_b), of_a, of_b).value == pytest.approx(best)


def test_a_scorer_that_knows_the_links_reaches_it_and_none_exceeds_it() -> None:
    rng = np.random.default_rng(0)
    n = 60
    of_a, of_b = rng.integers(0, 40, n), rng.integers(0, 30, n)
    links = Links.identity(n)
    ceiling = recall_ceiling(links, of_a, of_b).value
    hits = np.zeros((40, 30))
    np.add.at(hits, (of_a, of_b), 1 / np.bincount(of_b, minlength=30)[of_b])
    known = report_from_scores(lambda rows: hits[of_a[rows]][:, of_b], links=links, ks=(1,), n_resamples=0)
    assert known.a_to_b.recall[1] == pytest.approx(ceiling)
    for seed in range(5):
        scores = np.random.default_rng(seed).normal(size=(40, 30)) + 2 * hits
        tried = report_from_scores(lambda rows, s=scores: s[of_a[rows]][:, of_b], links=links, ks=(1,), n_resamples=0)
        assert tried.a_to_b.recall[1] <= ceiling + 1e-12


def test_identical_rows_get_one_number_dense_or_sparse() -> None:
    rows = np.array([[1, 0, 2], [0, 0, 0], [1, 0, 2], [-0.0, 0, 0], [2, 0, 4]], dtype=np.float64)
    explicit = sparse.csr_array((np.array([0.0, 1, 2]), np.array([1, 0, 2]), np.array([0, 3])), shape=(1, 3))
    assert row_classes(rows).tolist() == [0, 1, 0, 1, 2]
    assert row_classes(sparse.csr_array(rows)).tolist() == [0, 1, 0, 1, 2]
    assert row_classes(sparse.vstack([sparse.csr_array(rows[:1]), explicit])).tolist() == [0, 0]
    assert row_classes(np.zeros((0, 4))).tolist() == []


def test_planted_duplicates_lower_the_verdict_step_by_step() -> None:
    rng = np.random.default_rng(1)
    verdicts = {}
    for n_same in (1, 10, 80):
        rows = rng.normal(size=(100, 8))
        rows[:n_same] = rows[0]
        found = ceiling_findings(Links.identity(100), row_classes(rng.normal(size=(100, 4))), row_classes(rows))
        verdicts[n_same] = [finding.verdict for finding in found]
    assert verdicts == {1: ["pass", "pass"], 10: ["warn", "warn"], 80: ["fail", "fail"]}


def test_a_finding_names_what_loses_and_puts_the_measured_value_beside_it() -> None:
    z = np.eye(4)
    rows_b = z[[0, 0, 2, 3]]
    report = retrieval_report(z, rows_b, ks=(1,), n_resamples=0)
    forth, back = ceiling_findings(
        Links.identity(4),
        row_classes(z),
        row_classes(rows_b),
        report=report,
        names=("molecule", "text"),
        ids_b=list("wxyz"),
    )
    assert forth.name == "ceiling of recall@1 under identical rows, molecule -> text"
    assert (forth.value, forth.verdict, forth.group) == (0.75, "warn", "false negatives")
    assert "(measured: 68.8%)" in forth.why
    assert forth.listed is not None
    assert forth.listed.rows[0] == ("0", 1, "w", 2, 0.5)
    assert back.value == 0.75
    assert back.listed is not None
    assert back.listed.rows == (("w", 2, "0", 1, 1.0),)


def test_more_than_the_ceiling_cannot_be_measured_by_rows() -> None:
    report = retrieval_report(np.eye(4), np.eye(4), ks=(1,), n_resamples=0)
    found = ceiling_findings(Links.identity(4), None, np.array([0, 0, 1, 2]), report=report)
    assert [finding.verdict for finding in found] == ["fail", "fail"]
    assert "lies above" in found[0].why


def test_a_direction_without_queries_gives_no_finding() -> None:
    assert ceiling_findings(Links(np.zeros((0, 2), dtype=int), 2, 2), None, None) == []
    only = ceiling_findings(Links.identity(2), None, None, queries_a=np.array([False, False]))
    assert [finding.name for finding in only] == ["ceiling of recall@1 under identical rows, b -> a"]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"classes_b has shape \(2,\); expected \(3,\)"):
        recall_ceiling(Links.identity(3), None, [0, 1])
    with pytest.raises(ArgumentError, match="classes_a has dtype float64; expected integers"):
        recall_ceiling(Links.identity(3), [0.0, 1.0, 2.0])
    with pytest.raises(ShapeError, match=r"expected a boolean mask \(3,\)"):
        recall_ceiling(Links.identity(3), queries=[0, 1, 1])
    with pytest.raises(NonFiniteRowsError, match="rows of a: 1 of 2 rows"):
        row_classes(np.array([[np.nan, 0], [0, 1]]), "rows of a")
