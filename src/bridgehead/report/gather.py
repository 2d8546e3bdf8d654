"""From what the stages found to what a report shows: curves, directions, controls and the data check.

Takes the stages' records, or the JSON that they were stored as. This module is not about how anything looks.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from bridgehead import audits
from bridgehead.evaluate import DirectionReport, RetrievalReport
from bridgehead.report.content import Control, Curves, DataCheck, Direction, Field, Measure, PoolCurve, Table
from bridgehead.report.wording import count

_LISTED = 50
_SHOWN_IDS = 20


def curves_of(history: Sequence[Mapping[str, Any]], best_epoch: int | None = None) -> Curves:
    """Return the curves of a training's history, one mapping an epoch; a key that an epoch lacks drops its curve."""

    def column(name: str) -> list[float]:
        return [line[name] for line in history] if all(name in line for line in history) else []

    return Curves(
        epoch=[int(line["epoch"]) for line in history],
        loss=column("loss"),
        chance_loss=column("chance_loss"),
        valid_mrr=column("valid_mrr"),
        valid_recall=column("valid_recall@10"),
        logit_scale=column("logit_scale"),
        best_epoch=best_epoch,
    )


def direction_of(
    report: DirectionReport,
    query: str,
    candidate: str,
    baseline: Mapping[str, Measure] | None = None,
    closed_form: Mapping[str, Measure] | None = None,
    pools: Sequence[PoolCurve] = (),
) -> Direction:
    """Return what is shown of one direction of a retrieval report, `query` and `candidate` being the shown names.

    `baseline` are the figures of the untrained baseline in the same direction, `closed_form` those of the linear maps
    (see `stored_measures`), `pools` the curves of recall by the size of the pool (see `pools_of`). recall_all@k and
    ndcg@k are left to the file of metrics: a table that says everything is read by nobody.
    """
    return Direction(
        query=query,
        candidate=candidate,
        n_queries=report.n_queries,
        n_candidates=report.n_candidates,
        measures=_measures(report),
        baseline=baseline or {},
        ranks=report.ranks,
        n_true=report.n_true,
        n_without_truth=report.n_without_truth,
        n_ties=report.n_ties,
        closed_form=closed_form or {},
        corrected=report.corrected,
        pools=pools,
        pool=report.pool,
        n_true_missing=report.n_true_missing,
    )


def stored_measures(stored: Mapping[str, Any], side: Literal["a_to_b", "b_to_a"]) -> dict[str, Measure]:
    """Return the figures of one direction from a report as it is stored (`RetrievalReport.to_dict`).

    They are those that `direction_of` takes from the report itself; none where the record has no figures.
    """
    start = f"{side}.chance_"
    names = [key.removeprefix(start) for key in stored if key.startswith(start) and not key.endswith((".low", ".high"))]
    own = {name: (stored[f"{side}.{name}"], stored[f"{side}.chance_{name}"]) for name in names if _is_shown(name)}
    return {
        name: Measure(value, stored.get(f"{side}.{name}.low"), stored.get(f"{side}.{name}.high"), chance)
        for name, (value, chance) in own.items()
    }


def _measures(report: DirectionReport) -> dict[str, Measure]:
    measures = {}
    for name, value in report.values.items():
        if _is_shown(name):
            low, high = report.interval.get(name, (None, None))
            measures[name] = Measure(value, low, high, report.chance.get(name))
    return measures


def _is_shown(name: str) -> bool:
    return not name.startswith(("recall_all@", "ndcg@"))


def controls_of(control: audits.ShuffledControl, observed: RetrievalReport) -> list[Control]:
    """Return each metric of the shuffled-links control beside the value that the real links reached."""
    a, b = observed.names
    shown = {"a_to_b": f"{a} to {b}", "b_to_a": f"{b} to {a}"}
    return [
        Control(
            title=shown[key.partition(".")[0]],
            metric=key.partition(".")[2],
            observed=observed.value(key),
            runs=control.values[key],
            chance=control.chance[key],
            chance_high=control.bound[key],
            verdict=finding.verdict,
            why=finding.why,
        )
        # Those of the paired differences, where there are any, follow the metrics' own.
        for key, finding in zip(control.values, control.findings, strict=False)
    ]


