"""Controls that train again: each on a planted shortcut or leak, and on a clean case, with a linear trainer."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from bridgehead.audits import ShuffledControl, shuffle_within, shuffled_control, surviving_links
from bridgehead.audits.baseline import baseline_findings
from bridgehead.audits.controls.levels import levels_of, lowest_mean, mean_and_sd
from bridgehead.audits.controls.one_modality import constant_rows, frequency_report, one_modality_findings, random_rows
from bridgehead.audits.controls.one_sided import one_sided_findings
from bridgehead.audits.controls.within_groups import within_groups_findings
from bridgehead.errors import ArgumentError, LinksError, NonFiniteRowsError, ShapeError
from bridgehead.evaluate import RetrievalReport, retrieval_report
from bridgehead.links import Links

N, TEST = 240, 200
KEYS = ["a_to_b.recall@10", "b_to_a.recall@10"]


class World:
    """Items of 12 classes; what joins the two sides is the class by `of_class` and the item itself by `of_item`."""

    def __init__(self, of_class: float, of_item: float) -> None:
        rng = np.random.default_rng(0)
        self.classes = rng.integers(0, 12, size=N + TEST)
        latent = of_class * rng.normal(size=(12, 6))[self.classes] + of_item * rng.normal(size=(N + TEST, 6))
        self.a = latent @ rng.normal(size=(6, 10)) + 0.05 * rng.normal(size=(N + TEST, 10))
        self.b = latent @ rng.normal(size=(6, 10)) + 0.05 * rng.normal(size=(N + TEST, 10))

    def fit(self, links: Links, _seed: int, blank: str = "", replaced: Any = constant_rows) -> RetrievalReport:
        a, b = self.a.copy(), self.b.copy()
        if blank:
            rows = a if blank == "a" else b
            rows[:] = np.concatenate(replaced(rows[:N], rows[N:]))
        design = np.concatenate([a, np.ones((len(a), 1))], axis=1)
        weights, *_ = np.linalg.lstsq(design[:N][links.pairs[:, 0]], b[:N][links.pairs[:, 1]], rcond=None)
        mean = b[:N].mean(axis=0)
        return retrieval_report((design @ weights - mean)[N:], (b - mean)[N:], n_resamples=0, ks=(1, 10))


def verdicts(findings: list[Any], group: str = "controls") -> list[str]:
    assert {finding.group for finding in findings} == {group}
    return [finding.verdict for finding in findings]


# Shuffled within groups.


def test_partners_are_exchanged_within_a_group_only_and_nobody_keeps_his_own():
    labels = np.repeat(["x", "y", "z"], 20)
    shuffled, alone = shuffle_within(Links.identity(60), labels, 3)
    assert alone == 0
    assert (shuffled.pairs[:, 0] != shuffled.pairs[:, 1]).all()
    assert (labels[shuffled.pairs[:, 0]] == labels[shuffled.pairs[:, 1]]).all()
    assert shuffle_within(Links.identity(60), labels, 3)[0] == shuffled


def test_items_without_a_peer_or_a_label_are_exchanged_among_each_other():
    labels = ["x", "x", "only", None, "", -1, float("nan"), "y", "y"]
    shuffled, alone = shuffle_within(Links.identity(9), labels, 0)
    given = dict(shuffled.pairs.tolist())
    assert alone == 5
    assert (given[0], given[1], given[7], given[8]) == (1, 0, 8, 7)
    assert {given[i] for i in range(2, 7)} == set(range(2, 7))
    assert all(given[i] != i for i in range(9))
    assert surviving_links(Links.identity(9), shuffled) == 0


def test_groups_that_share_one_text_give_up_at_once():
    links = Links([[i, i // 500] for i in range(1000)], 1000, 2)
    shuffled, _ = shuffle_within(links, np.arange(1000) // 500, 0)
    assert surviving_links(links, shuffled) == 1000


def test_labels_and_links_that_do_not_fit_are_refused():
    with pytest.raises(ShapeError, match="there are 3 labels; expected 4"):
        shuffle_within(Links.identity(4), [1, 2, 3], 0)
    with pytest.raises(LinksError, match="1 rows of a have links"):
        shuffle_within(Links([[0, 0]], 3, 3), [0, 0, 0], 0)


def within(world: World, labels: Any, **options: Any) -> list[Any]:
    links = Links.identity(N)
    return within_groups_findings(world.fit, links, labels, world.fit(links, 0), "class", metrics=KEYS, **options)


def test_a_result_that_is_the_class_alone_fails():
    world = World(of_class=1.0, of_item=0.0)
    found = within(world, world.classes[:N], seeds=(0, 1))
    assert verdicts(found) == ["fail", "fail"]
    assert all(finding.value > 0.9 for finding in found)
    assert "needs no more than to know the class" in found[0].why


def test_a_result_that_is_of_the_item_passes():
    world = World(of_class=0.3, of_item=1.0)
    assert verdicts(within(world, world.classes[:N])) == ["pass", "pass"]
    # And a grouping that has nothing to do with it explains nothing.
    assert verdicts(within(World(1.0, 0.0), np.arange(N) % 2)) == ["pass", "pass"]


def test_groups_too_small_to_explain_anything_and_models_without_a_result_warn():
    world = World(of_class=0.3, of_item=1.0)
    found = within(world, np.arange(N))
    assert verdicts(found) == ["warn", "warn"]
    assert "only ones of their group" in found[0].why
    nothing = World(0.0, 0.0)
    found = within(nothing, np.arange(N) % 2)
    assert [(finding.verdict, finding.value) for finding in found] == [("warn", 0.0)] * 2


def test_a_real_report_of_another_test_set_is_refused():
    world = World(1.0, 0.0)
    other = retrieval_report(np.eye(30), np.eye(30), ks=(1, 10), n_resamples=0)
    with pytest.raises(ArgumentError, match="another test set"):
        within_groups_findings(world.fit, Links.identity(N), np.arange(N) % 2, other, "class", metrics=KEYS)


# One modality removed.


def test_dense_rows_become_the_mean_and_sparse_ones_the_row_most_like_it():
    dense = np.array([[0.0, 2.0], [2.0, 4.0]], dtype=np.float32)
    first, second = constant_rows(dense, np.ones((3, 2), dtype=np.float32))
    np.testing.assert_array_equal(first, [[1, 3]] * 2)
    np.testing.assert_array_equal(second, [[1, 3]] * 3)
    rows = sparse.csr_array(np.array([[1.0, 0, 0], [0, 2.0, 0.5], [0, 2.0, 0]]))
    first, second = constant_rows(rows, sparse.csr_array((2, 3)))
    np.testing.assert_array_equal(first.toarray(), [[0, 2, 0.5]] * 3)
    np.testing.assert_array_equal(second.toarray(), [[0, 2, 0.5]] * 2)


def test_random_rows_are_those_of_training_in_another_place():
    rows = np.arange(40.0).reshape(20, 2)
    first, second = random_rows(rows, np.zeros((50, 2)), seed=3)
    assert sorted(first.tolist()) == rows.tolist()
    assert (first != rows).all()
    assert {tuple(row) for row in second.tolist()} <= {tuple(row) for row in rows.tolist()}
    assert second.shape == (50, 2)
    thin = random_rows(sparse.csr_array(rows), sparse.csr_array((50, 2)), seed=3)
    np.testing.assert_array_equal(thin[0].toarray(), first)
    np.testing.assert_array_equal(thin[1].toarray(), second)
    with pytest.raises(ShapeError, match="no rows"):
        random_rows(np.zeros((0, 3)))


def test_rows_that_cannot_become_one_are_refused():
    with pytest.raises(ShapeError, match="no rows"):
        constant_rows(np.zeros((0, 3)))
    with pytest.raises(ShapeError, match="rows 1 have 2 columns and train 3"):
        constant_rows(np.zeros((1, 3)), np.zeros((1, 2)))
    with pytest.raises(ArgumentError, match="one kind"):
        constant_rows(np.zeros((1, 3)), sparse.csr_array((1, 3)))
    with pytest.raises(NonFiniteRowsError):
        constant_rows(np.full((1, 3), np.nan))


def test_without_one_side_a_clean_model_is_at_chance():
    world = World(1.0, 1.0)
    found = one_modality_findings(
        lambda side, seed: world.fit(Links.identity(N), seed, blank=side), metrics=KEYS, names=("molecule", "text")
    )
    assert verdicts(found) == ["pass"] * 4
    assert [finding.value for finding in found] == pytest.approx([10 / TEST] * 4, abs=1e-12)
    assert found[0].name == "without molecule, a_to_b.recall@10"


def test_with_random_rows_a_clean_model_is_within_chance():
    world = World(1.0, 1.0)

    def fit(side: str, seed: int) -> RetrievalReport:
        return world.fit(Links.identity(N), seed, side, lambda *rows: random_rows(*rows, seed=seed))

    assert verdicts(one_modality_findings(fit, metrics=KEYS, seeds=range(3))) == ["pass"] * 4


def test_what_is_found_without_a_side_fails():
    world = World(1.0, 1.0)
    found = one_modality_findings(lambda side, seed: world.fit(Links.identity(N), seed), ["a"], metrics=KEYS)
    assert verdicts(found) == ["fail", "fail"]


def test_frequent_items_are_known_to_be_found_without_looking():
    # Text 0 is right for half of the molecules: one order for all queries finds it.
    links = Links([[i, 0 if i % 2 else i] for i in range(100)], 100, 100)
    frequency = frequency_report(links, ks=(1, 10), n_resamples=0)
    assert frequency.a_to_b.recall[1] == pytest.approx(0.51)
    rows = np.eye(100)
    popular = retrieval_report(np.tile(rows[:1], (100, 1)), rows, links, ks=(1, 10), n_resamples=0)
    keys = ["a_to_b.recall@1"]
    assert verdicts(one_modality_findings(lambda *_: popular, ["a"], metrics=keys, frequency=frequency)) == ["pass"]
    assert verdicts(one_modality_findings(lambda *_: popular, ["a"], metrics=keys)) == ["fail"]
    one_to_one = frequency_report(Links.identity(50), ks=(1, 10), n_resamples=0).a_to_b
    assert one_to_one.values == pytest.approx(one_to_one.chance)


def test_sides_and_seeds_that_are_none_are_refused():
    with pytest.raises(ArgumentError, match="sides ="):
        one_modality_findings(lambda *_: None, ["c"])  # type: ignore[arg-type,return-value,list-item]
    with pytest.raises(ArgumentError, match="seeds is empty"):
        one_modality_findings(lambda *_: None, seeds=())  # type: ignore[arg-type,return-value]
    with pytest.raises(ArgumentError, match="expected each once"):
        one_modality_findings(lambda *_: None, seeds=(1, 1))  # type: ignore[arg-type,return-value]


# One-sided training and the baseline.


def noisy(noise: float, seed: int = 0) -> RetrievalReport:
    rng = np.random.default_rng(seed)
    rows = np.random.default_rng(9).normal(size=(150, 8))
    return retrieval_report(rows, rows + noise * rng.normal(size=rows.shape), ks=(1, 10), n_resamples=0)


def test_a_direction_that_is_better_by_itself_warns_and_one_that_loses_passes():
    both = noisy(1.0)
    better = one_sided_findings(lambda direction, seed: noisy(0.2, seed), both, ["a_to_b"], (0, 1), KEYS)
    assert verdicts(better) == ["warn", "warn"]
    assert all(finding.value < 0 for finding in better)
    worse = one_sided_findings(lambda direction, seed: noisy(3.0, seed), both, metrics=KEYS)
    assert verdicts(worse) == ["pass"] * 4
    assert worse[0].name == "trained a -> b only, a_to_b.recall@10"
    assert "its own direction loses" in worse[0].why
    assert "the other direction loses" in worse[1].why
    same = one_sided_findings(lambda direction, seed: both, both, metrics=KEYS)
    assert [finding.value for finding in same] == [0.0] * 4


def test_one_sided_runs_of_other_queries_or_directions_are_refused():
    with pytest.raises(ArgumentError, match="expected some of 'a_to_b' and 'b_to_a'"):
        one_sided_findings(lambda *_: noisy(1.0), noisy(1.0), ["both"])  # type: ignore[list-item]
    other = retrieval_report(np.eye(30), np.eye(30), ks=(1, 10), n_resamples=0)
    with pytest.raises(ArgumentError, match="same queries"):
        one_sided_findings(lambda *_: other, noisy(1.0))
    with pytest.raises(ArgumentError, match="lower is better"):
        one_sided_findings(lambda *_: noisy(1.0), noisy(1.0), metrics=["a_to_b.mean_rank"])


@pytest.mark.parametrize(("noise", "verdict"), [(0.3, "pass"), (1.0, "warn"), (3.0, "fail")])
def test_training_is_held_against_looking_up_neighbours(noise, verdict):
    found = baseline_findings(noisy(noise, seed=1), noisy(1.0, seed=2), ["a_to_b.mrr"])
    assert verdicts(found, "baseline") == [verdict]
    assert found[0].value == pytest.approx(noisy(noise, 1).value("a_to_b.mrr") - noisy(1.0, 2).value("a_to_b.mrr"))
    assert "beyond the nearest training neighbours" in found[0].name
    assert len(baseline_findings(noisy(0.3), noisy(1.0))) == 4


def test_a_baseline_of_other_queries_is_refused():
    with pytest.raises(ArgumentError, match="same queries"):
        baseline_findings(noisy(1.0), retrieval_report(np.eye(30), np.eye(30), ks=(1, 10), n_resamples=0))


# True and shuffled links, paired by seed.


def test_the_paired_difference_of_a_clean_trainer_passes_with_its_sd():
    world = World(0.0, 1.0)
    control = shuffled_control(world.fit, Links.identity(N), (0, 1, 2), KEYS, paired=True)
    assert verdicts(control.findings) == ["pass"] * 4
    stored = control.to_dict()["difference"]["a_to_b.recall@10"]
    differences = np.subtract(control.real["a_to_b.recall@10"], control.values["a_to_b.recall@10"])
    assert stored["mean"] == pytest.approx(np.mean(differences))
    assert stored["sd"] == pytest.approx(np.std(differences, ddof=1))
    assert ShuffledControl.of(control.to_dict()).findings == control.findings


def test_links_that_give_nothing_fail_and_two_seeds_that_disagree_warn():
    def control(real: list[float]) -> list[str]:
        key = "a_to_b.mrr"
        made = ShuffledControl((0, 1), {key: [0.02, 0.02]}, {key: 0.02}, {key: 0.03}, 9, [0, 0], {key: real})
        return [finding.verdict for finding in made.findings]

    assert control([0.9, 0.9]) == ["pass", "pass"]
    assert control([0.9, 0.02]) == ["pass", "warn"]
    assert control([0.02, 0.01]) == ["pass", "fail"]


def test_a_single_seed_has_no_paired_finding():
    world = World(0.0, 1.0)
    control = shuffled_control(world.fit, Links.identity(N), (0,), KEYS, paired=True)
    assert len(control.findings) == 2
    assert control.to_dict()["difference"]["a_to_b.recall@10"]["sd"] is None


def test_mean_sd_and_interval_are_those_worked_by_hand():
    # t(0.975, 2) = 4.3027: mean 2, SD 1, 2 - 4.3027 / sqrt(3).
    assert mean_and_sd([1.0, 2.0, 3.0]) == (2.0, 1.0)
    assert lowest_mean([1.0, 2.0, 3.0]) == pytest.approx(2 - 4.302652729911275 / np.sqrt(3))
    with pytest.raises(ArgumentError, match="expected two or more"):
        lowest_mean([1.0])
    with pytest.raises(ArgumentError, match="no runs"):
        levels_of([])
