"""`retrieval_report` as a user meets it: constant scorers, many-to-many truth, masks, missing truth, bad arguments."""

import subprocess
import sys

import numpy as np
import pytest

from bridgehead.errors import ArgumentError, LinksError, ShapeError
from bridgehead.evaluate import report_from_scores, retrieval_report
from bridgehead.links import Links


@pytest.mark.parametrize("constant", [0.0, 1.0, -3.0])
@pytest.mark.parametrize("n", [1, 7, 300])
def test_constant_rows_have_recall_k_over_n_in_any_row_order(constant: float, n: int) -> None:
    rows = np.full((n, 4), constant, dtype=np.float32)
    shuffled = np.random.default_rng(n).permutation(n)
    for links in (None, np.stack([np.arange(n), shuffled], axis=1)):
        report = retrieval_report(rows, rows, links, ks=(1, 10), n_resamples=0)
        for direction in (report.a_to_b, report.b_to_a):
            assert direction.recall[1] == pytest.approx(1 / n, abs=1e-12)
            assert direction.recall[10] == pytest.approx(min(1, 10 / n), abs=1e-12)
            assert direction.mrr == pytest.approx(sum(1 / j for j in range(1, n + 1)) / n, abs=1e-12)
            assert direction.median_rank == direction.mean_rank == (n + 1) / 2
            assert direction.n_ties == (n if n > 1 else 0)
            assert direction.values == pytest.approx(direction.chance, abs=1e-12)


def test_random_rows_stay_inside_chances_interval() -> None:
    inside = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        report = retrieval_report(rng.normal(size=(300, 64)), rng.normal(size=(300, 64)), ks=(10,), n_resamples=0)
        low, high = report.a_to_b.chance_interval("recall@10")
        inside += low <= report.a_to_b.recall[10] <= high
    assert inside >= 34


def test_five_texts_per_molecule_count_by_any_and_by_own_molecule() -> None:
    molecules = np.eye(3)
    texts = np.repeat(np.eye(3), 5, axis=0)
    texts[0] = [0, 1, 0]  # the first text of molecule 0 is misplaced beside those of molecule 1
    links = np.stack([np.repeat(np.arange(3), 5), np.arange(15)], axis=1)
    report = retrieval_report(molecules, texts, links, ks=(1, 5), n_resamples=0)
    forth, back = report.a_to_b, report.b_to_a
    assert (forth.n_queries, forth.n_candidates, back.n_queries, back.n_candidates) == (3, 15, 15, 3)
    # Molecule 1 shares its first place among six tied texts, of which five are its own.
    assert forth.recall[1] == pytest.approx((1 + 5 / 6 + 1) / 3, abs=1e-12)
    # Molecule 0 has four of five texts first; its fifth ties with ten others at cosine 0.
    assert forth.recall_all[5] == pytest.approx(((4 + 1 / 11) / 5 + 5 / 6 + 1) / 3, abs=1e-12)
    assert back.recall[1] == pytest.approx(14 / 15, abs=1e-12)


def test_more_positives_than_k_divide_recall_all_by_the_positives() -> None:
    query, candidates = np.array([[1.0, 0.0]]), np.repeat([[1.0, 0.1], [0.0, 1.0]], [8, 4], axis=0)
    report = retrieval_report(query, candidates, [[0, i] for i in range(8)], ks=(2,), n_resamples=0)
    assert report.a_to_b.recall[2] == 1.0
    assert report.a_to_b.recall_all[2] == 2 / 8
    assert report.a_to_b.ndcg[2] == pytest.approx(1.0, abs=1e-15)


def test_k_beyond_the_pool_counts_as_the_pool() -> None:
    report = retrieval_report(np.eye(3), -np.eye(3), ks=(3, 10), n_resamples=0)
    assert report.a_to_b.recall == {3: 1.0, 10: 1.0}
    assert report.a_to_b.chance_recall[10] == 1.0


@pytest.mark.parametrize("ks", [5, None, "5", 2.5])
def test_ks_are_a_list_of_whole_numbers(ks: object) -> None:
    with pytest.raises(ArgumentError, match=r"ks = .*expected one or more whole numbers"):
        retrieval_report(np.eye(3), np.eye(3), ks=ks)


@pytest.mark.parametrize("names", [("x",), "ab", ("x", "y", "z"), 3, (1, 2)])
def test_names_are_two(names: object) -> None:
    with pytest.raises(ArgumentError, match=r"names = .*expected two"):
        retrieval_report(np.eye(3), np.eye(3), names=names)
    with pytest.raises(ArgumentError, match=r"names = .*expected two"):
        report_from_scores(lambda rows: np.eye(3)[rows], links=Links.identity(3), names=names)


@pytest.mark.parametrize("ks", [(0,), (-1, 5), (), (1.5,), (True,)])
def test_k_below_one_is_an_error(ks: tuple[int, ...]) -> None:
    with pytest.raises(ArgumentError, match="each at least 1"):
        retrieval_report(np.eye(3), np.eye(3), ks=ks)


def test_queries_without_truth_are_left_out_and_counted() -> None:
    report = retrieval_report(np.eye(5), np.eye(5), [[0, 0], [1, 1]], ks=(1,), n_resamples=0)
    assert report.a_to_b.recall[1] == 1.0
    assert (report.a_to_b.n_queries, report.a_to_b.n_without_truth, report.a_to_b.n_candidates) == (2, 3, 5)
    assert report.a_to_b.queries.tolist() == [0, 1]


