"""Data quality: generic and broad descriptions are counted by links, and planted wrong pairs are found and listed."""

import numpy as np
import pytest
from scipy import sparse

from bridgehead.audits import Finding
from bridgehead.audits.data.mispairs import ScoredLinks, linear_folds, mispair_findings
from bridgehead.audits.data.quality import broad_findings, generic_findings
from bridgehead.errors import ArgumentError, NonFiniteRowsError, ShapeError
from bridgehead.links import Links
from bridgehead.pairs import text_quality

N = 600


# Generic descriptions.


@pytest.mark.parametrize(("n_weak", "verdict"), [(0, "pass"), (5, "pass"), (6, "warn"), (25, "warn"), (26, "fail")])
def test_the_share_of_links_with_a_weak_description_decides(n_weak, verdict):
    (found,) = generic_findings(np.arange(100) < n_weak, Links.identity(100))
    assert (found.verdict, found.value, found.group) == (verdict, n_weak / 100, "data")
    assert (found.listed is None) == (n_weak == 0)
    if found.listed is not None:
        assert (len(found.listed.rows), found.listed.total) == (min(n_weak, 20), n_weak)


def test_a_weak_description_of_many_links_weighs_as_many_and_is_listed_first():
    texts = ["a chemical compound", "inhibits cyclooxygenase and reduces fever", "unknown"]
    quality = text_quality(texts)
    links = Links([[0, 0], [1, 1], [2, 2], [3, 2], [4, 2]], 5, 3)
    (found,) = generic_findings(quality.weak, links, texts=texts, rules=quality.rules, ids=["t0", "t1", "t2"])
    assert found.value == pytest.approx(4 / 5)
    assert found.listed is not None
    assert found.listed.columns == ("text", "links", "rule", "text")
    assert found.listed.rows == (("t2", 3, "placeholder", "unknown"), ("t0", 1, "generic words", texts[0]))


def test_descriptions_on_the_other_side_and_tables_without_links_are_looked_at_too():
    links = Links([[0, 0], [0, 1], [1, 1]], 2, 2)
    assert generic_findings([True, False], links, side="a")[0].value == pytest.approx(2 / 3)
    assert generic_findings([True], Links(np.zeros((0, 2), dtype=int), 4, 1)) == []
    assert broad_findings(Links(np.zeros((0, 2), dtype=int), 4, 1)) == []


def test_masks_and_lists_that_do_not_fit_are_refused():
    links = Links.identity(3)
    with pytest.raises(ShapeError, match=r"weak is int64 of shape \(3,\); expected booleans"):
        generic_findings([0, 1, 0], links)
    with pytest.raises(ShapeError, match="rules has 1 entries; expected 3"):
        generic_findings([True] * 3, links, rules=["x"])
    with pytest.raises(ShapeError, match="ids has 2 entries"):
        generic_findings([True] * 3, links, ids=["x", "y"])
    with pytest.raises(ArgumentError, match="side = 'c'"):
        broad_findings(links, side="c")  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="texts has 1 entries"):
        broad_findings(links, texts=["x"])
    with pytest.raises(ShapeError, match="there are 2 labels; expected 3"):
        broad_findings(links, entities=["x", "y"])


# Broad descriptions.


def test_a_text_that_fits_many_items_warns_and_one_to_one_passes():
    broad = Links([[i, 0] for i in range(20)] + [[i, 1 + i] for i in range(20, 100)], 100, 101)
    (found,) = broad_findings(broad, texts=[f"text {i}" for i in range(101)])
    assert (found.verdict, found.value) == ("warn", 0.2)
    assert found.listed is not None
    assert found.listed.rows == (("0", 20, "text 0"),)
    assert broad_findings(Links.identity(50))[0].verdict == "pass"


