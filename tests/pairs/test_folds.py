"""Folds: every link once, nothing that belongs together apart, even sizes, independence of the order of records."""

import numpy as np
import pytest

from bridgehead.errors import ArgumentError
from bridgehead.links import Links
from bridgehead.pairs.folds import deal_folds


def one_to_one(n):
    return Links(np.stack([np.arange(n)] * 2, axis=1), n, n)


def test_every_link_is_held_out_once_and_folds_are_even():
    folds = deal_folds(one_to_one(23), 5, items_a=[f"m{n}" for n in range(23)])
    assert np.bincount(folds.of_link).tolist() == list(folds.n_entities)
    assert sorted(folds.n_entities) == [4, 4, 5, 5, 5] and folds.n_units == 23


def test_views_of_one_entity_lie_in_one_fold():
    keys = [(f"entity {n // 3}",) for n in range(30)]
    folds = deal_folds(one_to_one(30), 5, keys_a=keys)
    assert all(len(set(folds.of_link[3 * n : 3 * n + 3])) == 1 for n in range(10))
    assert folds.n_entities == (2, 2, 2, 2, 2)


def test_group_columns_never_cross_folds():
    groups = [(f"slide={n % 4}",) for n in range(40)]
    folds = deal_folds(one_to_one(40), 4, groups=groups)
    assert all(len(set(folds.of_link[n::4])) == 1 for n in range(4))


def test_a_mixture_holds_its_components_together():
    keys = [("x",), ("x", "y"), ("y",), ("z",), ("w",)]
    folds = deal_folds(one_to_one(5), 3, keys_a=keys)
    assert len(set(folds.of_link[:3].tolist())) == 1 and folds.n_units == 3


def test_holding_out_b_keeps_equal_texts_together_however_they_are_written():
    links = Links([[0, 0], [1, 1], [2, 2], [3, 3]], 4, 4)
    folds = deal_folds(links, 3, hold_out="b", items_b=["Binds DNA", "binds  dna", "a", "b"])
    assert folds.of_link[0] == folds.of_link[1] and folds.n_units == 3


def test_holding_out_both_cuts_no_link_and_no_shared_item():
    links = Links([[0, 0], [1, 0], [1, 1], [2, 2], [3, 3], [3, 2], [4, 4]], 5, 5)
    folds = deal_folds(links, 3, hold_out="both")
    for column in (0, 1):
        for item in range(5):
            assert len(set(folds.of_link[links.pairs[:, column] == item].tolist())) == 1


def test_holding_out_a_lets_a_text_occur_in_several_folds():
    links = Links(np.stack([np.arange(10), np.zeros(10, dtype=int)], axis=1), 10, 1)
    assert set(deal_folds(links, 5).of_link.tolist()) == {0, 1, 2, 3, 4}


def test_the_order_of_the_records_does_not_matter():
    rng = np.random.default_rng(0)
    items = [f"molecule {n}" for n in range(50)]
    order = rng.permutation(50)
    folds = deal_folds(one_to_one(50), 5, seed=3, items_a=items)
    again = deal_folds(one_to_one(50), 5, seed=3, items_a=[items[n] for n in order])
    assert folds.of_link[order].tolist() == again.of_link.tolist()


def test_another_seed_gives_other_folds():
    items = [f"molecule {n}" for n in range(50)]
    first, second = (deal_folds(one_to_one(50), 5, seed=seed, items_a=items) for seed in (0, 1))
    assert (first.of_link != second.of_link).any()


def test_unlinked_items_take_no_place():
    folds = deal_folds(Links([[0, 0], [5, 1]], 9, 4), 2)
    assert folds.n_entities == (1, 1) and folds.n_units == 2


@pytest.mark.parametrize(
    ("n_folds", "options", "message"),
    [
        (1, {}, "n_folds = 1; expected a whole number of 2 or more"),
        (True, {}, "n_folds = True"),
        (2.0, {}, r"n_folds = 2\.0"),
        (9, {}, "8 separate entities with a link, and 9 folds; expected at least one for each"),
        (2, {"hold_out": "c"}, "hold_out = 'c'"),
        (2, {"keys_a": [("x",)]}, "keys_a has 1 entries"),
    ],
)
def test_bad_input_is_refused(n_folds, options, message):
    with pytest.raises(ArgumentError, match=message):
        deal_folds(one_to_one(8), n_folds, **options)
