"""The modality gap, the histograms of similarity, and what a mean shift does to recall."""

import json

import numpy as np
import pytest

from bridgehead.errors import ArgumentError, LinksError, ShapeError
from bridgehead.evaluate import retrieval_report
from bridgehead.evaluate.geometry import gap_correction, mean_shift, modality_gap, similarity_histograms
from bridgehead.evaluate.geometry.similarity import N_BINS


def mates(n=400, d=16, gap=0.0, noise=0.5, seed=0):
    draw = np.random.default_rng(seed)
    z = draw.standard_normal((n, d))
    shift = np.zeros(d)
    shift[0] = gap
    return z + noise * draw.standard_normal((n, d)) + shift, z + noise * draw.standard_normal((n, d)) - shift


def test_centroid_distance_by_hand():
    found = modality_gap(np.array([[2.0, 0], [0, 3]]), np.array([[-1.0, 0], [0, -1]]))
    assert found.centroid_distance == pytest.approx(np.sqrt(2))
    # Each side's rows are 1 / sqrt 2 from their mean.
    assert found.expected_distance == pytest.approx(np.sqrt(0.5 / 2 + 0.5 / 2))
    assert found.separability is None and found.chance_high is None


def test_sides_of_one_distribution_are_inseparable():
    draw = np.random.default_rng(5)
    found = modality_gap(draw.standard_normal((900, 12)), draw.standard_normal((700, 12)))
    assert found.separability == pytest.approx(0.5, abs=0.04) and found.separability < found.chance_high
    assert found.centroid_distance == pytest.approx(found.expected_distance, rel=0.5)


def test_a_planted_gap_is_found_and_its_size_grows():
    near, far = (modality_gap(*mates(gap=gap)) for gap in (0.5, 3.0))
    assert near.chance_high < near.separability < far.separability
    assert far.separability > 0.99 and far.centroid_distance > near.centroid_distance > near.expected_distance


def test_a_gap_of_scale_alone_is_none_since_lengths_do_not_count():
    z_a, z_b = mates()
    stretched, plain = modality_gap(z_a * 100, z_b), modality_gap(z_a, z_b)
    assert stretched.centroid_distance == pytest.approx(plain.centroid_distance, abs=1e-12)
    assert stretched.separability == plain.separability


def test_the_same_rows_on_both_sides_are_guessed_because_mates_share_a_fold():
    z = mates()[0]
    found = modality_gap(z, z)
    assert found.mates_together and found.separability == 0.5 and found.centroid_distance == 0
    # Where links connect everything, mates cannot stay together, and the classifier is led astray.
    links = np.stack([np.arange(400), np.zeros(400, dtype=int)], axis=1)
    assert not modality_gap(z, z, links).mates_together


def test_a_sample_of_rows_is_stated_and_repeats():
    z_a, z_b = mates(gap=0.5)
    found = modality_gap(z_a, z_b, sample=100, seed=3)
    assert found.n_rows == (100, 100) and found == modality_gap(z_a, z_b, sample=100, seed=3)
    assert found.separability == pytest.approx(modality_gap(z_a, z_b).separability, abs=0.15)


def test_sides_of_other_lengths_need_no_links():
    draw = np.random.default_rng(0)
    found = modality_gap(draw.standard_normal((30, 3)) + 9, draw.standard_normal((12, 3)) - 9)
    assert found.separability == 1.0 and found.n_rows == (30, 12)


@pytest.mark.parametrize("fill", [0.0, 1.0])
def test_constant_rows_are_guessed(fill):
    assert modality_gap(np.full((40, 3), fill), np.full((40, 3), fill)).separability == 0.5


def test_histograms_are_those_of_all_pairs_where_all_are_looked_at():
    z_a, z_b = mates(n=30)
    found = similarity_histograms(z_a, z_b)
    a, b = (z / np.linalg.norm(z, axis=1, keepdims=True) for z in (z_a, z_b))
    off = ~np.eye(30, dtype=bool)
    for name, cosines in {
        "within_a": (a @ a.T)[np.triu(off)], "within_b": (b @ b.T)[np.triu(off)],
        "across_true": (a @ b.T)[~off], "across_random": (a @ b.T)[off],
    }.items():  # fmt: skip
        histogram = getattr(found, name)
        assert list(histogram.counts) == np.histogram(cosines, found.edges)[0].tolist(), name
        assert (histogram.mean, histogram.sd) == pytest.approx((cosines.mean(), cosines.std())) and histogram.exact
    true, other = (a @ b.T)[~off], (a @ b.T)[off]
    assert found.true_above_random == pytest.approx((true[:, None] > other).mean(), abs=1e-12)


def test_histograms_of_samples_are_near_and_say_so():
    z_a, z_b = mates(n=600)
    found, whole = (similarity_histograms(z_a, z_b, sample=sample) for sample in (3000, 10**6))
    for name in ("within_a", "within_b", "across_random"):
        part, all_of_it = getattr(found, name), getattr(whole, name)
        assert part.n_pairs == 3000 and not part.exact and all_of_it.exact
        assert (part.mean, part.sd) == pytest.approx((all_of_it.mean, all_of_it.sd), abs=0.02)
    assert found.across_true == whole.across_true
    assert found.true_above_random == pytest.approx(whole.true_above_random, abs=0.02)
    assert found == similarity_histograms(z_a, z_b, sample=3000)
    assert found != similarity_histograms(z_a, z_b, sample=3000, seed=1)


