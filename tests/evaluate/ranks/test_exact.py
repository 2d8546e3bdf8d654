"""Counts of rows against rows: exact whatever the blocks, the order and the precision of the screen."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgehead.errors import ArgumentError, NonFiniteRowsError, ShapeError
from bridgehead.evaluate import retrieval_report
from bridgehead.evaluate.ranks import exact, undecided
from bridgehead.evaluate.ranks.exact import CosineRows, screening_error
from bridgehead.evaluate.ranks.layout import DistinctRows
from bridgehead.links import Links
from reference import cosine_loop, mean_metrics

KS = (1, 2, 4)


def numbers(report: Any) -> dict[str, float]:
    return {key: value for key, value in report.to_dict().items() if "low" not in key and "high" not in key}


def assert_same(left: Any, right: Any) -> None:
    left, right = numbers(left), numbers(right)
    assert left.keys() == right.keys()
    for key, value in left.items():
        assert value == pytest.approx(right[key], abs=1e-12), key


@given(st.integers(0, 10_000), st.integers(1, 7), st.integers(1, 6), st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_both_directions_equal_enumeration_over_ties(seed: int, n_a: int, n_b: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    # Small whole numbers give many identical, parallel and zero rows, so many ties that float32 cannot tell.
    z_a, z_b = rng.integers(-1, 2, size=(n_a, d)), rng.integers(-1, 2, size=(n_b, d))
    links = Links(np.argwhere(rng.random((n_a, n_b)) < 0.4), n_a, n_b)
    if len(links) == 0:
        links = Links([[0, 0]], n_a, n_b)
    report = retrieval_report(z_a, z_b, links, ks=KS, n_resamples=0)
    scores = np.array(cosine_loop(z_a, z_b))
    truth = links.matrix.toarray()
    for found, matrix, matches in ((report.a_to_b, scores, truth), (report.b_to_a, scores.T, truth.T)):
        expected = mean_metrics(matrix.tolist(), [set(np.flatnonzero(row).tolist()) for row in matches], KS)
        assert found.values.keys() == expected.keys()
        for name, value in expected.items():
            assert found.values[name] == pytest.approx(value, abs=1e-9), name


@pytest.fixture(scope="module")
def tied_rows() -> tuple[np.ndarray, np.ndarray, Links]:
    """Rows with duplicates, zero rows and neighbours closer than float32 can tell, many-to-many truth."""
    rng = np.random.default_rng(7)
    z_a = rng.normal(size=(120, 16))
    z_b = rng.normal(size=(90, 16))
    z_b[10:20] = z_b[0]
    z_b[20:30] = 3 * z_b[1]
    z_b[30:40] = z_b[2] + 1e-9 * rng.normal(size=(10, 16))
    z_b[40] = 0
    z_a[5] = 0
    z_a[50:60] = z_a[49]
    links = Links(np.stack([rng.integers(0, 110, 200), rng.integers(0, 80, 200)], axis=1), 120, 90)
    return z_a, z_b, links


@pytest.mark.parametrize("block", [1, 7, 120])
def test_results_do_not_depend_on_block_size(tied_rows: Any, block: int) -> None:
    assert_same(retrieval_report(*tied_rows, block=block), retrieval_report(*tied_rows))


def test_results_do_not_depend_on_row_order(tied_rows: Any) -> None:
    z_a, z_b, links = tied_rows
    rng = np.random.default_rng(1)
    order_a, order_b = rng.permutation(120), rng.permutation(90)
    moved = np.stack([np.argsort(order_a)[links.pairs[:, 0]], np.argsort(order_b)[links.pairs[:, 1]]], axis=1)
    left = retrieval_report(z_a, z_b, links).to_dict()
    right = retrieval_report(z_a[order_a], z_b[order_b], Links(moved, 120, 90)).to_dict()
    assert left == pytest.approx(right, abs=1e-12)


def test_results_do_not_depend_on_the_number_of_threads(tied_rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    threadpoolctl = pytest.importorskip("threadpoolctl")
    with threadpoolctl.threadpool_limits(1):
        single = retrieval_report(*tied_rows)
    assert_same(single, retrieval_report(*tied_rows))


def test_the_screen_decides_nothing(tied_rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    z_a, z_b, links = tied_rows
    left = retrieval_report(z_a, z_b, links)
    monkeypatch.setattr(exact, "screening_error", lambda d: 3.0)
    for share in (0.0, 2.0):
        monkeypatch.setattr(undecided, "_CROWDED", share)
        assert_same(left, retrieval_report(z_a, z_b, links))


def test_differences_below_float32_are_ranked_by_float64() -> None:
    query = np.array([[1.0, 0.0]])
    angles = np.array([2e-5, 1e-5, 3e-5])
    candidates = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    # Cosines 1 - 2e-10, 1 - 5e-11, 1 - 4.5e-10: all are 1 in float32.
    ranks = [retrieval_report(query, candidates, [[0, i]], ks=(1,), n_resamples=0).a_to_b.mean_rank for i in range(3)]
    assert ranks == [2.0, 1.0, 3.0]


def test_differences_within_1e_12_are_ties() -> None:
    query = np.array([[1.0, 0.0]])
    angles = np.array([1e-7, 2e-7, 3e-5])
    candidates = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    report = retrieval_report(query, candidates, [[0, 0]], ks=(1,), n_resamples=0)
    assert report.a_to_b.mean_rank == 1.5
    assert report.a_to_b.n_ties == 1


@pytest.mark.parametrize("d", [1, 3, 64, 1000])
def test_float32_products_stay_within_the_bound(d: int) -> None:
    rng = np.random.default_rng(d)
    left, right = CosineRows(rng.normal(size=(200, d)), "a"), CosineRows(rng.lognormal(size=(200, d)), "b")
    everything = slice(None)
    error = np.abs(left.unit32 @ right.unit32.T - left.unit64(everything) @ right.unit64(everything).T)
    assert error.max() < screening_error(d)


def test_identical_rows_are_one_row_with_a_number_of_copies() -> None:
    rows = np.array([[1, 0], [0, 1], [2, 0], [0, 0], [-0.0, 0], [4, 0]], dtype=np.float32)
    distinct = DistinctRows(CosineRows(rows, "b"))
    assert len(distinct) == 3
    assert distinct.copies[distinct.code].tolist() == [3, 1, 3, 2, 2, 3]
    assert distinct.first[distinct.code].tolist() == [0, 1, 0, 3, 3, 0]


def test_scale_of_rows_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    z_a, z_b = rng.normal(size=(30, 8)), rng.normal(size=(30, 8))
    scale = 10.0 ** rng.integers(-150, 150, size=(30, 1))
    assert_same(retrieval_report(z_a * scale, z_b), retrieval_report(z_a, z_b / scale))


def test_only_one_side_of_unit_length_equals_cosine() -> None:
    rng = np.random.default_rng(2)
    z_a, z_b = rng.normal(size=(20, 5)), rng.normal(size=(20, 5))
    unit_a = z_a / np.linalg.norm(z_a, axis=1, keepdims=True)
    assert_same(retrieval_report(unit_a, z_b * np.arange(1, 21)[:, None]), retrieval_report(z_a, z_b))


def test_nan_rows_are_refused_by_number_not_ranked_first() -> None:
    rows = np.eye(8, dtype=np.float32)
    broken = rows.copy()
    broken[[2, 5], 0] = np.nan
    with pytest.raises(NonFiniteRowsError, match=r"rows of text: 2 of 8 rows .*rows 2, 5"):
        retrieval_report(rows, broken, names=("molecule", "text"))
    with pytest.raises(NonFiniteRowsError, match="8 of 8 rows"):
        retrieval_report(np.full((8, 8), np.nan), rows)
    broken[2, 0] = np.inf
    with pytest.raises(NonFiniteRowsError, match="infinity"):
        retrieval_report(broken, rows)


def test_rows_that_do_not_fit_are_refused() -> None:
    from scipy import sparse

    with pytest.raises(ShapeError, match="3 columns and rows of b 2"):
        retrieval_report(np.ones((2, 3)), np.ones((2, 2)))
    with pytest.raises(ShapeError, match="sparse matrix"):
        retrieval_report(sparse.csr_array(np.eye(2)), np.eye(2))
    with pytest.raises(ArgumentError, match="block = 0"):
        retrieval_report(np.eye(2), np.eye(2), block=0)


def test_tensors_are_read_without_importing_torch() -> None:
    torch = pytest.importorskip("torch")
    rows = torch.eye(6, dtype=torch.bfloat16, requires_grad=True)
    assert retrieval_report(rows, rows, ks=(1,), n_resamples=0).a_to_b.recall[1] == 1.0


def test_a_collapsed_space_of_nearly_equal_rows_is_ranked_exactly() -> None:
    rng = np.random.default_rng(5)
    z_a = 1 + 1e-6 * rng.normal(size=(300, 12))
    z_b = 1 + 1e-6 * rng.normal(size=(300, 12))
    report = retrieval_report(z_a, z_b, ks=(1, 10), n_resamples=0)
    unit = [z / np.linalg.norm(z, axis=1, keepdims=True) for z in (z_a, z_b)]
    scores = unit[0] @ unit[1].T
    own = np.diag(scores)[:, None]
    above, tied = (scores > own + 1e-12).sum(axis=1), (np.abs(scores - own) <= 1e-12).sum(axis=1)
    np.testing.assert_allclose(report.a_to_b.ranks, above + (tied + 1) / 2, atol=0.51)
    assert report.a_to_b.mean_rank == pytest.approx(float((above + (tied + 1) / 2).mean()), rel=1e-4)


@pytest.mark.slow
def test_memory_is_of_the_block_never_of_all_pairs() -> None:
    import tracemalloc

    rng = np.random.default_rng(0)
    z_a, z_b = rng.normal(size=(12_000, 8)).astype(np.float32), rng.normal(size=(12_000, 8)).astype(np.float32)
    tracemalloc.start()
    retrieval_report(z_a, z_b, n_resamples=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12_000 * 12_000 * 4 / 4
