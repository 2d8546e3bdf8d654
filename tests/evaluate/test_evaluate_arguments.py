"""Numbers of the wrong kind are refused by name, whichever public function of `evaluate` they are given to."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from bridgehead.errors import ArgumentError, BridgeheadError, NonFiniteRowsError, ShapeError
from bridgehead.evaluate import (
    AlignmentMetrics,
    activity_cliffs,
    choose_among,
    compare_reports,
    corrected_difference,
    detectable_difference,
    fold_spread,
    grouped_reports,
    nearest_similarity,
    paired_difference,
    power_of,
    quintiles,
    report_from_scores,
    retrieval_report,
    slice_report,
    within_tolerance,
)
from bridgehead.evaluate.geometry import alignment_distance, gap_correction, uniformity
from bridgehead.evaluate.zero_shot import (
    CandidateSet,
    calibrate_abstention,
    calibration_error,
    candidate_set_sensitivity,
    class_prototypes,
    classify_rows,
)
from bridgehead.links import Links

Z = np.eye(4)
LINKS = Links.identity(4)
REPORT = retrieval_report(Z, Z, ks=(1,), n_resamples=5)
VALUES = np.arange(4.0)
HUGE = 10**30


def scores(rows: slice) -> Any:
    return Z[rows]


@pytest.mark.parametrize("seed", [None, True, -1, 1.5, "0", [1, 2], np.zeros(2, dtype=np.int64)])
@pytest.mark.parametrize(
    "asked",
    [
        lambda seed: retrieval_report(Z, Z, seed=seed),
        lambda seed: report_from_scores(scores, links=LINKS, seed=seed),
        lambda seed: grouped_reports(Z, Z, groups_a=[0, 0, 1, 1], seed=seed),
        lambda seed: paired_difference(VALUES, 1 - VALUES, seed=seed),
        lambda seed: compare_reports(REPORT, REPORT, seed=seed),
        lambda seed: choose_among(LINKS, 4, 2, seed=seed),
        lambda seed: gap_correction(Z, Z, seed=seed),
    ],
    ids=["rows", "scores", "grouped", "paired", "compare", "choose", "gap"],
)
def test_a_seed_that_would_fix_nothing_is_refused(asked: Any, seed: Any) -> None:
    with pytest.raises(ArgumentError, match=r"seed = .*expected a whole number of at least 0"):
        asked(seed)


def test_seeds_of_numpy_and_of_many_bits_are_taken() -> None:
    for seed in (np.int64(3), 2**100):
        assert retrieval_report(Z, Z, seed=seed, n_resamples=5).a_to_b.interval
    assert paired_difference(VALUES, 1 - VALUES, seed=np.int32(3)) == paired_difference(VALUES, 1 - VALUES, seed=3)


@pytest.mark.parametrize("block", [0, -1, True, 2.0, float("nan"), "8", [1], np.ones(3)])
@pytest.mark.parametrize(
    "asked",
    [
        lambda block: report_from_scores(scores, links=LINKS, block=block),
        lambda block: report_from_scores(scores, scores, links=LINKS, block=block),
        lambda block: report_from_scores(
            scores, scores, links=LINKS, block=block, candidates=([[0], [1], [2], [3]], None)
        ),
        lambda block: activity_cliffs(np.eye(3), ["x", "y", "z"], block=block),
        lambda block: nearest_similarity(Z, Z, block=block),
    ],
    ids=["columns", "scores", "lists", "cliffs", "nearest"],
)
def test_a_block_that_is_no_number_of_rows_is_refused(asked: Any, block: Any) -> None:
    with pytest.raises(ArgumentError, match=r"block = .*expected at least 1 row"):
        asked(block)


@pytest.mark.parametrize("n", [-1, True, 2.5, "5", None, [5], np.ones(2)])
def test_resamples_of_slices_and_subsets_are_whole_numbers(n: Any) -> None:
    report = REPORT.a_to_b
    mask = np.ones(4, dtype=bool)
    if n is None:
        assert report.subset(mask, n).n_resamples == report.n_resamples
        return
    with pytest.raises(ArgumentError, match="n_resamples = "):
        report.subset(mask, n_resamples=n)
    with pytest.raises(ArgumentError, match="n_resamples = "):
        slice_report(report, ["x"] * 4, "kind", least=1, n_resamples=n)


@pytest.mark.parametrize("ks", [np.ones((2, 2), dtype=int), [[1], [2]], np.array(3), [HUGE], np.array([2**64 - 1])])
def test_ks_that_are_no_small_whole_numbers_are_refused(ks: Any) -> None:
    with pytest.raises(ArgumentError, match="ks = "):
        retrieval_report(Z, Z, ks=ks)


@pytest.mark.parametrize(
    ("asked", "match"),
    [
        (lambda: REPORT.a_to_b.recall_by_pool(HUGE), "k = "),
        (lambda: REPORT.a_to_b.recall_by_pool(1, sizes=5), "sizes"),
        (lambda: REPORT.a_to_b.recall_by_pool(1, sizes=[[2]]), "sizes"),
        (lambda: REPORT.a_to_b.chance_interval(["mrr"]), "no metric"),
        (lambda: REPORT.value(3), "no metric"),
        (lambda: REPORT.lines("abc"), "names"),
        (lambda: AlignmentMetrics(Z, Z).recall_at_k(HUGE), "k = "),
        (lambda: AlignmentMetrics(Z, Z).mean_reciprocal_rank(np.array(["a_to_b", "b_to_a"])), "direction"),
        (lambda: AlignmentMetrics(Z, Z).uniformity("2"), "t = "),
        (lambda: AlignmentMetrics(Z, Z).uniformity(None), "t = "),
        (lambda: slice_report(REPORT, ["x"] * 4, "kind"), "expected a DirectionReport"),
        (lambda: quintiles(VALUES, n_bins=HUGE), "n_bins = "),
        (lambda: quintiles(VALUES, digits=-1), "digits = "),
        (lambda: quintiles(VALUES, digits=1.5), "digits = "),
        (lambda: activity_cliffs(np.eye(3), None), "texts"),
        (lambda: activity_cliffs(np.eye(3), np.eye(3)), "texts"),
        (lambda: choose_among([[0, 0]], 4, 2), "links"),
        (lambda: choose_among(LINKS, HUGE, 2), "n_candidates = "),
        (lambda: choose_among(LINKS, 4, HUGE), "t = "),
        (lambda: within_tolerance(VALUES, VALUES, float("inf"), True), "tolerance = "),
        (lambda: within_tolerance(VALUES, VALUES, 1.0, np.ones(4)), "relative = "),
        (lambda: within_tolerance(VALUES, VALUES, 1.0, "ppm"), "relative = "),
        (lambda: compare_reports(REPORT, REPORT, metrics=[1]), "do not both have"),
        (lambda: compare_reports(REPORT, REPORT, metrics=3), "metrics"),
        (lambda: compare_reports(REPORT, REPORT, metrics="a_to_b.mrr"), "metrics"),
        (lambda: corrected_difference([0.1, 0.2], "x"), "ratio = "),
        (lambda: corrected_difference([0.1, 0.2], True), "ratio = "),
        (lambda: detectable_difference(None, 10), "sd = "),
        (lambda: detectable_difference(0.5, "10"), "n_entities = "),
        (lambda: detectable_difference(0.5, float("nan")), "n_entities = "),
        (lambda: detectable_difference(0.5, float("inf")), "n_entities = "),
        (lambda: detectable_difference(0.5, 10, power=None), "power = "),
        (lambda: power_of(float("nan"), 0.5, 10), "difference = "),
        (lambda: power_of(0.1, -0.5, 10), "sd = "),
        (lambda: power_of(0.1, float("inf"), 10), "sd = "),
        (lambda: power_of(0.1, 0.5, 2.5), "n_entities = "),
        (lambda: power_of(0.1, 0.5, 0), "n_entities = "),
        (lambda: power_of(0.1, 0.5, 10, level=5), "level = "),
        (lambda: power_of(0.1, 0.0, 10, level=1e300), "level = "),
        (lambda: alignment_distance(Z, Z, alpha=HUGE**20), "alpha = "),
        (lambda: uniformity(Z, t=HUGE**20), "t = "),
        (lambda: gap_correction(Z, Z, names=None), "names = "),
        (lambda: gap_correction(Z, Z, names=("a",)), "names = "),
        (lambda: gap_correction(Z, Z, before="x"), "before"),
        (lambda: calibrate_abstention(VALUES / 3, np.ones(4), accuracy=0.5, least="2"), "least = "),
        (lambda: calibrate_abstention(VALUES / 3, np.ones(4), accuracy=0.5, least=float("nan")), "least = "),
        (lambda: calibration_error(VALUES / 3, np.ones(4), n_bins=HUGE), "n_bins = "),
        (lambda: candidate_set_sensitivity(Z, Z, None), "sets"),
        (lambda: candidate_set_sensitivity(Z, Z, [None]), "sets"),
        (lambda: candidate_set_sensitivity(Z, Z, CandidateSet("one", Z, [0, 1, 2, 3])), "sets"),
        (lambda: class_prototypes(Z, [0, 0, 1, 1], n_classes=HUGE), "n_classes = "),
        (lambda: class_prototypes(Z, np.full(4, 2**64 - 1, dtype=np.uint64)), "class_of"),
        (lambda: classify_rows(sparse.csr_array(Z), Z), "z_items is a sparse matrix"),
        (lambda: candidate_set_sensitivity(sparse.csr_array(Z), Z, []), "z_items is a sparse matrix"),
        (lambda: classify_rows(Z, Z, logit_scale=HUGE**20), "logit_scale = "),
    ],
)
def test_what_is_not_of_the_kind_that_was_expected_is_refused_by_name(asked: Any, match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        asked()


@pytest.mark.parametrize("bad", [None, 3, "abc", np.array(3.0)])
def test_grouped_reports_say_what_is_wrong_with_rows_that_are_no_rows(bad: Any) -> None:
    with pytest.raises(BridgeheadError, match="rows of a"):
        grouped_reports(bad, Z, groups_b=[0, 0, 1, 1])


@pytest.mark.parametrize("links", [None, [[0, 0]], 3])
def test_scores_need_links_that_say_how_many_rows_there_are(links: Any) -> None:
    with pytest.raises(ArgumentError, match="expected Links"):
        report_from_scores(scores, links=links)


@pytest.mark.parametrize("scorer", [None, "x", Z])
def test_a_scorer_that_cannot_be_called_is_refused(scorer: Any) -> None:
    with pytest.raises(ArgumentError, match="score_a_to_b"):
        report_from_scores(scorer, links=LINKS)
    if scorer is not None:
        with pytest.raises(ArgumentError, match="score_b_to_a"):
            report_from_scores(scores, scorer, links=LINKS)


@pytest.mark.parametrize("given", [Z.astype(complex), Z.astype(str), Z.astype(object), "x", {}])
def test_scores_that_are_no_real_numbers_are_refused(given: Any) -> None:
    with pytest.raises(BridgeheadError, match="score_a_to_b"):
        report_from_scores(lambda rows: given, links=LINKS)


def test_an_entity_of_nan_is_no_entity_that_many_rows_share() -> None:
    labels = np.array([0.0, np.nan, 1.0, np.nan])
    with pytest.raises(ArgumentError, match="entities_a holds NaN"):
        retrieval_report(Z, Z, entities_a=labels)
    with pytest.raises(ArgumentError, match="entities holds NaN"):
        paired_difference(VALUES, VALUES, entities=labels)
    with pytest.raises(ArgumentError, match="entities_b holds"):
        retrieval_report(Z, Z, entities_b=np.array([0.0, np.nan, 1.0, np.nan], dtype=object))


@pytest.mark.parametrize("asked", [fold_spread, lambda values: corrected_difference(values, 0.25)])
def test_one_number_that_is_not_finite_is_no_set_of_folds(asked: Any) -> None:
    with pytest.raises((NonFiniteRowsError, ShapeError)):
        asked(float("nan"))


def test_unit_rows_of_whole_number_tensors_are_not_cut_to_whole_numbers() -> None:
    torch = pytest.importorskip("torch")
    found = AlignmentMetrics(torch.tensor([[3, 4], [4, 3]]), torch.tensor([[3, 4], [4, 3]]))
    for unit in (found.z_a, found.z_b):
        assert np.allclose(unit.numpy(), [[0.6, 0.8], [0.8, 0.6]])
    assert np.allclose(found.sim_matrix.numpy(), [[1, 0.96], [0.96, 1]])


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble, np.int8, np.uint64, int, float])
def test_numbers_of_every_kind_are_taken_without_a_warning(kind: Any) -> None:
    assert power_of(kind(1), kind(2), 10) == power_of(1.0, 2.0, 10)
    assert uniformity(Z, t=kind(2)) == uniformity(Z, t=2.0)
    assert corrected_difference([0.1, 0.2], kind(1)) == corrected_difference([0.1, 0.2], 1.0)
