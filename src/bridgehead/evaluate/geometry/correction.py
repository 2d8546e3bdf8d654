"""Closing the modality gap by taking each side's mean away, and what that does to recall: measured, not assumed.

This module is not about how large the gap is (`gap`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.evaluate.arguments import checked_names
from bridgehead.evaluate.geometry.sides import one_side, slices_of, two_sides
from bridgehead.evaluate.paired import PairedDifference, paired_difference
from bridgehead.evaluate.ranks.cosine_rows import CosineRows
from bridgehead.evaluate.record import DirectionReport, RetrievalReport
from bridgehead.evaluate.report import retrieval_report
from bridgehead.vectors import FloatArray


@dataclass(frozen=True, eq=False)
class GapCorrection:
    """Retrieval before and after each side's mean was taken away.

    `differences` maps `a_to_b.recall@10` and its like (recall@k, mrr) to after minus before on the same queries, with
    the paired 95 % interval by entity and the p value of a sign-flip test. `fitted_on` says whose means were taken:
    "other rows" (such as the training part's) or "the evaluated rows" (which a single query does not have).
    `distance_before` and `distance_after` are the distances of the two centroids of unit rows.
    """

    before: RetrievalReport
    after: RetrievalReport
    differences: dict[str, PairedDifference]
    distance_before: float
    distance_after: float
    fitted_on: str

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-safe entries: the distances, `fitted_on`, and for each metric `before`, `after`, `value`, `low`,
        `high`, `p_value` and what else `PairedDifference` has."""
        return {
            "fitted_on": self.fitted_on,
            "distance_before": self.distance_before,
            "distance_after": self.distance_after,
            "n_candidates": {"a_to_b": self.before.a_to_b.n_candidates, "b_to_a": self.before.b_to_a.n_candidates},
            "differences": {
                name: {"before": found.second, "after": found.first, **found.to_dict()}
                for name, found in self.differences.items()
            },
        }

    def lines(self) -> list[str]:
        """Return what the shift changed, as lines to print."""
        a, b = self.before.names
        directions = {"a_to_b": f"{a} -> {b}", "b_to_a": f"{b} -> {a}"}
        head = (
            f"each side's mean taken away (means of {self.fitted_on}): centroid distance "
            f"{self.distance_before:.3f} -> {self.distance_after:.3f}; after and before:"
        )
        return [head, *(f"  {found.line(_shown(name, directions))}" for name, found in self.differences.items())]


def mean_shift(z_a: Any, z_b: Any, fit: tuple[Any, Any] | None = None) -> tuple[FloatArray, FloatArray]:
    """Return the unit rows of each side less the mean of that side's unit rows, made unit rows again.

    `z_a` (n_a, d), `z_b` (n_b, d); `fit`: rows of a and of b whose means are taken, such as the training part's; by
    default those that are shifted. Returned are float32 (n_a, d) and (n_b, d). A row that equals its side's mean
    becomes zero: so does a side of one row that is shifted by itself. Source: Liang et al. 2022 (arXiv:2203.02053),
    section 5, where the shift is along the difference of the two means; this one takes each mean to zero, which
    includes that. Raises `ShapeError` (widths, empty sides), `NonFiniteRowsError`.
    """
    rows_a, rows_b = two_sides(z_a, z_b)
    fitted = _fitted(fit, rows_a, rows_b)
    return _shifted(rows_a, _mean(fitted[0])), _shifted(rows_b, _mean(fitted[1]))


def gap_correction(
    z_a: Any,
    z_b: Any,
    links: Any = None,
    fit: tuple[Any, Any] | None = None,
    ks: Sequence[int] = (1, 5, 10),
    names: tuple[str, str] = ("a", "b"),
    entities_a: Any = None,
    entities_b: Any = None,
    n_resamples: int = 1000,
    seed: int = 0,
    before: RetrievalReport | None = None,
) -> GapCorrection:
    """Return recall before and after `mean_shift`, with the difference and its paired interval, in both directions.

    Arguments as in `retrieval_report` and `mean_shift`. Give `fit` where there are training rows: means of the
    evaluated rows themselves use the pool as a whole, which is not there for one query. `before`: the report of these
    very rows where it was made already (all rows as queries and as pool, the same ks); it saves half of the time.

    Raises as `retrieval_report`, and `ArgumentError` for a `before` of other queries or ks.
    """
    rows_a, rows_b = two_sides(z_a, z_b, checked_names(names))
    options: dict[str, Any] = {
        "ks": ks, "names": names, "entities_a": entities_a, "entities_b": entities_b,
        "n_resamples": n_resamples, "seed": seed,
    }  # fmt: skip
    shifted = mean_shift(rows_a, rows_b, fit)
    after = retrieval_report(*shifted, links, **options)
    if before is not None and not isinstance(before, RetrievalReport):
        raise ArgumentError(f"before is a {type(before).__name__}; expected the RetrievalReport of these rows")
    if before is None:
        before = retrieval_report(z_a, z_b, links, **options)
    differences = {}
    for side in ("a_to_b", "b_to_a"):
        new, old = getattr(after, side), getattr(before, side)
        _check_same(new, old, side)
        for metric in (*(f"recall@{k}" for k in new.ks), "mrr"):
            pair = (new.per_query[metric], old.per_query[metric])
            differences[f"{side}.{metric}"] = paired_difference(*pair, new.entities, n_resamples, seed=seed)
    return GapCorrection(
        before=before,
        after=after,
        differences=differences,
        distance_before=_distance(rows_a, rows_b),
        distance_after=_distance(*two_sides(*shifted)),
        fitted_on="the evaluated rows" if fit is None else "other rows",
    )


def _fitted(fit: Any, rows_a: CosineRows, rows_b: CosineRows) -> tuple[CosineRows, CosineRows]:
    if fit is None:
        return rows_a, rows_b
    if not isinstance(fit, tuple | list) or len(fit) != 2:
        raise ArgumentError(f"fit is a {type(fit).__name__}; expected two arrays: rows of a and rows of b")
    found = one_side(fit[0], "fit[0]"), one_side(fit[1], "fit[1]")
    for number, rows in enumerate(found):
        if rows.n_columns != rows_a.n_columns:
            raise ShapeError(
                f"fit[{number}] has {rows.n_columns} columns and the rows to be shifted {rows_a.n_columns}; "
                "both must live in one space"
            )
    return found


def _mean(rows: CosineRows) -> FloatArray:
    parts = [rows.unit64(part).sum(axis=0) for part in slices_of(len(rows), rows.n_columns)]
    return np.asarray(np.sum(parts, axis=0) / len(rows))


def _shifted(rows: CosineRows, mean: FloatArray) -> FloatArray:
    out = np.empty((len(rows), rows.n_columns), dtype=np.float32)
    for part in slices_of(len(rows), rows.n_columns):
        block = rows.unit64(part) - mean
        norm = np.sqrt((block * block).sum(axis=1, keepdims=True))
        # What is left of a row that is the mean is rounding, and would be a direction of chance.
        out[part] = np.where(norm > 1e-12, block / np.where(norm > 1e-12, norm, 1), 0)
    return out


def _distance(rows_a: CosineRows, rows_b: CosineRows) -> float:
    return float(np.sqrt(((_mean(rows_a) - _mean(rows_b)) ** 2).sum()))


def _check_same(new: DirectionReport, old: DirectionReport, side: str) -> None:
    same = np.array_equal(new.queries, old.queries) and new.n_candidates == old.n_candidates
    if not same or new.ks != old.ks:
        raise ArgumentError(
            f"before.{side} has {old.n_queries} queries, {old.n_candidates} candidates and ks {old.ks}; expected a "
            f"report of the same rows, with all of them as queries: {new.n_queries}, {new.n_candidates} and {new.ks}"
        )


def _shown(name: str, directions: dict[str, str]) -> str:
    side, _, metric = name.partition(".")
    return f"{directions[side]} {metric}"
