"""`classify_rows` and `zero_shot_report`: against scikit-learn and loops, ties, chance, abstention, hostile input."""

import json

import numpy as np
import pytest
import torch
from sklearn.metrics import balanced_accuracy_score, confusion_matrix, precision_recall_fscore_support, roc_auc_score

from bridgehead.errors import ArgumentError, NonFiniteRowsError, ShapeError
from bridgehead.evaluate.zero_shot import NONE_OF_THESE, classify_rows, zero_shot_report
from reference import cosine_loop


def problem(n=120, c=7, d=5, noise=1.0, seed=0):
    draw = np.random.default_rng(seed)
    classes = draw.standard_normal((c, d))
    truth = draw.integers(0, c, n)
    return classes[truth] + noise * draw.standard_normal((n, d)), classes, truth


def test_scores_are_cosines_and_shares_their_softmax_over_all_candidates():
    items, classes, _ = problem(n=9)
    found = classify_rows(items, classes, k=3, logit_scale=5.0)
    cosines = np.array(cosine_loop(items, classes))
    powers = np.exp(5 * cosines)
    shares = powers / powers.sum(axis=1, keepdims=True)
    order = np.argsort(-cosines, axis=1)[:, :3]
    assert found.classes.tolist() == order.tolist() and found.answer.tolist() == order[:, 0].tolist()
    assert found.scores == pytest.approx(np.take_along_axis(cosines, order, 1), abs=1e-12)
    assert found.share_among_candidates == pytest.approx(np.take_along_axis(shares, order, 1), abs=1e-12)
    assert found.n_tied.tolist() == [1] * 9 and not found.abstained.any()
    assert classify_rows(items, classes, k=99).share_among_candidates.sum(axis=1) == pytest.approx(np.ones(9))


def test_results_depend_neither_on_blocks_nor_on_the_order_or_kind_of_rows():
    items, classes, truth = problem(n=50)
    classes[3] = classes[1] * 2
    items[7] = 0
    whole = classify_rows(items, classes)
    for block in (1, 7, 50):
        part = classify_rows(items, classes, block=block)
        assert part.classes.tolist() == whole.classes.tolist() and part.scores == pytest.approx(whole.scores, abs=1e-12)
        reports = [zero_shot_report(items, classes, truth, n_resamples=20, block=b).to_dict() for b in (block, None)]
        assert reports[0]["accuracy@1"] == reports[1]["accuracy@1"] and reports[0]["n_ties"] == reports[1]["n_ties"]
    order = np.random.default_rng(0).permutation(50)
    assert classify_rows(items[order] * 3, classes).answer.tolist() == whole.answer[order].tolist()
    tensors = classify_rows(torch.from_numpy(items), torch.from_numpy(classes))
    assert tensors.classes.tolist() == whole.classes.tolist()


def test_equal_prototypes_tie_and_the_first_of_them_is_answered_by_rule():
    found = classify_rows(np.array([[1.0, 0.1], [0.1, 1.0]]), np.array([[0.0, 1], [1, 0], [3, 0]]), k=3)
    assert found.classes.tolist() == [[1, 2, 0], [0, 1, 2]]
    assert found.n_tied.tolist() == [2, 1]
    assert found.share_among_candidates[0, 0] == found.share_among_candidates[0, 1]
    zero = classify_rows(np.zeros((1, 2)), np.eye(2))
    assert zero.n_tied.tolist() == [2] and zero.share_among_candidates.tolist() == [[0.5, 0.5]]


def test_none_of_these_is_answered_under_the_threshold_only():
    found = classify_rows(np.array([[1.0, 0], [1, 1], [-1, -1]]), np.eye(2), abstain_below=np.sqrt(0.5) - 1e-9)
    assert found.answer.tolist() == [0, 0, NONE_OF_THESE] and found.abstained.tolist() == [False, False, True]
    assert found.classes[2].tolist() == [0, 1]
    assert classify_rows(np.eye(2), np.eye(2), abstain_below=1.0).answer.tolist() == [0, 1]


def test_no_items_have_no_answers():
    found = classify_rows(np.zeros((0, 3)), np.eye(3), k=2)
    assert len(found) == 0 and found.classes.shape == (0, 2)


