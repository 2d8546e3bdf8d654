"""Stretches of records that fit at one shift: the partner declared, or that of a record a little further up or down.

A quick linear map is fitted on half of the records, and asked of each record of the other half which partner fits.
This module is not about what the user is told (`order`).
"""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bridgehead.audits.data.linear_map import Float64Array, fit_linear_map, main_directions
from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.evaluate.arguments import checked_seed
from bridgehead.vectors import IntArray, block_rows, to_numpy

BoolArray = npt.NDArray[np.bool_]

LEAST_RECORDS = 64
"""Fewer records with both sides than this and a map fitted on half of them says nothing about the other half."""
SIGNAL = 4.0
"""Standard errors by which the mean surprise must exceed 1, that of random partners, before shifts are compared: five
shifts are tried, and 4 of a normal distribution is one in 30,000."""
LEAST_SIGNAL = 0.15
"""And by how much at least: with many records a common drift of both columns (the same sources in the same order) is
enough for `SIGNAL`. At 0.15, 13.5 % of the partners are among the best tenth."""
MOST_SHIFT = 16
"""Largest shift that can be asked for, a quarter of the fewest records."""
SWITCH = 12.0
"""What a change of shift must gain beyond ln(records) in log-likelihood: a chance of under e^-12 over the whole file,
with room for records that resemble each other."""
_CHUNK = 64
_MOST_STEPS = 4096
_SAME = 1e-9
_BEST = 0.1


@dataclass(frozen=True)
class Stretch:
    """Records `first` to `last` (both counted from 0, both in it) whose partners stand `shift` records further down.

    A `shift` of 0 is as declared, None is no shift that fits: partners that are no better than random ones.
    `declared` and `shifted` are the shares of its records whose partner, as declared and at `shift`, is among the best
    tenth of a random pool.
    """

    first: int
    last: int
    shift: int | None
    declared: float
    shifted: float

    @property
    def n_records(self) -> int:
        """The number of records."""
        return self.last - self.first + 1


def order_stretches(
    rows_a: Any, rows_b: Any, pairs: Any, *, most_shift: int = 2, n_pool: int = 1000, rank: int = 128, seed: int = 0
) -> list[Stretch]:
    """Return the records cut into stretches of one shift each, in order and without gaps.

    Records fall into two halves by alternating runs of 64, all records of an item of a into one half. A linear map
    (`linear_map`, `rank` main directions a side) of one half scores the other: u is the place of the partner at a shift
    among a random pool of `n_pool` items of b, 1 / (pool + 1) is first, ties count half. Random partners have uniform
    u, so that the surprise x = -ln u has mean 1; right ones have a density alpha u^(alpha - 1), with alpha = 1 / mean x
    fitted to all records. What a shift says of a record is the logarithm of that ratio, ln alpha + (1 - alpha) x, and
    the stretches are the path through the shifts of highest sum, each change costing `SWITCH` + ln(records); no shift
    at all counts 0. The map is fitted first on the best single shift, then again on the pairs of the path found.
    A record without a partner at a shift says nothing of it.

    Raises `ArgumentError` for fewer than 64 records with both sides (too few to judge) or options out of range,
    `ShapeError` for arrays that do not fit, `NonFiniteRowsError` naming rows.
    """
    order = _Order(rows_a, rows_b, pairs, most_shift, n_pool, rank, seed)
    path = np.full(order.n, order.best_shift(), dtype=np.int64)
    for _ in range(2):
        surprise = order.surprise(path)
        path = order.path(surprise, path)
    return order.stretches(surprise, path)


