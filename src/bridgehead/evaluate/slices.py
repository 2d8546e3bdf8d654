"""Parts of a direction's queries by a label: how many there are, and each metric with its chance and interval.

A mean over all queries hides that one source is easy or that long texts are found by their length. A slice says what
its queries reached in the same pool. This module is not about which labels matter: it takes them, and makes those that
are bins of a number. Similarity between items is `similarity`'s.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.evaluate.arguments import whole_number
from bridgehead.evaluate.record import DirectionReport
from bridgehead.vectors import to_numpy

UNKNOWN = "(none)"
"""The label of items that have none."""

LEAST = 20
"""A slice of fewer queries is not shown by itself: its 95 % interval of a recall near a half is wider than 0.4."""

MOST = 30
"""The number of slices shown by themselves; the rest of a column with more labels is one slice."""


@dataclass(frozen=True)
class Bins:
    """Labels of items (n,) that are bins of a number, None for items without one, and the labels in ascending order."""

    labels: tuple[str | None, ...]
    order: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Slice:
    """The queries of a direction that share a label of the column `name`; `report` is theirs alone.

    `n_labels` is 1, or the number of labels that are taken together here because each has too few queries.
    """

    name: str
    label: str
    n_labels: int
    report: DirectionReport

    @property
    def n_queries(self) -> int:
        """The number of queries in the slice."""
        return self.report.n_queries

    @property
    def n_entities(self) -> int:
        """The number of entities among them, the unit of the intervals."""
        return self.report.n_entities

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-safe entries: name, label, n_labels, and all of the report's (`DirectionReport.to_dict`)."""
        return {"name": self.name, "label": self.label, "n_labels": self.n_labels, **self.report.to_dict()}


def slice_report(
    direction: DirectionReport,
    labels: Any,
    name: str,
    least: int = LEAST,
    most: int = MOST,
    n_resamples: int | None = None,
) -> list[Slice]:
    """Return the slices of a direction's queries by `labels`, the largest first, or in the order of `Bins`.

    `labels` has an entry for each row of the querying side, query or not: a text or number; None, "" or NaN for none,
    which is a slice of its own; or a collection of texts, whose item is in several slices. How new items are is
    `quintiles(nearest_similarity(rows, train_rows))`, how long they are `length_bins`; a mask, such as that of
    `activity_cliffs`, makes labels by `np.where(mask, "cliff", "other")`.

    Every query ranked what it ranked in `direction`, so slices can be compared with each other and with the whole
    (lists apart). Labels of fewer than `least` queries, and those beyond the `most` largest, are one slice at the end.
    `n_resamples` is that of the intervals (default: the direction's). Raises `ShapeError` for another number of labels
    and `ArgumentError` for counts under 1.

    >>> from bridgehead.evaluate import retrieval_report
    >>> report = retrieval_report(np.eye(4), np.eye(4), ks=(1,), n_resamples=0).a_to_b
    >>> found = slice_report(report, ["x", "y", "x", "x"], "kind", least=1)
    >>> [(one.label, one.n_queries, one.report.recall[1]) for one in found]
    [('x', 3, 1.0), ('y', 1, 1.0)]
    """
    if not isinstance(direction, DirectionReport):
        raise ArgumentError(f"direction is a {type(direction).__name__}; expected a DirectionReport: report.a_to_b")
    least, most = whole_number(least, "least", 1), whole_number(most, "most", 1)
    members = _members(direction, labels.labels if isinstance(labels, Bins) else labels, name)
    ordered = sorted(members, key=lambda label: (label == UNKNOWN, -len(members[label]), label))
    shown = [label for label in ordered if len(members[label]) >= least][:most]
    rest = [label for label in ordered if label not in set(shown)]
    if isinstance(labels, Bins):
        place = {label: i for i, label in enumerate(labels.order)}
        shown.sort(key=lambda label: place.get(label, len(place)))
    groups = [(label, 1, members[label]) for label in shown]
    if len(rest) == 1:
        groups.append((rest[0], 1, members[rest[0]]))
    elif rest:
        groups.append((f"({len(rest)} smaller ones)", len(rest), sorted({i for label in rest for i in members[label]})))
    return [Slice(name, label, n, direction.subset(_mask(own, direction), n_resamples)) for label, n, own in groups]


