"""Levels of both directions from one pass: against loops, whatever the tiles, the threads and the order of rows."""

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgehead.errors import ArgumentError
from bridgehead.evaluate.ranks import layout, threads, tiles, undecided
from bridgehead.evaluate.ranks.cosine_rows import CosineRows, pair_cosines
from bridgehead.evaluate.ranks.exact import levels_both_ways, levels_of_rows
from bridgehead.evaluate.ranks.levels import TIE, Truth
from bridgehead.evaluate.ties import TieLevels
from bridgehead.links import Links
from reference import cosine_loop

Counted = list[tuple[int, int, int, int]]


def truth_of(links: Links) -> Truth:
    """The queries of side a that have a true candidate."""
    edges, candidate = links.targets()
    degree = np.diff(edges)
    rows = np.flatnonzero(degree)
    return Truth(rows, np.repeat(np.arange(len(rows)), degree[rows]), candidate, links.n_a - len(rows))


def counted(levels: TieLevels) -> Counted:
    columns = (levels.query, levels.above, levels.tied, levels.true)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def both(z_a: Any, z_b: Any, links: Links, block: int | None = None) -> tuple[Counted, Counted]:
    rows_a, rows_b = CosineRows(z_a, "a"), CosineRows(z_b, "b")
    found = levels_both_ways(rows_a, rows_b, truth_of(links), truth_of(links.swapped()), block)
    return counted(found[0][0]), counted(found[1][0])


def by_loop(scores: list[list[float]], links: Links) -> Counted:
    """(query, above, tied, true) of each distinct true score, by counting one by one; ties must be clear of 1e-12."""
    truth, found = links.matrix.toarray(), []
    for number, line in enumerate(np.flatnonzero(truth.any(axis=1)).tolist()):
        own, left = scores[line], set(np.flatnonzero(truth[line]).tolist())
        while left:
            best = max(own[j] for j in left)
            level = {j for j in left if abs(own[j] - best) <= TIE}
            above = sum(score > best + TIE for score in own)
            found.append((number, above, sum(abs(score - best) <= TIE for score in own), len(level)))
            left -= level
    return found


def problem(seed: int, n_a: int, n_b: int, d: int, density: float, largest: int = 1) -> tuple[Any, Any, Links]:
    # Small whole numbers: many identical, parallel and zero rows, and scores that are equal or well apart.
    rng = np.random.default_rng(seed)
    z_a, z_b = rng.integers(-largest, largest + 1, (n_a, d)), rng.integers(-largest, largest + 1, (n_b, d))
    pairs = np.argwhere(rng.random((n_a, n_b)) < density)
    return z_a, z_b, Links(pairs if len(pairs) else [[0, 0]], n_a, n_b)


@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 40), st.integers(1, 5), st.sampled_from([0.02, 0.5]))
@settings(max_examples=60, deadline=None)
def test_both_directions_are_those_of_a_loop(seed: int, n_a: int, n_b: int, d: int, density: float) -> None:
    z_a, z_b, links = problem(seed, n_a, n_b, d, density)
    scores = cosine_loop(z_a, z_b)
    forth, back = both(z_a, z_b, links)
    assert forth == by_loop(scores, links)
    assert back == by_loop(np.array(scores).T.tolist(), links.swapped())


