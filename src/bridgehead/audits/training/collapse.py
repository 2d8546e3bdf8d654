"""Collapse of a side of the space: all rows in one direction, or along a few dimensions of those there are.

A loss can fall all the while. This module is not about how the space looks otherwise (`geometry_findings`).
"""

from typing import Any

from bridgehead.audits.finding import Finding
from bridgehead.errors import ArgumentError
from bridgehead.evaluate.arguments import checked_names
from bridgehead.evaluate.geometry import Spread, spread

SAME_DIRECTION, NARROW = 0.9, 0.6
"""Mean cosines between rows of one side from which all are the same, or lie in a narrow cone: 0.9 is an angle of 26
degrees between any two, 0.6 one of 53. Untrained deep encoders often begin at 0.5 or more; training spreads them."""
FEW, SOME = 0.02, 0.1
"""Shares of the dimensions that could be used, below which there is dimensional collapse, and below which little is
used. 0.02 of 256 is 5 dimensions, which tell a few dozen items apart."""
LEAST_ROWS = 10
"""Fewer rows of a side than this span nothing, whatever the space."""


def collapse_findings(
    z_a: Any, z_b: Any, names: tuple[str, str] = ("a", "b"), before: tuple[Any, Any] | None = None
) -> list[Finding]:
    """Return for each side whether its rows point in one direction, and how many dimensions they use.

    `z_a` (n_a, d), `z_b` (n_b, d): rows in the shared space, of any length. `before`: the rows of both sides as they
    came from the encoders, dense, where training must not be blamed for what these never had. Two findings a side, of
    the group "training":

    - *mean cosine within a side*, over all pairs of rows, (n L^2 - 1) / (n - 1) with L the length of the mean row.
      Expected below 0.6; warns to 0.9, and fails from there (total collapse).
    - *dimensions used*, the effective rank (Roy and Vetterli 2007) as a share of min(n, d), or of the effective rank
      before where that is less. Expected at least 0.1; warns to 0.02, and fails below (dimensional collapse: Jing et
      al. 2022, arXiv:2110.09348).

    Raises `ArgumentError` for sides of fewer than 10 rows, `ShapeError`, `NonFiniteRowsError`. Costs a product of
    d x n x d: 0.2 s for 10,000 rows of 256 on one core.
    """
    names = checked_names(names)
    if before is not None and (not isinstance(before, tuple | list) or len(before) != 2):
        raise ArgumentError(
            f"before is a {type(before).__name__}; expected rows of a and rows of b from before training"
        )
    found = []
    came = (None, None) if before is None else before
    for z, first, name in zip((z_a, z_b), came, names, strict=True):
        rows = spread(z)
        if rows.n_rows < LEAST_ROWS:
            raise ArgumentError(f"{name} has {rows.n_rows} rows; expected at least {LEAST_ROWS} to judge collapse by")
        found += [_direction(rows, name), _dimensions(rows, None if first is None else spread(first), name)]
    return found


def _direction(rows: Spread, name: str) -> Finding:
    n = rows.n_rows
    mean = (n * rows.mean_length**2 - 1) / (n - 1)
    title, expected = f"mean cosine within {name}", f"below {NARROW:g}; 1 is total collapse, 0 rows in all directions"
    if mean >= SAME_DIRECTION:
        why = "total collapse: all rows point the same way, and what they differ in is left to rounding"
        return Finding(title, mean, expected, "fail", why, "training")
    if mean >= NARROW:
        why = "the rows lie in a narrow cone: cosines differ little, and a few candidates may come before all queries"
        return Finding(title, mean, expected, "warn", why, "training")
    return Finding(title, mean, expected, "pass", "rows of this side point in different directions", "training")


def _dimensions(rows: Spread, before: Spread | None, name: str) -> Finding:
    most = float(min(rows.n_rows, rows.n_dimensions))
    told = f"{most:.0f} that {rows.n_rows:,} rows of {rows.n_dimensions} numbers can use"
    if before is not None and before.effective_rank < most:
        most, told = max(before.effective_rank, 1.0), f"{before.effective_rank:.1f} that the rows used before training"
    share = rows.effective_rank / most
    title, expected = f"dimensions of {name} used", f"at least {SOME:g} of the {told}"
    used = f"effective rank {rows.effective_rank:.1f}"
    if rows.effective_rank < min(2.0, most) or share < FEW:
        why = f"{used}: dimensional collapse, the rows lie along a line or a few; train longer, or with more negatives"
        return Finding(title, share, expected, "fail", why, "training")
    if share < SOME:
        why = (
            f"{used}: most of the space is empty; a smaller embed_dim would do, or the rows lost what tells them apart"
        )
        return Finding(title, share, expected, "warn", why, "training")
    return Finding(title, share, expected, "pass", f"{used}: the rows use the space", "training")
