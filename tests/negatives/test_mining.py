import subprocess
import sys
import textwrap

import faiss
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from bridgehead.errors import ArgumentError, LinksError, NonFiniteRowsError, ShapeError
from bridgehead.links import Links
from bridgehead.negatives import mine_across, mine_sides, mine_within


def cosines(x, y):
    """The cosine of each pair in float64, one after another."""
    out = np.zeros((len(x), len(y)))
    for i, u in enumerate(x.astype(np.float64)):
        for j, v in enumerate(y.astype(np.float64)):
            norm = np.sqrt((u * u).sum()) * np.sqrt((v * v).sum())
            out[i, j] = (u * v).sum() / norm if norm else 0.0
    return out


def brute(scores, positive, k, low=1, high=100, max_score=None, margin=None, relative=None, semi=False, forbidden=None):
    """The definition, anchor after anchor: -1 padded neighbours. `positive` sets p, `forbidden` what is never taken."""
    forbidden = positive if forbidden is None else forbidden
    result = np.full((len(scores), k), -1)
    for i in range(len(scores)):
        p = min((scores[i, j] for j in np.flatnonzero(positive[i])), default=np.inf)
        ranked = sorted((j for j in range(scores.shape[1]) if not forbidden[i, j]), key=lambda j: -scores[i, j])
        kept = []
        for rank, j in enumerate(ranked, start=1):
            s = scores[i, j]
            ok = low <= rank <= high
            ok &= max_score is None or s <= max_score
            ok &= margin is None or s <= p - margin
            ok &= relative is None or p == np.inf or s <= p - relative * abs(p)
            ok &= not semi or s < p
            if ok:
                kept.append(j)
        result[i, : min(k, len(kept))] = kept[:k]
    return result


def sides(seed=0, n_a=40, n_b=50, d=8):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n_a, d)).astype(np.float32), rng.standard_normal((n_b, d)).astype(np.float32)


def many_to_many(seed=0, n_a=40, n_b=50, n_links=90, groups=True):
    rng = np.random.default_rng([seed, 1])
    pairs = np.stack([rng.integers(0, n_a, n_links), rng.integers(0, n_b, n_links)], axis=1)
    groups_a = rng.integers(-1, 20, n_a) if groups else None
    groups_b = rng.integers(-1, 30, n_b) if groups else None
    return Links(pairs, n_a, n_b, groups_a, groups_b)


OPTIONS = [
    {},
    {"low": 3, "high": 9},
    {"max_score": 0.4},
    {"margin": 0.1},
    {"relative": 0.3},
    {"semi": True},
    {"low": 2, "high": 30, "max_score": 0.6, "margin": 0.05, "semi": True},
]
NAMES = {
    "low": "lowest_rank", "high": "highest_rank", "relative": "relative_margin", "semi": "semi_hard",
    "max_score": "max_score", "margin": "margin",
}  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("groups", [False, True])
def test_mining_across_is_what_brute_force_over_all_pairs_finds(options, groups):
    a, b = sides()
    links = many_to_many(groups=groups)
    expected = brute(cosines(a, b), links.matrix.toarray(), 6, **options)
    found = mine_across(a, b, links, k=6, **{NAMES[name]: value for name, value in options.items()})
    assert np.array_equal(found.neighbours, expected)


@pytest.mark.parametrize("options", [{}, {"low": 3, "high": 9}, {"max_score": 0.4}])
def test_mining_within_leaves_out_the_anchor_and_what_shares_a_match_or_a_group(options):
    a, _ = sides()
    links = many_to_many()
    truth = links.matrix.toarray().astype(int)
    same = (truth @ truth.T > 0) | np.eye(len(a), dtype=bool)
    same |= (links.groups_a[:, None] == links.groups_a) & (links.groups_a[:, None] >= 0)
    expected = brute(cosines(a, a), same, 6, **options)
    found = mine_within(a, links, k=6, **{NAMES[name]: value for name, value in options.items()})
    assert np.array_equal(found.neighbours, expected)


