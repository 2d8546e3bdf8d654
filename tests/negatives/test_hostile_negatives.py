"""What mining, samplers and the bank make of arguments that nobody should give: one sentence that helps."""

from typing import Any

import numpy as np
import pytest
import torch

from bridgehead.errors import ArgumentError
from bridgehead.links import Links
from bridgehead.negatives import (
    DistinctBatches,
    HardBatches,
    HardNegativeBatchSampler,
    MemoryBank,
    NegativeRange,
    RandomBatches,
    mine_across,
    mine_within,
)

ROWS = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
LINKS = Links.identity(12)
NO_NUMBERS: list[Any] = [2.5, "3", None, True]


@pytest.mark.parametrize("k", NO_NUMBERS)
def test_a_number_of_negatives_that_is_no_whole_number_is_refused(k: Any) -> None:
    with pytest.raises(ArgumentError, match=r"k = .*; expected at least 1"):
        mine_across(ROWS, ROWS, LINKS, k=k)
    with pytest.raises(ArgumentError, match=r"k = .*; expected at least 1"):
        mine_within(ROWS, LINKS, k=k)
    with pytest.raises(ArgumentError, match=r"k_hard = .*; expected at least 1"):
        HardNegativeBatchSampler(ROWS @ ROWS.T, k_hard=k, batch_size=8)


def test_a_number_of_negatives_may_be_one_of_numpy() -> None:
    mined = mine_across(ROWS, ROWS, LINKS, k=np.int64(3))  # type: ignore[arg-type]
    assert mined.neighbours.tolist() == mine_across(ROWS, ROWS, LINKS, k=3).neighbours.tolist()


@pytest.mark.parametrize("kind", [RandomBatches, DistinctBatches])
@pytest.mark.parametrize("value", NO_NUMBERS)
def test_sizes_seeds_and_epochs_of_samplers_that_are_no_whole_numbers_are_refused(kind: Any, value: Any) -> None:
    with pytest.raises(ArgumentError, match=r"batch_size = .*; expected at least 2"):
        kind(LINKS, value)
    with pytest.raises(ArgumentError, match=r"seed = .*; expected at least 0"):
        kind(LINKS, 4, seed=value)
    with pytest.raises(ArgumentError, match=r"epoch = .*; expected at least 0"):
        kind(LINKS, 4).set_epoch(value)


def test_pairs_where_links_are_needed_are_told_to_be_made_links() -> None:
    pairs: Any = [(0, 0), (1, 1)]
    mined = mine_across(ROWS, ROWS, LINKS, k=2)
    rows = torch.ones(2, 4)
    for call in (
        lambda: RandomBatches(pairs, 4),
        lambda: DistinctBatches(pairs, 4),
        lambda: HardBatches(pairs, 8, (mined, mined)),
        lambda: mine_within(ROWS, pairs, k=2),
        lambda: MemoryBank(3, 4).extended(rows, [0, 1], rows, [0, 1], pairs),
    ):
        with pytest.raises(ArgumentError, match=r"links is a list; expected Links: bh\.Links\(pairs, n_a, n_b\)"):
            call()


@pytest.mark.parametrize("name", ["margin", "relative_margin", "max_score"])
def test_limits_of_negatives_that_are_no_numbers_are_refused(name: str) -> None:
    with pytest.raises(ArgumentError, match=rf"{name} = '0\.1'; expected a number"):
        NegativeRange(**{name: "0.1"})  # type: ignore[arg-type]


def test_a_bank_takes_whole_sizes_only() -> None:
    for size in NO_NUMBERS:
        with pytest.raises(ArgumentError, match=r"size = .*; expected at least 0"):
            MemoryBank(size, 4)
    with pytest.raises(ArgumentError, match=r"dim = None; expected at least 1"):
        MemoryBank(4, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("items", [[0.5, 1.0], [-1, 0], ["a", "b"], [True, False]])
def test_a_bank_refuses_item_numbers_that_are_none_rather_than_round_them(items: Any) -> None:
    rows = torch.ones(2, 4)
    with pytest.raises(ArgumentError, match="items_a are"):
        MemoryBank(3, 4).push(rows, items, rows, [0, 1])


def test_a_bank_refuses_rows_that_are_no_tensors() -> None:
    rows: Any = np.ones((2, 4))
    with pytest.raises(ArgumentError, match="z_a is a ndarray; expected a torch tensor"):
        MemoryBank(3, 4).push(rows, [0, 1], rows, [0, 1])
