"""How much training adds to looking up neighbours: the trained model beside the untrained scorer of `nearest`.

This module ranks nothing: two reports on the same queries come in.
"""

from collections.abc import Mapping, Sequence

from bridgehead.audits.controls.levels import check_higher_is_better, listed_metrics
from bridgehead.audits.finding import Finding
from bridgehead.audits.given import check_kind
from bridgehead.evaluate import RetrievalReport
from bridgehead.evaluate.paired import PairedDifference, compare_reports, p_text

_CLEAR = 0.05


def baseline_findings(
    trained: RetrievalReport,
    untrained: RetrievalReport,
    metrics: Sequence[str] | None = None,
    called: str = "the nearest training neighbours",
    n_resamples: int = 1000,
    seed: int = 0,
) -> list[Finding]:
    """Return how much more `trained` finds than `untrained` does on the same queries and candidates.

    `untrained` is the report of a scorer without training: `nearest_neighbour_report`, or a closed form; `called` is
    its name in sentences, a plural. `metrics` are keys such as `b_to_a.recall@10` where higher is better (default:
    recall at the largest k, and mrr, both directions). A finding a metric, of the group "baseline": value is trained -
    untrained, with its paired 95 % interval over entities. It passes where the interval lies above 0, warns where it
    holds 0, and fails where it lies below: the model is worse than a look-up. An interval of few entities can be too
    narrow: where the sign-flip test (p above 0.05) sees no difference, it warns. Of one entity there is no interval,
    and it warns.

    Raises `ArgumentError` for an unknown metric or queries and candidates that differ. Costs under a second.
    """
    check_kind(RetrievalReport, trained=trained, untrained=untrained)
    keys = listed_metrics(metrics, trained)
    for key in keys:
        check_higher_is_better(key)
    paired = compare_reports(trained, untrained, metrics=keys, n_resamples=n_resamples, seed=seed)
    return judged_differences(paired, called)


def judged_differences(differences: Mapping[str, PairedDifference], called: str) -> list[Finding]:
    """Return the findings of `baseline_findings` for differences (trained - untrained) that were measured before.

    `differences` by metric, such as `b_to_a.mrr`; `called` is the untrained scorer in sentences, a plural.
    """
    found = []
    for key, difference in differences.items():
        name, expected = f"beyond {called}, {key}", f"above 0: more than {called} give"
        figures = f"{difference.first:.3f} trained and {difference.second:.3f} without"
        if difference.interval is None:
            why = f"{figures}; one entity only, so there is no interval"
            found.append(Finding(name, difference.value, expected, "warn", why, "baseline"))
            continue
        low, high = difference.interval
        clear = difference.p_value <= _CLEAR
        figures += f", {low:+.3f} to {high:+.3f} (p {p_text(difference.p_value)})"
        if low > 0 and clear:
            why = f"{figures}: training adds to what {called} give"
            found.append(Finding(name, difference.value, expected, "pass", why, "baseline"))
        elif high < 0 and clear:
            why = (
                f"{figures}: the trained model is worse than {called}: take these instead, or train it otherwise "
                "(longer, at another rate, with smaller heads or more pairs)"
            )
            found.append(Finding(name, difference.value, expected, "fail", why, "baseline"))
        else:
            why = f"{figures}: no clear gain over {called}"
            found.append(Finding(name, difference.value, expected, "warn", why, "baseline"))
    return found
