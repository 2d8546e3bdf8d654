"""`zero_shot_report`: how often the nearest class is the true one, in one pass over blocks of items.

One class is true of an item here, or none of them is. Where several are true, `retrieval_report` with links from items
to classes measures it. This module is not about how answers depend on the candidates (`sensitivity`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from bridgehead.errors import ArgumentError
from bridgehead.evaluate.intervals import bootstrap_intervals
from bridgehead.evaluate.paired import entity_numbers
from bridgehead.evaluate.ties import Float64Array
from bridgehead.evaluate.zero_shot.abstention import coverage_curve
from bridgehead.evaluate.zero_shot.answers import NONE_OF_THESE
from bridgehead.evaluate.zero_shot.calibration import calibration_error
from bridgehead.evaluate.zero_shot.prototypes import class_numbers
from bridgehead.evaluate.zero_shot.record import Abstained, ClassFigures, ZeroShotReport
from bridgehead.evaluate.zero_shot.scores import DEFAULT_SCALE, Classes, ScoreBlock, checked_threshold
from bridgehead.vectors import IntArray, check_rows


def zero_shot_report(
    z_items: Any,
    z_classes: Any,
    truth: Any,
    labels: Sequence[str] | None = None,
    ks: Sequence[int] = (1, 5),
    logit_scale: float = DEFAULT_SCALE,
    abstain_below: float | None = None,
    entities: Any = None,
    n_bins: int = 15,
    n_resamples: int = 1000,
    seed: int = 0,
    block: int | None = None,
) -> ZeroShotReport:
    """Return top-k accuracy with chance and interval, a table by class, confusion, calibration and abstention.

    `z_items` (n, d), `z_classes` (C, d, see `class_prototypes`): rows of any length in one space. `truth` (n,): the
    number of each item's class, -1 where none of the classes is right; those items count in coverage, confusion and
    abstention, and in no accuracy. `labels`: names of the classes. `ks`: k over C counts as C. `logit_scale`,
    `abstain_below`: as in `classify_rows`. `entities` (n,): a label for each item, the unit of the intervals.
    Ties (1e-12) count as expectations over their random order: identical prototypes for all classes have the accuracy
    k / C. `block`: items at once, without influence. Memory O(n + block x C), and the answered pairs of classes.

    Raises `ShapeError`, `NonFiniteRowsError`, and `ArgumentError` (no item with a class, numbers of classes that there
    are not, options out of range).

    >>> import numpy as np
    >>> report = zero_shot_report(np.eye(3), np.eye(3)[[0, 2, 1]], [0, 1, 2], ks=(1, 2), n_resamples=0)
    >>> round(report.accuracy[1], 3), round(report.chance[2], 3)
    (0.333, 0.667)
    """
    classes = Classes(z_classes)
    n_items, n_classes = len(check_rows(z_items, "z_items")), len(classes)
    names = _labels(labels, n_classes)
    wanted = _ks(ks)
    numbers = class_numbers(truth, n_items, "truth", NONE_OF_THESE, n_classes - 1)
    known = np.flatnonzero(numbers >= 0)
    if len(known) == 0:
        raise ArgumentError(f"none of the {n_items} items has a class in truth; expected at least one")
    threshold = checked_threshold(abstain_below)
    found = _pass(classes.blocks(z_items, logit_scale, block), numbers, n_classes, threshold)
    entity = np.unique(entity_numbers(entities, n_items)[known], return_inverse=True)[1].reshape(-1)
    hits = {f"accuracy@{k}": _hit(found, known, min(k, n_classes)) for k in wanted}
    rank = {"rank": found.above[known] + (found.tied[known] + 1) / 2}
    intervals = bootstrap_intervals(hits | rank, entity.astype(np.int64), n_resamples, seed)
    per_class = _per_class(names, found.confusion)
    recalls = [one.recall for one in per_class if one.recall is not None]
    return ZeroShotReport(
        labels=names,
        n_items=n_items,
        n_with_class=len(known),
        accuracy={k: float(hits[f"accuracy@{k}"].mean()) for k in wanted},
        chance={k: min(k, n_classes) / n_classes for k in wanted},
        interval={k: intervals[f"accuracy@{k}"] for k in wanted if f"accuracy@{k}" in intervals},
        majority=max(one.n_true for one in per_class) / len(known),
        balanced_accuracy=float(np.mean(recalls)),
        n_ties=int(np.count_nonzero(found.tied[known] > 1)),
        per_class=per_class,
        confusion=found.confusion,
        calibration=calibration_error(found.share[known], found.right[known], n_bins),
        coverage={
            "score": coverage_curve(found.top, found.right),
            "share_among_candidates": coverage_curve(found.share, found.right),
        },
        abstention=None if threshold is None else _abstained(found, numbers, threshold),
        none_auroc=_auroc(found.top[known], found.top[numbers < 0]),
        logit_scale=float(logit_scale),
    )


@dataclass(frozen=True, eq=False)
class _Found:
    """What one pass over the items leaves: by item (n,), and the confusion.

    `above`, `tied` place the true class (0 and 0 without one), `top` and `share` are of the first class, `right` is the
    probability that the class answered is the true one, abstention left aside.
    """

    above: IntArray
    tied: IntArray
    top: Float64Array
    share: Float64Array
    right: Float64Array
    confusion: sparse.csr_array


def _pass(blocks: Iterable[ScoreBlock], truth: IntArray, n_classes: int, threshold: float | None) -> _Found:
    n = len(truth)
    above, tied = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    top, share, right = np.zeros(n), np.zeros(n), np.zeros(n)
    confusion = sparse.csr_array((n_classes + 1, n_classes + 1))
    for part in blocks:
        own = truth[part.rows]
        known = own >= 0
        places = part.place(np.where(known, own, 0))
        above[part.rows], tied[part.rows] = (np.where(known, place, 0) for place in places)
        top[part.rows] = part.top
        share[part.rows] = part.shares.max(axis=1)
        right[part.rows] = np.where(known & (places[0] == 0), 1 / part.n_first, 0)
        confusion = confusion + _confused(part, own, n_classes, threshold)
    return _Found(above, tied, top, share, right, confusion)


def _confused(part: ScoreBlock, truth: IntArray, n_classes: int, threshold: float | None) -> sparse.csr_array:
    """Return the expected numbers of items of a block by true class and answer; the last row and column are none."""
    refused = np.zeros(len(truth), dtype=bool) if threshold is None else part.top < threshold
    line, answer = np.nonzero(part.first & ~refused[:, None])
    silent = np.flatnonzero(refused)
    rows = np.where(truth < 0, n_classes, truth)
    data = np.concatenate([1 / part.n_first[line], np.ones(len(silent))])
    columns = np.concatenate([answer, np.full(len(silent), n_classes)])
    shape = (n_classes + 1, n_classes + 1)
    return sparse.coo_array((data, (rows[np.concatenate([line, silent])], columns)), shape=shape).tocsr()


def _hit(found: _Found, known: IntArray, k: int) -> Float64Array:
    """Return the probability that the true class is among the first k: clip(k - above, 0, tied) / tied."""
    above, tied = found.above[known], found.tied[known]
    return np.asarray(np.clip(k - above, 0, tied) / tied, dtype=np.float64)


def _per_class(names: tuple[str, ...], confusion: sparse.csr_array) -> tuple[ClassFigures, ...]:
    n = len(names)
    of_class = np.asarray(confusion.sum(axis=1)).reshape(-1)[:n]
    answered = np.asarray(confusion.sum(axis=0)).reshape(-1)[:n]
    right = confusion.diagonal()[:n]
    # Rows sum to whole numbers of items; fractions of tied answers leave rounding.
    return tuple(
        ClassFigures(name, round(float(t)), round(float(a), 9), round(float(r), 9))
        for name, t, a, r in zip(names, of_class, answered, right, strict=True)
    )


def _abstained(found: _Found, truth: IntArray, threshold: float) -> Abstained:
    answered, known = found.top >= threshold, truth >= 0
    return Abstained(
        threshold=threshold,
        coverage=float(answered.mean()),
        accuracy=float(found.right[answered].mean()) if answered.any() else None,
        n_none=int(np.count_nonzero(~known)),
        none_refused=float((~answered[~known]).mean()) if not known.all() else None,
        known_refused=float((~answered[known]).mean()),
    )


def _auroc(known: Float64Array, none: Float64Array) -> float | None:
    if len(none) == 0:
        return None
    ordered = np.sort(none)
    below = np.searchsorted(ordered, known, side="left") + np.searchsorted(ordered, known, side="right")
    return float(below.mean()) / 2 / len(none)


def _labels(labels: Sequence[str] | None, n_classes: int) -> tuple[str, ...]:
    if labels is None:
        return tuple(str(number) for number in range(n_classes))
    if isinstance(labels, str) or len(labels) != n_classes:
        came = "one text" if isinstance(labels, str) else f"{len(labels)} labels"
        raise ArgumentError(f"labels are {came} for {n_classes} classes; expected one each")
    return tuple(str(label) for label in labels)


def _ks(ks: Any) -> tuple[int, ...]:
    wanted = tuple(dict.fromkeys(ks)) if isinstance(ks, Iterable) else ()
    if not wanted or any(isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1 for k in wanted):
        raise ArgumentError(f"ks = {ks!r}; expected one or more whole numbers, each at least 1, such as (1, 5)")
    return tuple(int(k) for k in wanted)
