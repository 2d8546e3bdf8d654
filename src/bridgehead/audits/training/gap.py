"""How much better training pairs are found than pairs that training never saw, among as many candidates.

Recall over the whole training part and over a small validation part cannot be compared: the pools differ. This module
is not about pairs that leak from one into the other (`leakage`).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bridgehead.audits.finding import Finding
from bridgehead.audits.given import check_kind
from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.evaluate import RetrievalReport, retrieval_report
from bridgehead.evaluate.arguments import checked_seed
from bridgehead.links import Links
from bridgehead.vectors import IntArray, to_numpy

HALF = 0.5
"""Share of what training pairs have above chance, below which what pairs outside have is memory more than knowledge."""
LEAST_PAIRS, MOST_PAIRS = 20, 2000
"""With fewer pairs chance alone spans a fifth of recall@1; more make no verdict firmer."""


@dataclass(frozen=True, eq=False)
class EvaluatedPart:
    """Rows of a part of the data in the shared space, z_a (n_a, d) and z_b (n_b, d), and `links` over them."""

    z_a: Any
    z_b: Any
    links: Any = None


def gap_findings(train: EvaluatedPart, held_out: EvaluatedPart, metric: str = "mrr", seed: int = 0) -> list[Finding]:
    """Return how `metric` of pairs that were trained on compares to that of pairs that were not.

    From each part as many pairs are drawn (with `seed`, at most 2,000), no two of which share an item, and each pool is
    the items of these pairs alone; links among them count as true. `metric` is mrr or recall@1, 5 or 10, the mean of
    both directions. One finding, of the group "training": value is the share of what the training pairs have above
    chance that the others have too, (held out - chance) / (train - chance). It passes from 0.5 on, warns below, and
    fails where held-out pairs are within chance's 95 % interval while training pairs are not: memorised, not learnt. It
    warns, with the value 0, where training pairs are within it too.

    Raises `ArgumentError` for fewer than 20 such pairs in a part or an unknown metric, `ShapeError`, `LinksError`,
    `NonFiniteRowsError`. Costs two evaluations of 2,000 x 2,000: under a second on one core.
    """
    check_kind(EvaluatedPart, train=train, held_out=held_out)
    chosen = [_disjoint_pairs(part, seed) for part in (train, held_out)]
    n = min(*(len(pairs) for pairs in chosen), MOST_PAIRS)
    if n < LEAST_PAIRS:
        raise ArgumentError(
            f"{len(chosen[0])} pairs of training and {len(chosen[1])} held out share no item; expected at least "
            f"{LEAST_PAIRS} of each"
        )
    reports = [_report(part, pairs[:n]) for part, pairs in zip((train, held_out), chosen, strict=True)]
    if (
        not isinstance(metric, str)
        or metric not in reports[0].a_to_b.values
        or metric.endswith("_rank")
        or metric == "map"
    ):
        raise ArgumentError(f"metric = {metric!r}; expected mrr, recall@1, recall@5 or recall@10")
    (inside, chance, bound), (outside, other_chance, other_bound) = (_levels(report, metric) for report in reports)
    title = f"held-out against training pairs, {metric}"
    expected = f"at least {HALF:g} of what training pairs have above chance, among {n:,} candidates each"
    figures = f"{outside:.3f} held out and {inside:.3f} in training, chance {other_chance:.3f}"
    if inside <= bound:
        why = f"{figures}: not even the pairs trained on are found, so there is nothing to compare"
        return [Finding(title, 0.0, expected, "warn", why, "training")]
    share = (outside - other_chance) / (inside - chance)
    if outside <= other_bound:
        why = f"{figures}: the training pairs are memorised, and nothing carries over to others"
        return [Finding(title, share, expected, "fail", why, "training")]
    if share < HALF:
        why = f"{figures}: much of it is memory; fewer epochs, smaller heads, more dropout or more pairs would help"
        return [Finding(title, share, expected, "warn", why, "training")]
    return [Finding(title, share, expected, "pass", figures, "training")]


def _disjoint_pairs(part: EvaluatedPart, seed: int) -> IntArray:
    """Return pairs of the links in random order of which no two share an item: one at random for each item of a, of
    those one for each item of b."""
    sizes = [to_numpy(z).shape for z in (part.z_a, part.z_b)]
    if any(len(shape) != 2 for shape in sizes):
        raise ShapeError(f"rows have shapes {sizes[0]} and {sizes[1]}; expected two dimensions (n, d)")
    pairs = np.random.default_rng(checked_seed(seed)).permutation(Links.of(part.links, sizes[0][0], sizes[1][0]).pairs)
    for column in (0, 1):
        pairs = pairs[np.sort(np.unique(pairs[:, column], return_index=True)[1])]
    return np.asarray(pairs, dtype=np.int64)


def _report(part: EvaluatedPart, pairs: IntArray) -> RetrievalReport:
    z_a, z_b = to_numpy(part.z_a), to_numpy(part.z_b)
    links = Links.of(part.links, len(z_a), len(z_b)).within(pairs[:, 0], pairs[:, 1])
    return retrieval_report(z_a[pairs[:, 0]], z_b[pairs[:, 1]], links, ks=(1, 5, 10), n_resamples=0)


def _levels(report: RetrievalReport, metric: str) -> tuple[float, float, float]:
    """Return value, chance and the upper end of chance's interval, means of both directions."""
    sides = (report.a_to_b, report.b_to_a)
    found = [(side.values[metric], side.chance[metric], side.chance_interval(metric)[1]) for side in sides]
    value, chance, bound = np.mean(found, axis=0).tolist()
    return value, chance, bound
