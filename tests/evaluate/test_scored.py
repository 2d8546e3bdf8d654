"""`report_from_scores`: the same report from a scorer that is not rows."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from bridgehead.errors import ArgumentError, NonFiniteRowsError, ShapeError
from bridgehead.evaluate import report_from_scores, retrieval_report, scored
from bridgehead.links import Links
from reference import mean_metrics


@pytest.fixture
def cosines() -> tuple[np.ndarray, np.ndarray, Links]:
    rng = np.random.default_rng(0)
    z_a, z_b = rng.integers(-2, 3, size=(50, 3)).astype(float), rng.integers(-2, 3, size=(37, 3)).astype(float)
    return z_a, z_b, Links(np.argwhere(rng.random((50, 37)) < 0.08), 50, 37)


def unit(rows: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1)


@pytest.mark.parametrize("block", [None, 1, 8])
@pytest.mark.parametrize("both", [True, False])
def test_cosines_as_a_scorer_give_the_report_of_the_rows(cosines: Any, block: int | None, both: bool) -> None:
    z_a, z_b, links = cosines
    scores = unit(z_a) @ unit(z_b).T
    found = report_from_scores(
        lambda rows: scores[rows],
        (lambda rows: scores.T[rows]) if both else None,
        links=links,
        block=block,
        n_resamples=20,
    )
    expected = retrieval_report(z_a, z_b, links, n_resamples=20)
    assert found.to_dict() == pytest.approx(expected.to_dict(), abs=1e-12)
    np.testing.assert_allclose(found.b_to_a.true_scores, expected.b_to_a.true_scores, atol=1e-12)


def test_whole_number_scores_equal_enumeration() -> None:
    rng = np.random.default_rng(1)
    scores = rng.integers(-3, 1, size=(12, 6))
    matrix = rng.random((12, 6)) < 0.3
    links = Links(np.argwhere(matrix), 12, 6)
    found = report_from_scores(lambda rows: scores[rows], links=links, ks=(1, 3), n_resamples=0).a_to_b
    expected = mean_metrics(scores.tolist(), [set(np.flatnonzero(row).tolist()) for row in matrix], (1, 3))
    assert found.values == pytest.approx(expected, abs=1e-12)


def test_negative_scores_and_sparse_blocks_are_ranked_like_any_other() -> None:
    scores = sparse.csr_array(np.array([[0.0, -1.0], [-2.0, 0.0]]))
    report = report_from_scores(lambda rows: scores[rows], links=Links.identity(2), ks=(1,), n_resamples=0)
    assert report.a_to_b.recall[1] == 1.0


def test_a_constant_scorer_is_at_chance() -> None:
    report = report_from_scores(
        lambda rows: np.zeros((rows.stop - rows.start, 40)), links=Links.identity(40), ks=(1, 4), n_resamples=0
    )
    assert report.a_to_b.recall == pytest.approx({1: 1 / 40, 4: 4 / 40}, abs=1e-12)


def test_nan_scores_are_refused_by_query_row() -> None:
    scores = np.zeros((6, 6))
    scores[4, 1] = np.nan
    with pytest.raises(NonFiniteRowsError, match=r"score_a_to_b: scores of 1 query rows .*rows 4"):
        report_from_scores(lambda rows: scores[rows], links=Links.identity(6))


def test_a_block_of_another_shape_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"expected \(3, 3\)"):
        report_from_scores(lambda rows: np.zeros((3, 2)), links=Links.identity(3))
    with pytest.raises(ArgumentError, match="block = 0"):
        report_from_scores(lambda rows: np.zeros((3, 3)), links=Links.identity(3), block=0)


@pytest.mark.parametrize(("budget", "calls"), [(64 << 20, 5), (7 * 50 * 8, 5 + 6 * 5)])
def test_without_a_second_function_scores_are_kept_only_where_they_fit_a_block(
    cosines: Any, budget: int, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    z_a, z_b, links = cosines
    scores = unit(z_a) @ unit(z_b).T
    seen: list[slice] = []

    def score(rows: slice) -> np.ndarray:
        seen.append(rows)
        return scores[rows]

    monkeypatch.setattr(scored, "_BLOCK_BYTES", budget)
    found = report_from_scores(score, links=links, block=10, n_resamples=0)
    assert len(seen) == calls
    assert found.to_dict() == pytest.approx(retrieval_report(z_a, z_b, links, n_resamples=0).to_dict(), abs=1e-12)
