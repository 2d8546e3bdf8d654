"""Leakage by nearness: test rows that an encoder puts next to a training row.

Where an encoder cannot tell a test item from a training item, neither can anything trained on its rows. This module is
not about identity (`keys`) or about what training makes of the rows.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from bridgehead.audits.finding import Finding, Verdict
from bridgehead.audits.leakage.neighbours import Float64Array, float64_unit_rows, nearest_rows
from bridgehead.audits.listed import namer, worst
from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.evaluate.arguments import checked_seed, finite_number
from bridgehead.vectors import IntArray, to_numpy

WARN_SHARE, FAIL_SHARE = 0.01, 0.1
"""Under 1 % of the test items cannot move a recall by more than 0.01; above 10 % the test part is, in the eyes of the
encoder, largely the training part again."""

CROWDED = 0.01
"""Where more than this share of random training pairs lie above a threshold, being above it means nothing. Identical
rows do not count: they are copies, whatever the encoder."""

_SAMPLE = 1000
_DIGITS = 9


def near_rows(
    train_rows: Any,
    test_rows: Any,
    *,
    thresholds: Sequence[float] = (0.99, 0.95),
    same_text: Any = None,
    train_ids: Sequence[str] | None = None,
    test_ids: Sequence[str] | None = None,
    side: str = "a",
    seed: int = 0,
) -> list[Finding]:
    """Return, for each threshold, the share of test rows whose cosine with a training row is above or at it.

    `train_rows` (n, d) and `test_rows` (m, d), dense or CSR, are raw rows of one side under one encoder. Above 1 % of
    the test rows warns; above 10 % fails at the highest threshold and warns at the others, since items of one class are
    alike by nature. As context the finding says which share of a sample of at most 1,000 training rows has a training
    row that near besides itself: a split that does nothing about near-duplicates shows about as many.

    Cosines of encoders differ: where more than 1 % of random pairs of training rows reach a threshold (rows of many
    language models all point the same way), it says nothing and gives no finding; the same for fewer than two training
    rows. `same_text` (m,) is an optional boolean mask of test rows to leave out, such as those whose text also occurs
    in training under a split that allows it.

    Cosines are float64, rounded to nine digits, so blocks do not matter; a zero row has cosine 0 with everything.
    Memory is that of a block of scores. Cost: about 2 s for 1,000 x 9,000 rows, dense or sparse. `train_ids` and
    `test_ids` name rows, `seed` draws the samples. Raises `ShapeError` and `NonFiniteRowsError` as `check_rows`,
    `ShapeError` for rows of different widths, `ArgumentError` for thresholds outside (0, 1].
    """
    what = "cosines above 0, at most 1, such as (0.99, 0.95)"
    given = thresholds if isinstance(thresholds, list | tuple) else ()
    levels = sorted({finite_number(one, "thresholds", what, above=0) for one in given}, reverse=True)
    if not levels or levels[0] > 1:
        raise ArgumentError(f"thresholds = {thresholds!r:.80}; expected {what}")
    train = float64_unit_rows(train_rows, f"training rows of {side}")
    test = float64_unit_rows(test_rows, f"test rows of {side}")
    if train.shape[1] != test.shape[1]:
        raise ShapeError(
            f"rows of {side} have {train.shape[1]} columns in training and {test.shape[1]} in test; expected rows of "
            "one encoder"
        )
    if hasattr(train, "tocsr") != hasattr(test, "tocsr"):
        # Products of a dense and a sparse side have other types than the parts below expect.
        train, test = (sparse.csr_array(rows) for rows in (train, test))
    kept = _kept(same_text, test.shape[0])
    names = namer(train_ids, train.shape[0], "train_ids"), namer(test_ids, test.shape[0], "test_ids")
    if train.shape[0] < 2 or not len(kept):
        return []
    similarity, nearest = nearest_rows(test[kept], train, levels[-1])
    rng = np.random.default_rng(checked_seed(seed))
    drawn = np.sort(rng.choice(train.shape[0], size=min(_SAMPLE, train.shape[0]), replace=False))
    within, _ = nearest_rows(train[drawn], train, levels[-1], leave_out=drawn)
    crowd = _random_cosines(train, rng)
    order = np.lexsort([kept, -similarity])
    found = []
    for threshold in levels:
        if float(((crowd >= threshold) & (crowd < 1)).mean()) <= CROWDED:
            near = order[: int((similarity >= threshold).sum())]
            rows = [(names[1](int(kept[i])), names[0](int(nearest[i])), round(float(similarity[i]), 4)) for i in near]
            context = float((within >= threshold).mean())
            found.append(_finding(rows, len(kept), threshold, threshold == levels[0], context, side))
    return found


def _kept(same_text: Any, n: int) -> IntArray:
    if same_text is None:
        return np.arange(n, dtype=np.int64)
    mask = to_numpy(same_text)
    if mask.shape != (n,) or mask.dtype != np.bool_:
        raise ShapeError(
            f"same_text is {mask.dtype} of shape {mask.shape}; expected a boolean mask ({n},) of test rows"
        )
    return np.flatnonzero(~mask)


def _random_cosines(train: Any, rng: np.random.Generator) -> Float64Array:
    """Return the cosines of 10 times `_SAMPLE` random pairs of different training rows."""
    n = train.shape[0]
    left = rng.integers(0, n, size=10 * _SAMPLE)
    right = (left + rng.integers(1, n, size=len(left))) % n
    product = train[left] * train[right] if isinstance(train, np.ndarray) else train[left].multiply(train[right])
    return np.round(np.asarray(product.sum(axis=1), dtype=np.float64).ravel(), _DIGITS)


def _finding(
    rows: list[tuple[str, str, float]], n_test: int, threshold: float, highest: bool, context: float, side: str
) -> Finding:
    share = len(rows) / n_test
    verdict: Verdict = "pass" if share <= WARN_SHARE else "fail" if share > FAIL_SHARE and highest else "warn"
    fails = f", above {FAIL_SHARE:g} fails" if highest else ""
    why = (
        f"{len(rows):,} of {n_test:,} test rows of {side} lie that near to a training row; within training "
        f"{context:.1%} have such a neighbour"
    )
    if verdict != "pass":
        why += ": on them, memory of training is enough"
    columns = (f"test {side}", f"training {side}", "cosine")
    return Finding(
        f"test rows of {side} with a training row at cosine {threshold:g}",
        share,
        f"at most {WARN_SHARE:g}{fails}",
        verdict,
        why,
        "leakage",
        listed=worst(columns, rows),
    )
