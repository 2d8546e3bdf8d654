from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from bridgehead.errors import ArgumentError
from bridgehead.links import Links
from bridgehead.negatives import (
    DistinctBatches,
    HardBatches,
    LinkNeighbours,
    RandomBatches,
    distinct_batches,
    hard_batches,
    random_batches,
    repeated_hard_batches,
)


def clusters(n_clusters=25, size=8, seed=0):
    """Pairs in clusters: the nearest rows of a pair are the others of its cluster."""
    rng = np.random.default_rng(seed)
    centres = np.repeat(rng.standard_normal((n_clusters, 24)), size, axis=0)
    rows_a, rows_b = (centres + 0.3 * rng.standard_normal(centres.shape) for _ in range(2))
    return rows_a.astype(np.float32), rows_b.astype(np.float32)


def random_links(seed=0, n_a=60, n_b=70, n=150, groups=True):
    rng = np.random.default_rng(seed)
    pairs = np.stack([rng.integers(0, n_a, n), rng.integers(0, n_b, n)], axis=1)
    return Links(pairs, n_a, n_b, *((rng.integers(-1, 50, n_a), rng.integers(-1, 60, n_b)) if groups else ()))


def lists(batches):
    return [batch.tolist() for batch in batches]


# What holds for each sampler


def samplers():
    rows_a, rows_b = clusters()
    links = Links.identity(len(rows_a))
    return {
        "random": lambda seed=0: RandomBatches(links, 33, seed),
        "distinct": lambda seed=0: DistinctBatches(links, 33, seed),
        "hard": lambda seed=0: HardBatches.from_rows(rows_a, rows_b, batch_size=33, seed=seed),
        "hard once": lambda seed=0: HardBatches.from_rows(
            rows_a, rows_b, batch_size=33, repeat_neighbours=False, seed=seed
        ),
    }


@pytest.mark.parametrize("name", ["random", "distinct", "hard", "hard once"])
def test_orders_are_equal_between_runs_and_differ_between_epochs_and_seeds(name):
    make = samplers()[name]
    first = make()
    epochs = [list(first), list(first), list(first)]
    assert epochs[0] != epochs[1] != epochs[2]
    again = make()
    again.set_epoch(1)
    assert list(again) == epochs[1]
    assert list(make(seed=1)) != epochs[0]


@pytest.mark.parametrize("name", ["random", "distinct", "hard", "hard once"])
def test_the_length_is_the_number_of_batches_yielded(name):
    sampler = samplers()[name]()
    for epoch in range(3):
        sampler.set_epoch(epoch)
        assert len(sampler) == len(list(sampler)) > 0


@pytest.mark.parametrize("name", ["random", "hard"])
def test_a_sampler_is_a_batch_sampler_of_torch(name):
    sampler = samplers()[name]()
    loader = DataLoader(sampler.pairs, batch_sampler=sampler)
    seen = [batch[:, 0].tolist() for batch in loader]
    assert len(loader) == len(seen)
    sampler.set_epoch(0)
    assert seen == list(sampler)


# Random


def test_every_link_is_in_exactly_one_random_batch_and_a_last_one_of_one_joins():
    batches = random_batches(Links.identity(65).pairs, 16, 0, 0)
    assert sorted(np.concatenate(batches).tolist()) == list(range(65))
    assert [len(batch) for batch in batches] == [16, 16, 16, 17]


def test_a_last_batch_with_one_distinct_item_on_a_side_joins_the_one_before():
    pairs = np.array([[i, 0] for i in range(6)] + [[i, i] for i in range(6, 12)])
    for epoch in range(20):
        last = pairs[random_batches(pairs, 3, 0, epoch)[-1]]
        assert min(len(np.unique(last[:, 0])), len(np.unique(last[:, 1]))) >= 2


def test_no_links_are_no_batches():
    links = Links([], 3, 3)
    assert list(RandomBatches(links, 4)) == list(DistinctBatches(links, 4)) == []
    assert list(HardBatches.from_rows(np.eye(3), np.eye(3), links, batch_size=8)) == []


# Hard


