"""What must stay together."""

import pytest

from bridgehead.errors import ArgumentError
from bridgehead.links import Links
from bridgehead.pairs.components import check_keys, components, own_keys


def test_items_that_share_a_key_or_a_group_are_one_component() -> None:
    links = Links([[0, 0], [1, 1], [2, 2], [3, 3]], 4, 4)
    keys = {"a": [("k",), ("k", "m"), ("m",), ("n",)], "b": own_keys(None, None, 4, "b")}
    of_a, of_b = components(links, "a", keys, None)
    assert of_a[0] == of_a[1] == of_a[2] != of_a[3]
    assert of_b.tolist() == [-1] * 4
    grouped, _ = components(links, "a", keys, [(), (), ("plate=1",), ("plate=1",)])
    assert len(set(grouped.tolist())) == 1


def test_with_both_links_join_components_and_keys_of_two_sides_are_apart() -> None:
    links = Links([[0, 0], [1, 0], [2, 1]], 3, 2)
    keys = {"a": [("x",), ("y",), ("z",)], "b": [("z",), ("q",)]}
    of_a, of_b = components(links, "both", keys, None)
    assert of_a[0] == of_a[1] == of_b[0]
    assert of_a[2] == of_b[1] != of_a[0]


def test_an_item_without_keys_is_its_own() -> None:
    assert own_keys([("k",), ()], ["x", "y"], 2, "a") == [("k",), ("y",)]
    assert own_keys(None, None, 2, "a") == [("item 0",), ("item 1",)]


def test_keys_must_fit_the_items() -> None:
    with pytest.raises(ArgumentError, match="keys_a has 1 entries; expected 2"):
        check_keys([("x",)], 2, "keys_a")
    with pytest.raises(ArgumentError, match="keys_a holds texts; expected a tuple"):
        check_keys(["x", "y"], 2, "keys_a")
    with pytest.raises(ArgumentError, match="items_a has 1 entries; expected 2"):
        own_keys(None, ["x"], 2, "a")
