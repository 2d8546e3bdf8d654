"""Lists of candidates: ragged ones against enumeration, full ones against ranking everything, missing true items."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.evaluate import listed, report_from_scores, retrieval_report
from bridgehead.evaluate.listed import CandidateLists
from bridgehead.links import Links
from reference import cosine_loop, metrics_of_order, orders_of

KS = (1, 2, 3, 9)


def listed_metrics(scores: list[float], own: list[int], true: set[int]) -> dict[str, float]:
    """Metrics of one query that ranks the candidates `own`, from the definitions: the mean over all orders of ties."""
    if not true & set(own):
        names = [f"{name}@{k}" for name in ("recall", "recall_all", "ndcg") for k in KS]
        return dict.fromkeys((*names, "mrr", "map", "r_precision"), 0.0) | {"rank": len(own) + 1.0}
    orders = [[own[i] for i in order] for order in orders_of([scores[c] for c in own])]
    found = [metrics_of_order(order, true, KS) for order in orders]
    return {name: sum(one[name] for one in found) / len(found) for name in found[0]}


def ragged(rng: np.random.Generator, n: int, n_candidates: int) -> list[np.ndarray]:
    return [np.flatnonzero(rng.random(n_candidates) < rng.choice([0.0, 0.3, 0.8])) for _ in range(n)]


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_ragged_lists_with_missing_true_items_equal_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    # Whole numbers in two dimensions: many exact ties, zero rows among them.
    z_a, z_b = rng.integers(-1, 2, size=(9, 2)).astype(float), rng.integers(-1, 2, size=(7, 2)).astype(float)
    truth = rng.random((9, 7)) < 0.35
    truth[0, 0] = True
    lists = ragged(rng, 9, 7)
    links = Links(np.argwhere(truth), 9, 7)
    report = retrieval_report(z_a, z_b, links, ks=KS, n_resamples=0, candidates=(lists, None)).a_to_b
    scores = cosine_loop(z_a, z_b)
    assert report.pool.tolist() == [len(lists[row]) for row in report.queries]
    for i, row in enumerate(report.queries.tolist()):
        true = set(np.flatnonzero(truth[row]).tolist())
        expected = listed_metrics(scores[row], lists[row].tolist(), true)
        found = {name: values[i] for name, values in report.per_query.items()}
        assert found == pytest.approx(expected, abs=1e-12)
        reached = true & set(lists[row].tolist())
        assert report.n_missing[i] == len(true - reached)
        if reached:
            assert report.true_scores[i] == pytest.approx(max(scores[row][c] for c in reached), abs=1e-12)
        else:
            assert np.isnan(report.true_scores[i])
    assert report.n_true_missing == report.n_missing.sum()


@pytest.mark.parametrize("block", [None, 1, 7, 60])
def test_lists_of_everything_give_what_no_lists_give(block: int | None) -> None:
    rng = np.random.default_rng(0)
    z_a, z_b = rng.normal(size=(60, 4)), rng.normal(size=(40, 4))
    z_b[10:20] = z_b[:10]
    z_a[5] = 0
    links = Links(np.argwhere(rng.random((60, 40)) < 0.08), 60, 40)
    whole = retrieval_report(z_a, z_b, links, n_resamples=20)
    everything = [np.arange(40)] * 60, [np.arange(60)[::-1]] * 40
    listed = retrieval_report(z_a, z_b, links, n_resamples=20, candidates=everything, block=block)
    assert listed.to_dict() == whole.to_dict()
    np.testing.assert_allclose(listed.a_to_b.true_scores, whole.a_to_b.true_scores, rtol=0, atol=1e-15)
    for column in ("query", "above", "tied", "true"):
        found = getattr(listed.b_to_a.levels, column)
        np.testing.assert_array_equal(found, getattr(whole.b_to_a.levels, column))


def test_it_does_not_matter_whether_unit_rows_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(6)
    z_a, z_b = rng.normal(size=(30, 5)).astype(np.float32), rng.normal(size=(25, 5)).astype(np.float32)
    z_b[7] *= 1e30
    lists = ragged(rng, 30, 25)
    links = Links(np.argwhere(rng.random((30, 25)) < 0.2), 30, 25)
    found = []
    for budget in (1 << 20, 0):
        monkeypatch.setattr(listed, "_UNITS_BYTES", budget)
        monkeypatch.setattr(listed, "_ROWS_BYTES", 5 * 2 * 8 * 7)
        found.append(retrieval_report(z_a, z_b, links, n_resamples=0, candidates=(lists, None)).a_to_b)
    assert found[0].to_dict() == found[1].to_dict()
    np.testing.assert_allclose(found[0].true_scores, found[1].true_scores, atol=1e-15)


def test_the_same_lists_in_every_form() -> None:
    rng = np.random.default_rng(1)
    lists = ragged(rng, 12, 9)
    matrix = np.zeros((12, 9), dtype=bool)
    for row, own in enumerate(lists):
        matrix[row, own] = True
    csr = sparse.csr_array(matrix)
    shuffled = [rng.permutation(np.concatenate([own, own[:2]])).tolist() for own in lists]
    explicit = sparse.csr_array(matrix)
    explicit.data[:3] = False
    for given_lists in (lists, shuffled, csr, (csr.indptr, csr.indices), sparse.coo_matrix(matrix), matrix):
        found = CandidateLists.of(given_lists, 12, 9)
        np.testing.assert_array_equal(found.indptr, csr.indptr)
        np.testing.assert_array_equal(found.indices, csr.indices)
    np.testing.assert_array_equal(CandidateLists.of(explicit, 12, 9).indices, csr.indices[3:])


def test_a_scorer_reads_the_listed_scores_only() -> None:
    rng = np.random.default_rng(2)
    z_a, z_b = rng.normal(size=(50, 6)), rng.normal(size=(30, 6))
    links = Links(np.argwhere(rng.random((50, 30)) < 0.1), 50, 30)
    lists = ragged(rng, 50, 30), ragged(rng, 30, 50)
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (z_a, z_b)]
    scores = unit[0] @ unit[1].T
    by_rows = retrieval_report(z_a, z_b, links, candidates=lists, n_resamples=30)
    for block in (None, 1, 8):
        found = report_from_scores(lambda r: scores[r], links=links, candidates=lists, n_resamples=30, block=block)
        assert found.to_dict() == pytest.approx(by_rows.to_dict(), abs=1e-12)


def test_chance_of_ragged_lists_is_that_of_each_querys_own_list() -> None:
    z = np.eye(6)
    lists = [[0, 1], [1, 2, 3, 4], [0, 3], [3], [], [5, 0, 1, 2, 3, 4]]
    report = retrieval_report(z, z, ks=(1, 3), n_resamples=0, candidates=(lists, None)).a_to_b
    # The true item is among 2, 4, not at all, 1, none, 6 candidates.
    assert report.chance["recall@1"] == pytest.approx((1 / 2 + 1 / 4 + 0 + 1 + 0 + 1 / 6) / 6, abs=1e-15)
    assert report.chance["recall@3"] == pytest.approx((1 + 3 / 4 + 0 + 1 + 0 + 3 / 6) / 6, abs=1e-15)
    assert report.chance["mean_rank"] == pytest.approx((1.5 + 2.5 + 3 + 1 + 1 + 3.5) / 6, abs=1e-15)
    assert (report.n_true_missing, report.n_out_of_reach) == (2, 2)
    assert report.values["recall@1"] == pytest.approx(4 / 6)
    assert report.corrected["recall@1"] == pytest.approx(
        (4 / 6 - report.chance["recall@1"]) / (1 - report.chance["recall@1"]), abs=1e-15
    )


def test_chance_of_ragged_lists_equals_a_simulation() -> None:
    rng = np.random.default_rng(3)
    truth = rng.random((40, 12)) < 0.25
    links, lists = Links(np.argwhere(truth), 40, 12), ragged(rng, 40, 12)
    runs = [
        report_from_scores(one.__getitem__, links=links, ks=(2,), candidates=(lists, None), n_resamples=0).a_to_b
        for one in rng.random((400, 40, 12))
    ]
    assert runs[0].n_true_missing > 20
    for metric in ("recall@2", "recall_all@2", "ndcg@2", "mrr", "r_precision", "mean_rank"):
        values = np.array([run.values[metric] for run in runs])
        mean, (low, high) = runs[0].chance[metric], runs[0].chance_interval(metric)
        assert mean == pytest.approx(values.mean(), abs=4 * values.std() / 20), metric
        assert (high - low) / 2 == pytest.approx(1.96 * values.std(), rel=0.12), metric


def test_lines_and_dict_say_what_was_ranked_and_what_is_missing() -> None:
    lists = [[0, 1], [1, 2, 3], [2], [0]]
    report = retrieval_report(np.eye(4), np.eye(4), ks=(1,), candidates=(lists, None), names=("spectrum", "molecule"))
    lines = report.lines()
    assert lines[0] == "spectrum -> molecule: 4 queries, each ranks a list of 1 to 3 (median 2) out of 4 candidates"
    assert lines[1] == ("  (1 of 4 true items are not in their query's list: not retrieved; 1 query has none)")
    flat = report.to_dict()
    assert (flat["a_to_b.least_pool"], flat["a_to_b.median_pool"], flat["a_to_b.most_pool"]) == (1, 1.5, 3)
    assert (flat["a_to_b.n_true_missing"], flat["b_to_a.n_true_missing"]) == (1, 0)


def test_row_order_of_queries_and_candidates_changes_nothing() -> None:
    rng = np.random.default_rng(4)
    z_a, z_b = rng.integers(-1, 2, size=(20, 3)).astype(float), rng.integers(-1, 2, size=(15, 3)).astype(float)
    truth, lists = rng.random((20, 15)) < 0.2, rng.random((20, 15)) < 0.5
    p, q = rng.permutation(20), rng.permutation(15)

    def report(rows_a: Any, rows_b: Any, true: Any, own: Any) -> Any:
        links = Links(np.argwhere(true), 20, 15)
        return retrieval_report(rows_a, rows_b, links, n_resamples=50, candidates=(sparse.csr_array(own), None))

    one, other = report(z_a, z_b, truth, lists), report(z_a[p], z_b[q], truth[p][:, q], lists[p][:, q])
    assert one.a_to_b.to_dict() == pytest.approx(other.a_to_b.to_dict(), abs=1e-12)


@pytest.mark.parametrize(
    ("lists", "error", "message"),
    [
        ([[0], [1]], ShapeError, "candidates of a has 2 lists; expected 3"),
        ([[0], [1], [3]], ArgumentError, r"names candidate 3 in the list of row 2; candidates are 0 to 2"),
        ([[0], [-1], [2]], ArgumentError, "names candidate -1 in the list of row 1"),
        ([[0], [1.5], [2]], ArgumentError, r"candidates of a\[1\] has dtype float64"),
        ([[0], [True], [2]], ArgumentError, r"candidates of a\[1\] has dtype bool"),
        ([[0], ["1"], [2]], ArgumentError, r"expected row numbers"),
        (([0, 1, 2], [0, 1, 2]), ShapeError, "indptr has 3 entries; expected 4"),
        (([0, 2, 1, 3], [0, 1, 2]), ShapeError, "ascending from 0"),
        (sparse.csr_array((3, 4)), ShapeError, r"matrix of shape \(3, 4\); expected \(3, 3\)"),
        (5, ArgumentError, "candidates of a is int; expected a list"),
    ],
)
def test_what_is_no_list_for_each_query_is_refused(lists: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        retrieval_report(np.eye(3), np.eye(3), candidates=(lists, None))


def test_lists_come_for_both_directions() -> None:
    with pytest.raises(ArgumentError, match="candidates is list; expected a pair"):
        retrieval_report(np.eye(3), np.eye(3), candidates=[[0], [1], [2]])
    with pytest.raises(ArgumentError, match="block = 0"):
        retrieval_report(np.eye(3), np.eye(3), candidates=([[0], [1], [2]], None), block=0)
