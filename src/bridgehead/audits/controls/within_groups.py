"""Links shuffled within groups: how much of what is found needs no more than to know the group.

If the length of a text, the scaffold of a molecule or the slide of a picture were all that a model goes by, it would
find as much after its partners were exchanged among items of one group. This module trains nothing: `runs` hands it a
`fit` function. It is not about retrieval by the group alone, without training (`shortcuts`).
"""

from collections.abc import Callable, Sequence
from typing import Any

from bridgehead.audits.controls.levels import ENOUGH, Levels, check_seeds, levels_of
from bridgehead.audits.controls.shuffled import MANY_SURVIVE, shuffle_within, surviving_links
from bridgehead.audits.finding import Finding
from bridgehead.audits.given import check_called, check_kind
from bridgehead.errors import ArgumentError
from bridgehead.evaluate import RetrievalReport
from bridgehead.links import Links

SOME, MOST = 0.25, 0.5
"""Shares of what is found above chance that the group explains, above which it is worth a warning, and above which
most of the result is the group's."""
_FEWEST_PEERS = 0.5


def within_groups_findings(
    fit: Callable[[Links, int], RetrievalReport],
    links: Links,
    labels: Any,
    real: RetrievalReport,
    grouping: str,
    seeds: Sequence[int] = (0,),
    metrics: Sequence[str] | None = None,
) -> list[Finding]:
    """Return how much of what `real` finds above chance is still found after training on links shuffled within groups.

    `fit(shuffled, seed)` trains at the full budget on `shuffle_within(links, labels, seed)` and evaluates on the true
    test links, as for `shuffled_control`; `real` is the evaluation of training on the true ones, on the same test set.
    `labels` (n_a,) are the groups of the rows of a, `grouping` what they are called ("length", "scaffold"). `metrics`
    as in `shuffled_control`.

    A finding a metric, of the group "controls": value is the mean over seeds of (shuffled within groups - chance) /
    (real - chance). It passes where shuffled within groups is within chance's interval or the share is at most 0.25,
    warns to 0.5, and fails above; what is little beyond the interval warns, too, under five seeds. So do a `real` that
    is within chance's interval itself (value 0: nothing to explain), over 2 % of the shuffled links that are true after
    all, and over half of the linked rows without a peer in their group (they are shuffled among each other, so the
    groups are too small to explain much).

    Raises `ArgumentError` (seeds, metrics, test sets that differ), `LinksError`, `ShapeError`. Costs a training a seed.
    """
    check_called(fit=fit)
    check_kind(RetrievalReport, real=real)
    check_seeds(seeds)
    reports, surviving, alone = [], 0, 0
    for seed in seeds:
        shuffled, alone = shuffle_within(links, labels, seed)
        surviving = max(surviving, surviving_links(links, shuffled))
        reports.append(fit(shuffled, seed))
    levels = levels_of(reports, metrics)
    before = levels_of([real], list(levels))
    if any(before[key].chance != levels[key].chance for key in levels):
        raise ArgumentError("real is of another test set than the control's evaluations; expected one for all")
    n_linked = len(set(links.pairs[:, 0].tolist()))
    doubt = _doubt(surviving / max(1, int(links.matrix.nnz)), alone / max(1, n_linked))
    return [_finding(key, found, before[key], grouping, doubt) for key, found in levels.items()]


def _doubt(surviving: float, alone: float) -> str:
    """Return why the control says less than it should, or nothing."""
    if surviving > MANY_SURVIVE:
        return f"{surviving:.0%} of the shuffled links are true after all, so part of this is no shortcut"
    if alone > _FEWEST_PEERS:
        return f"{alone:.0%} of the linked items are the only ones of their group, so it could explain little anyway"
    return ""


def _finding(key: str, found: Levels, real: Levels, grouping: str, doubt: str) -> Finding:
    name = f"shuffled within {grouping}, {key}"
    expected = f"at most {SOME:g} of what the true links give above chance ({found.chance:.4f})"
    if real.mean <= real.bound:
        why = f"the model itself finds {real.mean:.3f}, no more than chance would, so there is nothing to explain"
        return Finding(name, 0.0, expected, "warn", why, "controls")
    share = (found.mean - found.chance) / (real.mean - real.chance)
    figures = f"{found.mean:.3f} against {real.mean:.3f} with the true links"
    if found.mean <= found.bound:
        why = f"{figures}, no more than chance: to know the {grouping} is not enough"
    elif share <= SOME:
        why = f"{figures}: to know the {grouping} explains little of it"
    else:
        why = f"{figures}: {share:.0%} of it needs no more than to know the {grouping}"
    if doubt:
        return Finding(name, share, expected, "warn", f"{why}; {doubt}", "controls")
    small = found.mean <= found.bound or share <= SOME
    if not small and share > MOST and found.doubtful:
        why += f"; on so few queries a single model varies by as much: train {ENOUGH} of them or more before it counts"
        return Finding(name, share, expected, "warn", why, "controls")
    return Finding(name, share, expected, "pass" if small else "warn" if share <= MOST else "fail", why, "controls")
