"""From the stored records of the evidence to what a report shows: contract, audits, geometry, slices, folds, pools.

Takes the JSON that the stages wrote, as plain entries; what an older or a shorter record lacks is left out. This module
is not about curves, directions and the data check (`gather`) or about how anything looks.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from bridgehead.audits.finding import Finding
from bridgehead.report.evidence import (
    Contract,
    ContractAnswer,
    Difference,
    Fold,
    FoldMeasure,
    FoldResults,
    GeometryFacts,
    GeometryValue,
    Hub,
    Item,
    Similarities,
    SkippedAudit,
    Slice,
    SliceTable,
    StageCost,
)
from bridgehead.report.measured import Field, Measure, PoolCurve, PoolRecall
from bridgehead.report.wording import count, measure_label, number

DIRECTIONS = ("a_to_b", "b_to_a")
_SHOWN = ("recall@", "mrr", "map", "r_precision", "mean_rank", "median_rank")
_IN_FOLDS = ("recall@", "mrr", "median_rank")
_KINDS = {
    "across_true": "across, true",
    "across_random": "across, random",
    "within_a": "within a",
    "within_b": "within b",
}
_HUBS = 3


def contract_of(stored: Mapping[str, Any]) -> Contract:
    """Return the contract of the entries of `contract.json`: `questions`, `measurement`, `model`.

    Hashes are cut to sixteen characters, entries of one kind for both sides are told apart by a and b.
    """
    answers = [
        ContractAnswer(entry["question"], entry.get("known", ""), entry.get("said", ""), entry.get("source", "program"))
        for entry in stored["questions"]
    ]
    hashes = [*_fields(stored.get("measurement", {})), *_fields(stored.get("model", {}))]
    if "measurement_hash" in stored:
        hashes.insert(0, ("measurement", str(stored["measurement_hash"])[:16]))
    return Contract(answers, hashes)


def _fields(entries: Mapping[str, Any]) -> list[Field]:
    return [(name, _written(value)) for name, value in entries.items() if value not in (None, "", [], {})]


def _written(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_written(entry)}" for name, entry in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_written(entry) for entry in value)
    if isinstance(value, int) and not isinstance(value, bool):
        return count(value)
    text = str(value)
    # What else is shown as a hash of 64 hexadecimal digits says no more than its beginning.
    return text[:16] if len(text) == 64 and not set(text) - set("0123456789abcdef") else text


def audits_of(stored: Mapping[str, Any]) -> tuple[list[Finding], list[SkippedAudit]]:
    """Return the findings and the audits that did not run from the entries of `audit.json`.

    `findings` are entries as `Finding.to_dict` gives them, `skipped` entries with `name` and `reason`, pairs of them,
    or a mapping from the one to the other.
    """
    found = stored.get("skipped") or []
    pairs = found.items() if isinstance(found, Mapping) else (_pair(entry) for entry in found)
    return (
        [Finding.of(dict(entry)) for entry in stored.get("findings") or []],
        [SkippedAudit(str(name), str(reason)) for name, reason in pairs],
    )


def _pair(entry: Any) -> tuple[Any, Any]:
    return (entry["name"], entry["reason"]) if isinstance(entry, Mapping) else (entry[0], entry[1])


def measures_of(stored: Mapping[str, Any]) -> dict[str, Measure]:
    """Return the figures of one direction from flat entries such as `recall@10`, `recall@10.low`, `chance_recall@10`.

    Those that a report shows: recall@k, MRR, MAP, R-precision, mean and median rank, in the order in which they stand.
    """
    names = [name for name in stored if name.startswith(_SHOWN) and not name.endswith((".low", ".high"))]
    return {
        name: Measure(stored[name], stored.get(f"{name}.low"), stored.get(f"{name}.high"), stored.get(f"chance_{name}"))
        for name in names
        if stored[name] is not None
    }


def slices_of(
    stored: Iterable[Any],
    title: str,
    query: str,
    candidate: str,
    whole: Mapping[str, Measure] | None = None,
    note: str = "",
) -> SliceTable:
    """Return a table of slices in one direction.

    Each is a `Slice` of the evaluation or its entries: `label`, `n_queries`, `n_entities` where known, and its figures,
    flat as in `measures_of`. `whole` are those of all queries, for comparison.
    """
    entries = [entry if isinstance(entry, Mapping) else entry.to_dict() for entry in stored]
    slices = [
        Slice(str(entry["label"]), int(entry["n_queries"]), measures_of(entry), entry.get("n_entities"))
        for entry in entries
    ]
    return SliceTable(title, query, candidate, slices, whole or {}, note)


def pools_of(points: Any) -> list[PoolCurve]:
    """Return a curve for each k from points of recall by the size of the pool (`PoolPoint`, or its stored entries).

    A mapping from k to such points does as well.
    """
    curves: dict[int, dict[int, PoolRecall]] = {}
    for point in chain.from_iterable(points.values()) if isinstance(points, Mapping) else points:
        entry = point if isinstance(point, Mapping) else point.to_dict()
        of_k = curves.setdefault(int(entry["k"]), {})
        of_k[int(entry["size"])] = PoolRecall(int(entry["size"]), entry["recall"], entry.get("chance"))
    return [PoolCurve(k, [found[size] for size in sorted(found)]) for k, found in sorted(curves.items())]


def differences_of(
    stored: Mapping[str, Mapping[str, Any]], names: tuple[str, str], against: str = ""
) -> list[Difference]:
    """Return paired differences from `a_to_b.recall@10` -> entries as `PairedDifference.to_dict` gives them.

    `first` is the value after the change and `second` the one before. `against` is added to the title of the direction
    ("molecule to text, against the untrained baseline").
    """
    found = []
    for key, entry in stored.items():
        side, _, metric = key.partition(".")
        query, candidate = _shown(side, names)
        title = f"{query} to {candidate}" + (f", {against}" if against else "")
        before, after = entry["second"], entry["first"]
        found.append(
            Difference(title, metric, before, after, entry.get("low"), entry.get("high"), entry.get("p_value"))
        )
    return found


def geometry_of(
    stored: Mapping[str, Any],
    names: tuple[str, str] | None = None,
    item_of: Callable[[str, int], Item] | None = None,
    correction: Mapping[str, Any] | None = None,
) -> GeometryFacts:
    """Return the geometry from the entries of `Geometry.to_dict`, hubs as `item_of("a" or "b", row)` shows them.

    `names` are the shown names of the sides (default: those of the record), `correction` the entries of
    `GapCorrection.to_dict`. Without `item_of` there are no hubs to show.
    """
    a, b = names or tuple(stored.get("names", ("a", "b")))
    hubness = stored.get("hubness", {})
    notes = [_never(hubness[key], _shown(key, (a, b))[1]) for key in DIRECTIONS if key in hubness]
    if stored.get("sampled"):
        n_a, n_b = stored["looked_at"]
        notes.append(f"Uniformity and hubs are of {n_a:,} {a} and {n_b:,} {b} items, drawn at random.")
    if correction is not None:
        apart = [number(correction[key]) for key in ("distance_before", "distance_after")]
        notes.append(
            f"The means are those of {correction['fitted_on']}; the centroids move from {apart[0]} to {apart[1]}."
        )
    return GeometryFacts(
        values=_values(stored, (a, b)),
        similarities=_similarities(stored.get("histograms")),
        hubs=[] if item_of is None else _hubs(hubness, (a, b), item_of),
        corrections=[] if correction is None else differences_of(correction["differences"], (a, b)),
        notes=notes,
    )


def _values(stored: Mapping[str, Any], names: tuple[str, str]) -> list[GeometryValue]:
    histograms, gap = stored.get("histograms", {}), stored.get("gap", {})
    random = histograms.get("across_random", {}).get("mean")
    rows: list[tuple[str, float | None, str]] = [
        ("mean cosine of true pairs", stored.get("alignment_cosine"), f"random pairs {number(random)}"),
        (
            "true above random",
            histograms.get("true_above_random"),
            "how often a true pair is the closer one; 0.5: no signal",
        ),
        ("alignment", stored.get("alignment_distance"), "mean squared distance of true pairs; low is near"),
    ]
    for side, name in zip("ab", names, strict=True):
        low = "low is even, near 0 is collapse"
        rows.append((f"uniformity of {name}", stored.get("uniformity", {}).get(side), low))
    expected = f"{number(gap.get('expected_distance'))} is what one distribution would give"
    rows.append(("distance of the centroids", gap.get("centroid_distance"), expected))
    guess = f"0.5 is guessing: inseparable; {number(gap.get('chance_high'))} its upper bound"
    rows.append(("a linear classifier tells the sides apart", gap.get("separability"), guess))
    for side, name in zip("ab", names, strict=True):
        spread = stored.get("spread", {}).get(side, {})
        most = min(spread.get("n_dimensions", 0), spread.get("n_rows", 0))
        rows.append((f"effective rank of {name}", spread.get("effective_rank"), f"of {most:,} at most"))
    for key, found in stored.get("hubness", {}).items():
        candidate = _shown(key, names)[1]
        chance = f"skew of how often each comes among the first {found['k']}; chance {number(found['chance_skewness'])}"
        rows.append((f"hubness of {candidate}", found["skewness"], chance))
    return [GeometryValue(name, value, reading) for name, value, reading in rows if value is not None]


def _similarities(stored: Mapping[str, Any] | None) -> Similarities | None:
    if not stored:
        return None
    kinds = {shown: stored[key] for key, shown in _KINDS.items() if stored.get(key, {}).get("n_pairs")}
    drawn = [shown for shown, found in kinds.items() if not found.get("exact", True)]
    most = max((found["n_pairs"] for found in kinds.values()), default=0)
    note = f"Of {', '.join(drawn)}: at most {most:,} pairs each, drawn at random." if drawn else ""
    return Similarities(stored["edges"], {shown: found["counts"] for shown, found in kinds.items()}, note)


def _never(found: Mapping[str, Any], candidate: str) -> str:
    return (
        f"{found['never']:.1%} of the {candidate} items come among the first {found['k']} of no query "
        f"({found['chance_never']:.1%} by chance)."
    )


def _hubs(hubness: Mapping[str, Any], names: tuple[str, str], item_of: Callable[[str, int], Item]) -> list[Hub]:
    hubs = []
    for key, found in hubness.items():
        side = "b" if key == "a_to_b" else "a"
        k, n = min(found["k"], found["n_candidates"]), found["n_queries"]
        expected = n * k / found["n_candidates"]
        for row, times in list(zip(found["top_rows"], found["top_times"], strict=True))[:_HUBS]:
            hubs.append(Hub(item_of(side, int(row)), _shown(key, names)[1], times, n, k, expected))
    return hubs


def folds_of(stored: Mapping[str, Any], names: tuple[str, str]) -> FoldResults:
    """Return the cross-validation from the entries of `folds.json`; `names` are the shown names of the sides.

    Shown are recall@k, MRR and the median rank of both directions, those of texts that training never saw as a group of
    its own, and a sentence for each direction on what difference the data could show.
    """
    measures = _fold_measures(stored["measures"], names)
    lines = [line for line in (_could_show(own) for own in _by_direction(measures).values()) if line]
    measures += [
        FoldMeasure(f"{one.query} (text unseen in training)", one.candidate, one.name, one.measure)
        for one in _fold_measures(stored.get("unseen_text") or {}, names)
    ]
    return FoldResults(
        stored["n_folds"],
        stored["n_repeats"],
        stored["n_seeds"],
        measures,
        [fold for key in DIRECTIONS for fold in _single_folds(stored, key, names)],
        lines,
    )


def _fold_measures(stored: Mapping[str, Any], names: tuple[str, str]) -> list[FoldMeasure]:
    found = []
    for key, entry in stored.items():
        side, _, name = key.partition(".")
        if name.startswith(_IN_FOLDS):
            measure = Measure(entry["value"], entry.get("low"), entry.get("high"), entry.get("chance"))
            spreads = (entry.get(part) for part in ("sd_seeds", "sd_folds", "detectable"))
            found.append(FoldMeasure(*_shown(side, names), name, measure, *spreads))
    return found


def _by_direction(measures: Sequence[FoldMeasure]) -> dict[tuple[str, str], list[FoldMeasure]]:
    groups: dict[tuple[str, str], list[FoldMeasure]] = {}
    for one in measures:
        groups.setdefault((one.query, one.candidate), []).append(one)
    return groups


def _could_show(measures: Sequence[FoldMeasure]) -> str:
    """Return what difference could be told: of the largest recall@k that has one, else nothing."""
    known = [one for one in measures if one.detectable is not None and one.name.startswith("recall@")]
    if not known:
        return ""
    one = max(known, key=lambda one: int(one.name.partition("@")[2]))
    return (
        f"{one.query} to {one.candidate}: two settings whose {measure_label(one.name)} differs by less than "
        f"{number(one.detectable)} cannot be told apart by this data."
    )


def _single_folds(stored: Mapping[str, Any], key: str, names: tuple[str, str]) -> list[Fold]:
    several = stored["n_repeats"] > 1
    found = []
    for fold in stored.get("per_fold") or []:
        values = {name.partition(".")[2]: value for name, value in fold["values"].items() if name.startswith(f"{key}.")}
        shown = {name: value for name, value in values.items() if name.startswith(_IN_FOLDS)}
        title = f"{fold['repeat'] + 1}.{fold['fold'] + 1}" if several else str(fold["fold"] + 1)
        found.append(Fold(title, *_shown(key, names), fold["n_queries"][key], fold["pool"][key], shown))
    return found


def costs_of(stored: Mapping[str, Mapping[str, Any]]) -> list[StageCost]:
    """Return what the stages took from stage -> `seconds` and `peak_bytes`, as `costs.json` has them."""
    return [StageCost(stage, cost.get("seconds"), cost.get("peak_bytes")) for stage, cost in stored.items()]


def _shown(side: str, names: tuple[str, str]) -> tuple[str, str]:
    return (names[0], names[1]) if side == "a_to_b" else (names[1], names[0])
