"""The two sides as unit rows, and which of their rows and pairs a part looks at where it does not look at all.

A part that compares everything with everything takes a sample above a stated size; samples follow from a seed alone.
This module measures nothing.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from bridgehead.errors import LinksError, ShapeError
from bridgehead.evaluate.arguments import checked_seed
from bridgehead.evaluate.ranks.cosine_rows import CosineRows
from bridgehead.evaluate.ties import Float64Array
from bridgehead.links import Links
from bridgehead.vectors import IntArray, block_rows, to_numpy

BLOCK_BYTES = 16 << 20
_ROUNDS = 100


def one_side(z: Any, name: str) -> CosineRows:
    """Return `z` (n, d) as unit rows; raises `ShapeError` where there is no row, and as `CosineRows`."""
    rows = z if isinstance(z, CosineRows) else CosineRows(z, name)
    if len(rows) == 0:
        raise ShapeError(f"{name} has no rows; expected at least one")
    return rows


def two_sides(z_a: Any, z_b: Any, names: tuple[str, str] = ("z_a", "z_b")) -> tuple[CosineRows, CosineRows]:
    """Return both sides as unit rows; raises `ShapeError` where a side is empty or their widths differ."""
    rows_a, rows_b = one_side(z_a, names[0]), one_side(z_b, names[1])
    if rows_a.n_columns != rows_b.n_columns:
        raise ShapeError(
            f"{names[0]} has {rows_a.n_columns} columns and {names[1]} {rows_b.n_columns}; both must live in one space"
        )
    return rows_a, rows_b


def true_pairs(links: Any, n_a: int, n_b: int) -> IntArray:
    """Return all matching pairs (P, 2), those shared through groups included; raises `LinksError` where there is none.

    `links` is as everywhere: `Links`, pairs, or None for row i with row i.
    """
    pairs = Links.of(links, n_a, n_b).expanded().pairs
    if len(pairs) == 0:
        raise LinksError("there are no links, so no pair is a true one; expected at least one")
    return pairs


def generator(seed: int, purpose: int) -> np.random.Generator:
    """Return the random numbers of one purpose, so that a part draws the same whether others ran before it or not."""
    return np.random.default_rng([checked_seed(seed), purpose])


def drawn_rows(n: int, most: int | None, rng: np.random.Generator) -> IntArray:
    """Return all row numbers of `n`, or `most` of them at random without repeats, ascending."""
    if most is None or n <= most:
        return np.arange(n, dtype=np.int64)
    return np.sort(rng.choice(n, size=most, replace=False)).astype(np.int64)


def rows_at(z: Any, rows: IntArray, name: str) -> CosineRows:
    """Return the unit rows of some rows of a side."""
    return CosineRows(to_numpy(z)[rows], name)


def slices_of(n: int, n_columns: int) -> Iterator[slice]:
    """Yield slices of `n` rows such that float64 rows of `n_columns` take at most 16 MB."""
    step = block_rows(max(1, n_columns), 8, BLOCK_BYTES)
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def cosines_of(rows_a: CosineRows, rows_b: CosineRows, pairs: IntArray) -> Float64Array:
    """Return the cosines (float64) of pairs (P, 2) of rows; exact to rounding, whatever else is asked for."""
    found = np.empty(len(pairs))
    for part in slices_of(len(pairs), 3 * rows_a.n_columns):
        found[part] = (rows_a.unit64(pairs[part, 0]) * rows_b.unit64(pairs[part, 1])).sum(axis=1)
    return found


def pairs_within(n: int, most: int, rng: np.random.Generator) -> tuple[IntArray, bool]:
    """Return pairs (P, 2) of different rows of one side, and whether these are all: n (n - 1) / 2 of them.

    Above `most` they are drawn at random, with replacement.
    """
    if n * (n - 1) // 2 <= most:
        first, second = np.triu_indices(n, 1)
        return np.stack([first, second], axis=1).astype(np.int64), True
    first = rng.integers(0, n, most)
    second = (first + rng.integers(1, n, most)) % n
    return np.stack([first, second], axis=1).astype(np.int64), False


def pairs_apart(true: IntArray, n_a: int, n_b: int, most: int, rng: np.random.Generator) -> tuple[IntArray, bool]:
    """Return pairs (P, 2) across the sides that do not match, and whether these are all that there are.

    Where there are more than `most` pairs they are drawn at random, with replacement; where nearly all pairs match,
    fewer than `most` may be found.
    """
    codes = np.unique(true[:, 0] * n_b + true[:, 1])
    if n_a * n_b <= most:
        free = np.setdiff1d(np.arange(n_a * n_b, dtype=np.int64), codes, assume_unique=True)
        return np.stack([free // n_b, free % n_b], axis=1), True
    found = np.zeros(0, dtype=np.int64)
    for _ in range(_ROUNDS):
        drawn = rng.integers(0, n_a, most) * n_b + rng.integers(0, n_b, most)
        place = np.minimum(np.searchsorted(codes, drawn), len(codes) - 1)
        found = np.concatenate([found, drawn[codes[place] != drawn]])[:most]
        if len(found) == most:
            break
    return np.stack([found // n_b, found % n_b], axis=1), False
