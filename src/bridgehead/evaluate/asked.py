"""What is asked of a retrieval evaluation: which rows are queries, what is true for them, what each of them ranks.

This module checks arguments and turns links, masks, pools and lists into `Truth` and `CandidateLists`. It scores
nothing (`exact`, `scored`, `listed`) and computes no metric (`ties`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridgehead.errors import ArgumentError, LinksError, ShapeError
from bridgehead.evaluate.arguments import checked_ks, checked_labels, checked_names, checked_seed
from bridgehead.evaluate.listed import CandidateLists
from bridgehead.evaluate.ranks.levels import Truth
from bridgehead.evaluate.record import DirectionReport
from bridgehead.evaluate.ties import Float64Array, TieLevels
from bridgehead.links import Links
from bridgehead.vectors import IntArray, check_rows, to_numpy


@dataclass(frozen=True, eq=False)
class Settings:
    """What both directions share: the k of the metrics, the bootstrap's resamples and its seed, the shown names."""

    ks: tuple[int, ...]
    n_resamples: int
    seed: int
    names: tuple[str, str]

    @classmethod
    def of(cls, ks: Any, n_resamples: Any, seed: Any, names: Any) -> "Settings":
        """Return the settings after checking them. Raises `ArgumentError`."""
        wanted = checked_ks(ks)
        if isinstance(n_resamples, bool) or not isinstance(n_resamples, int | np.integer) or n_resamples < 0:
            raise ArgumentError(f"n_resamples = {n_resamples!r}; expected a whole number: 0 (no intervals) or more")
        return cls(wanted, int(n_resamples), checked_seed(seed), checked_names(names))


@dataclass(frozen=True, eq=False)
class Direction:
    """One direction's queries: their truth, entities (n_queries,), the size of the pool, and lists if they have any."""

    truth: Truth
    entities: IntArray
    n_candidates: int
    lists: CandidateLists | None

    def report(self, levels: TieLevels, true_scores: Float64Array, settings: Settings) -> DirectionReport:
        """Return the report of this direction from its tie levels."""
        return DirectionReport.from_levels(
            levels,
            settings.ks,
            self.n_candidates,
            self.truth.rows,
            true_scores,
            self.entities,
            self.truth.n_without,
            settings.n_resamples,
            settings.seed,
        )


def both_directions(
    links: Links,
    n_own: tuple[int, int],
    settings: Settings,
    queries: tuple[Any, Any],
    entities: tuple[Any, Any],
    candidates: Any,
) -> tuple[Direction, Direction]:
    """Return both directions of `links`, which count the pool too; only the first `n_own` rows of a side ask."""
    lists = pair_of(candidates, "candidates", "the lists of queries of a, and of b")
    sides = []
    for i, side in enumerate("ab"):
        names = settings.names if side == "a" else settings.names[::-1]
        seen = links if side == "a" else links.swapped()
        truth = _truth(seen, n_own[i], queries[i], side, names)
        own = None if lists[i] is None else CandidateLists.of(lists[i], n_own[i], seen.n_b, f"candidates of {names[0]}")
        numbers = _entity_numbers(truth, entities[i], n_own[i], side)
        sides.append(Direction(truth, numbers, seen.n_b, own))
    return sides[0], sides[1]


def pair_of(given: Any, name: str, what: str) -> tuple[Any, Any]:
    """Return `given` as (for a, for b), (None, None) for None. Raises `ArgumentError` for what is not two."""
    if given is None:
        return None, None
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise ArgumentError(f"{name} is {type(given).__name__}; expected a pair: {what}; None for a side without")
    return given[0], given[1]


def rows_with_pool(own: Any, further: Any, name: str) -> tuple[Any, int]:
    """Return the rows of a side followed by its further candidates, and how many rows are its own.

    Raises `ShapeError` when the two differ in columns, and as `check_rows`, telling the two apart.
    """
    own = to_numpy(own)
    if further is None:
        return own, own.shape[0] if own.ndim else 0
    more, rows = check_rows(further, f"further rows of {name}"), check_rows(own, f"rows of {name}")
    if hasattr(more, "tocsr") or hasattr(rows, "tocsr"):
        raise ShapeError(f"rows of {name} are a sparse matrix; expected dense rows (n, d): pass .toarray()")
    if more.shape[1] != rows.shape[1]:
        raise ShapeError(
            f"pool: further rows of {name} have {more.shape[1]} columns and its own {rows.shape[1]}; expected the same"
        )
    return np.concatenate([rows, more]), len(rows)


def links_with_pool(links: Any, n_own: tuple[int, int], n_all: tuple[int, int]) -> Links:
    """Return truth over own rows and pool: further candidates are true only where `links` says so by their numbers.

    None is own row i with own row i. `Links` over the own rows gain the pool's as rows without a link.
    """
    if links is None or (isinstance(links, Links) and (links.n_a, links.n_b) != n_all):
        own = Links.of(links, *n_own)
        groups = [
            None if group is None else np.concatenate([group, np.full(n - len(group), -1)])
            for group, n in zip((own.groups_a, own.groups_b), n_all, strict=True)
        ]
        return own if n_own == n_all else Links(own.pairs, *n_all, *groups)
    return Links.of(links, *n_all)


def _truth(links: Links, n_own: int, mask: Any, side: str, names: Sequence[str]) -> Truth:
    """Return the queries of one direction (`links` seen from it) with their true candidates."""
    chosen = np.ones(n_own, dtype=bool) if mask is None else to_numpy(mask)
    if chosen.dtype != np.bool_ or chosen.shape != (n_own,):
        raise ShapeError(
            f"queries_{side} is {chosen.dtype} of shape {chosen.shape}; expected a boolean mask ({n_own},), one entry "
            f"for each row of {names[0]}"
        )
    edges, candidate = links.targets()
    degree = np.diff(edges)
    kept = np.concatenate([chosen, np.zeros(links.n_a - n_own, dtype=bool)]) & (degree > 0)
    rows = np.flatnonzero(kept)
    if len(rows) == 0:
        raise LinksError(
            f"{names[0]} -> {names[1]}: none of the {int(chosen.sum())} queries has a true candidate, so there is "
            "nothing to evaluate; expected links from at least one query row (are links and queries of the same split?)"
        )
    query = np.repeat(np.arange(len(rows), dtype=np.int64), degree[rows])
    return Truth(rows, query, candidate[np.repeat(kept, degree)], int(chosen.sum()) - len(rows))


def _entity_numbers(truth: Truth, entities: Any, n_own: int, side: str) -> IntArray:
    if entities is None:
        return np.arange(len(truth.rows), dtype=np.int64)
    labels = to_numpy(entities)
    if labels.shape != (n_own,):
        raise ShapeError(f"entities_{side} has shape {labels.shape}; expected ({n_own},): a label for each row")
    return checked_labels(labels[truth.rows], f"entities_{side}")