class _Order:
    """The records under audit: their rows in a few coordinates, the halves, the pool, and the shifts to try."""

    def __init__(
        self, rows_a: Any, rows_b: Any, pairs: Any, most_shift: int, n_pool: int, rank: int, seed: int
    ) -> None:
        for name, count, most in (("most_shift", most_shift, MOST_SHIFT), ("n_pool", n_pool, None)):
            whole = isinstance(count, int | np.integer) and not isinstance(count, bool)
            if not whole or count < 1 or (most is not None and count > most):
                raise ArgumentError(
                    f"{name} = {count!r}; expected a whole number from 1{f' to {most}' if most else ''}"
                )
        seed = checked_seed(seed)
        self.x = main_directions(rows_a, "rows of a", rank, seed)
        self.y = main_directions(rows_b, "rows of b", rank, seed)
        self.pairs = _checked(pairs, len(self.x), len(self.y))
        self.n = len(self.pairs)
        shifts = [0] + [sign * step for step in range(1, most_shift + 1) for sign in (1, -1)]
        self.shifts = np.array(shifts, dtype=np.int64)
        self.half = _halves(self.pairs[:, 0], len(self.x))
        complete: BoolArray = np.asarray((self.pairs >= 0).all(axis=1))
        if min(int(complete[self.half].sum()), int(complete[~self.half].sum())) < LEAST_RECORDS // 4:
            raise ArgumentError(
                f"the records are of {len(np.unique(self.pairs[complete, 0]))} items of a, and cannot be cut into two "
                "halves that share none; expected more items of a (or swap the sides)"
            )
        held = np.unique(self.pairs[self.pairs[:, 1] >= 0, 1])
        self.pool = np.sort(np.random.default_rng(seed).permutation(held)[:n_pool])

    def partners(self, shift: int) -> IntArray:
        """Return the row of b that stands `shift` records further down, -1 where there is none, (n,)."""
        moved = np.full(self.n, -1, dtype=np.int64)
        if abs(shift) < self.n:
            source = self.pairs[:, 1]
            if shift >= 0:
                moved[: self.n - shift] = source[shift:]
            else:
                moved[-shift:] = source[:shift]
        return np.where(self.pairs[:, 0] >= 0, moved, -1)

    def best_shift(self) -> int:
        """Return the one shift for the whole file whose map finds its partners best; the smaller one where equal."""
        means = []
        for shift in self.shifts.tolist():
            every = np.full(self.n, shift, dtype=np.int64)
            means.append(float(np.nanmean(self.surprise(every, [shift])[:, 0])))
        return int(self.shifts[int(np.argmax(np.round(means, 9)))])

    def surprise(self, path: IntArray, shifts: list[int] | None = None) -> Float64Array:
        """Return -ln u of the partner at each shift, (n, shifts), NaN without one; maps are those of `path`'s pairs."""
        tried = self.shifts.tolist() if shifts is None else shifts
        partners = {shift: self.partners(shift) for shift in sorted({*tried, *np.unique(path).tolist()})}
        chosen = np.choose(
            np.searchsorted(sorted(partners), path), [partners[shift] for shift in sorted(partners)], mode="clip"
        )
        found = np.full((self.n, len(tried)), np.nan)
        for half in (False, True):
            fitted = np.flatnonzero((self.half != half) & (chosen >= 0))
            mapping = fit_linear_map(self.x, self.y, np.stack([self.pairs[fitted, 0], chosen[fitted]], axis=1))
            asked = np.flatnonzero((self.half == half) & (self.pairs[:, 0] >= 0))
            z_b = mapping.project_b(self.y)
            step = block_rows(len(self.pool), 8)
            for start in range(0, len(asked), step):
                records = asked[start : start + step]
                z_a = mapping.project_a(self.x[self.pairs[records, 0]])
                pool = z_a @ z_b[self.pool].T
                for column, shift in enumerate(tried):
                    found[records, column] = self._places(z_a, z_b, pool, partners[shift][records])
        return found

    def _places(self, z_a: Float64Array, z_b: Float64Array, pool: Float64Array, partner: IntArray) -> Float64Array:
        own = np.einsum("ij,ij->i", z_a, z_b[partner])[:, None]
        above = (pool > own + _SAME).sum(axis=1)
        tied = (pool >= own - _SAME).sum(axis=1) - above
        inside = np.isin(partner, self.pool)
        place = (1 + above + np.maximum(tied - inside, 0) / 2) / (len(self.pool) - inside + 1)
        return np.asarray(np.where(partner >= 0, -np.log(place), np.nan))

    def path(self, surprise: Float64Array, before: IntArray) -> IntArray:
        """Return the shift of each record on the path of highest likelihood; `before` stays where there is no signal.

        Stretches without signal keep the shift as declared.
        """
        evidence = self._evidence(surprise, before)
        if evidence is None:
            return before
        states = self._best_states(evidence)
        return np.where(states < len(self.shifts), self.shifts[np.minimum(states, len(self.shifts) - 1)], 0)

    def _on_path(self, surprise: Float64Array, path: IntArray) -> Float64Array:
        column = np.argmax(self.shifts[None, :] == path[:, None], axis=1)
        return np.asarray(surprise[np.arange(self.n), column])

    def _evidence(self, surprise: Float64Array, path: IntArray) -> Float64Array | None:
        """Return the log-likelihood ratio of each record at each shift and at none, (n, shifts + 1), or None."""
        own = self._on_path(surprise, path)
        own = own[~np.isnan(own)]
        if looks_random(own):
            return None
        alpha = 1 / own.mean()
        ratio = np.log(alpha) + (1 - alpha) * surprise
        return np.concatenate([np.nan_to_num(ratio, nan=0.0), np.zeros((self.n, 1))], axis=1)

    def _best_states(self, evidence: Float64Array) -> IntArray:
        """Return the state (column) of each record on the best path: in steps of several records where there are many,
        each change then moved to the record where it fits best."""
        step = -(-self.n // _MOST_STEPS)
        sums = np.add.reduceat(evidence, np.arange(0, self.n, step), axis=0)
        states = np.repeat(_viterbi(sums, SWITCH + float(np.log(self.n))), step)[: self.n]
        if step == 1:
            return states
        running = np.concatenate([np.zeros((1, evidence.shape[1])), np.cumsum(evidence, axis=0)])
        for change in (np.flatnonzero(np.diff(states)) + 1).tolist():
            before, after = int(states[change - 1]), int(states[change])
            low, high = max(0, change - step), min(self.n, change + step)
            gain = running[low : high + 1, before] - running[low : high + 1, after]
            at = low + int(np.argmax(gain))
            states[low:at], states[at:high] = before, after
        return states

    def stretches(self, surprise: Float64Array, path: IntArray) -> list[Stretch]:
        """Return the stretches of the path, with what is found in each; one without a shift where nothing is found."""
        evidence = self._evidence(surprise, path)
        if evidence is None:
            return [self._stretch(surprise, 0, self.n, len(self.shifts))]
        states = self._best_states(evidence)
        for first, last in _runs(states):
            if states[first] == len(self.shifts) and not looks_random(surprise[first:last, 0]):
                # Weaker than elsewhere and still better than random partners: that is no disorder.
                states[first:last] = 0
        return [self._stretch(surprise, first, last, int(states[first])) for first, last in _runs(states)]

    def _stretch(self, surprise: Float64Array, first: int, last: int, state: int) -> Stretch:
        part = surprise[first:last]
        best = [_share(part[:, column]) for column in range(part.shape[1])]
        if state == len(self.shifts):
            return Stretch(first, last - 1, None, best[0], max(best))
        return Stretch(first, last - 1, int(self.shifts[state]), best[0], best[state])


def _share(surprise: Float64Array) -> float:
    known = surprise[~np.isnan(surprise)]
    return float((known >= -np.log(_BEST)).mean()) if len(known) else 0.0


def looks_random(surprise: Float64Array) -> bool:
    """Return whether partners look random: their mean surprise is not clearly (`SIGNAL`, `LEAST_SIGNAL`) above 1."""
    known = surprise[~np.isnan(surprise)]
    return len(known) == 0 or bool(known.mean() - 1 < max(LEAST_SIGNAL, SIGNAL / np.sqrt(len(known))))


def _viterbi(sums: Float64Array, cost: float) -> IntArray:
    """Return the path of highest sum through `sums` (steps, states); to start in another than 0 costs half a change."""
    n, n_states = sums.shape
    came = np.zeros((n, n_states), dtype=np.int64)
    own = np.arange(n_states)
    # Half of it: else a whole column moved would begin with a record as declared, for the same price.
    total = sums[0] - cost / 2 * (own > 0)
    for step in range(1, n):
        best = int(np.argmax(total))
        stays = total >= total[best] - cost
        came[step] = np.where(stays, own, best)
        total = np.where(stays, total, total[best] - cost) + sums[step]
    states = np.zeros(n, dtype=np.int64)
    states[-1] = int(np.argmax(total))
    for step in range(n - 1, 0, -1):
        states[step - 1] = came[step, states[step]]
    return states


def _runs(states: IntArray) -> list[tuple[int, int]]:
    """Return (first, end) of each run of equal states."""
    edges = np.concatenate([[0], np.flatnonzero(np.diff(states)) + 1, [len(states)]]).tolist()
    return list(itertools.pairwise(edges))


def _checked(pairs: Any, n_a: int, n_b: int) -> IntArray:
    array = to_numpy(pairs)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise ShapeError(
            f"pairs is {array.dtype} of shape {array.shape}; expected whole numbers (n_records, 2): the row of a and "
            "of b of each record, in the order of the file"
        )
    array = np.asarray(array, dtype=np.int64)
    for column, size, side in ((0, n_a, "a"), (1, n_b, "b")):
        outside = np.flatnonzero((array[:, column] < -1) | (array[:, column] >= size))
        if len(outside):
            raise ShapeError(
                f"record {outside[0]} has row {array[outside[0], column]} of {side}, which has {size} rows; expected "
                "a row number, or -1 for none"
            )
    whole = int((array >= 0).all(axis=1).sum())
    if whole < LEAST_RECORDS:
        raise ArgumentError(
            f"{whole} records have both sides; expected at least {LEAST_RECORDS} to judge their order by"
        )
    return np.asarray(array)


def _halves(items: IntArray, n_items: int) -> BoolArray:
    """Return the half of each record (n,), True or False: that of the first record of its item of a."""
    n = len(items)
    chunk = np.arange(n) // max(1, min(_CHUNK, n // 16))
    first = np.full(n_items, n, dtype=np.int64)
    known = items >= 0
    np.minimum.at(first, items[known], np.flatnonzero(known))
    return np.asarray(chunk[np.where(known, first[np.maximum(items, 0)], np.arange(n))] % 2 == 1)