def test_figures_are_those_of_scikit_learn():
    items, classes, truth = problem(n=400)
    report = zero_shot_report(items, classes, truth, ks=(1, 2, 5), n_resamples=0)
    cosines = np.array(cosine_loop(items, classes))
    guessed = cosines.argmax(axis=1)
    precision, recall, _, support = precision_recall_fscore_support(truth, guessed, labels=range(7), zero_division=0)
    for one, p, r, n in zip(report.per_class, precision, recall, support, strict=True):
        assert ((one.precision or 0), one.recall, one.n_true) == pytest.approx((p, r, n))
    assert report.confusion.toarray()[:7, :7] == pytest.approx(confusion_matrix(truth, guessed, labels=range(7)))
    assert report.balanced_accuracy == pytest.approx(balanced_accuracy_score(truth, guessed))
    place = (cosines > cosines[np.arange(400), truth][:, None]).sum(axis=1)
    assert report.accuracy == pytest.approx({k: (place < k).mean() for k in (1, 2, 5)})
    assert report.chance == {1: 1 / 7, 2: 2 / 7, 5: 5 / 7} and report.majority == support.max() / 400
    assert report.n_ties == 0 and report.none_auroc is None and report.abstention is None


def test_a_scorer_that_knows_nothing_is_at_chance_for_every_k():
    _, _, truth = problem(n=60)
    report = zero_shot_report(np.ones((60, 5)), np.ones((7, 5)), truth, ks=(1, 3, 99), n_resamples=0)
    assert report.chance == pytest.approx({1: 1 / 7, 3: 3 / 7, 99: 1.0})
    assert report.accuracy == pytest.approx(report.chance)
    assert report.n_ties == 60 and report.confusion.toarray()[:7, :7] == pytest.approx(
        np.repeat(np.bincount(truth, minlength=7)[:, None] / 7, 7, axis=1)
    )
    assert report.calibration.error == pytest.approx(0, abs=1e-12)


def test_shuffled_truth_is_at_chance_and_the_interval_holds_it():
    items, classes, truth = problem(n=3000, noise=0.3)
    assert zero_shot_report(items, classes, truth, n_resamples=0).accuracy[1] > 0.9
    shuffled = np.random.default_rng(1).permutation(truth)
    report = zero_shot_report(items, classes, shuffled, n_resamples=300)
    low, high = report.interval[1]
    assert low < 1 / 7 + 0.02 and high > 1 / 7 - 0.02 and report.accuracy[1] == pytest.approx(1 / 7, abs=0.03)


def test_the_interval_is_wider_by_entity_than_by_item():
    items, classes, truth = problem(n=200)
    thrice = [np.repeat(array, 3, axis=0) for array in (items, truth)]
    entities = np.repeat(np.arange(200), 3)
    own, grouped = (
        zero_shot_report(thrice[0], classes, thrice[1], entities=labels, n_resamples=400).interval[1]
        for labels in (None, entities)
    )
    assert grouped[1] - grouped[0] > 1.4 * (own[1] - own[0])


def test_items_of_no_class_count_where_they_should():
    items, classes, truth = problem(n=200, noise=0.4)
    strange = np.random.default_rng(3).standard_normal((80, 5))
    everything, mixed = np.concatenate([items, strange]), np.concatenate([truth, np.full(80, -1)])
    report = zero_shot_report(everything, classes, mixed, abstain_below=0.8, n_resamples=0)
    alone = zero_shot_report(items, classes, truth, n_resamples=0)
    assert report.accuracy == alone.accuracy and report.calibration.error == alone.calibration.error
    assert (report.n_items, report.n_with_class) == (280, 200)
    top = np.array(cosine_loop(everything, classes)).max(axis=1)
    assert report.none_auroc == pytest.approx(roc_auc_score(mixed >= 0, top))
    kept = report.abstention
    assert kept.coverage == pytest.approx((top >= 0.8).mean()) and kept.n_none == 80
    assert kept.none_refused == pytest.approx((top[200:] < 0.8).mean())
    assert kept.none_refused > kept.known_refused == pytest.approx((top[:200] < 0.8).mean())
    right = np.array(cosine_loop(items, classes)).argmax(axis=1) == truth
    assert kept.accuracy == pytest.approx(right[top[:200] >= 0.8].sum() / (top >= 0.8).sum())
    confusion = report.confusion.toarray()
    assert confusion.sum() == pytest.approx(280) and confusion[7].sum() == pytest.approx(80)
    assert confusion[:, 7].sum() == pytest.approx((top < 0.8).sum())
    assert report.coverage["score"][-1].coverage == 1.0 and report.coverage["score"][-1].n_answered == 280


