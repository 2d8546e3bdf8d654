"""Levels of true scores: what ties, and that levels never overlap."""

import numpy as np
import pytest

from bridgehead.evaluate.ranks.levels import TIE, count_rows, level_bounds


def test_true_scores_within_1e_12_make_one_level() -> None:
    scores = np.array([0.5, 0.9, 0.5 + 0.4 * TIE, 0.2, 0.7, 0.7])
    query = np.array([0, 0, 0, 1, 2, 2])
    bounds = level_bounds(query, scores, np.array([1, 1, 1, 1, 2, 1]), np.array([1, 4, 1, 1, 3, 1]), 3)
    assert bounds.query.tolist() == [0, 0, 1, 2]
    assert bounds.high.tolist() == [0.9, 0.5 + 0.4 * TIE, 0.2, 0.7]
    assert bounds.low.tolist() == [0.9, 0.5, 0.2, 0.7]
    assert bounds.true.tolist() == [1, 2, 1, 3]
    assert bounds.copies.tolist() == [4, 2, 1, 4]
    assert bounds.entries.tolist() == [1, 2, 1, 2]
    assert bounds.best.tolist() == [0.9, 0.2, 0.7]


def test_passes_give_each_query_of_a_block_at_most_one_level_at_a_time() -> None:
    query = np.array([0, 0, 0, 1, 2, 2])
    ones = np.ones(6, dtype=np.int64)
    bounds = level_bounds(query, np.arange(6.0), ones, ones, 3)
    assert [levels.tolist() for levels in bounds.passes(0, 3)] == [[0, 3, 4], [1, 5], [2]]
    assert [levels.tolist() for levels in bounds.passes(1, 3)] == [[3, 4], [5]]
    assert [levels.tolist() for levels in bounds.passes(1, 2)] == [[3]]


def test_a_candidate_between_two_levels_counts_in_the_lower_one_only() -> None:
    ones = np.ones(2, dtype=np.int64)
    bounds = level_bounds(np.zeros(2, dtype=int), np.array([1.0, 1.0 - 1.8 * TIE]), ones, ones, 1)
    # One candidate at 1 - 0.9e-12 is within 1e-12 of both: two are tied at each level when counted alone.
    levels = bounds.levels(np.array([0, 1]), np.array([2, 2]), 3)
    assert levels.above.tolist() == [0, 1]
    assert levels.tied.tolist() == [1, 2]


@pytest.mark.parametrize("width", [0, 1, 7, 8, 9, 255, 2040, 2041, 2048, 4096, 4097, 9000])
def test_rows_of_any_width_are_counted(width: int) -> None:
    mask = np.random.default_rng(width).random((5, width)) < 0.7
    mask[0], mask[1] = True, False
    assert count_rows(mask).tolist() == [sum(row) for row in mask.tolist()]
    assert count_rows(mask[:, : width // 2]).tolist() == [sum(row) for row in mask[:, : width // 2].tolist()]
    assert count_rows(np.zeros((0, width), dtype=bool)).tolist() == []
