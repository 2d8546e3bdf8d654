"""What is lost when something is taken away: a name masked, a column blanked, a tag drawn anew.

Two reports of one model on the same queries and pool come in, before and after. This module masks nothing (`named`,
`columns`, `source_tag`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from bridgehead.audits.finding import Finding, Verdict
from bridgehead.audits.given import check_kind
from bridgehead.audits.shortcuts.judged import FAIL_SHARE, WARN_SHARE
from bridgehead.evaluate import RetrievalReport
from bridgehead.evaluate.paired import PairedDifference, compare_reports

Items = TypeVar("Items")


@dataclass(frozen=True)
class Drop:
    """What a direction lost of a metric: `share` is (before - after) / (before - chance), `difference` before - after.

    `names` are those of its queries and candidates.
    """

    names: tuple[str, str]
    metric: str
    share: float
    difference: PairedDifference

    @property
    def verdict(self) -> Verdict:
        """A share above 0.25 warns; one above 0.75 fails where the loss is real."""
        if self.share <= WARN_SHARE:
            return "pass"
        return "fail" if self.real and self.share > FAIL_SHARE else "warn"

    @property
    def real(self) -> bool:
        """Whether the paired 95 % interval of before - after lies above 0."""
        return self.difference.interval is not None and self.difference.interval[0] > 0

    @property
    def figures(self) -> str:
        """The metric before and after, and the loss with its interval, in words."""
        found = self.difference
        interval = ""
        if found.interval is not None:
            interval = f" ({-found.interval[1]:+.3f} to {-found.interval[0]:+.3f})"
        return f"{self.metric} is {found.first:.3f} before and {found.second:.3f} after: {-found.value:+.3f}{interval}"


def drops(
    before: RetrievalReport, after: RetrievalReport, k: int = 10, n_resamples: int = 1000, seed: int = 0
) -> list[Drop]:
    """Return what both directions lost of recall@k, without those that had nothing to lose before.

    Nothing to lose: `before` does not exceed chance's 95 % interval. Raises `ArgumentError` for reports on other
    queries or pools, or without recall@k.
    """
    check_kind(RetrievalReport, before=before, after=after)
    metric = f"recall@{k}"
    sides = {f"a_to_b.{metric}": before.names, f"b_to_a.{metric}": before.names[::-1]}
    paired = compare_reports(before, after, metrics=list(sides), n_resamples=n_resamples, seed=seed)
    found = []
    for key, (query, candidate) in sides.items():
        direction, _ = before.direction(key)
        if direction.values[metric] > direction.chance_interval(metric)[1]:
            share = paired[key].value / (direction.values[metric] - direction.chance[metric])
            found.append(Drop((query, candidate), metric, float(share), paired[key]))
    return found


def drop_findings(
    what: str, before: RetrievalReport, after: RetrievalReport, *, k: int = 10, n_resamples: int = 1000, seed: int = 0
) -> list[Finding]:
    """Return, for both directions, which share of recall@k above chance is gone after something was changed.

    `before` and `after` are reports of the same model on the same queries, truth and pool, for the items as they are
    and for the items after the change, and `what` says what was done ("names masked"). The value is

        (before - after) / (before - chance)

    0 where nothing is lost (negative where it became better), 1 where what is left is chance. A share above 0.25 warns
    and above 0.75 fails, as for shortcuts; it only warns where the paired 95 % interval of before - after over entities
    (in `why`, with its sign turned) holds 0, so that the loss may be chance, or where there is none. A direction that
    was at chance before has nothing to lose and gives no finding. Cost: under a second. Raises as `drops`.
    """
    found = []
    for drop in drops(before, after, k, n_resamples, seed):
        why = drop.figures
        if drop.verdict != "pass":
            why += "; so much of what was found hung on it" if drop.real else "; too few entities to call it a loss"
        query, candidate = drop.names
        expected = f"at most {WARN_SHARE:g} of the {drop.metric} above chance, above {FAIL_SHARE:g} fails"
        name = f"{what}, {query} -> {candidate}"
        found.append(Finding(name, drop.share, expected, drop.verdict, why, "shortcuts"))
    return found


def masked_drop(
    what: str, report_of: Callable[[Items], RetrievalReport], masked: Items, before: RetrievalReport, **options: Any
) -> list[Finding]:
    """Return `drop_findings` after evaluating the masked items: `report_of(masked)` encodes, projects and ranks them.

    `report_of` is handed in by whoever has the model, and evaluates as `before` was made. `options` are those of
    `drop_findings`.
    """
    return drop_findings(what, before, report_of(masked), **options)
