"""Activity cliffs: items of nearly the same structure that are described differently.

The similarity is Tanimoto's of counts. Nothing N x N is made: only pairs that share one of their rarest elements are
compared. This module is not about slices (`slices`), which take its mask as labels, or about similarity to the training
items (`similarity`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.evaluate.arguments import rows_at_once
from bridgehead.evaluate.ties import Float64Array
from bridgehead.links import Links
from bridgehead.vectors import IntArray, block_rows, check_rows

CLIFF = 0.9
"""Tanimoto similarity above which two structures count as nearly the same, as in studies of activity cliffs."""

_AT_ONCE = 1 << 22
_BYTES = 32 << 20
_LISTED = 1000
# More makes fewer pairs pass and each block of them cost more.
_RARE_IN_COMMON = 6
_MOST_ELEMENTS = 1 << 28


@dataclass(frozen=True, eq=False)
class Cliffs:
    """Items that are nearly the same as another one and are described differently.

    `mask` (n,) says which items. `n_pairs` are the pairs, of which `pairs` (m, 2) and `similarity` (m,) hold the most
    similar thousand, row numbers i < j, descending.
    """

    mask: npt.NDArray[np.bool_]
    n_pairs: int
    pairs: IntArray
    similarity: Float64Array


def activity_cliffs(rows: Any, texts: Any, threshold: float = CLIFF, block: int | None = None) -> Cliffs:
    """Return the items that have another one above `threshold` in similarity that shares no text with it.

    `rows` (n, d), dense or CSR, are counts (or bits) of substructures: whole numbers of 0 or more. The similarity of x
    and y is Tanimoto's of counts, sum min(x, y) / sum max(x, y), for bits the usual one, exactly; a zero row is similar
    to nothing. `texts` has for each item a text, or a collection of texts, or is the `Links` of the items to texts; two
    items differ when no text is common to both, and an item without a text (None, "", no link) differs from none. Bring
    texts into one form before. `threshold` is in [0.5, 1). `block`: rows at once; the result does not depend on it.

    Two sets that overlap that much have some of their rarest elements in common (Bayardo, Ma & Srikant, "Scaling up all
    pairs similarity search", WWW 2007), so only pairs with such elements are compared. Raises `ShapeError` for
    another number of texts, `ArgumentError` for rows that are no counts and a threshold out of range.

    >>> counts = [[3, 1, 0, 9], [3, 1, 0, 9], [0, 2, 5, 0]]
    >>> activity_cliffs(counts, ["blocks a receptor", "opens a channel", "a dye"]).pairs
    array([[0, 1]])
    """
    if isinstance(threshold, bool) or not isinstance(threshold, int | float | np.number) or not 0.5 <= threshold < 1:
        raise ArgumentError(f"threshold = {threshold!r}; expected a number in [0.5, 1)")
    block = rows_at_once(block)
    elements, same = _distinct(_elements(rows))
    described = _described(texts, len(same))
    sizes = np.diff(elements.indptr).astype(np.int64)
    order = np.argsort(same, kind="stable")
    starts = np.searchsorted(same[order], np.arange(len(sizes) + 1))
    mask, n_pairs, best = np.zeros(len(same), dtype=bool), 0, (np.zeros((0, 2), dtype=np.int64), np.zeros(0))
    for left, right in _candidate_pairs(elements, sizes, float(threshold), block):
        common = _common(elements, left, right)
        similarity = common / (sizes[left] + sizes[right] - common)
        near = similarity > threshold
        for pairs, alike in _items(left[near], right[near], similarity[near], order, starts):
            differ = _differ(described, pairs)
            mask[pairs[differ].ravel()] = True
            n_pairs += int(differ.sum())
            best = _most_similar(np.concatenate([best[0], pairs[differ]]), np.concatenate([best[1], alike[differ]]))
    return Cliffs(mask, n_pairs, *best)


def _most_similar(pairs: IntArray, similarity: Float64Array) -> tuple[IntArray, Float64Array]:
    order = np.lexsort((pairs[:, 1], pairs[:, 0], -similarity))[:_LISTED]
    return pairs[order], similarity[order]


def _distinct(elements: sparse.csr_array) -> tuple[sparse.csr_array, IntArray]:
    """Return the rows that differ, and which of them each row is: items with equal rows are compared once."""
    codes: dict[bytes, int] = {}
    same = np.empty(elements.shape[0], dtype=np.int64)
    for row, (start, stop) in enumerate(pairwise(elements.indptr.tolist())):
        key = blake2b(elements.indices[start:stop].tobytes(), digest_size=20).digest()
        same[row] = codes.setdefault(key, len(codes))
    _, first = np.unique(same, return_index=True)
    return elements[first], same


def _items(
    left: IntArray, right: IntArray, similarity: Float64Array, order: IntArray, starts: IntArray
) -> Iterator[tuple[IntArray, Float64Array]]:
    """Yield (pairs, similarity) of items, i < j, for pairs of distinct rows, in blocks.

    The items with the distinct row u are `order[starts[u]:starts[u + 1]]`.
    """
    n_left, n_right = (starts[side + 1] - starts[side] for side in (left, right))
    ends = np.cumsum(n_left * n_right)
    total = int(ends[-1]) if len(ends) else 0
    # One pair of rows that thousands of items share stands for millions of pairs of items: it is cut as well.
    for first in range(0, total, _AT_ONCE):
        place = np.arange(first, min(first + _AT_ONCE, total))
        pair = np.searchsorted(ends, place, side="right")
        place -= (ends - n_left * n_right)[pair]
        one = order[starts[left[pair]] + place // n_right[pair]]
        other = order[starts[right[pair]] + place % n_right[pair]]
        # Of a row with itself each pair of items comes twice, and each item with itself.
        kept = (left[pair] != right[pair]) | (one < other)
        pairs = np.sort(np.stack([one, other], axis=1)[kept], axis=1).astype(np.int64)
        yield pairs, similarity[pair[kept]]


def _elements(rows: Any) -> sparse.csr_array:
    """Return rows as sets: a count of 3 in a column becomes three elements, "at least 1", "at least 2", "at least 3".

    The overlap of two such sets is sum min(x, y). Columns are ordered from the rarest element on.
    """
    counts = sparse.csr_array(check_rows(rows, "rows"))
    counts.eliminate_zeros()
    data = np.asarray(counts.data, dtype=np.float64)
    if len(data) and (data.min() < 0 or (data != np.floor(data)).any()):
        raise ArgumentError("rows hold numbers that are no counts; expected whole numbers of 0 or more, or bits")
    if data.sum() > _MOST_ELEMENTS:
        raise ArgumentError(
            f"rows hold {data.sum():.3g} substructures in all, too many to compare by counts; expected at most "
            f"{_MOST_ELEMENTS:.3g}: pass bits (rows > 0)"
        )
    times = data.astype(np.int64)
    row = np.repeat(np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr)), times)
    step = np.arange(len(row)) - np.repeat(np.cumsum(times) - times, times)
    keys = np.repeat(counts.indices.astype(np.int64), times) * (int(times.max(initial=0)) + 1) + step
    _, column, frequency = np.unique(keys, return_inverse=True, return_counts=True)
    rank = np.empty(len(frequency), dtype=np.int64)
    rank[np.argsort(frequency, kind="stable")] = np.arange(len(frequency))
    column = rank[column.reshape(-1)]
    order = np.lexsort((column, row))
    indptr = np.searchsorted(row[order], np.arange(counts.shape[0] + 1))
    ones = np.ones(len(row), dtype=np.int32)
    return sparse.csr_array((ones, column[order], indptr), shape=(counts.shape[0], max(1, len(frequency))))


def _candidate_pairs(
    elements: sparse.csr_array, sizes: IntArray, threshold: float, block: int | None
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield pairs i <= j in blocks: all above the threshold, and some others.

    Two sets of which one has s elements, at least t s of them in the other, have at least m of the rarest
    s - ceil(t s) + m in common, for each m up to ceil(t s).
    """
    needed = np.ceil(threshold * sizes - 1e-9).astype(np.int64)
    in_common = np.minimum(needed, _RARE_IN_COMMON)
    rare = sizes - needed + in_common
    row = np.repeat(np.arange(len(sizes), dtype=np.int64), rare)
    places = np.arange(len(row)) - np.repeat(np.cumsum(rare) - rare, rare) + np.repeat(elements.indptr[:-1], rare)
    indptr = np.append(0, np.cumsum(rare))
    ones = np.ones(len(row), dtype=np.int32)
    prefix = sparse.csr_array((ones, elements.indices[places], indptr), elements.shape)
    turned = prefix.T.tocsr()
    fewest = int(in_common[in_common > 0].min(initial=_RARE_IN_COMMON))
    for part in _cost_slices(prefix @ np.diff(turned.indptr), block):
        shared = (prefix[part] @ turned).tocoo()
        some = np.flatnonzero(shared.data >= fewest)
        left, right = shared.coords[0][some].astype(np.int64) + part.start, shared.coords[1][some].astype(np.int64)
        enough = shared.data[some] >= np.minimum(in_common[left], in_common[right])
        # As much overlap needs sizes as alike as the threshold.
        alike = np.minimum(sizes[left], sizes[right]) > threshold * np.maximum(sizes[left], sizes[right])
        kept = (left <= right) & enough & alike
        yield left[kept], right[kept]


def _cost_slices(cost: IntArray, block: int | None) -> Iterator[slice]:
    """Yield slices of `block` rows, or of as many as cost a few million multiplications, at least one."""
    ends = np.cumsum(cost)
    start = 0
    while start < len(cost):
        before = int(ends[start - 1]) if start else 0
        stop = start + block if block else int(np.searchsorted(ends, before + _AT_ONCE, side="right"))
        stop = min(max(stop, start + 1), len(cost))
        yield slice(start, stop)
        start = stop


def _common(elements: sparse.csr_array, left: IntArray, right: IntArray) -> IntArray:
    """Return the number of elements that both rows of each pair have, (m,)."""
    common = np.zeros(len(left), dtype=np.int64)
    step = block_rows(1 + elements.nnz // max(1, elements.shape[0]), 24, _BYTES)
    for start in range(0, len(left), step):
        part = slice(start, start + step)
        common[part] = np.asarray(elements[left[part]].multiply(elements[right[part]]).sum(axis=1)).ravel()
    return common


def _described(texts: Any, n: int) -> sparse.csr_array:
    """Return which item has which text, (n, number of texts)."""
    if isinstance(texts, Links):
        if texts.n_a != n:
            raise ShapeError(f"texts are links of {texts.n_a} items; expected {n}, one for each row")
        return texts.matrix.astype(np.int32)
    try:
        own = [
            {t for t in (one if isinstance(one, list | tuple | set | frozenset) else (one,)) if t not in (None, "")}
            for one in texts
        ]
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"texts is a {type(texts).__name__} that has no texts ({error}); expected a text or a collection of texts "
            "for each row, or Links"
        ) from error
    if len(own) != n:
        raise ShapeError(f"texts has {len(own)} entries; expected {n}, one for each row")
    number: dict[Any, int] = {}
    columns = [number.setdefault(text, len(number)) for one in own for text in one]
    indptr = np.append(0, np.cumsum([len(one) for one in own], dtype=np.int64))
    ones = np.ones(len(columns), dtype=np.int32)
    return sparse.csr_array((ones, np.array(columns, dtype=np.int64), indptr), shape=(n, max(1, len(number))))


def _differ(described: sparse.csr_array, pairs: IntArray) -> npt.NDArray[np.bool_]:
    have = (np.diff(described.indptr) > 0)[pairs].all(axis=1)
    return np.asarray(have & (_common(described, pairs[:, 0], pairs[:, 1]) == 0), dtype=np.bool_)
