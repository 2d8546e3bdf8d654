"""In-batch negatives that a guide takes for matches: rows of the same items that were not trained on these links.

The words are those of the guided loss (`align.losses.guided`), so the audit says what that loss would mask. A guide is
an opinion: what it marks warns and never fails. This module is not about labels that say who is who
(`false_negatives`).
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, get_args

import numpy as np
from scipy import sparse

from bridgehead.audits.false_negatives.in_batch import FAIL_EACH, WARN_EACH
from bridgehead.audits.finding import Finding, Verdict
from bridgehead.audits.given import check_kind
from bridgehead.audits.leakage.neighbours import float64_unit_rows, near_pairs
from bridgehead.audits.listed import namer, worst
from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.evaluate.arguments import checked_names, checked_seed, finite_number, whole_number
from bridgehead.links import Links
from bridgehead.vectors import IntArray, block_rows, check_rows

GuideSpace = Literal["per_side", "shared"]

_SLACK = "a number from 0 to below 1"
_MARGIN = {"per_side": 0.05, "shared": 0.0}
_IDENTICAL = 1e-6
_TIE = 1e-12
_TELLS_LITTLE = 0.25
_BLOCK_BYTES = 32 << 20


def guided_negative_findings(
    links: Links,
    batch_size: int,
    *,
    guide_a: Any = None,
    guide_b: Any = None,
    space: GuideSpace = "per_side",
    margin: float | None = None,
    max_anchors: int = 1000,
    seed: int = 0,
    ids_a: Sequence[str] | None = None,
    ids_b: Sequence[str] | None = None,
    names: tuple[str, str] = ("a", "b"),
) -> list[Finding]:
    """Return the expected share of in-batch negatives that a guide scores as high as a match.

    A batch is `batch_size` B of the matches of the training `links` at random; a candidate b' that does not match
    anchor a is marked where

    - "per_side" (raw rows of either side or both): it is a near-duplicate of what is linked, by a cosine above
      1 - `margin` of b' with a match of a (`guide_b`), or of a with a match of b' (`guide_a`); margin 0.05 by default;
    - "shared" (both guides in one space, such as an earlier aligned model): the cosine of a and b' lies above that of a
      and its nearest match, less `margin`; margin 0 by default.

    The value is the share of marked ones among the negatives, each candidate weighted by how many matches bring it into
    a batch, over a sample of at most `max_anchors` anchors drawn with `seed` (the number is in `why`). An anchor meets
    B - 1 times that share: above 0.1 ("per_side") or 1 ("shared", where a guide is a model with errors of its own) it
    warns. Random rows in a shared space give a half, so a share above 0.25 says more about the guide, and `why` says
    so. "shared" looks from a to b; the other direction is that of swapped arguments. No match, or no negative, gives no
    finding. Cost: about 2 s for 10,000 links of 512 columns.

    Raises `ArgumentError` for another space, no guide, one guide alone under "shared", a margin outside [0, 1) or a
    batch under 2, `ShapeError` for guides of other lengths or, under "shared", of different widths, and
    `NonFiniteRowsError`.
    """
    check_kind(Links, links=links)
    names, links = checked_names(names), links.expanded()
    max_anchors = whole_number(max_anchors, "max_anchors", 1)
    drawn = _check(links, batch_size, guide_a, guide_b, space)
    slack = _MARGIN[space] if margin is None else finite_number(margin, "margin", _SLACK, least=0)
    if slack >= 1:
        raise ArgumentError(f"margin = {margin!r}; expected {_SLACK}")
    name_a, name_b = namer(ids_a, links.n_a, "ids_a"), namer(ids_b, links.n_b, "ids_b")
    if not len(links):
        return []
    rng = np.random.default_rng(checked_seed(seed))
    sample = np.sort(rng.choice(len(links), size=min(max_anchors, len(links)), replace=False))
    anchors = links.pairs[sample, 0]
    units: list[Any] = [
        None if guide is None else float64_unit_rows(guide, name)
        for name, guide in (("guide_a", guide_a), ("guide_b", guide_b))
    ]
    if space == "per_side":
        marked = _near_matches(links, anchors, units[0], units[1], 1 - max(slack, _IDENTICAL))
    else:
        marked = _above_matches(links, anchors, units[0], units[1], slack)
    degree = np.bincount(links.pairs[:, 1], minlength=links.n_b).astype(np.float64)
    n_negatives = len(anchors) * degree.sum() - float((links.matrix[anchors].astype(np.float64) @ degree).sum())
    if not n_negatives:
        return []
    weights = marked @ degree
    rows = _cases(marked, weights, links.pairs[sample], name_a, name_b)
    share = float(weights.sum() / n_negatives)
    each = float(weights.mean()) * (drawn - 1) / max(1, len(links) - 1)
    return [_finding(share, each, drawn, len(sample), len(links), space, worst(_columns(names), rows))]


def _check(links: Links, batch_size: Any, guide_a: Any, guide_b: Any, space: Any) -> int:
    """Return how many links a batch holds after checking the arguments."""
    if not isinstance(space, str) or space not in get_args(GuideSpace):
        raise ArgumentError(f"space = {space!r:.80}; expected 'per_side' or 'shared'")
    if (guide_a is None and guide_b is None) or (space == "shared" and (guide_a is None or guide_b is None)):
        raise ArgumentError(f"space {space!r} needs {'both guides' if space == 'shared' else 'a guide'}; expected rows")
    if isinstance(batch_size, bool) or not isinstance(batch_size, int | np.integer) or batch_size < 2:
        raise ArgumentError(f"batch_size = {batch_size!r}; expected a whole number of at least 2: one has no negatives")
    for name, guide, n in (("guide_a", guide_a, links.n_a), ("guide_b", guide_b, links.n_b)):
        if guide is not None and (n_rows := check_rows(guide, name).shape[0]) != n:
            raise ShapeError(f"{name} has {n_rows} rows; expected {n}, as the links are over")
    return min(int(batch_size), len(links))


def _near_matches(links: Links, anchors: IntArray, unit_a: Any, unit_b: Any, floor: float) -> Any:
    """Return the boolean CSR matrix (anchors, n_b) of unlinked candidates that are near what is linked."""
    truth = links.matrix[anchors].astype(np.int64)
    near = sparse.csr_array(truth.shape, dtype=np.int64)
    if unit_b is not None:
        matches = np.unique(truth.indices)
        alike = _matrix(near_pairs(unit_b[matches], unit_b, floor), (len(matches), links.n_b))
        near = near + truth[:, matches] @ alike
    if unit_a is not None:
        rows, place = np.unique(anchors, return_inverse=True)
        alike = _matrix(near_pairs(unit_a[rows], unit_a, floor), (len(rows), links.n_a))
        near = near + (alike @ links.matrix.astype(np.int64))[place.reshape(-1)]
    return _without(near, truth)


def _above_matches(links: Links, anchors: IntArray, unit_a: Any, unit_b: Any, margin: float) -> Any:
    """Return the boolean CSR matrix (anchors, n_b) of unlinked candidates that score above the nearest match."""
    if unit_a.shape[1] != unit_b.shape[1]:
        raise ShapeError(f"guide_a has {unit_a.shape[1]} columns and guide_b {unit_b.shape[1]}; expected one space")
    truth = links.matrix[anchors].astype(np.int64)
    pieces = []
    step = block_rows(links.n_b, 8, _BLOCK_BYTES)
    for start in range(0, len(anchors), step):
        block = unit_a[anchors[start : start + step]]
        product = block @ unit_b.T
        scores = np.asarray(product.toarray() if hasattr(product, "toarray") else product)
        own = truth[start : start + step]
        nearest = np.maximum.reduceat(scores[np.repeat(np.arange(len(scores)), np.diff(own.indptr)), own.indices],
                                      own.indptr[:-1])  # fmt: skip
        pieces.append(sparse.csr_array(scores > (nearest - margin + _TIE)[:, None]).astype(np.int64))
    return _without(sparse.vstack(pieces, format="csr"), truth)


def _matrix(pairs: Iterator[tuple[IntArray, IntArray, Any]], shape: tuple[int, int]) -> Any:
    found = [(row, other) for row, other, _ in pairs]
    rows, others = (np.concatenate([np.zeros(0, dtype=np.int64), *(pair[i] for pair in found)]) for i in (0, 1))
    return sparse.coo_array((np.ones(len(rows), dtype=np.int64), (rows, others)), shape=shape).tocsr()


def _without(marked: Any, truth: Any) -> Any:
    """Return where `marked` is not zero and `truth` is, as a CSR matrix of ones."""
    marked, linked = (sparse.csr_array(matrix != 0).astype(np.int64) for matrix in (marked, truth))
    left = sparse.csr_array(marked - marked.multiply(linked))
    left.eliminate_zeros()
    left.sort_indices()
    return left


def _columns(names: tuple[str, str]) -> tuple[str, str, str, str]:
    return names[0], f"its {names[1]}", f"a marked {names[1]}", "marked in the data"


def _cases(marked: Any, weights: Any, pairs: IntArray, name_a: Any, name_b: Any) -> list[tuple[str, str, str, int]]:
    order = np.lexsort((np.arange(len(weights)), -weights))
    return [
        (
            name_a(int(pairs[i, 0])),
            name_b(int(pairs[i, 1])),
            name_b(int(marked.indices[marked.indptr[i]])),
            int(weights[i]),
        )
        for i in order.tolist()
        if weights[i]
    ]


def _finding(share: float, each: float, drawn: int, n: int, n_links: int, space: str, listed: Any) -> Finding:
    most = WARN_EACH if space == "per_side" else FAIL_EACH
    verdict: Verdict = "pass" if each <= most else "warn"
    what = "are near-duplicates of what is linked" if space == "per_side" else "lie above the nearest match"
    sampled = f"{n:,} of {n_links:,} links looked at" if n < n_links else "all links looked at"
    why = f"in batches of {drawn:,} an anchor meets {each:.3g} negatives that {what} by the guide ({sampled})"
    if space == "shared" and share > _TELLS_LITTLE:
        why += "; random rows would put a half of them there, so this guide tells little"
    elif verdict == "warn":
        why += "; mask them (loss guided), or give equal items one group"
    return Finding(
        f"negatives in a batch that {what}",
        share,
        f"at most {most / (drawn - 1):.3g}, {most:g} an anchor in a batch",
        verdict,
        why,
        "false negatives",
        listed=listed,
    )
