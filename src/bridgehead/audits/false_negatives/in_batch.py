"""False negatives: in-batch negatives that are the anchor's own entity or text again.

A contrastive loss pushes away all in a batch that is not linked to the anchor. Where an unlinked candidate describes
the same entity, or is the same text as the match, it pushes away what is true. This module is not about negatives that
are only similar (`guided_negatives`).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bridgehead.audits.finding import Finding, Verdict
from bridgehead.audits.given import check_kind
from bridgehead.audits.listed import namer, worst
from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.evaluate.arguments import checked_names
from bridgehead.links import Links
from bridgehead.vectors import IntArray, to_numpy

WARN_EACH, FAIL_EACH = 0.1, 1.0
"""False negatives that an anchor meets in a batch, on average. One that cannot be told from the match takes half of the
match's probability away, so one for every anchor halves what the loss can reach; one for ten anchors is lost in it."""

Float64Array = npt.NDArray[np.float64]


def false_negative_findings(
    links: Links,
    batch_size: int,
    *,
    same_a: Any = None,
    same_b: Any = None,
    ids_a: Sequence[str] | None = None,
    ids_b: Sequence[str] | None = None,
    names: tuple[str, str] = ("a", "b"),
) -> list[Finding]:
    """Return the expected share of in-batch negatives that share entity or text with the anchor or its match.

    A batch is `batch_size` B of the L matches of the training `links`, drawn without replacement, as epochs in random
    order do. For two of them (a, b) and (a', b') the candidate b' is a negative of anchor a unless a and b' match
    (through groups too, as in training). It is a false one when a and a' have the same label in `same_a` (n_a,) or b
    and b' in `same_b` (n_b,): entities or skeletons on one side, normalised texts on the other. None takes every item
    as its own; so does a label below 0, "" or None. The value is the exact share over all ordered pairs of matches,
    which is the same in both directions and does not depend on B. The verdict does: an anchor meets (B - 1) times that
    share of false negatives among its candidates, 0.1 warns and 1 fails. `why` also gives the share of anchors that
    meet at least one, by the hypergeometric distribution.

    The listing names the matches with the most false negatives in the whole data. Fewer than two, or none that is a
    negative of another, give no finding. Cost: a fraction of a second for 10,000 links. Raises `ArgumentError` for a
    batch under 2 and for labels that are neither texts nor integers, `ShapeError` for labels of other lengths.

    >>> import numpy as np
    >>> false_negative_findings(Links.identity(4), 4, same_b=["x", "x", "y", "z"])[0].value
    0.16666666666666666
    """
    if isinstance(batch_size, bool) or not isinstance(batch_size, int | np.integer) or batch_size < 2:
        raise ArgumentError(f"batch_size = {batch_size!r}; expected a whole number of at least 2: one has no negatives")
    check_kind(Links, links=links)
    names = checked_names(names)
    of_a, of_b = _labels(same_a, links.n_a, "same_a"), _labels(same_b, links.n_b, "same_b")
    name_a, name_b = namer(ids_a, links.n_a, "ids_a"), namer(ids_b, links.n_b, "ids_b")
    links = links.expanded()
    n_links = len(links)
    false, negatives = count_false_negatives(links, of_a, of_b)
    if n_links < 2 or not negatives.sum():
        return []
    drawn = min(int(batch_size), n_links)
    share = float(false.sum() / negatives.sum())
    each = float(false.mean()) * (drawn - 1) / (n_links - 1)
    met = float(1 - _none_drawn(false, n_links - 1, drawn - 1).mean())
    verdict: Verdict = "pass" if each <= WARN_EACH else "warn" if each <= FAIL_EACH else "fail"
    why = (
        f"in batches of {drawn:,} an anchor meets {each:.3g} false negatives on average, and {met:.1%} of anchors meet "
        "at least one"
    )
    if verdict != "pass":
        why += "; give equal items one group, use a sampler that keeps them apart, or a loss that masks them"
    limit, fails = (bound / (drawn - 1) for bound in (WARN_EACH, FAIL_EACH))
    order = np.lexsort((np.arange(n_links), -false))
    rows = [
        (name_a(int(a)), name_b(int(b)), int(false[i]))
        for i, (a, b) in zip(order.tolist(), links.pairs[order].tolist(), strict=True)
        if false[i]
    ]
    return [
        Finding(
            "false negatives in a batch: same entity or text",
            share,
            f"at most {limit:.3g}, {WARN_EACH:g} an anchor in a batch, above {fails:.3g} fails",
            verdict,
            why,
            "false negatives",
            listed=worst((*names, "false negatives in the data"), rows),
        )
    ]