def quintiles(values: Any, n_bins: int = 5, digits: int = 2, unit: str = "") -> Bins:
    """Return the bins of numbers (n,) by their quantiles, equal values in one bin; labels are the bounds of each.

    So bins can be of unlike size, and fewer than `n_bins` where values repeat. NaN is no value. `digits` are those of
    the shown bounds (more where two bins would read the same), `unit` a word behind them. Raises `ShapeError` for what
    has not one dimension, `ArgumentError` for what is no number, infinity, or fewer than 2 bins.

    >>> quintiles([1, 2, 3, 4, 5, 5, 5, 5], n_bins=2, digits=0, unit="atoms").order
    ('1 to 4 atoms', '5 atoms')
    """
    numbers = to_numpy(values)
    if numbers.ndim != 1:
        raise ShapeError(f"values has shape {numbers.shape}; expected one dimension (n,), a number for each item")
    if numbers.size and numbers.dtype.kind not in "fiu":
        raise ArgumentError(f"values has dtype {numbers.dtype}; expected numbers, NaN for none")
    numbers = numbers.astype(np.float64)
    if np.isinf(numbers).any():
        raise ArgumentError(f"values holds infinity (first in row {int(np.argmax(np.isinf(numbers)))})")
    # More bins than numbers are as many as there are numbers.
    n_bins = min(whole_number(n_bins, "n_bins", 2), max(2, len(numbers)))
    digits = whole_number(digits, "digits", 0)
    known = np.flatnonzero(~np.isnan(numbers))
    if len(known) == 0:
        return Bins((None,) * len(numbers), ())
    found = numbers[known]
    edges = np.unique(np.quantile(found, np.arange(1, n_bins) / n_bins, method="inverted_cdf"))
    _, bins = np.unique(np.searchsorted(edges, found, side="left"), return_inverse=True)
    order = _bounds(found, bins.reshape(-1), digits, unit)
    labels: list[str | None] = [None] * len(numbers)
    for row, place in zip(known.tolist(), bins.reshape(-1).tolist(), strict=True):
        labels[row] = order[place]
    return Bins(tuple(labels), order)


def length_bins(lengths: Any, n_bins: int = 5, unit: str = "characters") -> Bins:
    """Return the bins of lengths (n,), whole numbers, by their quantiles (see `quintiles`), as "1 to 52 characters"."""
    return quintiles(lengths, n_bins, 0, unit)


def _bounds(found: npt.NDArray[np.float64], bins: Any, digits: int, unit: str) -> tuple[str, ...]:
    spans = [(found[bins == i].min(), found[bins == i].max()) for i in range(int(bins.max()) + 1)]
    while True:
        texts = [(f"{low:,.{digits}f}", f"{high:,.{digits}f}") for low, high in spans]
        # A bound that two bins share in print would look as if a value were in both.
        ends = [text for low, high in texts for text in {low, high}]
        if len(set(ends)) == len(ends) or digits >= 12:
            break
        digits += 1
    shown = [low if low == high else f"{low} to {high}" for low, high in texts]
    return tuple(f"{one} {unit}".rstrip() for one in shown)


def _members(direction: DirectionReport, labels: Any, name: str) -> dict[str, list[int]]:
    """Return label -> numbers of the direction's queries that have it, ascending."""
    given: Sequence[Any] = labels if isinstance(labels, list | tuple) else to_numpy(labels).tolist()
    last = int(direction.queries.max(initial=-1))
    if not isinstance(given, list | tuple) or len(given) <= last:
        size = len(given) if isinstance(given, list | tuple) else given
        raise ShapeError(
            f"labels of {name!r}: {size!r:.40}; expected one for each row of the querying side, {last + 1} or more"
        )
    members: dict[str, list[int]] = {}
    for number, row in enumerate(direction.queries.tolist()):
        for label in _texts(given[row]):
            members.setdefault(label, []).append(number)
    return members


def _texts(label: Any) -> Collection[str]:
    if isinstance(label, list | tuple | set | frozenset):
        return {text for one in label for text in _texts(one)} or {UNKNOWN}
    if label is None or label == "" or (isinstance(label, float) and np.isnan(label)):
        return {UNKNOWN}
    return {str(label)}


def _mask(numbers: Sequence[int], direction: DirectionReport) -> npt.NDArray[np.bool_]:
    mask = np.zeros(direction.n_queries, dtype=bool)
    mask[np.asarray(numbers, dtype=np.int64)] = True
    return mask
