"""Leakage by identity: planted keys are found on both sides, clean splits pass, what has no key is not judged."""

import numpy as np
import pytest

from bridgehead.audits import key_leakage
from bridgehead.errors import ArgumentError, ShapeError

LEVELS = {"exact": ["m1", "m2", "m3", "m4"], "skeleton": ["s1", "s2", "s3", "s1"]}


def test_a_test_item_with_the_skeleton_of_a_training_item_fails() -> None:
    exact, skeleton = key_leakage(LEVELS, train=[0, 1], test=[2, 3], ids=["A", "B", "C", "D"], side="molecule")
    assert (exact.verdict, exact.value, exact.listed) == ("pass", 0.0, None)
    assert (skeleton.verdict, skeleton.value, skeleton.group) == ("fail", 0.5, "leakage")
    assert skeleton.expected == "0: the split holds skeleton apart"
    assert "1 of 2 test items of molecule" in skeleton.why
    assert skeleton.listed is not None
    assert skeleton.listed.columns == ("test molecule", "skeleton", "training molecule", "training items with it")
    assert skeleton.listed.rows == (("D", "s1", "A", 1),)


def test_a_clean_split_passes_at_every_level() -> None:
    found = key_leakage({"exact": list("abcd"), "group donor": list("xxyy")}, train=[0, 1], test=[2, 3])
    assert [finding.verdict for finding in found] == ["pass", "pass"]
    assert [finding.name for finding in found] == [
        "a in test and training, by exact",
        "a in test and training, by group donor",
    ]


@pytest.mark.parametrize("n_shared", [0, 4, 5, 6, 100])
def test_a_level_that_the_split_does_not_hold_apart_warns_above_five_percent(n_shared: int) -> None:
    keys = [f"train {i}" for i in range(100)] + [f"{'train' if i < n_shared else 'test'} {i}" for i in range(100)]
    found = key_leakage({"text": keys}, range(100), range(100, 200), held_apart=())[0]
    assert found.value == pytest.approx(n_shared / 100)
    assert found.verdict == ("warn" if n_shared > 5 else "pass")
    assert found.expected == "at most 0.05: the split does not hold text apart"


def test_masks_say_the_same_as_item_numbers_and_an_item_in_both_parts_shares_with_itself() -> None:
    train, test = np.array([True, True, False, False]), np.array([False, True, True, True])
    by_mask = key_leakage(LEVELS, train, test)
    by_number = key_leakage(LEVELS, np.array([0, 1]), [1, 2, 3])
    assert [one.to_dict() for one in by_mask] == [one.to_dict() for one in by_number]
    assert by_mask[0].value == pytest.approx(1 / 3)
    assert by_mask[1].value == pytest.approx(2 / 3)


def test_a_mixture_shares_each_of_its_components() -> None:
    keys = [("s1",), {"s2"}, ["s3", "s1"], np.array(["s4"])]
    found = key_leakage({"skeleton": keys}, [0, 1], [2, 3])[0]
    assert (found.value, found.verdict) == (0.5, "fail")


def test_items_without_a_key_are_not_judged_and_a_level_without_any_gives_no_finding() -> None:
    nothing = [None, "", (), float("nan")]
    assert key_leakage({"exact": nothing}, [0, 1], [2, 3]) == []
    found = key_leakage({"exact": ["x", None, "x", None]}, [0, 1], [2, 3])[0]
    assert (found.value, found.verdict) == (1.0, "fail")
    assert "1 have no key and are not judged" in found.why


def test_the_worst_case_comes_first_and_at_most_twenty_are_listed() -> None:
    keys = ["rare", "often", "often", "often"] + ["rare"] * 30 + ["often"]
    found = key_leakage({"scaffold": keys}, range(4), range(4, 35), held_apart=())[0]
    assert found.listed is not None
    assert (len(found.listed.rows), found.listed.total) == (20, 31)
    assert found.listed.rows[0] == ("34", "often", "1", 3)


def test_keys_may_be_numbers_and_zero_is_one() -> None:
    assert key_leakage({"cluster": np.array([0, 1, 2, 0])}, [0, 1], [2, 3])[0].value == 0.5


def test_other_parts_than_training_and_test_go_by_their_names() -> None:
    found = key_leakage(LEVELS, [0, 1], [2, 3], parts=("validation", "final"))[1]
    assert "1 of 2 final items of a share their skeleton with validation items" in found.why


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"held_apart names parent; the levels given are exact, skeleton"):
        key_leakage(LEVELS, [0], [1], held_apart=["parent"])
    with pytest.raises(ArgumentError, match="test items run from 2 to 9; there are items 0 to 3"):
        key_leakage(LEVELS, [0, 1], [2, 9])
    with pytest.raises(ArgumentError, match="items run from -1"):
        key_leakage(LEVELS, [0, -1], [2])
    with pytest.raises(ArgumentError, match=r"training items are .* expected at least one item number"):
        key_leakage(LEVELS, [], [2])
    with pytest.raises(ArgumentError, match="expected at least one item number, or a mask"):
        key_leakage(LEVELS, [0.5], [2])
    with pytest.raises(ShapeError, match=r"mask of the test items has shape \(3,\); expected \(4,\)"):
        key_leakage(LEVELS, [0], np.array([True, False, True]))
    with pytest.raises(ShapeError, match=r"ids has 2 entries; expected 4"):
        key_leakage(LEVELS, [0], [1], ids=["a", "b"])
    with pytest.raises(ShapeError, match=r"different numbers of items \(exact 4, text 2\)"):
        key_leakage({"exact": list("abcd"), "text": list("ab")}, [0], [1])
    with pytest.raises(ShapeError, match="is a str; expected a list, an entry an item"):
        key_leakage({"exact": "abcd"}, [0], [1])
    with pytest.raises(ArgumentError, match="expected keys that can be compared"):
        key_leakage({"exact": [{"a": 1}, {"b": 2}]}, [0], [1])