def test_items_of_one_entity_count_once_and_identical_texts_together():
    # Molecule 0 has twenty spectra: its name fits one molecule, not twenty.
    spectra = Links([[i, 0] for i in range(20)], 20, 1)
    assert broad_findings(spectra)[0].verdict == "warn"
    assert broad_findings(spectra, entities=["m"] * 20)[0].verdict == "pass"
    assert broad_findings(spectra, entities=[None] * 20)[0].verdict == "warn"
    # Six and six items under the same text again are twelve.
    halves = Links([[i, i // 6] for i in range(12)], 12, 2, groups_b=[4, 4])
    assert broad_findings(halves)[0].value == 1.0
    assert broad_findings(halves.swapped(), side="a")[0].value == 1.0


# Wrong pairs.


def views(noise: float = 0.6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(N, 8))
    return tuple(latent @ rng.normal(size=(8, 20)) + noise * rng.normal(size=(N, 20)) for _ in "ab")  # type: ignore[return-value]


def wrong(share: float) -> tuple[Links, set[int]]:
    """Return links of which a share have their partners exchanged in a circle, and their rows of a."""
    partners, chosen = np.arange(N), np.random.default_rng(1).permutation(N)[: int(share * N)]
    partners[chosen] = np.roll(chosen, 1)
    return Links(np.stack([np.arange(N), partners], axis=1), N, N), set(chosen.tolist())


def judge(share: float, **options) -> Finding:
    (found,) = mispair_findings(linear_folds(*views(), wrong(share)[0]), **options)
    assert found.group == "data"
    return found


@pytest.mark.parametrize(("share", "verdict"), [(0.0, "pass"), (0.12, "warn"), (0.3, "fail")])
def test_the_share_of_wrong_pairs_is_estimated(share, verdict):
    found = judge(share)
    assert found.verdict == verdict
    assert found.value == pytest.approx(share, abs=0.08)


def test_rows_that_read_right_pairs_loosely_do_not_accuse_the_data():
    folds = linear_folds(*views(noise=6.0), Links.identity(N))
    (found,) = mispair_findings(folds)
    assert found.verdict == "warn"
    assert 0.2 < found.value <= 0.5
    assert "only loosely" in found.why


def test_the_wrong_pairs_are_listed_with_what_fits_better():
    ids = [f"m{i}" for i in range(N)], [f"t{i}" for i in range(N)]
    found = judge(0.12, ids_a=ids[0], ids_b=ids[1], names=("molecule", "text"))
    assert found.listed is not None
    assert len(found.listed.rows) == 20
    assert found.listed.columns[-1] == "text that fits best"
    links, planted = wrong(0.12)
    partner = dict(links.pairs.tolist())
    assert all(row[1] == f"t{partner[int(row[0][1:])]}" for row in found.listed.rows)
    assert np.mean([int(row[0][1:]) in planted for row in found.listed.rows]) > 0.9
    better = [min(row[2:4]) for row in found.listed.rows]
    assert better == sorted(better, reverse=True)


def test_places_are_those_of_a_naive_loop_over_candidates_that_are_not_linked():
    rng = np.random.default_rng(3)
    z_a, z_b = rng.normal(size=(70, 4)), rng.normal(size=(60, 4))
    links = Links(np.argwhere(rng.random((70, 60)) < 0.03), 70, 60)
    unit_a, unit_b = (z / np.linalg.norm(z, axis=1, keepdims=True) for z in (z_a, z_b))
    scores, truth = unit_a @ unit_b.T, links.matrix.toarray()
    places = []
    for a, b in links.pairs.tolist():
        other_b, other_a = scores[a][~truth[a]], scores[:, b][~truth[:, b]]
        places += [(1 + (other > scores[a, b]).sum()) / (len(other) + 1) for other in (other_b, other_a)]
    (found,) = mispair_findings([ScoredLinks(z_a, z_b, links)])
    assert found.value == pytest.approx(min(1.0, np.mean(np.array(places) > 0.8) / 0.2))
    behind = np.reshape(places, (-1, 2)).min(axis=1) > 0.5
    assert f"{int(behind.sum()):,} of {len(links):,} pairs" in found.why


def test_trained_pairs_are_not_judged_by_a_map_that_saw_them():
    folds = linear_folds(*views(), Links.identity(N))
    assert sum(len(fold.links) for fold in folds) == N
    assert sorted(np.concatenate([fold.items_a for fold in folds]).tolist()) == list(range(N))
    # Where one text joins everything, all links of an item of a still come into one fold.
    joined = Links(np.concatenate([Links.identity(N).pairs, [[i, 0] for i in range(1, N)]]), N, N)
    assert sum(len(fold.links) for fold in linear_folds(*views(), joined)) == 2 * N - 1


def test_rows_that_find_no_partner_judge_no_pair():
    rng = np.random.default_rng(0)
    noise = ScoredLinks(rng.normal(size=(200, 4)), rng.normal(size=(200, 4)), Links.identity(200))
    (found,) = mispair_findings([noise])
    assert (found.verdict, found.listed) == ("warn", None)
    assert "no single pair can be judged" in found.why
    (same,) = mispair_findings([ScoredLinks(np.ones((100, 2)), np.ones((100, 2)), Links.identity(100))])
    assert (same.verdict, same.value) == ("warn", 1.0)


def test_sparse_rows_are_judged_as_dense_ones_are():
    a, b = (np.maximum(view, 0) for view in views())
    dense = mispair_findings(linear_folds(a, b, wrong(0.2)[0]))[0]
    thin = mispair_findings(linear_folds(sparse.csr_array(a), sparse.csr_array(b), wrong(0.2)[0]))[0]
    assert thin.value == pytest.approx(dense.value, abs=0.06)


def test_what_no_pair_can_be_judged_by_is_refused():
    a, b = views()
    with pytest.raises(ArgumentError, match="there are 63 links; expected at least 64"):
        mispair_findings([ScoredLinks(a[:63], b[:63], Links.identity(63))])
    with pytest.raises(ArgumentError, match="there are 63 links"):
        linear_folds(a[:63], b[:63], Links.identity(63))
    with pytest.raises(ArgumentError, match="n_folds = 1"):
        linear_folds(a, b, Links.identity(N), n_folds=1)
    with pytest.raises(ArgumentError, match="n_pool = 0"):
        mispair_findings([], n_pool=0)
    with pytest.raises(ArgumentError, match="there are 0 links"):
        mispair_findings([])
    with pytest.raises(ShapeError, match="rows are 600 and 599"):
        linear_folds(a, b[1:], Links.identity(N))
    with pytest.raises(ShapeError, match="must live in one space"):
        mispair_findings([ScoredLinks(a, b[:, 1:], Links.identity(N))])
    with pytest.raises(ShapeError, match="ids_b has 3 entries"):
        mispair_findings([ScoredLinks(a, b, Links.identity(N))], ids_b=["x"] * 3)
    with pytest.raises(NonFiniteRowsError, match="z_a"):
        mispair_findings([ScoredLinks(a * np.nan, b, Links.identity(N))])
