"""How answers move with the candidates: worked by hand, and the sets that prompts suggest."""

import json
import tracemalloc

import numpy as np
import pytest

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.evaluate.zero_shot import (
    CandidateSet,
    candidate_set_sensitivity,
    class_prototypes,
    classify_rows,
    prompt_sets,
    prompts_of,
)

ITEMS = np.array([[1.0, 0.1, 0], [0.1, 1, 0], [0, 0.2, 1], [0.6, 0.5, 0]])


def softmax_top(cosines, scale):
    powers = np.exp(scale * cosines)
    return powers.max(axis=1) / powers.sum(axis=1)


def units(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_a_class_removed_changes_its_own_answers_and_every_share():
    kept = [0, 2]
    found = candidate_set_sensitivity(ITEMS, np.eye(3), [CandidateSet("x", np.eye(3)[kept], kept)], 4.0)[0]
    assert (found.changed, found.changed_of_kept, found.n_candidates, found.n_items) == (0.25, 0.0, 2, 4)
    cosines = units(ITEMS)
    assert found.mean_top_share_before == pytest.approx(softmax_top(cosines, 4.0).mean())
    assert found.mean_top_share_after == pytest.approx(softmax_top(cosines[:, kept], 4.0).mean())
    assert found.change_of_top_share == found.mean_top_share_after - found.mean_top_share_before > 0


def test_a_synonym_splits_the_share_and_changes_no_answer():
    again = CandidateSet("twice", np.eye(3)[[0, 1, 2, 0]], [0, 1, 2, 0])
    found = candidate_set_sensitivity(ITEMS[:1], np.eye(3), [again], logit_scale=50.0)[0]
    assert (found.changed, found.changed_of_kept) == (0, 0)
    assert (found.mean_top_share_before, found.mean_top_share_after) == pytest.approx((1.0, 0.5), abs=1e-9)


def test_another_candidate_and_another_template_take_answers_away():
    other = CandidateSet("new", np.concatenate([np.eye(3), [[0.6, 0.5, 0]]]), [0, 1, 2, -1])
    moved = CandidateSet("another template", np.eye(3)[[1, 0, 2]], [0, 1, 2])
    found = candidate_set_sensitivity(ITEMS, np.eye(3), [other, moved])
    assert [one.changed for one in found] == [0.25, 0.75]
    assert found[0].line().startswith("new: 25.0% of answers change, mean top share")


def test_the_same_set_changes_nothing_in_whatever_order_its_candidates_come():
    draw = np.random.default_rng(0)
    items, classes = draw.standard_normal((80, 4)), draw.standard_normal((6, 4))
    classes[4] = classes[2]
    order = draw.permutation(6)
    for block in (1, 7, None):
        found = candidate_set_sensitivity(items, classes, [CandidateSet("same", classes[order], order)], block=block)[0]
        assert (found.changed, found.changed_of_kept) == (0, 0)
        assert found.mean_top_share_after == pytest.approx(found.mean_top_share_before, abs=1e-12)


def test_a_set_without_any_class_that_was_answered_keeps_none():
    found = candidate_set_sensitivity(ITEMS[:1], np.eye(3), [CandidateSet("x", np.eye(3)[1:], [1, 2])])[0]
    assert found.changed == 1 and found.changed_of_kept is None
    json.dumps(found.to_dict(), allow_nan=False)


def test_prompts_suggest_a_set_for_each_class_template_and_synonym():
    prompts = prompts_of(["opioid", "statin"], ["{}", "a {}"], {"statin": ["vastatin"]})
    rows = np.random.default_rng(0).standard_normal((6, 4))
    sets = {one.name: one for one in prompt_sets(prompts, rows)}
    assert list(sets) == [
        "without the class 'opioid'", "without the class 'statin'", "the template '{}' alone",
        "the template 'a {}' alone", "without synonyms", "the synonym 'vastatin' as a candidate of its own",
    ]  # fmt: skip
    prototypes = class_prototypes(rows, prompts.class_of)
    assert sets["without the class 'opioid'"].rows == pytest.approx(prototypes[1:])
    assert sets["the template '{}' alone"].rows == pytest.approx(class_prototypes(rows[[0, 2, 4]], [0, 1, 1]))
    assert sets["without synonyms"].rows == pytest.approx(class_prototypes(rows[:4], [0, 0, 1, 1]))
    own = sets["the synonym 'vastatin' as a candidate of its own"]
    assert own.class_of.tolist() == [0, 1, 1] and own.rows[2] == pytest.approx(class_prototypes(rows[4:], [0, 0])[0])
    found = candidate_set_sensitivity(rows, prototypes, list(sets.values()))
    assert found[0].changed == (classify_rows(rows, prototypes).answer == 0).mean() and found[0].changed_of_kept == 0


def test_sets_in_which_a_class_would_say_nothing_are_left_out_and_classes_are_chosen():
    prompts = prompts_of(["opioid", "statin", "x"], ["{}", "a {}"])
    rows = np.ones((6, 2))
    rows[2] = 0
    names = [one.name for one in prompt_sets(prompts, rows, first=[2, 0], most=1)]
    assert names == ["without the class 'x'", "the template 'a {}' alone"]
    assert prompt_sets(prompts_of(["one"]), np.ones((1, 2))) == []


@pytest.mark.parametrize(
    ("items", "sets", "error", "message"),
    [
        (np.zeros((0, 3)), [], ArgumentError, "there are no items"),
        (ITEMS, [CandidateSet("empty", np.zeros((0, 3)), [])], ShapeError, "'empty' has no rows"),
        (ITEMS, [CandidateSet("x", np.eye(3), [0, 1, 3])], ArgumentError, r"class_of of 'x'\[2\] = 3"),
        (ITEMS, [CandidateSet("x", np.eye(3), [0, 1])], ShapeError, "class_of of 'x' has shape"),
        (ITEMS, [CandidateSet("x", np.eye(2), [0, 1])], ShapeError, "3 columns and the classes 2"),
    ],
)
def test_sets_that_do_not_fit_are_refused(items, sets, error, message):
    with pytest.raises(error, match=message):
        candidate_set_sensitivity(items, np.eye(3), sets)


def test_scores_of_all_items_are_never_held_at_once():
    items, classes = np.random.default_rng(0).standard_normal((40_000, 4)), np.random.default_rng(1).random((300, 4))
    tracemalloc.start()
    candidate_set_sensitivity(items, classes, [CandidateSet("same", classes, np.arange(300))], block=500)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # All cosines in float64 would be 96 MB.
    assert peak < 30e6
