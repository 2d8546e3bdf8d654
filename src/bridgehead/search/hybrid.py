"""Two lists of one query made one: reciprocal rank fusion, and which order goes on where the fused one ends.

Pure functions over numbers of items in their order; what the lists are and how a page is cut from them is in `ranking`.
Scores of the lists play no part: a cosine and a BM25 score have no common scale, ranks have.

Source: Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms Condorcet and individual rank learning
methods", SIGIR 2009, with their constant of 60.
"""

from collections.abc import Sequence

import numpy as np

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.index import Ranked
from bridgehead.vectors import IntArray

FUSED_DEPTH = 128
"""How many of each list are fused, whatever page is asked for.

Over 83,487 items a list of 1,000 from an IVF index takes eight times as long as one of 128, and an item that is further
down in both lists comes after a hundred others anyway.
"""

_CONSTANT = 60
_TIED = 1e-12


def fuse(rankings: Sequence[IntArray], k: float = _CONSTANT) -> Ranked:
    """Return all numbers that occur in `rankings`, by the sum of 1 / (k + rank) over the rankings that have them.

    `rankings`: arrays (m,) of int64 numbers, the best first; ranks count from 1, lengths may differ, none or empty ones
    give an empty result. Scores equal to 1e-12 are tied; ties are ordered by number.

    Raises `ArgumentError` (k not above 0 or not finite, a number twice in one ranking) and `ShapeError`.
    """
    if not 0 < k < np.inf:
        raise ArgumentError(
            f"k = {k!r}; expected a number above 0 (60 is usual): the larger, the less first ranks count"
        )
    lists = [_checked(ranking) for ranking in rankings]
    together = np.concatenate(lists) if lists else np.zeros(0, np.int64)
    gains = np.concatenate([1.0 / (k + np.arange(1, len(one) + 1)) for one in lists]) if lists else np.zeros(0)
    numbers, inverse = np.unique(together, return_inverse=True)
    scores = np.bincount(inverse, weights=gains, minlength=len(numbers)).astype(np.float64)
    order = np.argsort(-scores, kind="stable")
    # A tie may come out of the sum with a last bit that differs; sorted, its scores stand side by side.
    levels = np.cumsum(np.diff(-scores[order], prepend=-np.inf) > _TIED)
    order = order[np.lexsort((numbers[order], levels))]
    return Ranked(numbers[order].astype(np.int64), scores[order])


def hybrid(
    by_space: IntArray, by_words: IntArray, count: int, depth: int = FUSED_DEPTH, k: float = _CONSTANT
) -> Ranked:
    """Return the first `count` items of the hybrid order of one query.

    The order is `fuse` of the first `depth` of each list, and after that `by_space` goes on with what is not yet there,
    at the score 1 / (k + rank) that it has in this list alone, which is below any fused one. So each item comes once,
    and the order depends on `depth` but not on `count`: pages cut from it are disjoint, and a deeper one extends those
    before.

    `by_space`: at least the first max(`count`, `depth`) numbers by cosine, or all there are, always in the same order.
    `by_words`: at least the first `depth` by words, or all there are; more are not looked at. Fewer than `count` come
    back only where `by_space` is all there is. Raises as `fuse`, and `ArgumentError` (`count` < 0, `depth` < 1).
    """
    if count < 0 or depth < 1:
        raise ArgumentError(f"count = {count} and depth = {depth}; expected 0 or more, and 1 or more")
    near = _checked(by_space)
    head = fuse([near[:depth], _checked(by_words)[:depth]], k)
    ranks = np.arange(1, len(near) + 1)[depth:]
    is_new = ~np.isin(near[depth:], head.numbers)
    numbers = np.concatenate([head.numbers, near[depth:][is_new]])
    scores = np.concatenate([head.scores, 1.0 / (k + ranks[is_new])])
    return Ranked(numbers[:count], scores[:count])


def _checked(ranking: IntArray) -> IntArray:
    numbers = np.asarray(ranking)
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
        raise ShapeError(
            f"a ranking is {numbers.dtype} of shape {numbers.shape}; expected numbers (m,), the best first"
        )
    if len(np.unique(numbers)) < len(numbers):
        raise ArgumentError("a ranking has a number more than once; expected each item at one rank")
    return numbers.astype(np.int64)
