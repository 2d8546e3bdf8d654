"""Links in a drawn order, cut into batches."""

import numpy as np
import pytest

from bridgehead.negatives.ordering import n_pieces, random_batches

IDENTITY = np.stack([np.arange(65)] * 2, axis=1)


def epoch_batches(pairs, batch_size, seed, epoch):
    return [(pairs[piece, 0], pairs[piece, 1]) for piece in random_batches(pairs, batch_size, seed, epoch)]


def drawn(batches):
    return [(a.tolist(), b.tolist()) for a, b in batches]


def test_every_link_is_in_exactly_one_batch():
    batches = epoch_batches(IDENTITY, 16, seed=0, epoch=0)
    assert sorted(np.concatenate([a for a, _ in batches]).tolist()) == list(range(65))
    assert all(np.array_equal(a, b) for a, b in batches)


def test_a_last_batch_of_one_joins_the_one_before():
    assert [len(a) for a, _ in epoch_batches(IDENTITY, 16, 0, 0)] == [16, 16, 16, 17]
    assert [len(a) for a, _ in epoch_batches(IDENTITY[:18], 16, 0, 0)] == [16, 2]


def test_a_last_batch_with_one_distinct_item_on_a_side_joins_the_one_before():
    pairs = np.array([[i, 0] for i in range(6)] + [[i, i] for i in range(6, 12)])
    for epoch in range(20):
        last = epoch_batches(pairs, 3, 0, epoch)[-1]
        assert min(len(rows) for rows in last) >= 2


def test_fewer_links_than_a_batch_are_one_batch():
    assert [len(a) for a, _ in epoch_batches(IDENTITY[:5], 512, 0, 0)] == [5]


def test_rows_that_several_links_name_occur_as_often_as_they_are_named():
    ((a, b),) = epoch_batches(np.array([[0, 0], [0, 1], [1, 1], [2, 1]]), 8, 0, 0)
    assert sorted(zip(a.tolist(), b.tolist(), strict=True)) == [(0, 0), (0, 1), (1, 1), (2, 1)]


def test_orders_differ_between_epochs_and_seeds_and_are_equal_between_runs():
    first = drawn(epoch_batches(IDENTITY, 16, 0, 0))
    assert first == drawn(epoch_batches(IDENTITY, 16, 0, 0))
    assert first != drawn(epoch_batches(IDENTITY, 16, 0, 1))
    assert first != drawn(epoch_batches(IDENTITY, 16, 1, 0))


@pytest.mark.parametrize(("links", "size", "expected"), [(1, 512, 1), (512, 512, 1), (513, 512, 2), (0, 4, 1)])
def test_the_planned_number_of_batches(links, size, expected):
    assert n_pieces(links, size) == expected
