"""Alignment, uniformity and effective rank: against loops, closed forms, and at their limits."""

import numpy as np
import pytest
import torch

from bridgehead.errors import ArgumentError, LinksError, NonFiniteRowsError, ShapeError
from bridgehead.evaluate.geometry import alignment_cosine, alignment_distance, effective_rank, spread, uniformity
from bridgehead.links import Links
from reference import cosine_loop


def rows(n, d=5, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def test_alignment_is_the_mean_over_links_and_not_over_the_diagonal():
    z_a, z_b = rows(4), rows(3, seed=1)
    links = [(0, 2), (0, 1), (3, 0)]
    cosines = cosine_loop(z_a, z_b)
    expected = np.mean([cosines[i][j] for i, j in links])
    assert alignment_cosine(z_a, z_b, links) == pytest.approx(expected, abs=1e-12)
    assert alignment_distance(z_a, z_b, links) == pytest.approx(2 - 2 * expected, abs=1e-12)
    assert alignment_distance(z_a, z_b, links, alpha=1) == pytest.approx(
        np.mean([np.sqrt(2 - 2 * cosines[i][j]) for i, j in links])
    )


def test_alignment_counts_matches_that_groups_share():
    z = np.array([[1.0, 0], [1, 0], [0, 1]])
    links = Links([(0, 0)], 3, 3, groups_a=[7, 7, -1], groups_b=[-1, -1, -1])
    assert alignment_cosine(z, z[[2, 0, 1]], links) == pytest.approx(0)
    assert alignment_cosine(z, z, Links([(0, 0)], 3, 3, groups_a=[7, -1, 7])) == pytest.approx(0.5)


def test_lengths_of_rows_do_not_matter_and_a_zero_row_has_cosine_zero():
    z_a, z_b = rows(6), rows(6, seed=1)
    stretched = z_a * np.arange(1, 7)[:, None] * 1e20
    assert alignment_cosine(stretched, z_b) == pytest.approx(alignment_cosine(z_a, z_b), abs=1e-12)
    z_a[:] = 0
    assert alignment_cosine(z_a, z_b) == 0 and alignment_distance(z_a, z_b) == pytest.approx(1)
    assert alignment_distance(z_a, z_a) == 0


def test_tensors_and_half_floats_are_taken():
    z_a, z_b = rows(6).astype(np.float16), rows(6, seed=1).astype(np.float16)
    expected = alignment_cosine(z_a.astype(np.float64), z_b.astype(np.float64))
    assert alignment_cosine(torch.from_numpy(z_a), torch.from_numpy(z_b)) == pytest.approx(expected, abs=1e-12)


def test_uniformity_is_that_of_the_pairs_of_different_rows_whatever_the_block():
    z = rows(23)
    cosines = cosine_loop(z, z)
    kernel = [np.exp(-2 * (2 - 2 * cosines[i][j])) for i in range(23) for j in range(i)]
    for block in (1, 7, 23, None):
        assert uniformity(z, block=block) == pytest.approx(np.log(np.mean(kernel)), abs=1e-12)
    assert uniformity(z[np.random.default_rng(1).permutation(23)]) == pytest.approx(uniformity(z), abs=1e-12)


def test_uniformity_is_that_of_the_usual_code():
    z = torch.nn.functional.normalize(torch.from_numpy(rows(40)), dim=1)
    assert uniformity(z) == pytest.approx(torch.pdist(z).pow(2).mul(-2).exp().mean().log().item(), abs=1e-12)


def test_uniformity_at_its_limits():
    assert uniformity(np.ones((5, 3))) == pytest.approx(0, abs=1e-12)
    assert uniformity(np.array([[1.0, 0], [-1, 0]])) == pytest.approx(-8)
    assert uniformity(np.array([[1.0, 0], [-1, 0]]), t=1e5) == pytest.approx(-4e5)
    assert uniformity(np.eye(200)) == pytest.approx(-4)


def test_uniformity_of_a_sample_is_near_that_of_all_and_repeats():
    z = rows(1500, d=8)
    sampled = [uniformity(z, sample=500, seed=seed) for seed in (0, 0, 1)]
    assert sampled[0] == sampled[1] != sampled[2]
    assert sampled == pytest.approx([uniformity(z)] * 3, abs=0.03)
    assert uniformity(z, sample=1500) == uniformity(z)


def test_effective_rank_of_known_singular_values():
    assert effective_rank(np.eye(6)) == pytest.approx(6)
    assert effective_rank(np.ones((9, 4))) == 1.0
    assert effective_rank(np.zeros((3, 4))) == 0.0
    # Two rows at 60 degrees: the squared singular values are 1 + 1/2 and 1 - 1/2.
    p = np.sqrt([1.5, 0.5]) / np.sqrt([1.5, 0.5]).sum()
    z = np.array([[1.0, 0], [0.5, np.sqrt(3) / 2]])
    assert effective_rank(z) == pytest.approx(np.exp(-(p * np.log(p)).sum()), abs=1e-12)


@pytest.mark.parametrize("shape", [(30, 7), (7, 30)])
def test_effective_rank_and_participation_are_those_of_the_singular_values(shape):
    z = rows(*shape)
    unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    s = np.linalg.svd(unit, compute_uv=False)
    p = s / s.sum()
    variance = np.linalg.svd(unit - unit.mean(0), compute_uv=False) ** 2
    found = spread(z)
    assert found.effective_rank == pytest.approx(np.exp(-(p * np.log(p)).sum()), abs=1e-9)
    assert found.participation_ratio == pytest.approx(variance.sum() ** 2 / (variance**2).sum(), abs=1e-9)
    assert found.mean_length == pytest.approx(np.linalg.norm(unit.mean(0)), abs=1e-12)
    assert (found.n_rows, found.n_dimensions) == shape


def test_collapse_onto_three_dimensions_and_onto_a_point_is_seen():
    flat = rows(400, d=3) @ rows(3, d=64, seed=1)
    assert effective_rank(flat) < 3.01 and spread(flat).participation_ratio < 3.01
    point = np.ones((400, 64)) + 1e-3 * rows(400, d=64)
    assert effective_rank(point) < 2 and spread(point).mean_length > 0.99
    assert spread(np.ones((400, 64))).participation_ratio == 0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: alignment_cosine(np.eye(2), np.eye(3)), ShapeError, "z_a has 2 columns and z_b 3"),
        (lambda: alignment_cosine(np.zeros((0, 3)), np.eye(3)), ShapeError, "z_a has no rows"),
        (lambda: alignment_cosine(np.eye(3), np.full((3, 3), np.nan)), NonFiniteRowsError, "rows 0, 1, 2"),
        (lambda: alignment_cosine(np.eye(3), np.eye(3), np.zeros((0, 2))), LinksError, "no links"),
        (lambda: alignment_cosine(np.eye(3)[:2], np.eye(3)), LinksError, "side a has 2 rows and side b 3"),
        (lambda: alignment_distance(np.eye(2), np.eye(2), alpha=0), ArgumentError, "alpha = 0"),
        (lambda: alignment_distance(np.eye(2), np.eye(2), alpha=True), ArgumentError, "alpha = True"),
        (lambda: uniformity(np.ones((1, 3))), ShapeError, "at least two"),
        (lambda: uniformity(np.eye(3), t=float("nan")), ArgumentError, "t = nan"),
        (lambda: uniformity(np.eye(3), sample=1), ArgumentError, "sample = 1"),
        (lambda: uniformity(np.eye(3), block=0), ArgumentError, "block = 0"),
        (lambda: uniformity(np.eye(3), sample=2, seed=-1), ArgumentError, "seed = -1"),
        (lambda: effective_rank(np.zeros((0, 3))), ShapeError, "no rows"),
        (lambda: effective_rank(np.ones(3)), ShapeError, "two dimensions"),
        (lambda: effective_rank(np.array([["a"]])), ArgumentError, "expected numbers"),
    ],
)
def test_what_cannot_be_measured_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
