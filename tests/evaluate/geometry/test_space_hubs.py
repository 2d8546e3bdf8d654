"""Hubness: exact lists against loops, ties as expectations, planted hubs."""

import subprocess
import sys

import numpy as np
import pytest

from bridgehead.errors import ArgumentError
from bridgehead.evaluate.geometry import hubness, k_occurrence
from reference import cosine_loop, orders_of


def rows(n, d=4, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def enumerated(queries, candidates, k):
    """Expected times and the probability of never, by going through every order of tied candidates."""
    times, missed = np.zeros(len(candidates)), np.ones(len(candidates))
    for scores in cosine_loop(queries, candidates):
        orders = orders_of(scores)
        share = np.zeros(len(candidates))
        for order in orders:
            share[order[:k]] += 1 / len(orders)
        times += share
        missed *= 1 - share
    return times, missed


@pytest.mark.parametrize("k", [1, 3, 6, 7, 9])
def test_times_are_those_of_every_order_of_ties(k):
    candidates = np.concatenate([rows(4, seed=1), np.repeat(rows(1, seed=2), 2, axis=0), np.zeros((1, 4))])
    queries = np.concatenate([rows(9), candidates[4:6], np.zeros((1, 4))])
    times, missed = enumerated(queries, candidates, min(k, 7))
    assert k_occurrence(queries, candidates, k) == pytest.approx(times, abs=1e-12)
    assert hubness(queries, candidates, k)[0].never == pytest.approx(missed.mean(), abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lists_are_those_of_a_float64_sort_whatever_the_block(dtype):
    queries, candidates = rows(60, d=6).astype(dtype), rows(90, d=6, seed=1).astype(dtype)
    cosines = np.array(cosine_loop(queries, candidates))
    expected = np.bincount(np.argsort(-cosines, axis=1)[:, :10].reshape(-1), minlength=90)
    for block in (1, 7, 60, None):
        assert k_occurrence(queries, candidates, 10, block).tolist() == expected.tolist()


def test_near_ties_that_float32_cannot_tell_apart_are_decided_in_float64():
    # Unlike rows whose cosines with the query differ by 1e-9: float32 products err by more, each in its own way.
    draw = np.random.default_rng(0)
    query = np.zeros(64)
    query[0] = 1
    cosines = 0.7 + 1e-9 * draw.permutation(200)
    rest = draw.standard_normal((200, 63))
    rest *= (np.sqrt(1 - cosines**2) / np.linalg.norm(rest, axis=1))[:, None]
    turned = np.linalg.qr(draw.standard_normal((64, 64)))[0]
    candidates = np.concatenate([cosines[:, None], rest], axis=1) @ turned
    found = k_occurrence(query[None] @ turned, candidates, 10)
    assert sorted(np.flatnonzero(found)) == sorted(np.argsort(-cosines)[:10]) and set(found.tolist()) == {0.0, 1.0}


def test_the_order_of_rows_does_not_matter():
    queries, candidates = rows(40), np.repeat(rows(15, seed=1), 2, axis=0)
    order = np.random.default_rng(3).permutation(30)
    assert k_occurrence(queries[::-1], candidates[order], 5) == pytest.approx(
        k_occurrence(queries, candidates, 5)[order]
    )


def test_constant_rows_are_at_chance():
    forth, back = hubness(np.ones((20, 3)), np.ones((50, 3)), k=10)
    assert (forth.n_queries, forth.n_candidates, back.n_candidates) == (20, 50, 20)
    assert forth.skewness == 0 and (forth.never, forth.chance_never) == pytest.approx((0.8**20, 0.8**20))
    assert forth.top_rows == tuple(range(10)) and forth.top_times == pytest.approx([4.0] * 10)


def test_random_lists_have_the_skewness_that_is_called_chance():
    draw = np.random.default_rng(0)
    lists = np.argpartition(draw.random((300 * 40, 200)), 10, axis=1)[:, :10].reshape(300, -1)
    times = np.stack([np.bincount(of_one, minlength=200) for of_one in lists])
    centred = times - times.mean(axis=1, keepdims=True)
    measured = ((centred**3).mean(axis=1) / (centred**2).mean(axis=1) ** 1.5).mean()
    found = hubness(np.ones((40, 2)), np.ones((200, 2)))[0]
    # 300 sample skewnesses of 200 candidates: their mean is within 0.02 twice in three times.
    assert found.chance_skewness == pytest.approx(measured, abs=0.04)
    assert found.chance_never == pytest.approx((times == 0).mean(), abs=0.01)


def test_a_planted_hub_is_named_and_its_share_stated():
    queries = np.abs(rows(300, d=20))
    candidates = rows(100, d=20, seed=1)
    candidates[37] = 1.0
    found = hubness(queries, candidates, k=5)[0]
    assert found.top_rows[0] == 37 and found.largest_share == 1.0 and found.top_times[0] == 300
    assert found.skewness > 3 > found.chance_skewness and found.never > found.chance_never


def test_k_over_the_number_of_candidates_counts_as_that_number():
    forth, _ = hubness(rows(8), rows(3, seed=1), k=10)
    assert (forth.k, forth.never, forth.skewness, forth.chance_skewness) == (10, 0, 0, 0)
    assert forth.top_times == (8, 8, 8) and k_occurrence(rows(8), rows(3, seed=1), 99).tolist() == [8, 8, 8]


@pytest.mark.parametrize("k", [0, -1, True, 2.0, "3", None])
def test_a_k_that_is_none_is_refused(k):
    with pytest.raises(ArgumentError, match=r"k = .*whole number of at least 1"):
        hubness(rows(4), rows(4), k=k)
    with pytest.raises(ArgumentError, match="block = 0"):
        k_occurrence(rows(4), rows(4), 2, block=0)


@pytest.mark.slow
def test_memory_is_that_of_a_block():
    script = (
        "import numpy as np, resource\n"
        "from bridgehead.evaluate.geometry import hubness\n"
        "z = np.random.default_rng(0).standard_normal((8_000, 32)).astype(np.float32); z[:1500] = z[0]\n"
        "hubness(z[:10], z[:10])\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "hubness(z, z)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    # All scores at once would be 256 MB in float32.
    assert int(done.stdout) < 200_000