def test_random_pairs_are_none_of_the_links():
    # Side b repeats side a, so that every match has cosine 1 and no other pair has.
    z = np.random.default_rng(0).standard_normal((50, 6))
    links = np.stack([np.arange(50), np.arange(50)], axis=1)
    found = similarity_histograms(z, z, links, sample=2000)
    assert found.across_true.counts[-1] == 50 and found.true_above_random == 1.0
    assert found.across_random.mean < 0.2 and not found.across_random.exact


def test_edges_and_equal_rows():
    found = similarity_histograms(np.ones((3, 2)), np.ones((3, 2)))
    assert len(found.edges) == N_BINS + 1 and found.edges[0] == -1 and found.edges[20] == 0 and found.edges[-1] == 1
    assert found.across_true.counts[-1] == 3 and found.true_above_random == 0.5
    orthogonal = similarity_histograms(np.eye(3), np.eye(3))
    assert orthogonal.within_a.counts[20] == 3
    everything = similarity_histograms(np.eye(2), np.eye(2), [(i, j) for i in range(2) for j in range(2)])
    assert everything.across_random.n_pairs == 0 and everything.true_above_random is None
    assert similarity_histograms(np.eye(1), np.eye(1)).within_a.mean is None


def test_a_mean_shift_takes_each_mean_away_and_makes_unit_rows():
    z_a, z_b = mates(gap=3.0)
    fit = (z_a[:300], z_b[:300])
    means = [(z / np.linalg.norm(z, axis=1, keepdims=True)).mean(axis=0) for z in fit]
    for shifted, z, mean in zip(mean_shift(z_a[300:], z_b[300:], fit), (z_a[300:], z_b[300:]), means, strict=True):
        expected = z / np.linalg.norm(z, axis=1, keepdims=True) - mean
        assert shifted == pytest.approx(expected / np.linalg.norm(expected, axis=1, keepdims=True), abs=1e-6)
    # A row that is the mean is zero, and no direction that rounding left over.
    for n in (3, 7, 50):
        assert not np.any(mean_shift(np.tile(z_a[:1], (n, 1)), z_b)[0])


def test_a_gap_that_hides_mates_is_closed_and_the_gain_measured():
    draw = np.random.default_rng(0)
    z = draw.standard_normal((300, 8))
    # A cone of side b whose rows have a large common part of their own: cosines with side a are ruled by it.
    z_a, z_b = z + 0.3 * draw.standard_normal((300, 8)), z + 0.3 * draw.standard_normal((300, 8)) + 2.5
    found = gap_correction(z_a, z_b, fit=mates_like(z_a, z_b), n_resamples=200)
    gain = found.differences["b_to_a.recall@1"]
    assert found.distance_after < 0.25 * found.distance_before
    assert gain.first > gain.second + 0.1 and gain.interval[0] > 0 and gain.p_value < 0.001
    assert found.before.b_to_a.recall[1] == pytest.approx(gain.second)
    assert found.after.b_to_a.recall[1] == pytest.approx(gain.first)


def mates_like(z_a, z_b):
    return z_a[:200], z_b[:200]


def test_a_shift_that_changes_nothing_says_so():
    z_a, z_b = mates(noise=0.8)
    both = (np.concatenate([z_a, -z_a]), np.concatenate([z_b, -z_b]))
    found = gap_correction(z_a, z_b, fit=both, n_resamples=100)
    change = found.differences["a_to_b.recall@1"]
    assert (change.value, change.p_value, change.n_differing) == (0, 1, 0) and found.fitted_on == "other rows"


def test_the_report_before_can_be_handed_in_and_the_record_is_json():
    z_a, z_b = mates(n=60, gap=1.0)
    before = retrieval_report(z_a, z_b, n_resamples=0)
    found = gap_correction(z_a, z_b, before=before, n_resamples=50, names=("molecule", "text"))
    assert found.before is before and found.fitted_on == "the evaluated rows"
    stored = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    entry = stored["differences"]["a_to_b.recall@10"]
    assert entry["after"] - entry["before"] == pytest.approx(entry["value"]) and entry["low"] <= entry["high"]
    assert "molecule -> text recall@1: " in "\n".join(gap_correction(z_a, z_b, names=("molecule", "text")).lines())


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: modality_gap(np.eye(3), np.eye(3), sample=0), ArgumentError, "sample = 0"),
        (lambda: modality_gap(np.eye(3), np.eye(3), [(0, 9)]), LinksError, "outside side b"),
        (lambda: similarity_histograms(np.eye(3), np.eye(3), sample=0), ArgumentError, "sample = 0"),
        (lambda: similarity_histograms(np.eye(3), np.eye(3), []), LinksError, "no links"),
        (lambda: mean_shift(np.eye(3), np.eye(3), fit=np.eye(3)), ArgumentError, "fit is a ndarray"),
        (lambda: mean_shift(np.eye(3), np.eye(3), fit=(np.eye(2), np.eye(3))), ShapeError, r"fit\[0\] has 2 columns"),
        (
            lambda: gap_correction(*mates(30), before=retrieval_report(*mates(20), n_resamples=0)),
            ArgumentError,
            "before.a_to_b has 20 queries",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