@pytest.mark.parametrize("many", [0, 2, 1000])
@pytest.mark.parametrize("tile", [1, 3, 50, 1 << 20])
def test_tiles_strips_and_the_way_of_counting_change_nothing(
    monkeypatch: pytest.MonkeyPatch, many: int, tile: int
) -> None:
    # Three or more values an entry: both single and repeated rows, with none, few and many thresholds.
    z_a, z_b, links = problem(3, 60, 45, 3, 0.06, largest=2)
    links = Links(links.pairs[links.pairs[:, 0] % 4 != 0], 60, 45)
    scores = cosine_loop(z_a, z_b)
    monkeypatch.setattr(layout, "MANY", many)
    monkeypatch.setattr(tiles, "_ROWS", 7)
    monkeypatch.setattr(tiles, "_TILE", tile)
    monkeypatch.setattr(tiles, "_STRIP", max(1, tile // 3))
    assert both(z_a, z_b, links) == (by_loop(scores, links), by_loop(np.array(scores).T.tolist(), links.swapped()))


@pytest.fixture(scope="module")
def hard() -> tuple[np.ndarray, np.ndarray, Links]:
    """Duplicates on both sides, zero rows, neighbours that float32 cannot tell apart, many-to-many truth."""
    rng = np.random.default_rng(11)
    z_a, z_b = rng.standard_normal((300, 24)), rng.standard_normal((260, 24))
    z_a[40:60], z_a[60:70], z_a[7] = z_a[3], z_b[5], 0
    z_b[100:130], z_b[130:150], z_b[9] = z_b[5], z_b[6] + 1e-9 * rng.standard_normal((20, 24)), 0
    pairs = np.stack([rng.integers(0, 290, 700), rng.integers(0, 250, 700)], axis=1)
    generic = np.stack([np.arange(0, 300, 2), np.full(150, 12)], axis=1)
    return z_a, z_b, Links(np.concatenate([pairs, generic]), 300, 260)


@pytest.mark.parametrize("block", [1, 7, 300, 10**6, np.int64(8)])
def test_blocks_change_nothing(hard: Any, block: int) -> None:
    assert both(*hard, block=block) == both(*hard)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_threads_change_nothing(hard: Any, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = both(*hard)
    monkeypatch.setattr(tiles, "_SMALL", 0)
    monkeypatch.setattr(tiles, "_ROWS", 16)
    monkeypatch.setattr(tiles, "_TILE", 256)
    monkeypatch.setattr(threads, "threads_to_use", lambda: n)
    assert both(*hard) == expected


def test_the_order_of_rows_changes_nothing(hard: Any) -> None:
    z_a, z_b, links = hard
    rng = np.random.default_rng(0)
    order_a, order_b = rng.permutation(len(z_a)), rng.permutation(len(z_b))
    place_a, place_b = np.argsort(order_a), np.argsort(order_b)
    moved = Links(np.stack([place_a[links.pairs[:, 0]], place_b[links.pairs[:, 1]]], axis=1), links.n_a, links.n_b)

    def named(found: Counted, rows: np.ndarray) -> set[tuple[int, ...]]:
        return {(int(rows[query]), *rest) for query, *rest in found}

    forth, back = both(z_a, z_b, links)
    forth_moved, back_moved = both(z_a[order_a], z_b[order_b], moved)
    assert named(forth, truth_of(links).rows) == named(forth_moved, order_a[truth_of(moved).rows])
    assert named(back, truth_of(links.swapped()).rows) == named(back_moved, order_b[truth_of(moved.swapped()).rows])


def test_float32_and_the_crowded_way_only_screen(hard: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = both(*hard)
    monkeypatch.setattr("bridgehead.evaluate.ranks.exact.screening_error", lambda d: 3.0)
    for share, error in ((2.0, 0.0), (0.0, 1e-13), (0.0, 3.0)):
        monkeypatch.setattr(undecided, "_CROWDED", share)
        monkeypatch.setattr(undecided, "product64_error", lambda d, error=error: error)
        monkeypatch.setattr(undecided, "_WAITING", 100)
        assert both(*hard) == expected


def test_an_error_of_the_float64_product_inside_its_bound_changes_nothing(
    hard: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = both(*hard)
    made = undecided.Product64.scores.func  # type: ignore[attr-defined]

    def spoilt(self: undecided.Product64) -> Any:
        scores = made(self)
        return scores + np.random.default_rng(0).uniform(-0.9e-6, 0.9e-6, scores.shape)

    monkeypatch.setattr(undecided.Product64, "scores", property(spoilt))
    monkeypatch.setattr(undecided, "_CROWDED", 0.0)
    assert both(*hard) != expected
    monkeypatch.setattr(undecided, "product64_error", lambda d: 1e-6)
    assert both(*hard) == expected


def test_a_screen_without_its_bound_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    query = rng.standard_normal((1, 64))
    # The 200 cosines are 1 - 5e-9 or so: they differ by less than float32 can hold.
    z_b, links = query + 1e-4 * rng.standard_normal((200, 64)), Links([[0, 2]], 1, 200)
    expected = by_loop(cosine_loop(query, z_b), links)
    assert both(query, z_b, links)[0] == expected
    monkeypatch.setattr("bridgehead.evaluate.ranks.exact.screening_error", lambda d: 0.0)
    assert both(query, z_b, links)[0] != expected


def test_several_true_candidates_of_one_tie_group_are_one_level_in_both_directions() -> None:
    # b has the row (1, 0) four times, two of them true for a's first row; a's first two rows are identical.
    z_a = np.array([[1.0, 0], [2, 0], [0, 1]])
    z_b = np.array([[3.0, 0], [1, 0], [0, 2], [1, 0], [5, 0]])
    links = Links([[0, 0], [0, 3], [1, 1], [1, 2], [2, 4]], 3, 5)
    forth, back = both(z_a, z_b, links)
    assert forth == [(0, 0, 4, 2), (1, 0, 4, 1), (1, 4, 1, 1), (2, 1, 4, 1)]
    assert back == [(0, 0, 2, 1), (1, 0, 2, 1), (2, 1, 2, 1), (3, 0, 2, 1), (4, 2, 1, 1)]


def test_identical_queries_keep_truths_of_their_own() -> None:
    z_a, z_b = np.ones((200, 2)), np.stack([np.cos(np.arange(200) / 200), np.sin(np.arange(200) / 200)], axis=1)
    forth, back = both(z_a, z_b, Links.identity(200))
    # The nearest to 45 degrees (0.785 rad) is item 157, and candidates alternate around it.
    order = np.argsort(np.argsort(np.abs(np.arange(200) / 200 - np.pi / 4)))
    assert [(above, tied) for _, above, tied, _ in forth] == [(int(rank), 1) for rank in order]
    assert back == [(i, 0, 200, 1) for i in range(200)]


def test_a_query_with_hundreds_of_true_candidates_among_repeats() -> None:
    rng = np.random.default_rng(4)
    z_a, z_b = rng.standard_normal((12, 6)), rng.standard_normal((700, 6))
    z_b[500:600] = z_b[400:500]
    links = Links(np.stack([np.repeat([2, 3, 5], 350), np.tile(np.arange(0, 700, 2), 3)], axis=1), 12, 700)
    scores = cosine_loop(z_a, z_b)
    assert both(z_a, z_b, links) == (by_loop(scores, links), by_loop(np.array(scores).T.tolist(), links.swapped()))


def test_a_pair_has_one_cosine_whichever_row_asks_and_whatever_else_is_scored() -> None:
    rng = np.random.default_rng(0)
    z = rng.standard_normal((200, 333)).astype(np.float32)
    left, right = CosineRows(z[:100], "a"), CosineRows(z[100:] * np.float32(2.0**-60), "b")
    i, j = rng.integers(0, 100, 1000), rng.integers(0, 100, 1000)
    together = pair_cosines(left, right, i, j)
    assert (pair_cosines(right, left, j, i) == together).all()
    assert [float(pair_cosines(left, right, i[n : n + 1], j[n : n + 1])[0]) for n in range(50)] == together[
        :50
    ].tolist()
    exact = (z[i].astype(np.longdouble) * z[100 + j]).sum(axis=1)
    lengths = [np.sqrt((z[rows].astype(np.longdouble) ** 2).sum(axis=1)) for rows in (i, 100 + j)]
    np.testing.assert_allclose(together, (exact / lengths[0] / lengths[1]).astype(float), atol=1e-15)


def test_one_direction_is_that_of_both(hard: Any) -> None:
    z_a, z_b, links = hard
    rows_a, rows_b, truth = CosineRows(z_a, "a"), CosineRows(z_b, "b"), truth_of(links)
    alone, best = levels_of_rows(rows_a, rows_b, truth)
    (levels, best_both), _ = levels_both_ways(rows_a, rows_b, truth, truth_of(links.swapped()))
    assert counted(alone) == counted(levels) and best.tolist() == best_both.tolist()
    assert best[0] == pytest.approx(
        max(np.array(cosine_loop(z_a[:1], z_b))[0][links.within([0], range(260)).pairs[:, 1]])
    )


def test_what_no_query_needs_is_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    product = tiles._Counter._product
    monkeypatch.setattr(
        tiles._Counter, "_product", lambda self, *part: made.append(product(self, *part)) or made[-1].copy()
    )
    rng = np.random.default_rng(0)
    # 50 of 400 rows of each side are queries, the rest a pool that is only ranked: 350 x 350 scores are not needed.
    links = Links(np.stack([np.arange(50), np.arange(50)], axis=1), 400, 400)
    both(rng.standard_normal((400, 8)), rng.standard_normal((400, 8)), links)
    assert sum(scores.size for scores in made) == 400 * 400 - 350 * 350


def test_sides_without_queries_rows_or_columns_are_fine() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    none = Truth(nothing, nothing, nothing, n_without=4)
    for rows in (np.eye(4), np.zeros((0, 4))):
        (levels, best), (back, _) = levels_both_ways(CosineRows(np.eye(4), "a"), CosineRows(rows, "b"), none, none)
        assert counted(levels) == counted(back) == [] and best.tolist() == []
    assert both(np.zeros((2, 0)), np.zeros((3, 0)), Links([[0, 1]], 2, 3)) == ([(0, 0, 3, 1)], [(0, 0, 2, 1)])


def test_rows_of_any_scale_and_type_are_ranked_alike() -> None:
    rng = np.random.default_rng(8)
    z_a, z_b = rng.integers(-3, 4, (40, 9)), rng.integers(-3, 4, (40, 9))
    expected = both(z_a, z_b, Links.identity(40))
    for low, high, kind in ((-300, 300, np.float64), (-30, 30, np.float32)):
        scale = 2.0 ** np.round(np.log2(10) * rng.integers(low, high, (40, 1)))
        assert both((z_a * scale).astype(kind), z_b / scale, Links.identity(40)) == expected
    assert both(z_a.astype(np.float16), z_b.astype(np.int8), Links.identity(40)) == expected


@pytest.mark.parametrize("block", [0, -3, 1.5, True, "8"])
def test_a_block_that_is_no_number_of_rows_is_refused(block: Any) -> None:
    with pytest.raises(ArgumentError, match="expected at least 1 row"):
        both(np.eye(2), np.eye(2), Links.identity(2), block=block)


@pytest.mark.slow
@pytest.mark.parametrize("n_true", [1, 3])
def test_memory_is_of_rows_and_tiles_never_of_all_pairs(n_true: int) -> None:
    code = f"""
import json, resource, numpy as np
from bridgehead.evaluate.ranks.cosine_rows import CosineRows
from bridgehead.evaluate.ranks.exact import levels_both_ways
from bridgehead.evaluate.ranks.levels import Truth
n, p = 16_000, {n_true}
z_a, z_b = (np.random.default_rng(s).standard_normal((n, 32), dtype=np.float32) for s in (0, 1))
rows = np.arange(n)
truth = Truth(rows, np.repeat(rows, p), (np.repeat(rows, p) + np.tile(np.arange(p), n)) % n, 0)
small = CosineRows(z_a[:3000], "a"), CosineRows(z_b[:3000], "b")
own = Truth(rows[:3000], rows[:3000], rows[:3000], 0)
levels_both_ways(*small, own, own)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
(levels, _), _ = levels_both_ways(CosineRows(z_a, "a"), CosineRows(z_b, "b"), truth, truth)
print(json.dumps([resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, float(levels.above.mean())]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    kilobytes, mean = json.loads(done.stdout)
    # All scores would be 1,000 MB; the rows are 4.
    assert kilobytes < 100_000
    assert mean == pytest.approx(8_000, rel=0.05)
