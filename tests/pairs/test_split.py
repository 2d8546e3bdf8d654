"""What is held out never crosses, the same seed gives the same split, and shares are met."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgehead.errors import ArgumentError
from bridgehead.links import Links
from bridgehead.pairs import read_pairs, split_pairs, split_table
from bridgehead.pairs.components import Keys
from bridgehead.pairs.split import Split


def identity_items(n: int) -> list[str]:
    return [f"item{i}" for i in range(n)]


def parts_by_key(split: Split, keys: Keys) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for part, entry in zip(split.part_a.tolist(), keys, strict=True):
        for key in entry:
            found.setdefault(key, set()).add(part)
    return {key: parts - {-1} for key, parts in found.items()}


def test_shares_are_met_in_entities() -> None:
    split = split_pairs(Links.identity(1000))
    assert split.n_entities == {"train": 800, "valid": 100, "test": 100}
    assert split.counts()["valid"] == {"entities": 100, "a": 100, "b": 100, "links": 100}
    assert split.notes == []


def test_a_link_has_the_part_of_its_held_out_item_and_the_other_side_may_occur_in_several() -> None:
    links = Links([[i, i % 3] for i in range(30)], 31, 4)
    split = split_pairs(links)
    assert np.array_equal(split.part_link, split.part_a[links.pairs[:, 0]])
    assert split.part_a[30] == -1 and split.part_b[3] == -1
    for b in range(3):
        assert split.part_b[b] == split.part_link[links.pairs[:, 1] == b].min()
    other = split_pairs(links.swapped(), hold_out="b")
    assert np.array_equal(other.part_link, other.part_b[links.swapped().pairs[:, 1]])


def test_links_of_a_part_are_renumbered_to_its_rows() -> None:
    links = Links([[0, 2], [1, 2], [2, 0], [3, 1], [4, 1]], 5, 3)
    split = split_pairs(links, fractions=(0.6, 0.2, 0.2))
    seen = []
    for part in ("train", "valid", "test"):
        rows_a, rows_b, local = split.links(part)
        assert np.array_equal(rows_a, np.unique(rows_a)) and np.array_equal(rows_b, np.unique(rows_b))
        assert (local.n_a, local.n_b) == (len(rows_a), len(rows_b))
        seen += [(int(rows_a[i]), int(rows_b[j])) for i, j in local.pairs.tolist()]
    assert sorted(seen) == list(map(tuple, links.pairs.tolist()))
    with pytest.raises(ArgumentError, match="part = 'dev'"):
        split.links("dev")  # type: ignore[arg-type]


def test_a_mixture_ties_its_components_into_one_part() -> None:
    keys = [(f"k{i}",) for i in range(40)]
    keys[0] = ("k1", "k2", "k3")
    for seed in range(10):
        split = split_pairs(Links.identity(40), keys_a=keys, seed=seed)
        assert len({int(part) for part in split.part_a[:4]}) == 1


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_key_and_no_group_ever_crosses(data: st.DataObject) -> None:
    n = data.draw(st.integers(6, 40))
    keys = data.draw(st.lists(st.lists(st.sampled_from("abcdefghijklmnop"), max_size=2), min_size=n, max_size=n))
    groups = data.draw(st.lists(st.lists(st.sampled_from("PQRST"), max_size=1), min_size=n, max_size=n))
    links = Links(data.draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, 4)), min_size=4)), n, 5)
    try:
        split = split_pairs(links, keys_a=keys, groups=groups, seed=data.draw(st.integers(0, 3)))
    except ArgumentError:
        return
    assert all(len(parts) <= 1 for parts in parts_by_key(split, keys).values())
    assert all(len(parts) <= 1 for parts in parts_by_key(split, groups).values())
    assert set(split.part_link.tolist()) == {0, 1, 2}


@settings(max_examples=30, deadline=None)
@given(st.permutations(range(30)), st.sampled_from(["a", "b", "both"]))
def test_the_order_of_records_does_not_matter(order: list[int], hold_out: str) -> None:
    items = identity_items(30)
    links = Links([[i, i // 2] for i in range(30)], 30, 15)
    shuffled = Links([[row, i // 2] for row, i in enumerate(order)], 30, 15)
    first = split_pairs(links, hold_out=hold_out, items_a=items, items_b=items[:15])  # type: ignore[arg-type]
    again = split_pairs(
        shuffled,
        hold_out=hold_out,
        items_a=[items[i] for i in order],
        items_b=items[:15],  # type: ignore[arg-type]
    )
    by_item = dict(zip(items, first.part_a.tolist(), strict=True))
    assert [by_item[items[i]] for i in order] == again.part_a.tolist()


def test_a_seed_repeats_a_split_and_another_gives_another() -> None:
    links = Links.identity(200)
    assert np.array_equal(split_pairs(links, seed=3).part_a, split_pairs(links, seed=3).part_a)
    assert not np.array_equal(split_pairs(links, seed=3).part_a, split_pairs(links, seed=4).part_a)


def test_with_both_no_item_of_either_side_crosses() -> None:
    links = Links([[i, i // 2] for i in range(100)], 100, 50)
    split = split_pairs(links, hold_out="both")
    assert np.array_equal(split.part_a[links.pairs[:, 0]], split.part_b[links.pairs[:, 1]])
    assert split.notes == []


def test_with_both_a_component_of_over_a_fifth_is_said_with_the_way_out() -> None:
    links = Links([[i, 0 if i < 30 else i - 29] for i in range(100)], 100, 71)
    split = split_pairs(links, hold_out="both")
    assert "one component holds 31 of 171 items" not in " ".join(split.notes)
    links = Links([[i, 0 if i < 50 else i - 49] for i in range(100)], 100, 51)
    notes = " ".join(split_pairs(links, hold_out="both").notes)
    assert "one component holds 51 of 151 items (34 %)" in notes
    assert "hold out one side (hold_out = 'a' or 'b')" in notes


def test_test_keys_go_to_test_with_all_that_shares_them() -> None:
    keys = [("aspirin",), ("aspirin", "lysine"), ("lysine",)] + [(f"k{i}",) for i in range(97)]
    for seed in range(5):
        split = split_pairs(Links.identity(100), keys_a=keys, test_keys=("aspirin",), seed=seed)
        assert split.part_a[:3].tolist() == [2, 2, 2]
        assert split.n_entities["test"] == 10
    assert split_pairs(Links.identity(100), test_keys=("absent",)).notes == ["no item has the test keys absent"]


def test_a_raw_value_can_be_a_test_key_where_there_are_no_keys() -> None:
    split = split_pairs(Links.identity(10), items_a=identity_items(10), test_keys=("item7",))
    assert split.part_a[7] == 2


@pytest.mark.parametrize(
    "links, counts",
    [
        (Links.identity(1), "1 separate entity of a"),
        (Links.identity(2), "2 separate entities of a"),
        (Links([[0, 0], [0, 0]], 1, 1), "1 separate entity of a"),
        (Links([], 3, 3), "0 separate entities of a"),
    ],
)
def test_too_few_entities_for_three_parts_are_an_error_with_the_counts(links: Links, counts: str) -> None:
    with pytest.raises(ArgumentError, match=f"{counts} with a link .* 3 parts .train, valid, test."):
        split_pairs(links)


def test_two_entities_are_enough_for_two_parts_and_three_for_three() -> None:
    assert sorted(split_pairs(Links.identity(2), fractions=(0.5, 0.0, 0.5)).part_a.tolist()) == [0, 2]
    assert sorted(split_pairs(Links.identity(3)).part_a.tolist()) == [0, 1, 2]


def test_all_entities_forced_into_test_are_an_error() -> None:
    with pytest.raises(ArgumentError, match="nothing is left for train and valid: 3 of 3"):
        split_pairs(Links.identity(3), items_a=identity_items(3), test_keys=identity_items(3))


def test_large_components_go_where_they_fit_and_the_shares_are_said() -> None:
    keys = [("big", f"k{i}") for i in range(90)] + [(f"s{i}",) for i in range(5)]
    split = split_pairs(Links.identity(95), keys_a=keys)
    assert set(split.part_a[:90].tolist()) == {0}
    assert {1, 2} <= set(split.part_a[90:].tolist())
    keys = [(f"g{i % 3}",) + (f"k{i}",) for i in range(30)]
    notes = split_pairs(Links.identity(30), keys_a=keys).notes
    assert "asked for train 80 %, valid 10 %, test 10 %; got train 33.3 %" in notes[0]


@pytest.mark.parametrize(
    "fractions", [(0.8, 0.2), (0.8, 0.1, 0.2), (0.0, 0.5, 0.5), (1.2, -0.1, -0.1), (float("nan"), 0, 1)]
)
def test_impossible_fractions_are_refused(fractions: tuple[float, ...]) -> None:
    with pytest.raises(ArgumentError, match="fractions = "):
        split_pairs(Links.identity(10), fractions=fractions)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 30), min_size=3, max_size=12), st.tuples(*[st.integers(1, 98)] * 3))
def test_each_part_gets_something_whatever_the_sizes_and_shares(sizes: list[int], weights: tuple[int, ...]) -> None:
    keys = [(f"c{i}", f"c{i}k{j}") for i, size in enumerate(sizes) for j in range(size)]
    fractions = tuple(weight / sum(weights) for weight in weights)
    split = split_pairs(Links.identity(len(keys)), keys_a=keys, fractions=fractions)
    assert all(split.n_entities[part] > 0 for part in ("train", "valid", "test"))
    assert all(len(parts) == 1 for parts in parts_by_key(split, keys).values())


def test_an_unknown_side_is_refused() -> None:
    with pytest.raises(ArgumentError, match="hold_out = 'c'; expected 'a', 'b' or 'both'"):
        split_pairs(Links.identity(10), hold_out="c")  # type: ignore[arg-type]


def test_a_text_counts_as_seen_when_a_train_link_has_it_in_another_spelling() -> None:
    items_b = ["β-blocker", "beta‐Blocker", "unique"] + [f"text {i}" for i in range(27)]
    for seed in range(8):
        split = split_pairs(Links.identity(30), items_b=items_b, seed=seed)
        in_train = split.part_b == 0
        assert split.seen_b[0] == split.seen_b[1] == (in_train[0] or in_train[1])
        assert np.array_equal(split.seen_b[2:], in_train[2:])


def test_holding_out_texts_keeps_spellings_of_one_text_together() -> None:
    items_b = ["β-blocker", "beta‐Blocker"] + [f"text {i}" for i in range(28)]
    for seed in range(8):
        split = split_pairs(Links.identity(30), hold_out="b", items_b=items_b, seed=seed)
        assert split.part_b[0] == split.part_b[1]
        assert not split.seen_b[split.part_b != 0].any()


def test_a_table_brings_its_entities_and_groups(tmp_path: Path) -> None:
    rows = [f"x{i},p{i},E{i // 2},plate{i // 5}" for i in range(60)]
    (tmp_path / "x.csv").write_text("a,b,e,g\n" + "\n".join(rows) + "\n")
    table = read_pairs(tmp_path / "x.csv", "a", "b", entity="e", group="g")
    split = split_table(table)
    for labels in ([f"E{i // 2}" for i in range(60)], [f"plate{i // 5}" for i in range(60)]):
        assert all(len(parts) == 1 for parts in parts_by_key(split, [(label,) for label in labels]).values())
    assert split.n_entities["test"] > 0
