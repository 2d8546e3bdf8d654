"""Verdicts that a small or a large sample must not turn: baselines of few queries, the tail of places of pairs."""

import numpy as np
import pytest

from bridgehead.audits import ScoredLinks, baseline_findings, mispair_findings, within_groups_findings
from bridgehead.evaluate import retrieval_report
from bridgehead.links import Links


def ranked_second(n, worse):
    """Return the report of n pairs of which the first `worse` stand second in both directions."""
    z = np.eye(n)
    wrong = z.copy()
    wrong[np.arange(worse), (np.arange(worse) + 1) % n] = 2
    return retrieval_report(wrong, z, ks=(1, 10), n_resamples=0)


def test_a_loss_that_four_queries_show_is_no_failure_yet_and_one_of_ten_is():
    few = baseline_findings(ranked_second(4, 4), ranked_second(4, 0), ["a_to_b.mrr"])[0]
    # All four sign patterns that are as extreme: p = 2 / 16.
    assert (few.value, few.verdict) == (pytest.approx(-0.5), "warn")
    assert "no clear gain" in few.why
    many = baseline_findings(ranked_second(10, 10), ranked_second(10, 0), ["a_to_b.mrr"])[0]
    assert many.verdict == "fail"


@pytest.mark.parametrize(("wrong", "verdict"), [(0, "pass"), (240, "warn")])
def test_right_pairs_that_are_hard_to_read_do_not_count_as_wrong_among_many(wrong, verdict):
    rng = np.random.default_rng(0)
    n = 2000
    z = rng.normal(size=(n, 16))
    # One pair in eight is read so badly that it may stand anywhere in the better nine tenths, seldom behind them.
    noise = np.where(np.arange(n) % 8 == 0, 1.6, 0.4)[:, None]
    partner = np.arange(n)
    partner[:wrong] = np.roll(partner[:wrong], 1)
    found = mispair_findings([ScoredLinks(z, (z + noise * rng.normal(size=z.shape))[partner], Links.identity(n))])
    assert found[0].verdict == verdict
    assert found[0].value == pytest.approx(wrong / n, abs=0.03)


def some_first(n, hits):
    """Return the report of n pairs of which `hits` stand first and all others last."""
    z = np.eye(n)
    queries = -z
    queries[:hits] = z[:hits]
    return retrieval_report(queries, z, ks=(1, 10), n_resamples=0)


def test_a_share_that_one_model_keeps_on_few_queries_warns_and_that_of_five_fails():
    links = Links.identity(24)
    labels = np.arange(24) // 12
    real = some_first(24, 8)
    # Five of 24 first: above chance's bound, by less than three times its width.
    one = within_groups_findings(
        lambda *_: some_first(24, 5), links, labels, real, "length", metrics=["a_to_b.recall@1"]
    )
    assert (one[0].verdict, one[0].value > 0.5) == ("warn", True)
    assert "train 5 of them or more" in one[0].why
    five = within_groups_findings(
        lambda *_: some_first(24, 5), links, labels, real, "length", seeds=range(5), metrics=["a_to_b.recall@1"]
    )
    assert five[0].verdict == "fail"
