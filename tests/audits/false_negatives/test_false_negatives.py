"""False negatives in a batch: exact shares against enumeration, by labels and by a guide, planted and clean."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from bridgehead.audits import false_negative_findings, guided_negative_findings
from bridgehead.audits.false_negatives.in_batch import _none_drawn, count_false_negatives
from bridgehead.errors import ArgumentError, NonFiniteRowsError, ShapeError
from bridgehead.links import Links


def naive_counts(links: Links, same_a: np.ndarray, same_b: np.ndarray) -> tuple[list[int], list[int]]:
    true = links.matrix.toarray()
    false, negatives = [], []
    for i, (a, b) in enumerate(links.pairs):
        others = [(a2, b2) for j, (a2, b2) in enumerate(links.pairs) if j != i and not true[a, b2]]
        negatives.append(len(others))
        false.append(sum(same_a[a] == same_a[a2] or same_b[b] == same_b[b2] for a2, b2 in others))
    return false, negatives


@given(st.integers(0, 100_000))
@settings(max_examples=80, deadline=None)
def test_counts_are_those_of_a_loop_over_pairs_of_links(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_a, n_b = rng.integers(1, 9, size=2)
    links = Links(np.argwhere(rng.random((n_a, n_b)) < rng.uniform(0.1, 0.8)), n_a, n_b)
    same_a, same_b = rng.integers(0, rng.integers(1, 8), n_a), rng.integers(0, rng.integers(1, 8), n_b)
    found = count_false_negatives(links, same_a, same_b)
    assert [one.tolist() for one in found] == list(naive_counts(links, same_a, same_b))


def test_a_text_under_two_items_is_a_false_negative_of_each() -> None:
    found = false_negative_findings(
        Links.identity(4), 4, same_b=["x", "x", "y", "z"], ids_a=list("abcd"), names=("molecule", "text")
    )[0]
    assert found.value == pytest.approx(2 / 12)
    assert (found.verdict, found.group) == ("warn", "false negatives")
    assert "an anchor meets 0.5 false negatives on average, and 50.0% of anchors meet at least one" in found.why
    assert found.listed is not None
    assert found.listed.rows == (("a", "0", 1), ("b", "1", 1))


def test_distinct_items_have_none() -> None:
    found = false_negative_findings(Links.identity(50), 16, same_a=np.arange(50))[0]
    assert (found.value, found.verdict, found.listed) == (0.0, "pass", None)


def test_items_of_one_entity_are_false_negatives_until_links_or_groups_say_that_they_match() -> None:
    entity = [0, 0, 1, 2]
    pairs = [[0, 0], [1, 1], [2, 2], [3, 3]]
    assert false_negative_findings(Links(pairs, 4, 4), 4, same_a=entity)[0].value > 0
    linked = Links([*pairs, [0, 1], [1, 0]], 4, 4)
    assert false_negative_findings(linked, 4, same_a=entity)[0].value == 0
    grouped = Links(pairs, 4, 4, groups_a=np.array([5, 5, -1, -1]))
    assert false_negative_findings(grouped, 4, same_a=entity)[0].value == 0


@pytest.mark.parametrize(("batch_size", "verdict"), [(2, "pass"), (50, "warn"), (1000, "fail")])
def test_the_verdict_goes_by_what_an_anchor_meets_in_a_batch(batch_size: int, verdict: str) -> None:
    labels = np.arange(1000) // 10
    found = false_negative_findings(Links.identity(1000), batch_size, same_b=labels)[0]
    assert found.value == pytest.approx(9 / 999)
    assert found.verdict == verdict


def test_the_share_of_anchors_that_meet_one_is_that_of_all_batches() -> None:
    labels = [0, 0, 1, 2, 3]
    met = [
        sum(labels[i] == labels[j] for j in batch if j != i) > 0 for batch in combinations(range(5), 3) for i in batch
    ]
    found = false_negative_findings(Links.identity(5), 3, same_b=labels)[0]
    assert f"{np.mean(met):.1%} of anchors meet at least one" in found.why


def test_odds_of_drawing_none_are_hypergeometric() -> None:
    from scipy.stats import hypergeom

    marked = np.array([0, 1, 5, 12, 20, 20, 3])
    for drawn in (0, 1, 7, 15, 20):
        assert _none_drawn(marked, 20, drawn) == pytest.approx(hypergeom.pmf(0, 20, marked, drawn), abs=1e-12)


def test_items_without_a_label_are_their_own() -> None:
    for labels in (["", None, "", None], [-1, -1, -2, -1]):
        assert false_negative_findings(Links.identity(4), 4, same_b=labels)[0].value == 0


def test_nothing_to_judge_is_no_finding() -> None:
    assert false_negative_findings(Links.identity(1), 4) == []
    assert false_negative_findings(Links(np.zeros((0, 2), dtype=int), 3, 3), 4) == []
    assert false_negative_findings(Links([[0, 0], [0, 1]], 1, 2), 4) == []
    assert guided_negative_findings(Links.identity(1), 4, guide_a=np.ones((1, 2))) == []
    assert guided_negative_findings(Links(np.zeros((0, 2), dtype=int), 1, 1), 4, guide_a=np.ones((1, 2))) == []


def naive_marked(links: Links, g_a: np.ndarray | None, g_b: np.ndarray | None, margin: float, shared: bool) -> float:
    def unit(rows: np.ndarray) -> np.ndarray:
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    true = links.matrix.toarray()
    marked = negatives = 0
    for a, _ in links.pairs:
        for _, j in links.pairs:
            if true[a, j]:
                continue
            negatives += 1
            if shared:
                assert g_a is not None
                assert g_b is not None
                scores = unit(g_b) @ unit(g_a)[a]
                marked += scores[j] > scores[true[a]].max() - margin
            else:
                near = [] if g_b is None else (unit(g_b)[true[a]] @ unit(g_b)[j]).tolist()
                near += [] if g_a is None else (unit(g_a)[true[:, j]] @ unit(g_a)[a]).tolist()
                marked += max(near) > 1 - margin
    return marked / negatives


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("which", ["a", "b", "both"])
@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array])
def test_near_matches_by_a_guide_of_each_side_are_those_of_a_loop(seed: int, which: str, wrap: object) -> None:
    rng = np.random.default_rng(seed)
    links = Links(np.argwhere(rng.random((20, 18)) < 0.08), 20, 18)
    guides = {"a": rng.poisson(1.0, (20, 6)) + 0.5, "b": rng.poisson(1.0, (18, 5)) + 0.5}
    given = {f"guide_{side}": rows for side, rows in guides.items() if which in (side, "both")}
    found = guided_negative_findings(links, 8, margin=0.3, **{k: wrap(v) for k, v in given.items()})  # type: ignore[operator]
    expected = naive_marked(links, given.get("guide_a"), given.get("guide_b"), 0.3, shared=False)
    assert found[0].value == pytest.approx(expected)


@pytest.mark.parametrize("margin", [0.0, 0.2])
def test_negatives_above_the_match_in_a_shared_space_are_those_of_a_loop(margin: float) -> None:
    rng = np.random.default_rng(1)
    links = Links(np.argwhere(rng.random((25, 20)) < 0.08), 25, 20)
    guide_a, guide_b = rng.normal(size=(25, 4)), rng.normal(size=(20, 4))
    found = guided_negative_findings(links, 8, guide_a=guide_a, guide_b=guide_b, space="shared", margin=margin)
    assert found[0].value == pytest.approx(naive_marked(links, guide_a, guide_b, margin, shared=True))
    assert "this guide tells little" in found[0].why


def test_planted_near_duplicates_warn_and_distinct_rows_pass() -> None:
    rows = np.random.default_rng(2).normal(size=(200, 30))
    clean = guided_negative_findings(Links.identity(200), 64, guide_b=rows)[0]
    assert (clean.value, clean.verdict, clean.listed) == (0.0, "pass", None)
    rows[100:] = rows[:100] + 0.01
    planted = guided_negative_findings(Links.identity(200), 64, guide_b=rows, names=("molecule", "text"))[0]
    assert planted.verdict == "warn"
    assert planted.value == pytest.approx(1 / 199)
    assert planted.listed is not None
    assert planted.listed.columns == ("molecule", "its text", "a marked text", "marked in the data")
    assert planted.listed.rows[0] == ("0", "0", "100", 1)
    assert "all links looked at" in planted.why


def test_a_guide_that_puts_matches_first_passes_and_rows_equal_to_the_match_are_not_above_it() -> None:
    rows = np.random.default_rng(3).normal(size=(60, 20))
    rows[1] = rows[0]
    found = guided_negative_findings(Links.identity(60), 16, guide_a=rows, guide_b=rows, space="shared")[0]
    assert (found.value, found.verdict) == (0.0, "pass")


def test_large_data_is_sampled_and_says_so() -> None:
    rows = np.repeat(np.random.default_rng(4).normal(size=(300, 10)), 2, axis=0)
    found = guided_negative_findings(Links.identity(600), 16, guide_b=rows, max_anchors=50)[0]
    assert found.value == pytest.approx(1 / 599)
    assert "50 of 600 links looked at" in found.why


def test_what_does_not_fit_is_refused() -> None:
    links, rows = Links.identity(3), np.eye(3)
    with pytest.raises(ArgumentError, match="batch_size = 1; expected a whole number of at least 2"):
        false_negative_findings(links, 1)
    with pytest.raises(ArgumentError, match="batch_size = True"):
        guided_negative_findings(links, True, guide_a=rows)
    with pytest.raises(ShapeError, match=r"same_a has shape \(2,\); expected \(3,\)"):
        false_negative_findings(links, 4, same_a=[0, 1])
    with pytest.raises(ArgumentError, match="same_b has labels of type float64"):
        false_negative_findings(links, 4, same_b=[0.5, 1, 2])
    with pytest.raises(ArgumentError, match="space 'per_side' needs a guide"):
        guided_negative_findings(links, 4)
    with pytest.raises(ArgumentError, match="space 'shared' needs both guides"):
        guided_negative_findings(links, 4, guide_a=rows, space="shared")
    with pytest.raises(ArgumentError, match="expected 'per_side' or 'shared'"):
        guided_negative_findings(links, 4, guide_a=rows, space="joint")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"margin = 1\.5"):
        guided_negative_findings(links, 4, guide_a=rows, margin=1.5)
    with pytest.raises(ShapeError, match="guide_a has 2 rows; expected 3"):
        guided_negative_findings(links, 4, guide_a=rows[:2])
    with pytest.raises(ShapeError, match="guide_a has 3 columns and guide_b 2"):
        guided_negative_findings(links, 4, guide_a=rows, guide_b=rows[:, :2], space="shared")
    with pytest.raises(NonFiniteRowsError, match="guide_b"):
        guided_negative_findings(links, 4, guide_b=rows + np.inf)