def test_planted_neighbours_are_found_exactly():
    rng = np.random.default_rng(0)
    base = np.linalg.qr(rng.standard_normal((64, 64)))[0].astype(np.float32)
    a = base[:30]
    # Row i of b matches row i of a; rows 30 + i and 0.6 of row i + 1 lie near it in a known order.
    b = np.concatenate([a + 0.6 * np.roll(a, 1, axis=0), a + 0.1 * base[30:60]])
    links = Links(np.stack([np.arange(30)] * 2, axis=1), 30, 60)
    found = mine_across(a, b, links, k=2)
    expected = np.stack([30 + np.arange(30), (np.arange(30) + 1) % 30], axis=1)
    assert np.array_equal(found.neighbours, expected)
    assert np.allclose(found.scores[:, 0], 1 / np.sqrt(1.01)) and np.allclose(found.scores[:, 1], 0.6 / np.sqrt(1.36))


@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(0, 60))
@settings(max_examples=40, deadline=None)
def test_a_positive_is_never_mined_and_none_occurs_twice(seed, k, n_links):
    a, b = sides(seed, 12, 15, 3)
    links = many_to_many(seed, 12, 15, n_links)
    truth = links.matrix.toarray()
    for found, positive in (
        (mine_across(a, b, links, k=k), truth),
        (mine_across(b, a, links.swapped(), k=k), truth.T),
    ):
        for i, row in enumerate(found.neighbours):
            taken = row[row >= 0]
            assert not positive[i, taken].any()
            assert len(set(taken.tolist())) == len(taken) == min(k, positive.shape[1] - positive[i].sum())
            assert (row[len(taken) :] == -1).all()


def test_an_anchor_with_twenty_positives_gets_its_negatives_all_the_same():
    rng = np.random.default_rng(0)
    b = rng.standard_normal((120, 8)).astype(np.float32)
    a = b[:1] * 2
    nearest = np.argsort(-cosines(a, b)[0])
    # The twenty nearest rows are the positives, so any fixed window would hold nothing else.
    found = mine_across(a, b, np.stack([np.zeros(20, int), nearest[:20]], axis=1), k=5)
    assert found.neighbours[0].tolist() == nearest[20:25].tolist()
    found = mine_across(a, b, np.stack([np.zeros(115, int), nearest[:115]], axis=1), k=5)
    assert found.neighbours[0].tolist() == nearest[115:].tolist()


def test_more_negatives_than_there_are_is_a_shortage_that_is_counted_and_said():
    a, b = sides(n_a=4, n_b=4)
    found = mine_across(a, b, [[0, 0], [0, 1], [1, 1], [2, 2], [3, 3]], k=10)
    assert found.counts.tolist() == [2, 3, 3, 3]
    assert found.shortage.tolist() == [[0, 8], [1, 7], [2, 7], [3, 7]]
    assert any("4 of 4 anchors have fewer than 10" in note and "29 of 40 are missing" in note for note in found.notes)


def test_empty_links_leave_every_row_a_negative():
    a, b = sides(n_a=5, n_b=6)
    found = mine_across(a, b, np.zeros((0, 2), dtype=int), k=6, semi_hard=True)
    assert np.array_equal(found.neighbours, np.argsort(-cosines(a, b), axis=1))


def test_lists_and_tensors_are_taken_as_rows():
    a, b = sides()
    expected = mine_sides(a, b, many_to_many(), k=3)[0].neighbours
    for convert in (np.ndarray.tolist, torch.from_numpy):
        found = mine_sides(convert(a), convert(b), many_to_many(), k=3)[0].neighbours
        assert np.array_equal(found, expected)


