"""`classify_rows`: the nearest classes of each item, with shares among the candidates and the answer "none of these".

This module is not about how often answers are right (`report`).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bridgehead.errors import ArgumentError
from bridgehead.evaluate.ties import Float64Array
from bridgehead.evaluate.zero_shot.scores import DEFAULT_SCALE, Classes, checked_threshold
from bridgehead.vectors import IntArray

NONE_OF_THESE = -1


@dataclass(frozen=True, eq=False)
class ClassifiedRows:
    """The classes of n items, nearest first; k columns.

    `classes` (n, k) are numbers of classes, `scores` (n, k) cosines in [-1, 1]. `share_among_candidates` (n, k) is
    softmax(s x cosine) over all `n_classes` candidates: it is conditional on that set, so a synonym added or a class
    removed changes it, and it is no probability that the class is true. `answer` (n,) is the first class, or -1, "none
    of these", where its cosine is under `abstain_below`. `n_tied` (n,) classes share the first place (1: no tie);
    of those the lowest number is answered, which is a rule and no evidence.
    """

    classes: IntArray
    scores: Float64Array
    share_among_candidates: Float64Array
    answer: IntArray
    n_tied: IntArray
    n_classes: int
    logit_scale: float
    abstain_below: float | None

    def __len__(self) -> int:
        return len(self.answer)

    @property
    def abstained(self) -> npt.NDArray[np.bool_]:
        """Which items were answered with none of these, (n,)."""
        return np.asarray(self.answer == NONE_OF_THESE)


def classify_rows(
    z_items: Any,
    z_classes: Any,
    k: int | None = None,
    logit_scale: float = DEFAULT_SCALE,
    abstain_below: float | None = None,
    block: int | None = None,
) -> ClassifiedRows:
    """Return the `k` nearest classes of each item by cosine (None: five, or all where there are fewer).

    `z_items` (n, d) and `z_classes` (C, d, see `class_prototypes`) are rows of any length in one space; a zero row has
    cosine 0 with everything. k over C counts as C. `logit_scale` is s of the shares, 1 / temperature; no answer depends
    on it. `abstain_below`: a cosine; where the nearest class is below it the answer is "none of these". `block`: items
    at once; results do not depend on it. Equal scores come in the order of the classes. No items give no answers.

    Raises `ShapeError`, `NonFiniteRowsError`, and `ArgumentError` for a k, scale, threshold or block out of range.

    >>> import numpy as np
    >>> found = classify_rows(np.array([[1.0, 0.2], [-1.0, 0.0]]), np.eye(2), abstain_below=0.5)
    >>> found.answer.tolist(), found.classes.tolist()
    ([0, -1], [[0, 1], [1, 0]])
    """
    classes = Classes(z_classes)
    if k is not None and (isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1):
        raise ArgumentError(f"k = {k!r}; expected a whole number of at least 1, or None")
    threshold = checked_threshold(abstain_below)
    width = min(5 if k is None else int(k), len(classes))
    blocks = classes.blocks(z_items, logit_scale, block)
    found, scores, shares, answers, tied = [], [], [], [], []
    for part in blocks:
        # Ties for the first place are made equal, so that rounding does not choose among them.
        ranked = np.where(part.first, part.top[:, None], part.cosines)
        order = np.argsort(-ranked, axis=1, kind="stable")[:, :width]
        found.append(order)
        scores.append(np.take_along_axis(part.cosines, order, axis=1))
        shares.append(np.take_along_axis(part.shares, order, axis=1))
        answers.append(part.answer if threshold is None else np.where(part.top < threshold, NONE_OF_THESE, part.answer))
        tied.append(part.n_first)
    empty = np.zeros((0, width))
    return ClassifiedRows(
        classes=np.concatenate([empty.astype(np.int64), *found]),
        scores=np.concatenate([empty, *scores]),
        share_among_candidates=np.concatenate([empty, *shares]),
        answer=np.concatenate([np.zeros(0, dtype=np.int64), *answers]),
        n_tied=np.concatenate([np.zeros(0, dtype=np.int64), *tied]),
        n_classes=len(classes),
        logit_scale=float(logit_scale),
        abstain_below=threshold,
    )
