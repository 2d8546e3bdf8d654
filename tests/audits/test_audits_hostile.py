"""What audits are given that is not what they take: refused by name, and never an error of Python's own."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from bridgehead.audits import (
    EvaluatedPart,
    Finding,
    KnownPairs,
    PairedRows,
    TagScale,
    baseline_findings,
    broad_findings,
    ceiling_findings,
    change_columns,
    collapse_findings,
    column_shortcut,
    drop_findings,
    false_negative_findings,
    frequency_report,
    gap_findings,
    generic_findings,
    geometry_findings,
    guided_negative_findings,
    items_of_several_entities,
    key_leakage,
    length_shortcut,
    linear_folds,
    loss_findings,
    mask_names,
    mispair_findings,
    name_shortcut,
    near_duplicate_texts,
    near_rows,
    nearest_neighbour_report,
    one_modality_findings,
    one_sided_findings,
    order_stretches,
    overlap_shortcut,
    plant_tag,
    random_rows,
    recall_ceiling,
    scale_findings,
    shortcut_findings,
    shuffle_links,
    shuffle_within,
    shuffled_control,
    source_tag_findings,
    surviving_links,
    within_groups_findings,
)
from bridgehead.errors import ArgumentError, BridgeheadError
from bridgehead.evaluate import retrieval_report
from bridgehead.links import Links

Z = np.random.default_rng(0).normal(size=(6, 3))
LINKS = Links.identity(6)
REPORT = retrieval_report(Z, Z, ks=(1, 10), n_resamples=0)
TEXTS = ["the cat", "a dog", "blue water", "red wine", "green tea", "is it"]
LABELS = list("aabbcc")
MANY = np.random.default_rng(1).normal(size=(80, 3))
PART = PairedRows(Z, Z, LINKS)
KNOWN = KnownPairs(Z, LINKS, TEXTS)
HISTORY = [{"loss": 1.0, "logit_scale": 10.0}]


def fit(*given: Any) -> Any:
    return REPORT


def zeros(rows: Any) -> Any:
    return np.zeros((len(rows), 6))


@pytest.mark.parametrize("links", [None, [[0, 0], [1, 1]], np.zeros((2, 2), dtype=int), 3])
@pytest.mark.parametrize(
    "asked",
    [
        lambda links: broad_findings(links),
        lambda links: generic_findings(np.zeros(6, dtype=bool), links),
        lambda links: ceiling_findings(links, None, None),
        lambda links: recall_ceiling(links),
        lambda links: column_shortcut(LABELS, LABELS, links, column="x"),
        lambda links: length_shortcut(np.arange(6), np.arange(6), links),
        lambda links: overlap_shortcut(TEXTS, TEXTS, links),
        lambda links: name_shortcut(LABELS, TEXTS, links),
        lambda links: shortcut_findings("x", zeros, zeros, links),
        lambda links: false_negative_findings(links, 2),
        lambda links: guided_negative_findings(links, 2, guide_a=Z),
        lambda links: frequency_report(links),
        lambda links: linear_folds(Z, Z, links),
        lambda links: PairedRows(Z, Z, links),
        lambda links: nearest_neighbour_report(KnownPairs(Z, links, TEXTS), KNOWN),
        lambda links: shuffle_links(links, 0),
        lambda links: shuffle_within(links, LABELS, 0),
        lambda links: shuffled_control(fit, links),
        lambda links: surviving_links(LINKS, links),
    ],
)
def test_audits_say_that_they_take_links(asked: Any, links: Any) -> None:
    with pytest.raises(ArgumentError, match="expected Links"):
        asked(links)


@pytest.mark.parametrize("seed", [None, True, -1, 1.5, "0"])
@pytest.mark.parametrize(
    "asked",
    [
        lambda seed: change_columns(Z, [0], "shuffle", seed),
        lambda seed: shuffle_links(LINKS, seed),
        lambda seed: shuffle_within(LINKS, LABELS, seed),
        lambda seed: shuffled_control(fit, LINKS, (0, seed)),
        lambda seed: shortcut_findings("x", zeros, zeros, LINKS, seed=seed),
        lambda seed: guided_negative_findings(LINKS, 2, guide_a=Z, seed=seed),
        lambda seed: random_rows(Z, Z, seed=seed),
        lambda seed: plant_tag(PART, TagScale(2, 1.0, 1.0), seed),
        lambda seed: near_duplicate_texts(TEXTS, [0, 1], [2, 3], seed=seed),
        lambda seed: baseline_findings(REPORT, REPORT, seed=seed),
        lambda seed: near_rows(Z, Z, seed=seed),
        lambda seed: order_stretches(MANY, MANY, Links.identity(80).pairs, seed=seed),
        lambda seed: linear_folds(MANY, MANY, Links.identity(80), seed=seed),
    ],
)
def test_audits_refuse_a_seed_that_would_fix_nothing(asked: Any, seed: Any) -> None:
    with pytest.raises(ArgumentError, match="seed = "):
        asked(seed)


@pytest.mark.parametrize(
    ("asked", "match"),
    [
        (lambda: baseline_findings(REPORT, None), "untrained is a NoneType"),
        (lambda: baseline_findings(REPORT, REPORT, metrics="mrr"), "metrics = "),
        (lambda: baseline_findings(REPORT, REPORT, metrics=[3]), "metrics hold 3"),
        (lambda: drop_findings("x", REPORT, 3), "after is a int"),
        (lambda: ceiling_findings(LINKS, None, None, report="x"), "report is a str"),
        (lambda: ceiling_findings(LINKS, None, None, names=None), "names = None"),
        (lambda: ceiling_findings(LINKS, None, None, ids_a=3), "ids_a is a int"),
        (lambda: broad_findings(LINKS, entities=3), "labels is a int"),
        (lambda: broad_findings(LINKS, entities=[[1]] * 6), "labels hold"),
        (lambda: broad_findings(LINKS, side=np.zeros(2)), "side = "),
        (lambda: broad_findings(LINKS, texts=3), "texts is a int"),
        (lambda: change_columns(Z, [None]), "columns = "),
        (lambda: change_columns(Z, [[1], [1, 2]]), "columns"),
        (lambda: change_columns(Z, [0], how=Z), "how = "),
        (lambda: column_shortcut(None, LABELS, LINKS, column="x"), "values_a is a NoneType"),
        (lambda: shortcut_findings("x", None, zeros, LINKS), "forth is a NoneType"),
        (lambda: shortcut_findings("x", zeros, zeros, LINKS, model=3), "model is a int"),
        (lambda: shortcut_findings("x", zeros, zeros, LINKS, max_queries=None), "max_queries = None"),
        (lambda: shortcut_findings("x", zeros, zeros, LINKS, max_queries=2.5), "max_queries = 2.5"),
        (lambda: false_negative_findings(LINKS, 2, names=("a",)), "names = "),
        (lambda: guided_negative_findings(LINKS, 2, guide_a="abc"), "guide_a"),
        (lambda: guided_negative_findings(LINKS, 2, guide_a=Z, margin="0"), "margin = "),
        (lambda: guided_negative_findings(LINKS, 2, guide_a=Z, max_anchors=True), "max_anchors = True"),
        (lambda: guided_negative_findings(LINKS, 2, guide_a=Z, space=Z), "space = "),
        (lambda: items_of_several_entities(None, LABELS), "items is a NoneType"),
        (lambda: items_of_several_entities(LABELS, LABELS, names=("item",)), "names = "),
        (lambda: key_leakage(None, [0], [1]), "levels is a NoneType"),
        (lambda: key_leakage({"x": None}, [0], [1]), "level 'x' is a NoneType"),
        (lambda: key_leakage({"x": LABELS}, [0], [1], held_apart=3), "held_apart = 3"),
        (lambda: key_leakage({"x": LABELS}, [0], [1], held_apart=[3]), "held_apart names 3"),
        (lambda: loss_findings(HISTORY, warm=None), "warm = None"),
        (lambda: scale_findings(HISTORY, bounds=("a", "b")), "bounds = "),
        (lambda: mask_names([1, 2], ["x", "y"]), r"texts_b\[0\] is a int"),
        (lambda: mask_names(["the cat"], ["cat"], mask=None), "mask = None"),
        (lambda: mispair_findings(None), "folds is a NoneType"),
        (lambda: mispair_findings([3]), r"folds\[0\] is a int"),
        (lambda: near_duplicate_texts(None, [0], [1]), "texts is a NoneType"),
        (lambda: near_duplicate_texts(TEXTS, [0], [1], threshold="x"), "threshold = "),
        (lambda: near_rows(Z, Z, thresholds=0.9), "thresholds = "),
        (lambda: near_rows(Z, Z, thresholds=["x"]), "thresholds = "),
        (lambda: near_rows(Z, Z, thresholds=[2]), "thresholds = "),
        (lambda: nearest_neighbour_report(None, KNOWN), "train is a NoneType"),
        (lambda: nearest_neighbour_report(KnownPairs(None, LINKS, TEXTS), KNOWN), "train.rows_a"),
        (lambda: nearest_neighbour_report(KnownPairs(Z, LINKS, [[1]] * 6), KNOWN), "keys_b"),
        (lambda: nearest_neighbour_report(KNOWN, KNOWN, n_neighbours=2.5), "n_neighbours = "),
        (lambda: one_modality_findings(None), "fit is a NoneType"),
        (lambda: one_modality_findings(lambda side, seed: None), "what fit returned is a NoneType"),
        (lambda: one_modality_findings(fit, sides=3), "sides = 3"),
        (lambda: one_modality_findings(fit, seeds=3), "seeds is a int"),
        (lambda: one_modality_findings(fit, names=None), "names = None"),
        (lambda: one_modality_findings(fit, frequency=3), "frequency is a int"),
        (lambda: one_sided_findings(fit, None), "both is a NoneType"),
        (lambda: one_sided_findings(fit, REPORT, directions=3), "directions = 3"),
        (lambda: shuffle_within(LINKS, None, 0), "labels is a NoneType"),
        (lambda: shuffled_control(None, LINKS), "fit is a NoneType"),
        (lambda: within_groups_findings(fit, LINKS, LABELS, None, "x"), "real is a NoneType"),
        (lambda: TagScale.of(None), "part is a NoneType"),
        (lambda: TagScale.of(PART, strength="1"), "strength = "),
        (lambda: plant_tag(PART, None), "scale is a NoneType"),
        (lambda: source_tag_findings(None, PART, PART), "fit is a NoneType"),
        (lambda: geometry_findings(None), "geometry is a NoneType"),
        (lambda: gap_findings(None, EvaluatedPart(Z, Z)), "train is a NoneType"),
        (lambda: collapse_findings(Z, Z, names=None), "names = None"),
        (lambda: collapse_findings(Z, Z, before=3), "before is a int"),
        (lambda: Finding("x", None, "", "pass", ""), "has the value None"),
        (lambda: Finding("x", "1", "", "pass", ""), "has the value 1"),
    ],
)
def test_what_an_audit_cannot_take_is_refused_by_name(asked: Any, match: str) -> None:
    with pytest.raises(BridgeheadError, match=match):
        asked()


@pytest.mark.parametrize("none", [None, "", float("nan"), np.float64("nan")])
def test_an_item_of_b_without_a_key_is_no_item_that_training_knows(none: Any) -> None:
    far = np.eye(6)
    train = KnownPairs(far, LINKS, [none, *TEXTS[1:]])
    test = KnownPairs(far, LINKS, [none, *TEXTS[1:]])
    ranks = nearest_neighbour_report(train, test, ks=(1,), n_resamples=0).b_to_a.ranks
    assert ranks.tolist() == [3.5, 1, 1, 1, 1, 1]  # the first one is unknown: all its scores are 0


def test_seeds_of_many_bits_are_taken() -> None:
    pairs = Links.identity(80)
    assert len(linear_folds(sparse.csr_array(MANY), MANY, pairs, rank=2, seed=2**40)) == 5
    assert near_duplicate_texts(TEXTS, [0, 1, 2], [3, 4, 5], seed=2**40)[0].value == 0


def test_near_rows_are_the_same_whichever_side_is_sparse() -> None:
    train = np.random.default_rng(2).random((40, 30)) * (np.random.default_rng(3).random((40, 30)) < 0.2)
    test = np.concatenate([train[:3], np.random.default_rng(4).random((5, 30))])
    found = [
        [finding.value for finding in near_rows(a, b)]
        for a in (train, sparse.csr_array(train))
        for b in (test, sparse.csr_array(test))
    ]
    assert found[0] and all(one == pytest.approx(found[0]) for one in found)