def test_no_rows_are_no_anchors():
    found = mine_across(np.zeros((0, 3), np.float32), np.ones((4, 3)), np.zeros((0, 2), int), k=2)
    assert found.neighbours.shape == (0, 2) and len(found.shortage) == 0
    found = mine_across(np.ones((4, 3)), np.zeros((0, 3), np.float32), np.zeros((0, 2), int), k=2)
    assert found.counts.tolist() == [0] * 4


def test_a_relative_margin_lowers_a_negative_positive_score_too():
    # p = -0.6; at a relative margin of 0.5 a negative may have -0.9 at most: only the last row.
    angles = np.arccos([-0.6, -0.3, -0.7, -0.8, -0.95])
    b = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    found = mine_across(np.array([[1.0, 0.0]]), b, [[0, 0]], k=2, relative_margin=0.5)
    assert found.neighbours.tolist() == [[4, -1]]


def test_semi_hard_is_the_hardest_below_the_lowest_positive():
    angles = np.arccos([0.9, 0.5, 0.7, 0.45, 0.3])
    b = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    found = mine_across(np.array([[1.0, 0.0]]), b, [[0, 0], [0, 1]], k=2, semi_hard=True)
    assert found.neighbours.tolist() == [[3, 4]]
    assert any("1 of 1 anchors have rows that are not linked and yet nearer" in note for note in found.notes)


def test_a_zero_anchor_has_no_direction_and_gets_nothing():
    found = mine_across(np.array([[0.0, 0.0], [1.0, 0.0]]), np.eye(2), [[0, 0], [1, 1]], k=1)
    assert found.neighbours.tolist() == [[-1], [0]]
    assert any("1 of 2 anchors are zero rows" in note for note in found.notes)


def test_csr_rows_give_what_dense_rows_give():
    a, b = sides(d=30)
    a[np.abs(a) < 0.8] = 0
    b[np.abs(b) < 0.8] = 0
    links = many_to_many()
    dense = mine_across(a, b, links, k=5, margin=0.05)
    found = mine_across(sparse.csr_matrix(a), sparse.csr_matrix(b), links, k=5, margin=0.05)
    assert np.array_equal(found.neighbours, dense.neighbours)
    assert np.allclose(found.scores, dense.scores, atol=1e-6)