def test_the_record_is_json_and_its_lines_say_what_shares_are():
    items, classes, truth = problem()
    labels = [f"class {number}" for number in range(7)]
    report = zero_shot_report(items, classes, truth, labels, abstain_below=0.2, n_resamples=50)
    stored = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert stored["accuracy@1.low"] <= stored["accuracy@1"] <= stored["accuracy@1.high"]
    assert len(stored["confusion"]) == 8 and stored["per_class"][2]["label"] == "class 2"
    text = "\n".join(report.lines())
    assert "conditional on this candidate set" in text and "chance 0.143" in text and "class 6" in text
    worst = report.most_confused(2)
    off = report.confusion.toarray()[:7, :7] * (1 - np.eye(7))
    assert worst[0][2] == off.max() and len(worst) == 2


def test_many_classes_keep_the_confusion_sparse():
    draw = np.random.default_rng(0)
    classes = draw.standard_normal((3000, 8))
    report = zero_shot_report(classes, classes[::-1], np.arange(3000), n_resamples=0)
    assert report.confusion.nnz == 3000 and report.to_dict()["confusion"] is None
    assert len(report.lines()) < 40 and report.accuracy[1] == 0


@pytest.mark.parametrize("k", [0, True, 1.5, "2"])
def test_a_k_that_is_none_is_refused(k):
    with pytest.raises(ArgumentError, match="k = "):
        classify_rows(np.eye(2), np.eye(2), k=k)
    with pytest.raises(ArgumentError, match="ks = "):
        zero_shot_report(np.eye(2), np.eye(2), [0, 1], ks=(k,))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"logit_scale": 0}, ArgumentError, "logit_scale = 0"),
        ({"logit_scale": np.inf}, ArgumentError, "logit_scale = inf"),
        ({"logit_scale": None}, ArgumentError, "logit_scale = None"),
        ({"abstain_below": 1.5}, ArgumentError, "abstain_below = 1.5; expected a cosine"),
        ({"abstain_below": "0.5"}, ArgumentError, "abstain_below = '0.5'"),
        ({"abstain_below": np.nan}, ArgumentError, "abstain_below = nan"),
        ({"block": 0}, ArgumentError, "block = 0"),
        ({"z_items": np.eye(2)}, ShapeError, "z_items has 2 columns and the classes 3"),
        ({"z_items": np.full((2, 3), np.nan)}, NonFiniteRowsError, "rows 0, 1"),
        ({"z_classes": np.zeros((0, 3))}, ShapeError, "z_classes has no rows"),
    ],
)
def test_rows_and_options_that_do_not_fit_are_refused(change, error, message):
    arguments = {"z_items": np.eye(3)[:2], "z_classes": np.eye(3)} | change
    with pytest.raises(error, match=message):
        classify_rows(**arguments)
    with pytest.raises(error, match=message):
        zero_shot_report(**arguments, truth=[0, 1])


@pytest.mark.parametrize(
    ("truth", "change", "message"),
    [
        ([0, 3], {}, r"truth\[1\] = 3; expected numbers from -1 to 2"),
        ([-1, -1], {}, "none of the 2 items has a class"),
        ([0, -2], {}, r"truth\[1\] = -2"),
        (["a", "b"], {}, "truth has dtype"),
        ([0, 1], {"labels": ["x"]}, "labels are 1 labels for 3 classes"),
        ([0, 1], {"labels": "xyz"}, "labels are one text"),
        ([0, 1], {"n_bins": 0}, "n_bins = 0"),
    ],
)
def test_truth_and_labels_that_do_not_fit_are_refused(truth, change, message):
    with pytest.raises(ArgumentError, match=message):
        zero_shot_report(np.eye(3)[:2], np.eye(3), truth, n_resamples=0, **change)