def count_false_negatives(links: Links, same_a: IntArray, same_b: IntArray) -> tuple[IntArray, IntArray]:
    """Return for each link (a, b) the other links (a', b') of which b' is a false negative of a, and a negative at all.

    `same_a` (n_a,) and `same_b` (n_b,) are integers from 0; both results are (n_links,), in the order of
    `links.pairs`. By inclusion and exclusion: links with the same label of a, plus those with the same of b, less those
    with both, less those whose b' is linked to a.
    """
    a, b = links.pairs.T
    of_a, of_b = same_a[a], same_b[b]
    alike = _count(of_a) + _count(of_b) - _count(of_a * (same_b.max(initial=0) + 1) + of_b)
    # Every b' that is linked to a, and how many links would bring it into the batch: all, or those alike through a.
    indptr, partner = links.targets()
    owner = np.repeat(np.arange(links.n_a), np.diff(indptr))
    degree = np.bincount(b, minlength=links.n_b)
    through_a = _lookup(of_a * links.n_b + b, same_a[owner] * links.n_b + partner)
    n_linked = np.bincount(owner, degree[partner], minlength=links.n_a)[a]
    linked_alike = np.bincount(owner, through_a, minlength=links.n_a)[a]
    width = int(same_b.max(initial=0)) + 1
    # Those alike through b count with all their links, not only those alike through a.
    linked_alike = linked_alike + _lookup(
        owner * width + same_b[partner], a * width + of_b, degree[partner] - through_a
    )
    return (alike - linked_alike).astype(np.int64), (len(links) - n_linked).astype(np.int64)


def _count(labels: IntArray) -> Float64Array:
    """Return how often the label of each entry occurs."""
    _, which, counts = np.unique(labels, return_inverse=True, return_counts=True)
    return counts[which.reshape(-1)].astype(np.float64)


def _lookup(known: IntArray, asked: IntArray, weights: Any = None) -> Float64Array:
    """Return for each of `asked` the sum of the weights (1 each) of the entries of `known` that equal it."""
    keys, which = np.unique(known, return_inverse=True)
    sums = np.bincount(which.reshape(-1), weights, minlength=len(keys)).astype(np.float64)
    if not len(keys):
        return np.zeros(len(asked))
    place = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
    return np.where(keys[place] == asked, sums[place], 0.0)


def _none_drawn(marked: IntArray, n: int, drawn: int) -> Float64Array:
    """Return the probability that `drawn` of `n` without replacement hold none of `marked`: C(n - m, d) / C(n, d)."""
    counts, which = np.unique(marked, return_inverse=True)
    # ln C(n - m, d) - ln C(n, d) as a sum over the smaller of m and d, which are interchangeable.
    odds = np.zeros(len(counts))
    for place, count in enumerate(counts.tolist()):
        fewer, more = min(count, drawn), max(count, drawn)
        if count + drawn <= n:
            steps = np.arange(fewer)
            odds[place] = np.exp(np.log1p(-more / (n - steps)).sum())
    return odds[which.reshape(-1)]


def _labels(labels: Any, n: int, name: str) -> IntArray:
    if labels is None:
        return np.arange(n, dtype=np.int64)
    array = to_numpy(labels)
    if array.shape != (n,):
        raise ShapeError(f"{name} has shape {array.shape}; expected ({n},), a label for each row")
    if array.dtype.kind not in "iu":
        given = ["" if label is None else label for label in array.tolist()]
        if not all(isinstance(label, str) for label in given):
            raise ArgumentError(f"{name} has labels of type {array.dtype}; expected texts or integers, one kind alone")
        array = np.array(given, dtype=np.str_)
    alone = array < 0 if array.dtype.kind in "iu" else array == ""
    codes = np.unique(array, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return np.unique(np.where(alone, n + np.arange(n), codes), return_inverse=True)[1].reshape(-1).astype(np.int64)
