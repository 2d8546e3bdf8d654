"""What the shape of a shared space claims: pairs closer than strangers, the gap between the sides, hubs.

The numbers are those of `evaluate.geometry`; this module only holds them against what is expected. Collapse is about
training (`training.collapse`). A space may look ill and find well: most of what is here warns and does not fail.
"""

from bridgehead.audits.finding import Finding, Verdict
from bridgehead.audits.given import check_kind
from bridgehead.audits.listed import namer, worst
from bridgehead.evaluate.geometry import GapCorrection, Geometry, Hubness, ModalityGap

NO_ORDER, CLEAR_ORDER = 0.55, 0.8
"""Shares of the time that a true pair has a higher cosine than a random one: up to the first there is hardly any
signal, from the second on it is clear (random pairs have 0.5)."""
APART = 0.9
"""Accuracy of a linear classifier from which the sides lie apart: nine of ten rows are told by a plane."""
HUB, LARGE_HUB = 0.1, 0.5
"""Shares of the queries that have one and the same candidate among their first k, from which it is a hub, and from
which half of all answers hold it. Where k of N is itself a tenth or more, five times k / N takes their place."""
_TIMES_CHANCE = 5


def geometry_findings(
    geometry: Geometry,
    correction: GapCorrection | None = None,
    ids_a: list[str] | None = None,
    ids_b: list[str] | None = None,
) -> list[Finding]:
    """Return what `geometry` (`geometry_report`) says of a space, findings of the group "geometry":

    - *true pairs closer than random ones*: value is the share of the time that they are. Passes from 0.8, warns to
      0.55, fails below: the links and the space have nothing to do with each other.
    - *sides told apart*: value is the accuracy of a linear classifier, 0.5 being guessing. Warns from 0.9: thresholds
      and answers that mix both sides in one list cannot be trusted (Liang et al. 2022, arXiv:2203.02053).
    - *gap correction* (with `correction`, of `gap_correction`): value is the change of MRR, mean of both directions,
      when each side's mean is taken away. Warns where its intervals lie above 0 in either direction: recall is given
      away.
    - *largest hub*, by direction: value is the share of queries that have it among their first k. Warns from 0.1 and
      fails from 0.5, or five times chance where that is more; the ten largest are listed, by `ids_a` and `ids_b`.

    What the report lacks (too few rows for a classifier) gives no finding. Raises `ShapeError` for ids of another
    number. Costs nothing.
    """
    check_kind(Geometry, geometry=geometry)
    if correction is not None:
        check_kind(GapCorrection, correction=correction)
    found = []
    if geometry.histograms.true_above_random is not None:
        found.append(_closer(geometry.histograms.true_above_random))
    if geometry.gap.separability is not None:
        found.append(_apart(geometry.gap, geometry.gap.separability, geometry.names))
    if correction is not None:
        found.append(_correction(correction))
    a, b = geometry.names
    for key, query, candidate, ids, n in (
        ("a_to_b", a, b, ids_b, geometry.n_rows[1]),
        ("b_to_a", b, a, ids_a, geometry.n_rows[0]),
    ):
        found.append(_hub(geometry.hubness[key], query, candidate, ids, n))
    return found


def _closer(share: float) -> Finding:
    title, expected = "true pairs closer than random ones", f"at least {CLEAR_ORDER:g} of the time; 0.5 is no signal"
    if share < NO_ORDER:
        why = "true pairs are hardly closer than random ones: what links join does not lie together in this space"
        return Finding(title, share, expected, "fail", why, "geometry")
    if share < CLEAR_ORDER:
        why = "true pairs are often farther than random ones; a threshold on the cosine would tell little"
        return Finding(title, share, expected, "warn", why, "geometry")
    return Finding(title, share, expected, "pass", "what links join lies together in this space", "geometry")


def _apart(gap: ModalityGap, accuracy: float, names: tuple[str, str]) -> Finding:
    title, expected = "sides told apart", f"below {APART:g}; 0.5 is guessing, two sides in one cloud"
    centres = f"centroids {gap.centroid_distance:.2f} apart ({gap.expected_distance:.2f} for samples of one cloud)"
    if accuracy >= APART:
        why = (
            f"{names[0]} and {names[1]} lie in places of their own, {centres}: recall within one side is unharmed, but "
            "no list should mix both sides by cosine, and cosines across stay lower than within"
        )
        return Finding(title, accuracy, expected, "warn", why, "geometry")
    return Finding(title, accuracy, expected, "pass", centres, "geometry")


def _correction(correction: GapCorrection) -> Finding:
    changes = [correction.differences[f"{side}.mrr"] for side in ("a_to_b", "b_to_a")]
    value = sum(change.value for change in changes) / 2
    helped = [change for change in changes if change.interval is not None and change.interval[0] > 0]
    title, expected = "gap correction", "no clear gain in MRR when each side's mean is taken away"
    ends = [change.interval or (change.value, change.value) for change in changes]
    figures = ", ".join(
        f"{change.value:+.3f} ({low:+.3f} to {high:+.3f})" for change, (low, high) in zip(changes, ends, strict=True)
    )
    if helped:
        why = f"{figures} in the two directions: the gap costs recall; take the training rows' means away before search"
        return Finding(title, value, expected, "warn", why, "geometry")
    why = f"{figures} in the two directions: the gap costs no recall, so leave the rows as they are"
    return Finding(title, value, expected, "pass", why, "geometry")


def _hub(found: Hubness, query: str, candidate: str, ids: list[str] | None, n: int) -> Finding:
    called = namer(ids, n, f"ids of {candidate}")
    chance = min(1.0, found.k / found.n_candidates)
    some, large = (min(1.0, max(level, _TIMES_CHANCE * chance)) for level in (HUB, LARGE_HUB))
    share = found.largest_share
    title = f"largest hub, {query} -> {candidate}"
    expected = (
        f"below {some:.2g} of the queries have any one {candidate} among their first {found.k}; chance {chance:.2g}"
    )
    rows = [
        (called(row), round(times, 2), round(times / found.n_queries, 4))
        for row, times in zip(found.top_rows, found.top_times, strict=True)
    ]
    listed = worst((candidate, "times among the first", "share of queries"), rows)
    never = f"{found.never:.0%} of them come for no query (chance {found.chance_never:.0%})"
    if share < some or chance >= some:
        why = f"no {candidate} comes for very many queries; {never}"
        return Finding(title, share, expected, "pass", why, "geometry", listed=listed)
    why = f"one {candidate} comes for {share:.0%} of the queries whatever they ask, and {never}; look at those listed"
    verdict: Verdict = "fail" if share >= large else "warn"
    return Finding(title, share, expected, verdict, why, "geometry", listed=listed)