def test_csr_rows_beyond_the_exact_number_are_projected_and_scored_again():
    rng = np.random.default_rng(0)
    centres = (rng.random((40, 2000)) < 0.02).astype(np.float32)
    rows = np.repeat(centres, 5, axis=0) + (rng.random((200, 2000)) < 0.002)
    found = mine_within(sparse.csr_matrix(rows), k=4, exact_up_to=50, threads=1)
    assert not found.exact
    # The four others of its own five.
    assert (found.neighbours // 5 == np.arange(200)[:, None] // 5).mean() > 0.97
    chosen = found.neighbours[0, 0]
    assert found.scores[0, 0] == pytest.approx(cosines(rows[:1], rows[chosen : chosen + 1])[0, 0], abs=1e-6)


def test_an_index_finds_nearly_all_and_says_how_many():
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((60, 16))
    rows = (centres[rng.integers(0, 60, 3000)] + 0.4 * rng.standard_normal((3000, 16))).astype(np.float32)
    exact = mine_within(rows, k=5, threads=1)
    found = mine_within(rows, k=5, exact_up_to=1000, threads=1)
    assert exact.exact and not found.exact and found.recall >= 0.95
    same = [len(np.intersect1d(x, y)) for x, y in zip(exact.neighbours, found.neighbours, strict=True)]
    assert np.mean(same) / 5 > 0.93
    assert any("3,000 rows were searched through an index" in note for note in found.notes)
    again = mine_within(rows, k=5, exact_up_to=1000, threads=1)
    assert np.array_equal(found.neighbours, again.neighbours)


def test_the_number_of_threads_of_faiss_is_put_back():
    before = faiss.omp_get_max_threads()
    a, b = sides()
    mine_across(a, b, np.zeros((0, 2), int), k=1, threads=1)
    assert faiss.omp_get_max_threads() == before


def test_both_sides_are_mined_in_one_call():
    a, b = sides()
    links = many_to_many()
    across = mine_sides(a, b, links, k=3)
    assert np.array_equal(across[1].neighbours, mine_across(b, a, links.swapped(), k=3).neighbours)
    within = mine_sides(a, b, links, across=False, k=3)
    assert np.array_equal(within[1].neighbours, mine_within(b, links.swapped(), k=3).neighbours)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"k": 0}, ArgumentError, "k = 0; expected at least 1"),
        ({"k": 1, "lowest_rank": 0}, ArgumentError, "expected 1 <= lowest <= highest"),
        ({"k": 1, "lowest_rank": 9, "highest_rank": 3}, ArgumentError, "lowest_rank = 9, highest_rank = 3"),
        ({"k": 1, "margin": -0.1}, ArgumentError, "margin = -0.1"),
        ({"k": 1, "max_score": float("nan")}, ArgumentError, "max_score = nan"),
        ({"k": 1, "threads": 0}, ArgumentError, "threads = 0"),
        ({"k": 1, "links": [[0, 50]]}, LinksError, "outside side b"),
        ({"k": 1, "rows_b": np.ones((50, 3))}, ShapeError, "both must live in one space"),
        ({"k": 1, "rows_b": np.full((50, 8), np.nan)}, NonFiniteRowsError, "rows_b"),
        ({"k": 1, "rows_b": sparse.csr_matrix(np.ones((50, 8)))}, ArgumentError, "one side is dense"),
    ],
)
def test_what_cannot_be_mined_is_refused_with_the_reason(options, error, match):
    a, b = sides()
    given_options = {"links": [[0, 0]], "rows_a": a, "rows_b": b, **options}
    with pytest.raises(error, match=match):
        mine_across(**given_options)


MEASURE = """
    import resource, sys
    import numpy as np
    from bridgehead.links import Links
    from bridgehead.negatives import mine_across
    n, d = int(sys.argv[1]), 64
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((2000, d)).astype(np.float32)
    rows = [centres[rng.integers(0, 2000, n)] + rng.normal(0, 0.5, (n, d)).astype(np.float32) for _ in range(2)]
    # One text for a thousand molecules: a thousand positives in a row must not widen all the others.
    pairs = np.stack([np.arange(n)] * 2, axis=1)
    pairs[:1000, 1] = 0
    links = Links(pairs, n, n)
    mine_across(rows[0][:100], rows[1][:100], k=4, exact_up_to=10)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = mine_across(rows[0], rows[1], links, k=4, exact_up_to=int(sys.argv[2]), threads=1)
    assert (found.counts == 4).all()
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def megabytes(n, exact_up_to):
    script = textwrap.dedent(MEASURE)
    done = subprocess.run([sys.executable, "-c", script, str(n), str(exact_up_to)], capture_output=True, check=True)
    return float(done.stdout)


def test_memory_is_of_the_order_of_the_rows_and_not_of_their_square():
    # 20,000 x 20,000 scores would be 1,526 MB; two unit copies of the rows and the index are 15 MB.
    assert megabytes(20_000, 50_000) < 150


@pytest.mark.slow
def test_two_hundred_thousand_rows_are_mined_in_under_half_a_gigabyte():
    # 200,000 x 200,000 scores would be 149 GB.
    assert megabytes(200_000, 50_000) < 500


def test_an_index_of_few_or_identical_or_zero_rows_works():
    for rows in (np.ones((3, 4)), np.zeros((40, 4)), np.concatenate([np.ones((60, 4)), np.zeros((4, 4)), np.eye(4)])):
        found = mine_within(rows, k=2, exact_up_to=1, threads=1)
        assert (found.counts == 2 * rows.any(axis=1)).all()
        assert found.recall == 1.0