def data_check_of(
    check: Mapping[str, Any],
    encoded: Mapping[str, Mapping[str, Any]] | None = None,
    failures: Mapping[str, Sequence[tuple[str, str]]] | None = None,
) -> DataCheck:
    """Return the data section from a stored check of the pairs (`CheckReport.to_dict()`).

    `encoded` maps the shown name of a side to its encoder's report (`EncodeReport.to_dict()`), `failures` to the
    (id, reason) of items without a row. Lists are cut to their first entries, and say how many there are.
    """
    names = {"a": check["a"]["name"], "b": check["b"]["name"]}
    tables = [
        _skipped("Records or values left out", check["skipped"], check.get("n_skipped"), names),
        _skipped("Kept without a partner (encoded and searchable, not measured)", check["unpaired"],
                 check.get("n_unpaired"), names),
    ]  # fmt: skip
    for name, report in (encoded or {}).items():
        tables += _encoding_tables(name, report)
    for name, found in (failures or {}).items():
        tables.append(Table(f"{name}: items without a row", ("id", "reason"), found[:_LISTED], total=len(found)))
    notes = [*check["notes"], *(note for report in (encoded or {}).values() for note in report.get("notes", ()))]
    return DataCheck(_counts(check), tables, notes)


def _counts(check: Mapping[str, Any]) -> list[Field]:
    counts = [("records", count(check["n_records"])), ("links", count(check["n_links"]))]
    for side in (check["a"], check["b"]):
        links = side["links_per_item"]
        parts = [
            f"{count(side['n_items'])} items",
            f"{links['mean']:.2f} links each, at most {links['most']:,.0f}",
            f"{side['characters']['median']:,.0f} characters at the median, at most {side['characters']['most']:,.0f}",
        ]
        if side["n_repeats"]:
            parts.append(f"{count(side['n_repeats'])} repeated values (one item each)")
        if side["n_same_normalised"]:
            parts.append(f"{count(side['n_same_normalised'])} that differ from another only in how they are written")
        if any(side["weak"].values()):
            kinds = ", ".join(f"{count(n)} {rule}" for rule, n in side["weak"].items() if n)
            parts.append(f"{side['weak_share']:.1%} generic or too short ({kinds})")
        if levels := side["identity"]:
            parts.append(
                f"{count(levels['exact'])} exact, {count(levels['parent'])} parent and {count(levels['skeleton'])} "
                f"skeleton identities; {count(len(levels['mixture_ids']))} mixtures, "
                f"{count(len(levels['fallback_ids']))} without an InChIKey"
            )
        counts.append((side["name"], "; ".join(parts)))
    return counts


def _skipped(title: str, records: Sequence[Mapping[str, Any]], total: int | None, names: Mapping[str, str]) -> Table:
    rows = [
        (record["row"], record["id"], names.get(record["side"], "both"), record["reason"])
        for record in records[:_LISTED]
    ]
    return Table(title, ("record", "id", "side", "reason"), rows, total=len(records) if total is None else total)


def _encoding_tables(name: str, report: Mapping[str, Any]) -> Iterable[Table]:
    def ids(title: str, found: Sequence[str], total: int, note: str) -> Table:
        return Table(f"{name}: {title}", ("id",), [(id_,) for id_ in found[:_LISTED]], note, total)

    if report["n_truncated"]:
        share = report["n_truncated"] / max(1, report["n_items"])
        yield ids("truncated", report["truncated_ids"], report["n_truncated"], f"{share:.1%}: the encoder saw a part.")
    if report["empty_ids"]:
        empty = report["empty_ids"]
        yield ids("empty rows", empty, len(empty), "Nothing in these items is known to the encoder: their cosine is 0.")
    if groups := report["identical_groups"]:
        rows = [(count(len(group)), ", ".join(group[:_SHOWN_IDS])) for group in groups[:_LISTED]]
        note = "Different items that the encoder cannot tell apart; whoever ranks them ties them."
        yield Table(f"{name}: groups of identical rows", ("items", "ids"), rows, note, len(groups))
