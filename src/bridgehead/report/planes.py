"""Both sides of some pairs in two dimensions, before and after training: principal planes of a bounded sample.

Source: principal components from the matrix of inner products (Gower, Biometrika 53 (1966)), so that a side of 100,000
sparse columns costs no more than its inner products. Not about how a plane is drawn (`space_figures`).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bridgehead.errors import ArgumentError, LinksError
from bridgehead.links import Links
from bridgehead.report.evidence import MapView
from bridgehead.report.space_figures import MOST_MATES
from bridgehead.vectors import FloatArray, IntArray, check_rows, unit_rows

_SAME = 1e-9


@dataclass(frozen=True)
class Plane:
    """Points (n, 2) in the plane of the two largest principal components, and the `share` of the spread it holds."""

    points: FloatArray
    share: float


def plane_views(
    z_a: Any, z_b: Any, links: Any = None, before: tuple[Any, Any] | None = None, most: int = MOST_MATES
) -> list[MapView]:
    """Return the maps "before training" (where `before` is given) and "after training" of the same pairs.

    `z_a` (n_a, d) and `z_b` (n_b, d) are rows of the shared space, `before` the rows that the heads take, dense or CSR
    and of any widths; `links` as in `retrieval_report`. At most `most` pairs are taken, evenly spaced in their order.
    After training both sides lie in the plane of both together. Before it they have no axes in common: each side lies
    in its own plane, scaled to the same size, so how the sides lie to each other there says nothing, which the note
    says. Raises `LinksError` where nothing is linked, `ArgumentError` for `most` under 1, and `ShapeError` and
    `NonFiniteRowsError` for rows.
    """
    if most < 1:
        raise ArgumentError(f"most = {most}; expected at least 1 pair")
    z_a, z_b = check_rows(z_a, "z_a"), check_rows(z_b, "z_b")
    pairs = Links.of(links, z_a.shape[0], z_b.shape[0]).pairs
    if not len(pairs):
        raise LinksError("no pair is linked; expected at least one to draw")
    shown = pairs[np.unique(np.linspace(0, len(pairs) - 1, min(most, len(pairs))).astype(np.int64))]
    rows_a, at_a = np.unique(shown[:, 0], return_inverse=True)
    rows_b, at_b = np.unique(shown[:, 1], return_inverse=True)
    mates = np.column_stack([at_a.reshape(-1), at_b.reshape(-1)]).astype(np.int64)
    of = f"{len(shown):,} of {len(pairs):,} pairs" if len(shown) < len(pairs) else f"{len(pairs):,} pairs"
    views = [] if before is None else [_before(before, rows_a, rows_b, mates, of)]
    both = principal_plane(np.concatenate([_unit(z_a[rows_a]), _unit(z_b[rows_b])]))
    note = f"{of[:1].upper()}{of[1:]} in the plane that holds {both.share:.0%} of their spread."
    after = MapView("after training", both.points[: len(rows_a)], both.points[len(rows_a) :], mates, note)
    return [*views, after]


def _before(before: tuple[Any, Any], rows_a: IntArray, rows_b: IntArray, mates: IntArray, of: str) -> MapView:
    sides = [
        principal_plane(_unit(check_rows(rows, name)[chosen]))
        for rows, name, chosen in zip(before, ("rows of a", "rows of b"), (rows_a, rows_b), strict=True)
    ]
    a, b = (_scaled(side.points) for side in sides)
    held = f"{sides[0].share:.0%} and {sides[1].share:.0%} of their spread"
    note = (
        f"The same pairs ({of}) by the rows that training starts from, each side in a plane of its own ({held}). How "
        "the two planes lie to each other is arbitrary."
    )
    return MapView("before training", a, b, mates, note)


def principal_plane(rows: Any) -> Plane:
    """Return the rows (n, d), dense or CSR, centred, in the plane of their two largest principal components.

    The sign of an axis is such that the point farthest out on it is on the positive side. Rows that do not differ, and
    a single one, lie at the origin and hold a share of 0. Memory and time go with n^2: for a sample. Raises
    `ShapeError` and `NonFiniteRowsError`.
    """
    rows = check_rows(rows, "rows")
    if not rows.shape[0]:
        return Plane(np.zeros((0, 2)), 0.0)
    products = rows @ rows.T
    gram = np.asarray(products.toarray() if hasattr(products, "toarray") else products, dtype=np.float64)
    gram = gram - gram.mean(axis=0) - gram.mean(axis=1)[:, None] + gram.mean()
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    values = np.maximum(values[::-1], 0)
    total = float(values.sum())
    points = np.zeros((len(gram), 2))
    for axis in range(min(2, len(gram))):
        if values[axis] > _SAME * max(1.0, total):
            column = vectors[:, -1 - axis] * np.sqrt(values[axis])
            points[:, axis] = column * np.sign(column[np.abs(column).argmax()])
    return Plane(points, float(values[:2].sum()) / total if points.any() else 0.0)


def _unit(rows: Any) -> Any:
    """Return the rows at length 1 in float64, zero rows as they are, sparse ones sparse."""
    if not hasattr(rows, "indptr"):
        return unit_rows(rows, dtype=np.float64)
    # In float64 no square of a float32 number overflows.
    rows = rows.astype(np.float64)
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).reshape(-1))
    return rows.multiply(1 / np.where(lengths > 0, lengths, 1.0)[:, None]).tocsr()


def _scaled(points: FloatArray) -> FloatArray:
    size = float(np.sqrt((points**2).sum(axis=1).mean())) if len(points) else 0.0
    return points / size if size > 0 else points
