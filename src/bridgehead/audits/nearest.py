"""The untrained baseline: rank by the most similar training item that has the same partner.

A trained model that does not beat it has learnt nothing beyond looking up neighbours. In words of molecules (a) and
texts (b): a text's score for a test molecule is the highest cosine of that molecule with a training molecule that
carries the text. This module computes rows and metrics of nothing: rows come in, `evaluate` ranks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bridgehead.audits.given import check_entries, check_kind
from bridgehead.audits.leakage.neighbours import float64_unit_rows
from bridgehead.errors import ArgumentError, LinksError, ShapeError
from bridgehead.evaluate import RetrievalReport, report_from_scores
from bridgehead.evaluate.arguments import whole_number
from bridgehead.evaluate.ranks.cosine_rows import slices
from bridgehead.links import Links
from bridgehead.vectors import IntArray, block_rows, check_rows, to_numpy

Float64Array = npt.NDArray[np.float64]

_BLOCK_BYTES = 64 << 20
# Measured: 16 columns of float64 are three times as fast as 256.
_COLUMNS_AT_ONCE = 16
# Scores of both directions together in memory; more are made once for each block of the second direction.
_KEPT_BYTES = 1 << 30


@dataclass(frozen=True, eq=False)
class KnownPairs:
    """Items of a part of the data: raw rows of a (n_a, d) dense or CSR, their links to b, and who the items of b are.

    `keys_b` (n_b labels, such as row numbers of the whole table or normalised texts) say which items of b are the same
    in training and test; one without a key (None, "", NaN) is the same as no other. `rows_b` (n_b, e), dense or CSR,
    are raw rows of b, needed only where texts that training never saw shall get the scores of similar ones.
    """

    rows_a: Any
    links: Links
    keys_b: Sequence[Any]
    rows_b: Any = None


def nearest_neighbour_report(
    train: KnownPairs,
    test: KnownPairs,
    *,
    n_neighbours: int = 10,
    block: int = 256,
    **options: Any,
) -> RetrievalReport:
    """Return the retrieval report of the untrained nearest-neighbour scorer on the test items, in both directions.

    score(m, t) = max of cos(m, m') over training items m' linked to t. An item t of b that training never saw:

    - strict (`rows_b` of `train` or `test` is None): all its scores are 0, so that as a query it ranks at chance;
    - extended: max over its `n_neighbours` most similar training items t' of cos(t, t') * score(m, t').

    Rows are raw encoder rows (fingerprints, n-grams), not trained ones; zero rows have cosine 0. Sums run in float64,
    in blocks of `block` test items. `options` go to `report_from_scores` (ks, names, entities_a, n_resamples, seed,
    queries_b, ...). Raises `ShapeError` when rows, links and keys differ in number, `LinksError` when training has no
    links.
    """
    n_neighbours = whole_number(n_neighbours, "n_neighbours", 1)
    _check(train, "train")
    _check(test, "test")
    scorer = _Scorer(train, test, n_neighbours)
    n_a, n_b = test.links.n_a, test.links.n_b
    if n_a * n_b * 8 > _KEPT_BYTES:
        return report_from_scores(scorer.scores, links=test.links, block=block, **options)
    # Both directions read the same scores, and a large pool makes them dear: they are made once.
    kept = np.empty((n_a, n_b))
    for rows in slices(n_a, whole_number(block, "block", 1)):
        kept[rows] = scorer.scores(rows)
    both = (lambda rows: kept[rows]), (lambda rows: kept[:, rows].T)
    return report_from_scores(*both, links=test.links, block=block, **options)


class _Scorer:
    """Scores blocks of test items of a against all test items of b."""

    def __init__(self, train: KnownPairs, test: KnownPairs, n_neighbours: int) -> None:
        self._train_a = float64_unit_rows(train.rows_a, "train.rows_a")
        self._test_a = float64_unit_rows(test.rows_a, "test.rows_a")
        if self._train_a.shape[1] != self._test_a.shape[1]:
            raise ShapeError(
                f"rows of a have {self._train_a.shape[1]} columns in train and {self._test_a.shape[1]} in test; "
                "expected rows of one encoder"
            )
        train_keys, test_keys = _keys(train, "train"), _keys(test, "test")
        codes = {key: number for number, key in enumerate(dict.fromkeys([*train_keys, *test_keys]))}
        train_codes = np.array([codes[key] for key in train_keys], dtype=np.int64)
        test_codes = np.array([codes[key] for key in test_keys], dtype=np.int64)
        pairs = train.links.expanded().pairs
        order = np.argsort(train_codes[pairs[:, 1]], kind="stable")
        self._known, self._starts = np.unique(train_codes[pairs[order, 1]], return_index=True)
        self._members = pairs[order, 0]
        place = np.full(len(codes), -1, dtype=np.int64)
        place[self._known] = np.arange(len(self._known))
        self._place = place[test_codes]
        self._near, self._weight = np.zeros((0, 0), dtype=np.int64), np.zeros((0, 0))
        if train.rows_b is not None and test.rows_b is not None:
            self._near, self._weight = self._neighbours(train, test, place[train_codes], n_neighbours)

    def _neighbours(
        self, train: KnownPairs, test: KnownPairs, place: IntArray, n_neighbours: int
    ) -> tuple[IntArray, Float64Array]:
        """Return, for each unseen test item of b, its most similar linked training items and their cosines."""
        linked = np.flatnonzero(place >= 0)
        train_b = float64_unit_rows(train.rows_b, "train.rows_b")[linked]
        test_b = float64_unit_rows(test.rows_b, "test.rows_b")[np.flatnonzero(self._place < 0)]
        if train_b.shape[1] != test_b.shape[1]:
            raise ShapeError(
                f"rows of b have {train_b.shape[1]} columns in train and {test_b.shape[1]} in test; "
                "expected rows of one encoder"
            )
        most = min(n_neighbours, train_b.shape[0])
        near = np.empty((test_b.shape[0], most), dtype=np.int64)
        weight = np.empty((test_b.shape[0], most))
        for rows in slices(test_b.shape[0], block_rows(train_b.shape[0], 8, _BLOCK_BYTES)):
            cosines = _products(train_b, test_b[rows]).T
            near[rows] = np.argsort(-cosines, axis=1, kind="stable")[:, :most]
            weight[rows] = np.take_along_axis(cosines, near[rows], axis=1)
        return place[linked][near], weight

    def scores(self, rows: slice) -> Float64Array:
        """Return the scores of test items `rows` of a against all test items of b, (len, n_b)."""
        similar = _products(self._train_a, self._test_a[rows])
        known = np.maximum.reduceat(similar[self._members], self._starts, axis=0)
        scores = np.zeros((len(self._place), similar.shape[1]))
        seen = np.flatnonzero(self._place >= 0)
        scores[seen] = known[self._place[seen]]
        if self._near.size:
            terms = (known[near] * weight[:, None] for near, weight in zip(self._near.T, self._weight.T, strict=True))
            best = next(terms)
            for term in terms:
                np.maximum(best, term, out=best)
            scores[self._place < 0] = best
        return scores.T


def _keys(part: KnownPairs, name: str) -> list[Any]:
    """Return the keys of the items of b, one of its own for an item without."""
    keys = to_numpy(part.keys_b).tolist() if hasattr(part.keys_b, "detach") else list(part.keys_b)
    try:
        hash(tuple(keys))
        return [(name, i) if key is None or key == "" or key != key else key for i, key in enumerate(keys)]
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{name}.keys_b holds what is no label ({error}); expected texts or numbers") from error


def _check(part: KnownPairs, name: str) -> None:
    check_kind(KnownPairs, **{name: part})
    check_kind(Links, **{f"{name}.links": part.links})
    check_entries(part.keys_b, None, f"{name}.keys_b")
    n_a, n_b = part.links.n_a, part.links.n_b
    found = {"rows_a": (check_rows(part.rows_a, f"{name}.rows_a").shape[0], n_a), "keys_b": (len(part.keys_b), n_b)}
    if part.rows_b is not None:
        found["rows_b"] = (check_rows(part.rows_b, f"{name}.rows_b").shape[0], n_b)
    for field, (count, expected) in found.items():
        if count != expected:
            raise ShapeError(f"{name}.{field} has {count} entries; expected {expected}, as its links are over")
    if len(part.links) == 0:
        raise LinksError(f"{name} has no links; expected at least one")


def _products(many: Any, block: Any) -> Float64Array:
    """Return many @ block.T as a dense float64 array, (n_many, n_block).

    Of sparse rows the block is made dense, a few columns at a time, which stay in cache: nearly every product of
    fingerprints is above 0, and a sparse result would cost more than it saves. Each sum runs over the entries of a row
    of `many`, whatever else is in the block.
    """
    if not hasattr(many, "indptr"):
        return np.ascontiguousarray(many @ (block.T.toarray() if hasattr(block, "toarray") else block.T))
    found = np.empty((many.shape[0], block.shape[0]))
    for rows in slices(block.shape[0], _COLUMNS_AT_ONCE):
        part = block[rows]
        found[:, rows] = many @ np.ascontiguousarray(part.toarray().T if hasattr(part, "toarray") else part.T)
    return found
