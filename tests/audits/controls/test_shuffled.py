"""Shuffled links: a derangement of partner lists; and the control, with a planted leak and a clean case."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgehead.audits import ShuffledControl, shuffle_links, shuffled_control, surviving_links
from bridgehead.errors import ArgumentError, LinksError
from bridgehead.evaluate import RetrievalReport, retrieval_report
from bridgehead.links import Links


def partner_lists(links: Links) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for a, b in links.pairs.tolist():
        found.setdefault(a, []).append(b)
    return found


@given(st.integers(0, 1000), st.integers(2, 30))
@settings(max_examples=60, deadline=None)
def test_one_to_one_links_become_a_derangement(seed: int, n: int) -> None:
    shuffled = shuffle_links(Links.identity(n), seed)
    assert sorted(shuffled.pairs[:, 1].tolist()) == list(range(n))
    assert (shuffled.pairs[:, 0] != shuffled.pairs[:, 1]).all()


@pytest.mark.parametrize("seed", range(5))
def test_many_to_many_lists_move_whole_and_no_true_link_survives(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, 121)
    pairs = [[a, b] for a in range(200) for b in rng.choice(120, 1 + a % 4, replace=False, p=weights / weights.sum())]
    links = Links(pairs, 210, 120)
    shuffled = shuffle_links(links, seed)
    assert surviving_links(links, shuffled) == 0
    assert len(shuffled) == len(links)
    before, after = partner_lists(links), partner_lists(shuffled)
    assert before.keys() == after.keys()
    assert Counter(map(tuple, before.values())) == Counter(map(tuple, after.values()))
    np.testing.assert_array_equal(np.bincount(links.pairs[:, 1]), np.bincount(shuffled.pairs[:, 1]))


def test_the_seed_decides_and_seeds_differ() -> None:
    links = Links.identity(50)
    assert shuffle_links(links, 3) == shuffle_links(links, 3)
    assert shuffle_links(links, 3) != shuffle_links(links, 4)


def test_identical_texts_count_as_one_text() -> None:
    # Texts 0 and 1 are the same again; so are 2 and 3: molecule 0 may take neither 0 nor 1.
    links = Links([[0, 0], [1, 1], [2, 2], [3, 3]], 4, 4, groups_b=[0, 0, 1, 1])
    for seed in range(20):
        shuffled = shuffle_links(links, seed)
        assert surviving_links(links, shuffled) == 0
        assert {a: b // 2 for a, b in shuffled.pairs.tolist()} == {0: 1, 1: 1, 2: 0, 3: 0}


def test_rows_of_one_group_move_as_one() -> None:
    links = Links([[0, 0], [1, 1], [2, 2], [3, 3]], 4, 4, groups_a=[7, 7, -1, -1])
    for seed in range(10):
        shuffled = shuffle_links(links, seed)
        assert surviving_links(links, shuffled) == 0
        assert len(shuffled) == 4


def test_what_cannot_be_deranged_is_counted() -> None:
    links = Links([[i, 0] for i in range(10)] + [[0, 1]], 10, 2)
    assert surviving_links(links, shuffle_links(links, 0)) == 10


def test_fewer_than_two_rows_with_links_is_an_error() -> None:
    with pytest.raises(LinksError, match="1 rows of a have links; expected at least 2"):
        shuffle_links(Links([[0, 0], [0, 1]], 3, 2), 0)
    with pytest.raises(LinksError, match="0 rows of a"):
        shuffle_links(Links(np.zeros((0, 2), dtype=int), 3, 2), 0)


def least_squares(links: Links, seed: int, leak: bool) -> RetrievalReport:
    """A small trainer: a linear map from a to b fitted on links, evaluated on fresh rows."""
    rng = np.random.default_rng(0)
    true_map = rng.normal(size=(8, 8))
    z_a = rng.normal(size=(200 + 300, 8))
    z_b = z_a @ true_map + 0.1 * rng.normal(size=z_a.shape)
    fitted, *_ = np.linalg.lstsq(z_a[:200][links.pairs[:, 0]], z_b[:200][links.pairs[:, 1]], rcond=None)
    test_a = z_a[200:] @ (true_map if leak else fitted)
    return retrieval_report(test_a, z_b[200:], ks=(1, 10), n_resamples=0)


def test_a_clean_trainer_stays_at_chance_and_passes() -> None:
    links = Links.identity(200)
    assert least_squares(links, 0, leak=False).a_to_b.recall[10] > 0.9
    control = shuffled_control(lambda shuffled, seed: least_squares(shuffled, seed, leak=False), links)
    assert [finding.verdict for finding in control.findings] == ["pass"] * 4
    assert control.values.keys() == {"a_to_b.recall@10", "a_to_b.mrr", "b_to_a.recall@10", "b_to_a.mrr"}
    assert all(len(values) == 5 for values in control.values.values())
    assert control.n_surviving == [0] * 5
    assert control.chance["a_to_b.recall@10"] == pytest.approx(10 / 300, abs=1e-12)


def test_a_leak_fails() -> None:
    control = shuffled_control(
        lambda shuffled, seed: least_squares(shuffled, seed, leak=True),
        Links.identity(200),
        seeds=(0, 1),
        metrics=["a_to_b.recall@1"],
    )
    assert [finding.verdict for finding in control.findings] == ["fail"]
    assert control.lines()[0] == "shuffled links: 2 models, 200 links each"
    assert "FAIL" in control.lines()[1]
    assert control.to_dict()["findings"][0]["value"] == control.mean["a_to_b.recall@1"]


def test_links_that_cannot_be_shuffled_warn_instead_of_accusing() -> None:
    links = Links([[i, 0] for i in range(199)] + [[199, 1]], 200, 200)
    control = shuffled_control(lambda shuffled, seed: least_squares(shuffled, seed, leak=True), links, seeds=(0,))
    assert {finding.verdict for finding in control.findings} == {"warn"}


def test_no_seeds_unknown_metrics_and_ranks_are_errors() -> None:
    def fit(shuffled: Links, seed: int) -> RetrievalReport:
        return least_squares(shuffled, seed, leak=False)

    links = Links.identity(200)
    with pytest.raises(ArgumentError, match="seeds is empty"):
        shuffled_control(fit, links, seeds=())
    with pytest.raises(ArgumentError, match=r"has no metric 'a_to_b\.recall@3'"):
        shuffled_control(fit, links, seeds=(0,), metrics=["a_to_b.recall@3"])
    with pytest.raises(ArgumentError, match="lower is better"):
        shuffled_control(fit, links, seeds=(0,), metrics=["a_to_b.mean_rank"])


@pytest.mark.parametrize(
    ("value", "n_runs", "verdict"), [(0.044, 1, "warn"), (0.044, 5, "fail"), (0.2, 1, "fail"), (0.03, 1, "pass")]
)
def test_a_single_run_a_little_above_chance_warns_and_five_fail(value, n_runs, verdict):
    key = "a_to_b.recall@10"
    control = ShuffledControl(
        tuple(range(n_runs)), {key: [value] * n_runs}, {key: 0.0286}, {key: 0.0411}, 100, [0] * n_runs
    )
    assert control.findings[0].verdict == verdict