def test_nothing_left_to_evaluate_is_an_error() -> None:
    with pytest.raises(LinksError, match="molecule -> text: none of the 4 queries has a true candidate"):
        retrieval_report(np.eye(4), np.eye(4), np.zeros((0, 2), dtype=int), names=("molecule", "text"))
    with pytest.raises(LinksError, match="b -> a: none of the 1 queries"):
        retrieval_report(np.eye(4), np.eye(4), [[0, 0]], queries_b=np.arange(4) == 2)
    with pytest.raises(LinksError, match="equal numbers"):
        retrieval_report(np.eye(4), np.eye(4)[:3])


def test_a_mask_chooses_queries_and_keeps_all_candidates() -> None:
    rng = np.random.default_rng(0)
    z_a, z_b = rng.normal(size=(40, 4)), rng.normal(size=(40, 4))
    mask = rng.random(40) < 0.3
    whole = retrieval_report(z_a, z_b, n_resamples=0)
    part = retrieval_report(z_a, z_b, n_resamples=0, queries_a=mask)
    assert part.a_to_b.n_candidates == 40
    np.testing.assert_array_equal(part.a_to_b.ranks, whole.a_to_b.ranks[mask])
    np.testing.assert_array_equal(part.b_to_a.ranks, whole.b_to_a.ranks)
    with pytest.raises(ShapeError, match=r"queries_a is int64 .* boolean mask \(40,\)"):
        retrieval_report(z_a, z_b, queries_a=np.flatnonzero(mask))


def test_further_rows_are_further_candidates() -> None:
    z_a, z_b = np.eye(4)[:2], np.concatenate([np.eye(4), np.eye(4)[:1]])
    report = retrieval_report(z_a, z_b, [[0, 0], [1, 1]], ks=(1,), n_resamples=0)
    assert report.a_to_b.n_candidates == 5
    # Row 4 of b equals row 0 and is not linked: a tie of two.
    assert report.a_to_b.recall[1] == pytest.approx(3 / 4, abs=1e-12)


def test_groups_share_truth() -> None:
    links = Links([[0, 0]], 2, 2, groups_b=[5, 5])
    report = retrieval_report(np.eye(2), np.eye(2)[::-1], links, ks=(1,), n_resamples=0)
    assert report.a_to_b.recall[1] == 1.0
    assert report.a_to_b.n_true.tolist() == [2]


def test_swapping_the_sides_swaps_the_directions() -> None:
    rng = np.random.default_rng(4)
    z_a, z_b = rng.normal(size=(30, 3)), rng.normal(size=(20, 3))
    links = Links(np.argwhere(rng.random((30, 20)) < 0.1), 30, 20)
    forth = retrieval_report(z_a, z_b, links, n_resamples=50)
    back = retrieval_report(z_b, z_a, links.swapped(), n_resamples=50)
    assert forth.a_to_b.to_dict() == pytest.approx(back.b_to_a.to_dict(), abs=1e-12)


def test_median_rank_is_of_expected_best_ranks() -> None:
    # One query ranks its two true ones in a tie of four: (4 + 1) / (2 + 1); another is first of all.
    z_b = np.array([[1, 0], [1, 0], [1, 0], [1, 0], [0, 1]], dtype=float)
    report = retrieval_report(np.eye(2), z_b, [[0, 0], [0, 1], [1, 4]], ks=(1,), n_resamples=0)
    np.testing.assert_allclose(report.a_to_b.ranks, [5 / 3, 1], rtol=1e-15)
    assert report.a_to_b.median_rank == pytest.approx((5 / 3 + 1) / 2, rel=1e-15)


def test_the_same_numbers_whether_one_process_scores_all_or_ranks_score_parts() -> None:
    rng = np.random.default_rng(9)
    z_a, z_b = rng.normal(size=(101, 6)), rng.normal(size=(101, 6))
    whole = retrieval_report(z_a, z_b, n_resamples=0).a_to_b
    halves = [
        retrieval_report(z_a, z_b, n_resamples=0, queries_a=mask).a_to_b
        for mask in (np.arange(101) < 51, np.arange(101) >= 51)
    ]
    np.testing.assert_array_equal(np.concatenate([half.ranks for half in halves]), whole.ranks)


def test_true_scores_are_cosines_of_the_best_true_candidate() -> None:
    report = retrieval_report([[3.0, 4.0]], [[1.0, 0.0], [0.0, 2.0]], [[0, 0], [0, 1]], ks=(1,), n_resamples=0)
    np.testing.assert_allclose(report.a_to_b.true_scores, [0.8], rtol=1e-15)


def test_one_pair_and_few_rows_work() -> None:
    report = retrieval_report([[1.0]], [[2.0]], ks=(1, 10))
    assert report.to_dict()["a_to_b.recall@10"] == 1.0
    assert report.a_to_b.interval == {}


def test_evaluation_never_imports_torch() -> None:
    code = (
        "import sys, numpy as np, bridgehead.evaluate as e, bridgehead.audits;"
        "e.retrieval_report(np.eye(3), np.eye(3)); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("entities", [["x"] * 3, np.zeros((4, 1))])
def test_entities_need_a_label_for_each_row(entities: object) -> None:
    with pytest.raises(ShapeError, match=r"entities_a has shape .* expected \(4,\)"):
        retrieval_report(np.eye(4), np.eye(4), entities_a=entities)


def test_entities_of_several_types_are_an_error() -> None:
    with pytest.raises(ArgumentError, match="entities_a holds labels of several types"):
        retrieval_report(np.eye(4), np.eye(4), entities_a=np.array(["x", None, "y", "z"], dtype=object))


@pytest.mark.parametrize("n", [-1, None, True, 2.5, "10"])
def test_resamples_are_a_whole_number_of_0_or_more(n: object) -> None:
    with pytest.raises(ArgumentError, match="n_resamples = "):
        retrieval_report(np.eye(4), np.eye(4), n_resamples=n)
