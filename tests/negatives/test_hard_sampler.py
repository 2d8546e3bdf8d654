import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.links import Links
from bridgehead.negatives import HardNegativeBatchSampler


def similarities(n=50, seed=0):
    rows = np.random.default_rng(seed).standard_normal((n, 6))
    return rows @ rows.T


def test_the_hard_negatives_are_the_most_similar_others_hardest_first():
    matrix = np.array([[9.0, 1.0, 3.0, 2.0], [1.0, 9.0, 0.0, 5.0], [3.0, 0.0, 9.0, 4.0], [2.0, 5.0, 4.0, 9.0]])
    sampler = HardNegativeBatchSampler(matrix, k_hard=2, batch_size=4)
    assert sampler.hard_negative_indices.tolist() == [[2, 3], [3, 0], [3, 0], [1, 2]]
    assert sampler.hard_negative_indices.dtype == np.int64


def test_the_defaults_and_attributes_are_those_of_the_book():
    matrix = similarities()
    sampler = HardNegativeBatchSampler(matrix)
    assert (sampler.k_hard, sampler.batch_size) == (4, 32)
    assert sampler.similarity_matrix is matrix
    assert sampler.hard_negative_indices.shape == (50, 4)


def test_a_batch_holds_its_anchor_first_then_all_hard_negatives_and_no_item_twice():
    sampler = HardNegativeBatchSampler(similarities(), k_hard=5, batch_size=20)
    for anchor in range(50):
        batch = sampler.sample_batch(anchor)
        assert batch[:6] == [anchor, *sampler.hard_negative_indices[anchor].tolist()]
        assert len(batch) == len(set(batch)) == 20
        assert all(type(item) is int for item in batch)


def test_the_random_items_of_a_batch_depend_on_seed_epoch_and_anchor_alone():
    sampler = HardNegativeBatchSampler(similarities())
    first = sampler.sample_batch(7)
    np.random.default_rng().random()
    assert sampler.sample_batch(7) == first == HardNegativeBatchSampler(similarities()).sample_batch(7)
    assert HardNegativeBatchSampler(similarities(), seed=1).sample_batch(7) != first
    sampler.set_epoch(1)
    assert sampler.sample_batch(7) != first


def test_a_batch_may_be_all_items():
    sampler = HardNegativeBatchSampler(similarities(8), k_hard=2, batch_size=8)
    assert sorted(sampler.sample_batch(3)) == list(range(8))


def test_an_epoch_has_every_item_as_an_anchor_once_with_its_hard_negatives():
    sampler = HardNegativeBatchSampler(similarities(), k_hard=4, batch_size=32)
    batches = list(sampler)
    # 32 // (4 + 1) = 6 anchors a batch.
    assert len(sampler) == len(batches) == 9
    anchors = [item for batch in batches for item in batch[:6]][:50]
    assert sorted(anchors) == list(range(50))
    for batch in batches[:-1]:
        assert set(sampler.hard_negative_indices[batch[:6]].ravel().tolist()) <= set(batch)
        assert len(batch) == len(set(batch)) == 32


def test_epochs_differ_and_runs_do_not():
    sampler = HardNegativeBatchSampler(similarities())
    first, second = list(sampler), list(sampler)
    assert first != second
    again = HardNegativeBatchSampler(similarities())
    assert [list(again), list(again)] == [first, second]


def test_it_drives_a_data_loader():
    sampler = HardNegativeBatchSampler(similarities())
    loader = DataLoader(torch.arange(50), batch_sampler=sampler)
    assert sum(len(batch) for batch in loader) == 9 * 32 and len(loader) == 9


def test_a_tensor_is_taken_and_minus_infinity_marks_what_is_no_negative():
    matrix = torch.tensor(similarities(6))
    matrix[0, 1:4] = -torch.inf
    sampler = HardNegativeBatchSampler(matrix, k_hard=3, batch_size=6)
    row = sampler.hard_negative_indices[0]
    assert set(row[:2].tolist()) == {4, 5} and row[2] == -1
    assert sampler.shortage.tolist() == [[0, 1]]
    assert len(set(sampler.sample_batch(0))) == 6


def test_from_rows_finds_what_the_matrix_of_both_directions_has():
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((60, 8)).astype(np.float32) for _ in range(2))
    unit_a, unit_b = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (a, b))
    scores = unit_a @ unit_b.T
    np.fill_diagonal(scores, -np.inf)
    forth, back = np.argsort(-scores, axis=1), np.argsort(-scores.T, axis=1)
    sampler = HardNegativeBatchSampler.from_rows(a, b, k_hard=4)
    for i in range(60):
        turns = list(dict.fromkeys(j for pair in zip(forth[i, :4], back[i, :4], strict=True) for j in pair))
        assert sampler.hard_negative_indices[i].tolist() == turns[:4]
    assert sampler.similarity_matrix is None
    assert len(list(sampler)) == len(sampler)


def test_from_rows_within_the_sides_and_over_links_never_takes_a_match():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((40, 8)), rng.standard_normal((30, 8))
    links = Links(np.stack([np.arange(40), np.arange(40) % 30], axis=1), 40, 30, groups_a=np.arange(40) // 2)
    sampler = HardNegativeBatchSampler.from_rows(a, b, links, batch_size=16, across=False)
    truth = links.matrix.toarray()
    pairs = sampler.pairs
    for i, row in enumerate(sampler.hard_negative_indices):
        for j in row[row >= 0]:
            # One of the two rows is a neighbour, which shares no match with the anchor's row of that side.
            shares_a = (truth[pairs[i, 0]] & truth[pairs[j, 0]]).any()
            shares_b = (truth[:, pairs[i, 1]] & truth[:, pairs[j, 1]]).any()
            assert not (shares_a and shares_b)


def with_entry(value):
    matrix = similarities(20)
    matrix[3, 5] = value
    return matrix


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: HardNegativeBatchSampler(similarities(), 4, 5), ArgumentError, r"must be greater than k_hard \+ 1"),
        (lambda: HardNegativeBatchSampler(similarities(), 0), ArgumentError, "k_hard = 0"),
        (lambda: HardNegativeBatchSampler(similarities(5), 5, 7), ArgumentError, "at most 4 others"),
        (lambda: HardNegativeBatchSampler(similarities(20), 4, 32), ArgumentError, "batch_size = 32 with 20 items"),
        (lambda: HardNegativeBatchSampler(np.ones((4, 5))), ShapeError, r"shape \(4, 5\)"),
        (lambda: HardNegativeBatchSampler(np.ones(4)), ShapeError, r"expected a dense \(N, N\)"),
        (lambda: HardNegativeBatchSampler(with_entry(np.nan), 4, 8), ArgumentError, r"NaN or \+inf .* \(first: 3\)"),
        (lambda: HardNegativeBatchSampler(with_entry(np.inf), 4, 8), ArgumentError, "NaN or"),
        (lambda: HardNegativeBatchSampler(np.array([["x"]])), ArgumentError, "expected numbers"),
        (lambda: HardNegativeBatchSampler(similarities()).sample_batch(50), ArgumentError, "from 0 to 49"),
        (lambda: HardNegativeBatchSampler(similarities()).sample_batch(-1), ArgumentError, "anchor_idx = -1"),
    ],
)
def test_what_makes_no_batches_is_refused_with_the_reason(make, error, match):
    with pytest.raises(error, match=match):
        make()
