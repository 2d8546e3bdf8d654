"""Recall with and without groups: any view of the same entity counts as right, or the declared mates alone.

Where five molecules carry one caption, a query by that caption finds one of them first, and whether that is a hit is a
matter of what counts as right. Both figures are given, with words for what they count. This module is not about ranks
(`report`) or about which items are the same (that is for whoever makes the groups).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bridgehead.errors import LinksError
from bridgehead.evaluate.intervals import bootstrap_intervals
from bridgehead.evaluate.record import DirectionReport, RetrievalReport
from bridgehead.evaluate.report import retrieval_report
from bridgehead.links import Links
from bridgehead.vectors import IntArray, check_rows, to_numpy

SIDES = ("a_to_b", "b_to_a")


@dataclass(frozen=True, eq=False)
class GroupedReports:
    """Two reports of the same queries: `any_of_entity`, where any item of a mate's group counts, and `own_only`.

    `gain` maps a key (`a_to_b.recall@1`) to the first less the second, `interval` to its 95 % bootstrap interval by
    entity, which is paired: both metrics are of the same queries in each resample. `n_grouped` are the matches, over
    both sides' items, that groups add to the declared ones.
    """

    any_of_entity: RetrievalReport
    own_only: RetrievalReport
    gain: dict[str, float]
    interval: dict[str, tuple[float, float]]
    n_grouped: int

    @property
    def counts_as_correct(self) -> dict[str, str]:
        """What each of the two reports takes as right, in words."""
        a, b = self.any_of_entity.names
        return {
            "any_of_entity": f"any {b} (or {a}) declared for the query or for an item that is the same again as either",
            "own_only": f"only a {b} (or {a}) that is declared for the query itself",
        }

    def to_dict(self) -> dict[str, float | int | str]:
        """Return flat, JSON-safe entries: `any_of_entity.a_to_b.recall@1`, `own_only. ...`, `gain. ...`, and words."""
        flat: dict[str, float | int | str] = {"n_grouped": self.n_grouped}
        for name, words in self.counts_as_correct.items():
            flat[f"{name}.counts_as_correct"] = words
            flat |= {f"{name}.{key}": value for key, value in getattr(self, name).to_dict().items()}
        for key, value in self.gain.items():
            flat[f"gain.{key}"] = value
            if key in self.interval:
                flat[f"gain.{key}.low"], flat[f"gain.{key}.high"] = self.interval[key]
        return flat

    def lines(self) -> list[str]:
        """Return recall and reciprocal rank of both reports, what counts as right, and the gain, as lines to print."""
        a, b = self.any_of_entity.names
        words = self.counts_as_correct
        lines = [f"any of the entity: {words['any_of_entity']}", f"own only: {words['own_only']}"]
        for side, shown in zip(SIDES, (f"{a} -> {b}", f"{b} -> {a}"), strict=True):
            lines.append(f"{shown}:")
            for name in [f"recall@{k}" for k in self.any_of_entity.a_to_b.ks] + ["mrr"]:
                key = f"{side}.{name}"
                both = self.any_of_entity.value(key), self.own_only.value(key)
                between = "" if key not in self.interval else " ({:+.3f} to {:+.3f})".format(*self.interval[key])
                lines.append(f"  {name:<10} {both[0]:.3f} any, {both[1]:.3f} own, gain {self.gain[key]:+.3f}{between}")
        return lines


def grouped_reports(
    z_a: Any,
    z_b: Any,
    links: Any = None,
    groups_a: Any = None,
    groups_b: Any = None,
    **options: Any,
) -> GroupedReports:
    """Return the retrieval reports of the declared links with groups and without, on the same queries, and the gain.

    `groups_a` (n_a,) and `groups_b` (n_b,) are a label for each row: items of one label are the same entity or text
    again and share each other's links (`Links`); None, NaN, "" and negative numbers are no group. Where neither is
    given, the groups are those of `links`. Declared are the pairs of `links` alone. Queries are those with a declared
    mate, so that both reports are about the same ones. `options` go to `retrieval_report` (ks, names, entities_a,
    entities_b, queries_a, queries_b, pool, candidates, n_resamples, seed, block).

    A gain is never negative for recall@k and mrr; where groups add no match it is 0 with the interval (0, 0). Chance
    differs between the two reports, since more counts as right. Raises as `retrieval_report`, and `LinksError` where
    there is no group at all.

    >>> z = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])  # items 0 and 1 are one text twice
    >>> found = grouped_reports(z, z, groups_b=["x", "x", "y"], ks=(1,), n_resamples=0)
    >>> found.any_of_entity.a_to_b.recall[1], round(found.own_only.a_to_b.recall[1], 3)
    (1.0, 0.667)
    """
    n_a, n_b = (check_rows(z, f"rows of {name}").shape[0] for z, name in ((z_a, "a"), (z_b, "b")))
    given = Links.of(links, n_a, n_b)
    groups = [_numbers(groups_a, given.groups_a), _numbers(groups_b, given.groups_b)]
    if all(own is None for own in groups):
        raise LinksError("there are no groups; expected groups_a, groups_b or links with groups: a label for each item")
    grouped, declared = Links(given.pairs, n_a, n_b, *groups), Links(given.pairs, n_a, n_b)
    for side, column, n in (("a", 0, n_a), ("b", 1, n_b)):
        has_mate = np.bincount(declared.pairs[:, column], minlength=n) > 0
        chosen = options.get(f"queries_{side}")
        fits = chosen is not None and to_numpy(chosen).shape == (n,) and to_numpy(chosen).dtype == np.bool_
        # A mask that does not fit goes through as it is: whoever ranks says what is wrong with it.
        options[f"queries_{side}"] = has_mate & to_numpy(chosen) if fits else has_mate if chosen is None else chosen
    reports = [retrieval_report(z_a, z_b, truth, **options) for truth in (grouped, declared)]
    gain: dict[str, float] = {}
    interval: dict[str, tuple[float, float]] = {}
    for side in SIDES:
        gains, spans = _gain(*(getattr(report, side) for report in reports))
        gain |= {f"{side}.{name}": value for name, value in gains.items()}
        interval |= {f"{side}.{name}": span for name, span in spans.items()}
    n_grouped = int(grouped.matrix.nnz) - int(declared.matrix.nnz)
    return GroupedReports(reports[0], reports[1], gain, interval, n_grouped)


def _gain(
    with_groups: DirectionReport, without: DirectionReport
) -> tuple[dict[str, float], dict[str, tuple[float, float]]]:
    """Return the paired difference of each metric of the queries, and its interval; ranks apart, where less is more."""
    differences = {
        name: values - without.per_query[name] for name, values in with_groups.per_query.items() if name != "rank"
    }
    intervals = bootstrap_intervals(differences, with_groups.entities, with_groups.n_resamples, with_groups.seed)
    return {name: float(values.mean()) for name, values in differences.items()}, intervals


def _numbers(labels: Any, own: IntArray | None) -> IntArray | None:
    """Return groups as `Links` takes them, -1 for none; `own` where no labels are given."""
    if labels is None:
        return own
    array = to_numpy(labels)
    if array.ndim == 1 and array.dtype.kind in "iu":
        return np.asarray(array, dtype=np.int64)
    if array.ndim != 1:
        return np.asarray(array)
    number: dict[Any, int] = {}
    return np.array([-1 if _is_none(x) else number.setdefault(x, len(number)) for x in array.tolist()], dtype=np.int64)


def _is_none(label: Any) -> bool:
    return label is None or label == "" or (isinstance(label, float) and (np.isnan(label) or label < 0))
