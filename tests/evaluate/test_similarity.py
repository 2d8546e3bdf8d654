"""Similarity to training items, and activity cliffs: against loops over all pairs."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from bridgehead.errors import ArgumentError, NonFiniteRowsError, ShapeError
from bridgehead.evaluate import cliffs
from bridgehead.evaluate.cliffs import activity_cliffs
from bridgehead.evaluate.similarity import nearest_similarity
from bridgehead.links import Links
from reference import cosine_loop


@pytest.mark.parametrize("block", [None, 1, 7])
@pytest.mark.parametrize("kind", ["dense", "sparse", "mixed", "float64"])
def test_nearest_similarity_is_the_largest_cosine(kind: str, block: int | None) -> None:
    rng = np.random.default_rng(0)
    rows, train = rng.normal(size=(23, 6)).round(1), rng.normal(size=(31, 6)).round(1)
    rows[rng.random(rows.shape) < 0.5] = 0
    rows[4] = 0
    rows[5] = train[3] * 7
    train[:4] *= 1e25
    expected = np.max(cosine_loop(rows, train), axis=1)
    as_given = {
        "dense": (rows.astype(np.float32), train.astype(np.float32)),
        "float64": (rows, train),
        "sparse": (sparse.csr_array(rows), sparse.csr_array(train)),
        "mixed": (sparse.csr_matrix(rows), train),
    }
    found = nearest_similarity(*as_given[kind], block)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert found[4] == 0 and found.max() <= 1


def test_rows_whose_cosines_are_all_negative_keep_their_sign() -> None:
    rows, train = np.array([[1.0, 0.0]]), np.array([[-1.0, 1.0], [-2.0, 0.1]])
    for side in (train, sparse.csr_array(train)):
        assert nearest_similarity(rows, side)[0] == pytest.approx(-np.sqrt(0.5), abs=1e-6)


def test_rows_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(ShapeError, match="rows have 2 columns and train_rows 3"):
        nearest_similarity(np.ones((1, 2)), np.ones((1, 3)))
    with pytest.raises(ArgumentError, match="train_rows has no rows"):
        nearest_similarity(np.ones((1, 2)), np.ones((0, 2)))
    with pytest.raises(NonFiniteRowsError, match="train_rows: 1 of 2 rows"):
        nearest_similarity(np.ones((1, 2)), [[1.0, np.nan], [0.0, 1.0]])
    assert nearest_similarity(np.ones((0, 2)), np.ones((1, 2))).shape == (0,)


def near_counts(seed: int, n: int, bits: bool) -> np.ndarray:
    """Counts of a few families whose members differ in a few places, so that many pairs lie about the threshold."""
    rng = np.random.default_rng(seed)
    family = rng.poisson(0.8, size=(n // 6 + 1, 40))
    counts = family[rng.integers(0, len(family), n)]
    counts = np.maximum(counts + (rng.random((n, 40)) < 0.02) - (rng.random((n, 40)) < 0.03), 0)
    counts[3] = 0
    counts[7] = counts[8]
    return (counts > 0).astype(int) if bits else counts


@pytest.mark.parametrize("bits", [False, True])
@pytest.mark.parametrize(("threshold", "block"), [(0.9, None), (0.9, 1), (0.75, 13), (0.5, None)])
def test_cliffs_are_those_of_a_loop_over_all_pairs(bits: bool, threshold: float, block: int | None) -> None:
    counts = near_counts(1, 120, bits)
    rng = np.random.default_rng(2)
    texts = [
        None if i % 17 == 0 else set(rng.choice(list("abcdef"), size=rng.integers(1, 3)).tolist()) for i in range(120)
    ]
    found = activity_cliffs(sparse.csr_array(counts) if bits else counts, texts, threshold, block)
    mask, pairs = np.zeros(120, dtype=bool), {}
    for i in range(120):
        for j in range(i + 1, 120):
            union = np.maximum(counts[i], counts[j]).sum()
            similarity = np.minimum(counts[i], counts[j]).sum() / union if union else 0
            one, other = texts[i], texts[j]
            if similarity > threshold and one is not None and other is not None and not one & other:
                mask[[i, j]] = True
                pairs[i, j] = similarity
    assert len(pairs) > 5 and not mask.all()
    np.testing.assert_array_equal(found.mask, mask)
    assert found.n_pairs == len(pairs)
    assert {
        (i, j): s for (i, j), s in zip(found.pairs.tolist(), found.similarity.tolist(), strict=True)
    } == pytest.approx(pairs)
    assert (np.diff(found.similarity) <= 0).all()


def test_texts_may_be_links() -> None:
    counts = [[2, 1, 5], [2, 1, 5], [2, 1, 5], [0, 0, 1]]
    found = activity_cliffs(counts, Links([[0, 0], [0, 1], [1, 1], [2, 2]], 4, 3))
    # Item 1 shares text 1 with item 0; item 3 has none.
    assert found.pairs.tolist() == [[0, 2], [1, 2]]
    assert found.mask.tolist() == [True, True, True, False]


def test_many_equal_items_are_compared_once() -> None:
    counts = np.repeat(near_counts(3, 20, False), 300, axis=0)
    texts = [f"text {i % 2}" for i in range(len(counts))]
    found = activity_cliffs(counts, texts)
    # Each row stands for 150 items of either text (the zero row has none): 150 x 150 pairs in every group at least.
    assert found.n_pairs >= 19 * 150 * 150
    assert len(found.pairs) == 1000
    assert found.mask.sum() == 19 * 300


@pytest.mark.slow
def test_ten_thousand_items_take_seconds() -> None:
    rng = np.random.default_rng(4)
    family = sparse.random_array((2000, 2000), density=0.03, rng=rng, data_sampler=lambda size: np.ones(size)).tocsr()
    more = sparse.random_array((10_000, 2000), density=0.001, rng=rng, data_sampler=lambda size: np.ones(size))
    found = activity_cliffs(family[rng.integers(0, 2000, 10_000)] + more.tocsr(), [str(i) for i in range(10_000)])
    assert found.n_pairs > 10_000
    # A family has 5 members on average; only those that drew none or many further elements stand alone.
    assert 0.9 < found.mask.mean() < 1


@pytest.mark.parametrize(
    ("rows", "texts", "threshold", "error", "message"),
    [
        ([[1.5, 0.0]], ["x"], 0.9, ArgumentError, "no counts"),
        ([[-1.0, 0.0]], ["x"], 0.9, ArgumentError, "no counts"),
        ([[1e12, 1e12]], ["x"], 0.9, ArgumentError, "too many to compare"),
        ([[1, 0]], ["x", "y"], 0.9, ShapeError, "texts has 2 entries; expected 1"),
        ([[1, 0]], Links.identity(3), 0.9, ShapeError, "texts are links of 3 items; expected 1"),
        ([[1, 0]], ["x"], 1.0, ArgumentError, "threshold = 1.0"),
        ([[1, 0]], ["x"], 0.2, ArgumentError, "threshold = 0.2"),
    ],
)
def test_what_is_no_count_text_or_threshold_is_refused(
    rows: Any, texts: Any, threshold: float, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        activity_cliffs(rows, texts, threshold)


def test_one_item_or_none_has_no_cliff() -> None:
    assert activity_cliffs([[1, 2]], ["x"]).mask.tolist() == [False]
    assert activity_cliffs(np.zeros((0, 3)), []).n_pairs == 0


def test_items_with_one_structure_are_compared_in_blocks_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.repeat(np.array([[1, 1, 1, 0], [0, 1, 1, 2], [0, 0, 0, 0]]), [70, 40, 5], axis=0)
    texts = [f"text {i % 7}" for i in range(len(rows))]
    whole, sizes = activity_cliffs(rows, texts, 0.5), []
    differ = cliffs._differ
    monkeypatch.setattr(cliffs, "_differ", lambda found, pairs: sizes.append(len(pairs)) or differ(found, pairs))
    monkeypatch.setattr(cliffs, "_AT_ONCE", 100)
    parts = activity_cliffs(rows, texts, 0.5)
    apart = sum(i < j and texts[i] != texts[j] for part in (range(70), range(70, 110)) for i in part for j in part)
    assert whole.n_pairs == parts.n_pairs == apart
    assert np.array_equal(whole.mask, parts.mask)
    assert np.array_equal(whole.pairs, parts.pairs)
    assert max(sizes) <= 100
