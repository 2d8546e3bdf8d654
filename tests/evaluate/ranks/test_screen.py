"""Strips of scores against thresholds: counts and close places are those of a loop, few or many, weighted or not."""

from itertools import product

import numpy as np
import pytest

from bridgehead.evaluate.ranks import screen
from bridgehead.evaluate.ranks.screen import MOST_LINES, Screen


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("few", [0.0, 2.0])
def test_counts_and_close_places_are_those_of_a_loop(
    across: bool, weighted: bool, few: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen, "_FEW", few)
    rng = np.random.default_rng(2)
    screening = Screen()
    for lines, columns in ((6, 40), (1, 9), (40, 3), (5, 33)):
        # Scores in steps of a quarter, so that many lie on the edges, which count as close.
        scores = rng.integers(-4, 5, (lines, columns)).astype(np.float32) / 4
        n = columns if across else lines
        low = rng.integers(-4, 5, n).astype(np.float32) / 4
        high = low + np.float32(0.25)
        weights = rng.integers(1, 5, lines if across else columns).astype(np.float64) if weighted else None
        n_above, line, column = screening.compare(scores, high, low, across, weights)
        expected, close = [0] * n, []
        for i, j in product(range(lines), range(columns)):
            asking, candidate = (j, i) if across else (i, j)
            if scores[i, j] > high[asking]:
                expected[asking] += 1 if weights is None else int(weights[candidate])
            elif scores[i, j] >= low[asking]:
                close.append((i, j))
        assert n_above.tolist() == expected and n_above.dtype == np.int64
        assert list(zip(line.tolist(), column.tolist(), strict=True)) == close


def test_a_strip_of_all_lines_that_fit_a_byte_is_counted() -> None:
    scores = np.ones((MOST_LINES, 7), dtype=np.float32)
    zeros = np.zeros(7, dtype=np.float32)
    assert Screen().compare(scores, zeros, zeros, True, None)[0].tolist() == [255] * 7
    assert Screen().compare(scores.T, zeros, zeros, False, None)[0].tolist() == [255] * 7


def test_the_size_of_numpys_buffer_is_put_back() -> None:
    before = np.getbufsize()
    zeros = np.zeros(2, dtype=np.float32)
    Screen().compare(np.ones((2, 3), dtype=np.float32), zeros, zeros, False, None)
    assert np.getbufsize() == before
