"""One direction of the loss left out: what each direction of retrieval loses, or gains, by it.

The symmetric loss does not promise that both directions are found equally well, and one of them may be all that is
needed. This module trains nothing: `runs` hands it a `fit` function.
"""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from bridgehead.audits.controls.levels import check_higher_is_better, check_seeds, listed_metrics
from bridgehead.audits.finding import Finding
from bridgehead.audits.given import check_called, check_kind
from bridgehead.errors import ArgumentError
from bridgehead.evaluate import RetrievalReport
from bridgehead.evaluate.paired import compare_reports, paired_difference

Direction = Literal["a_to_b", "b_to_a"]


def one_sided_findings(
    fit: Callable[[Direction, int], RetrievalReport],
    both: RetrievalReport,
    directions: Sequence[Direction] = ("a_to_b", "b_to_a"),
    seeds: Sequence[int] = (0,),
    metrics: Sequence[str] | None = None,
    n_resamples: int = 1000,
    seed: int = 0,
) -> list[Finding]:
    """Return what training both directions gives beyond training one, for each direction of retrieval.

    `fit(direction, seed)` trains at the full budget with the loss of that direction alone and evaluates on the test
    part; `both` is the evaluation of training both, on the same queries. `metrics` are keys of both directions of
    retrieval, such as `a_to_b.recall@10` (default: recall at the largest k, and mrr).

    A finding a training and metric, in the names of `both`, of the group "controls": value is `both` less the mean
    over seeds of the one-sided runs, with the paired 95 % interval over entities in the sentence. It passes unless
    that interval lies below 0, in which case it warns: the direction is better trained by itself. Raises
    `ArgumentError` (directions, seeds, metrics, queries that differ). Costs a training for each direction and seed.
    """
    check_called(fit=fit)
    check_kind(RetrievalReport, both=both)
    check_seeds(seeds)
    if (
        not isinstance(directions, list | tuple)
        or not directions
        or any(direction not in ("a_to_b", "b_to_a") for direction in directions)
    ):
        raise ArgumentError(f"directions = {directions!r}; expected some of 'a_to_b' and 'b_to_a'")
    keys = listed_metrics(metrics, both)
    for key in keys:
        check_higher_is_better(key)
    found = []
    for direction in dict.fromkeys(directions):
        reports = [fit(direction, each) for each in seeds]
        for report in reports:
            compare_reports(both, report, metrics=keys, n_resamples=0, n_permutations=1)
        found += [_finding(key, direction, both, reports, n_resamples, seed) for key in keys]
    return found


def _finding(
    key: str,
    direction: str,
    both: RetrievalReport,
    reports: list[RetrievalReport],
    n_resamples: int,
    seed: int,
) -> Finding:
    symmetric, metric = both.direction(key)
    one = np.mean([report.direction(key)[0].per_query[metric] for report in reports], axis=0)
    paired = paired_difference(symmetric.per_query[metric], one, symmetric.entities, n_resamples, 1, seed)
    low, high = paired.interval or (paired.value, paired.value)
    a, b = both.names
    arrow = f"{a} -> {b}" if direction == "a_to_b" else f"{b} -> {a}"
    name, expected = f"trained {arrow} only, {key}", "at least 0: both directions together lose nothing to one alone"
    figures = f"{paired.first:.3f} with both and {paired.second:.3f} with one, {low:+.3f} to {high:+.3f}"
    if high < 0:
        why = f"{figures}: this is found better where only {arrow} is trained; where it is all you need, train it alone"
        return Finding(name, paired.value, expected, "warn", why, "controls")
    if low > 0:
        why = f"{figures}: {'its own' if key.startswith(direction) else 'the other'} direction loses by it"
        return Finding(name, paired.value, expected, "pass", why, "controls")
    return Finding(name, paired.value, expected, "pass", f"{figures}: no clear difference", "controls")
