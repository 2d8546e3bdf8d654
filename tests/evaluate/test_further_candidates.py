"""`pool=`: further candidates that are never queries, by rows and by scores."""

from typing import Any

import numpy as np
import pytest

from bridgehead.errors import ArgumentError, LinksError, NonFiniteRowsError, ShapeError
from bridgehead.evaluate import report_from_scores, retrieval_report
from bridgehead.links import Links


@pytest.fixture
def sides() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    z_a = rng.normal(size=(30, 5))
    return z_a, z_a + rng.normal(size=(30, 5)), rng.normal(size=(11, 5)), rng.normal(size=(170, 5))


def test_further_candidates_are_ranked_and_never_ask(sides: Any) -> None:
    z_a, z_b, more_a, more_b = sides
    report = retrieval_report(z_a, z_b, pool=(more_a, more_b), n_resamples=10)
    assert (report.a_to_b.n_queries, report.a_to_b.n_candidates, report.a_to_b.n_without_truth) == (30, 200, 0)
    assert (report.b_to_a.n_queries, report.b_to_a.n_candidates) == (30, 41)
    assert set(report.a_to_b.pool.tolist()) == {200}
    assert report.a_to_b.chance_recall[10] == pytest.approx(10 / 200, abs=1e-15)
    cosines = (z_a / np.linalg.norm(z_a, axis=1)[:, None]) @ np.array(
        [row / np.linalg.norm(row) for row in (*z_b, *more_b)]
    ).T
    ranks = 1 + (cosines > np.diag(cosines)[:, None]).sum(axis=1)
    np.testing.assert_array_equal(report.a_to_b.ranks, ranks)
    alone = retrieval_report(z_a, z_b, n_resamples=10)
    one_side = retrieval_report(z_a, z_b, pool=(None, more_b), n_resamples=10)
    assert one_side.b_to_a.to_dict() == alone.b_to_a.to_dict()
    assert one_side.a_to_b.to_dict() == report.a_to_b.to_dict()


def test_it_equals_unlinked_rows_that_a_mask_keeps_from_asking(sides: Any) -> None:
    z_a, z_b, more_a, more_b = sides
    links = Links(np.stack([np.arange(30)] * 2, axis=1), 41, 200)
    by_mask = retrieval_report(
        np.concatenate([z_a, more_a]), np.concatenate([z_b, more_b]), links,
        queries_a=np.arange(41) < 30, queries_b=np.arange(200) < 30,
    )  # fmt: skip
    assert retrieval_report(z_a, z_b, pool=(more_a, more_b)).to_dict() == by_mask.to_dict()


def test_links_may_name_further_candidates(sides: Any) -> None:
    z_a, z_b, _, more_b = sides
    more_b[4] = z_b[7]
    wrong = retrieval_report(z_a, z_b, pool=(None, more_b), n_resamples=0).a_to_b
    pairs = np.concatenate([np.stack([np.arange(30)] * 2, axis=1), [[7, 34]]])
    for links in (pairs, Links(pairs, 30, 200)):
        right = retrieval_report(z_a, z_b, links, pool=(None, more_b), n_resamples=0).a_to_b
        assert right.n_true[7] == 2
        # Tied with its copy the true item is half a place behind where either of the two counts.
        assert right.ranks[7] == wrong.ranks[7] - 0.5
    with pytest.raises(LinksError, match="side b, which has 200 rows"):
        retrieval_report(z_a, z_b, [[0, 200]], pool=(None, more_b))


def test_groups_of_own_items_stay_and_further_ones_have_none(sides: Any) -> None:
    z_a, z_b, _, more_b = sides
    links = Links([[i, i] for i in range(30)], 30, 30, groups_b=[0, 0] + [-1] * 28)
    report = retrieval_report(z_a, z_b, links, pool=(None, more_b), n_resamples=0).a_to_b
    assert report.n_true.tolist() == [2, 2] + [1] * 28


def test_entities_masks_and_lists_are_over_own_rows_and_lists_reach_the_pool(sides: Any) -> None:
    z_a, z_b, _, more_b = sides
    mask = np.arange(30) % 2 == 0
    lists = [[i, 30 + i, 31 + i] for i in range(30)]
    report = retrieval_report(
        z_a, z_b, pool=(None, more_b), candidates=(lists, None), queries_a=mask, entities_a=np.arange(30) // 10
    ).a_to_b
    assert (report.n_queries, report.n_entities, set(report.pool.tolist())) == (15, 3, {3})
    with pytest.raises(ShapeError, match=r"queries_a .* boolean mask \(30,\)"):
        retrieval_report(z_a, z_b, pool=(z_a, more_b), queries_a=np.ones(60, dtype=bool))


def test_a_scorer_has_columns_for_further_candidates(sides: Any) -> None:
    z_a, z_b, more_a, more_b = sides
    left, right = (np.concatenate(pair) for pair in ((z_a, more_a), (z_b, more_b)))
    scores = (left / np.linalg.norm(left, axis=1)[:, None]) @ (right / np.linalg.norm(right, axis=1)[:, None]).T
    expected = retrieval_report(z_a, z_b, pool=(more_a, more_b), n_resamples=10).to_dict()
    for back in (None, lambda rows: scores.T[rows]):
        found = report_from_scores(
            lambda rows: scores[rows], back, links=Links.identity(30), pool=(11, 170), n_resamples=10, block=7
        )
        assert found.to_dict() == pytest.approx(expected, abs=1e-12)


def test_what_is_no_pool_is_refused(sides: Any) -> None:
    z_a, z_b, more_a, more_b = sides
    with pytest.raises(ArgumentError, match="pool is ndarray; expected a pair"):
        retrieval_report(z_a, z_b, pool=more_b)
    with pytest.raises(ShapeError, match="further rows of text have 3 columns and its own 5"):
        retrieval_report(z_a, z_b, pool=(None, more_b[:, :3]), names=("molecule", "text"))
    more_a[2, 1] = np.nan
    with pytest.raises(NonFiniteRowsError, match=r"further rows of a: 1 of 11 rows .*rows 2"):
        retrieval_report(z_a, z_b, pool=(more_a, None))
    for counts in ((-1, 0), (True, 0), (1.5, 0)):
        with pytest.raises(ArgumentError, match="expected two whole numbers"):
            report_from_scores(lambda rows: np.eye(3)[rows], links=Links.identity(3), pool=counts)


def test_an_empty_pool_is_no_pool(sides: Any) -> None:
    z_a, z_b, more_a, _ = sides
    empty = retrieval_report(z_a, z_b, pool=(more_a[:0], None), n_resamples=0).to_dict()
    assert empty == retrieval_report(z_a, z_b, n_resamples=0).to_dict()