def test_each_link_is_an_anchor_once_and_has_all_its_hardest_neighbours_in_its_batch():
    rows_a, rows_b = clusters()
    sampler = HardBatches.from_rows(rows_a, rows_b, batch_size=32, k_hard=4)
    of_a, of_b = (side.neighbours for side in sampler.mined)
    anchors = []
    for batch in sampler:
        assert len(set(batch)) == len(batch) == 32
        # 32 // (1 + 4) anchors stand first.
        held = set(batch)
        for i in batch[: min(6, len(rows_a) - len(anchors))]:
            anchors.append(i)
            # With identity links a row is its own link: both directions in turns, each once.
            turns = dict.fromkeys(np.stack([of_a[i], of_b[i]], axis=1).ravel().tolist())
            assert next(iter(turns)) == of_a[i, 0] and set(list(turns)[:4]) <= held
    assert sorted(anchors) == list(range(len(rows_a)))
    assert len(sampler) == -(-len(rows_a) // 6)


def test_without_repeats_every_link_is_in_one_batch_beside_more_of_its_cluster_than_by_chance():
    rows_a, rows_b = clusters()
    sampler = HardBatches.from_rows(rows_a, rows_b, batch_size=32, k_hard=4, repeat_neighbours=False)

    def together(batches):
        return np.mean([np.mean([(batch // 8 == i // 8).sum() - 1 for i in batch]) for batch in batches])

    drawn = sampler.drawn(0)
    assert sorted(np.concatenate(drawn.batches).tolist()) == list(range(200))
    assert [len(batch) for batch in drawn.batches] == [32] * 6 + [8]
    by_chance = together(random_batches(sampler.pairs, 32, 0, 0))
    assert by_chance < 1.6 and together(drawn.batches) > 2 * by_chance
    assert 0.5 * drawn.wanted < drawn.placed < drawn.wanted


def test_no_hard_neighbours_are_the_random_batches():
    pairs = Links.identity(100).pairs
    drawn = hard_batches(pairs, lambda anchors: np.zeros((len(anchors), 0), np.int64), 16, 0, 3, 5)
    assert lists(drawn.batches) == lists(random_batches(pairs, 16, 3, 5))


@given(st.integers(0, 10_000), st.integers(2, 40), st.integers(0, 6), st.integers(1, 150))
@settings(max_examples=40, deadline=None)
def test_every_link_is_in_exactly_one_hard_batch_whatever_the_neighbours(seed, batch_size, k, n):
    rng = np.random.default_rng(seed)
    pairs = Links.identity(n).pairs
    table = rng.integers(-1, n, (n, 8))
    drawn = hard_batches(pairs, lambda anchors: table[anchors], batch_size, k, seed, 0)
    assert sorted(np.concatenate(drawn.batches).tolist()) == list(range(n))
    assert all(len(batch) <= batch_size + 1 for batch in drawn.batches)


@given(st.integers(0, 10_000), st.integers(3, 40), st.integers(1, 6), st.integers(1, 150))
@settings(max_examples=40, deadline=None)
def test_repeated_batches_are_full_and_hold_each_link_at_most_once(seed, batch_size, k, n):
    batch_size = max(batch_size, k + 2)
    table = np.random.default_rng(seed).integers(-1, n, (n, 8))
    anchors = batch_size // (1 + k)
    drawn = repeated_hard_batches(n, lambda chosen: table[chosen], batch_size, k, seed, 0, anchors)
    counts = Counter(i for batch in drawn.batches for i in set(batch[:anchors].tolist()))
    assert all(counts[i] >= 1 for i in range(n))
    assert all(len(batch) == len(set(batch.tolist())) == min(n, batch_size) for batch in drawn.batches)


def test_neighbours_of_links_come_from_both_sides_in_turns_and_are_links_that_there_are():
    pairs = np.array([[0, 0], [1, 1], [2, 2], [2, 3]])
    a = np.array([[1, 3], [0, 2], [0, -1]])
    b = np.array([[2, 1], [0, 2], [1, 0], [1, 0]])
    found = LinkNeighbours(pairs, a, b, True, link_of_a=np.array([0, 1, 2]), link_of_b=np.array([0, 1, 2, -1]))
    # Link 0: rows 1, 3 of b are links 1, none; rows 2, 1 of a are links 2, 1. Link 2: row 0 of b, then rows 1, 0 of a.
    assert found(np.array([0, 2])).tolist() == [[1, 2, -1, -1], [0, 1, -1, -1]]
    within = LinkNeighbours(pairs, a[:, :1], b[:, :1], False, np.array([0, 1, 2]), np.array([0, 1, 2, -1]))
    assert within(np.array([0])).tolist() == [[1, 2]]


def test_the_link_that_stands_for_a_row_changes_between_epochs():
    pairs = np.stack([np.arange(40), np.zeros(40, int)], axis=1)
    none = np.zeros((40, 0), int), np.zeros((1, 0), int)
    chosen = {int(LinkNeighbours.drawn(pairs, *none, True, 0, epoch).link_of_b[0]) for epoch in range(20)}
    assert len(chosen) > 5


# Distinct


def conflicts(links, batch):
    """The number of matches of a batch beyond its own links, and of rows or groups that occur twice in it."""
    rows_a, rows_b = links.expanded().pairs[batch].T
    repeated = 0
    for rows, groups in ((rows_a, links.groups_a), (rows_b, links.groups_b)):
        keys = rows if groups is None else np.where(groups[rows] >= 0, groups[rows], -1 - rows)
        repeated += len(keys) - len(np.unique(keys))
    return len(links.within(rows_a, rows_b)) - len(batch), repeated


@given(st.integers(0, 10_000), st.integers(2, 40), st.integers(0, 150), st.booleans())
@settings(max_examples=25, deadline=None)
def test_a_distinct_batch_has_no_duplicate_and_no_match_across(seed, batch_size, n, groups):
    links = random_links(seed, n=n, groups=groups)
    drawn = distinct_batches(links, batch_size, seed, 0)
    assert all(conflicts(links, batch) == (0, 0) and 2 <= len(batch) <= batch_size for batch in drawn.batches)
    placed = np.concatenate([*drawn.batches, drawn.left_out])
    assert sorted(placed.tolist()) == list(range(len(links.expanded())))


def test_random_batches_do_have_conflicts_where_distinct_ones_have_none():
    links = random_links()
    pairs = links.expanded().pairs
    assert sum(sum(conflicts(links, batch)) for batch in random_batches(pairs, 32, 0, 0)) > 0


def test_distinct_batches_of_plain_pairs_are_full_and_leave_nothing_out():
    drawn = distinct_batches(Links.identity(100), 32, 0, 0)
    assert [len(batch) for batch in drawn.batches] == [32, 32, 32, 4] and len(drawn.left_out) == 0


def test_links_of_one_item_that_no_batch_can_take_are_counted():
    # Row 0 of b has 200 of 300 links: each batch takes one of them.
    pairs = np.stack([np.arange(300), np.where(np.arange(300) < 200, 0, np.arange(300))], axis=1)
    links = Links(pairs, 300, 300)
    drawn = distinct_batches(links, 16, 0, 0)
    assert all(conflicts(links, batch) == (0, 0) for batch in drawn.batches)
    generic = [(pairs[batch, 1] == 0).sum() for batch in drawn.batches]
    assert max(generic) == 1
    # 15 of the 100 other links and one of these a batch, seven batches.
    assert len(drawn.batches) == 7 and len(drawn.left_out) == 193
    other = distinct_batches(links, 16, 0, 1)
    assert not np.array_equal(drawn.left_out, other.left_out)


def test_a_batch_of_one_link_is_left_out():
    drawn = distinct_batches(Links.identity(33), 16, 0, 0)
    assert [len(batch) for batch in drawn.batches] == [16, 16] and len(drawn.left_out) == 1


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: RandomBatches(Links.identity(5), 1), "batch_size = 1; expected at least 2"),
        (lambda: RandomBatches(Links.identity(5), 4, seed=-1), "seed = -1"),
        (lambda: RandomBatches(Links.identity(5), 4).set_epoch(-1), "epoch = -1"),
        (lambda: HardBatches.from_rows(np.eye(9), np.eye(9), batch_size=5, k_hard=4), "greater than k_hard"),
    ],
)
def test_sizes_that_cannot_be_are_refused(make, match):
    with pytest.raises(ArgumentError, match=match):
        make()
