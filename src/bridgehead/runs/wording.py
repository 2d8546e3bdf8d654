"""What the stages say: their results as lines for a terminal or a log.

This module is not about printing (`cli`) or the report (`report`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bridgehead.audits import ShuffledControl
from bridgehead.evaluate import DirectionReport
from bridgehead.pairs import CheckReport
from bridgehead.runs.config import RunConfig
from bridgehead.runs.evaluation import ClosedFormEvaluation, Evaluation, Untrained

_METHODS = {"cca": "CCA", "ridge": "ridge regression", "procrustes": "orthogonal Procrustes"}


def closed_form_name(method: str) -> str:
    """Return what a closed form of the config is called where people read: "cca" is CCA, no training."""
    return f"{_METHODS.get(method, method)}, no training"


def check_lines(report: CheckReport, content: Mapping[str, Any], config: RunConfig) -> list[str]:
    """Return the check of the pairs, the split and what is left out of training."""
    a, b = config.pairs.shown
    lines = report.lines()
    split = content["split"]
    held = {"a": a, "b": b, "both": f"{a} and {b}"}[split["hold_out"]]
    lines.append(f"split by entities of {held}, seed {split['seed']}:")
    for part, counts in split["counts"].items():
        lines.append(
            f"  {part:<6} {counts['entities']:>7,} entities  {counts['a']:>7,} {a}  {counts['b']:>7,} {b}  "
            f"{counts['links']:>8,} links"
        )
    lines += [f"  {note}" for note in split["notes"]]
    if content["n_links_dropped"]:
        lines.append(
            f"quality = drop: {content['n_links_dropped']:,} training links of generic or too short texts left out"
        )
    return lines


def encode_lines(content: Mapping[str, Any], config: RunConfig) -> list[str]:
    """Return a line or more for each side: encoder, columns, and what it could not read or tell apart."""
    lines = []
    for side, name in zip(("a", "b"), config.pairs.shown, strict=True):
        facts, report = content[side], content[side]["report"]
        lines.append(
            f"{name}: {facts['encoder']}, {report['n_rows']:,} of {report['n_items']:,} items have a row of "
            f"{facts['n_columns']:,} columns"
        )
        if facts["failures"]:
            shown = "; ".join(f"{id_}: {reason}" for id_, reason in facts["failures"][:3])
            lines.append(
                f"  {len(facts['failures']):,} without a row ({shown}{' ...' if len(facts['failures']) > 3 else ''})"
            )
        if report["n_truncated"]:
            share = report["n_truncated"] / max(1, report["n_items"])
            lines.append(f"  {report['n_truncated']:,} truncated ({share:.1%}): the encoder saw only a part of them")
        if report["unknown_share"]:
            lines.append(f"  {report['unknown_share']:.1%} of what they hold is unknown to the encoder")
        if report["empty_ids"]:
            lines.append(f"  {len(report['empty_ids']):,} rows are empty: nothing in these items is known")
        if report["identical_groups"]:
            n_items = sum(map(len, report["identical_groups"]))
            lines.append(
                f"  {n_items:,} different items share {len(report['identical_groups']):,} rows: the encoder cannot "
                "tell them apart, and they will be tied"
            )
        lines += [f"  {note}" for note in report["notes"]]
    return lines


def train_lines(content: Mapping[str, Any]) -> list[str]:
    """Return how training went."""
    best = content["history"][content["best_epoch"] - 1]
    valid = f", valid MRR {best['valid_mrr']:.3f}" if "valid_mrr" in best else ""
    # A loss that masks candidates has no closed form for random rows.
    chance = f" (random rows {best['chance_loss']:.3f})" if "chance_loss" in best else ""
    return [
        f"{content['epochs']} epochs in {content['seconds']:.0f} s; kept epoch {content['best_epoch']}: loss "
        f"{best['loss']:.3f}{chance}{valid}, logit_scale {best['logit_scale']:.1f} "
        f"(temperature {best['temperature']:.4f})",
        *content["notes"],
    ]


def evaluate_lines(
    measured: Evaluation, simple: Untrained, linear: ClosedFormEvaluation | None, control: ShuffledControl | None
) -> list[str]:
    """Return the main figures of an evaluation, each beside those of the baselines and chance, and the verdict of the
    control. `simple` is the untrained baseline; `linear` and `control` are None where they were not asked for.

    The file of metrics holds all figures.
    """
    a, b = measured.all.names
    fitted = None if linear is None else linear.all
    tables = [
        _Beside(a, b, measured.all.a_to_b, simple.all.a_to_b, None if fitted is None else fitted.a_to_b),
        _Beside(b, a, measured.all.b_to_a, simple.all.b_to_a, None if fitted is None else fitted.b_to_a),
    ]
    lines = ["test part, all queries:", *tables[0].table(), *tables[1].table()]
    if measured.unseen is not None and simple.unseen is not None:
        strict = None if linear is None or linear.unseen is None else linear.unseen.b_to_a
        tables.append(_Beside(b, a, measured.unseen.b_to_a, simple.unseen.b_to_a, strict))
        lines += [f"only queries whose {b} never occurred in training:", *tables[-1].table()]
    lines.append("intervals: 95 %, by entity; untrained: ranks by the most similar training items; more: metrics.json")
    if linear is not None:
        lines += [f"closed form: {closed_form_name(linear.method)}", *(f"  {note}" for note in linear.notes)]
    return lines if control is None else [*lines, *control.lines()]


@dataclass(frozen=True, eq=False)
class _Beside:
    """One direction of an evaluation, with that of the baselines on the same queries and pool."""

    query: str
    candidate: str
    trained: DirectionReport
    untrained: DirectionReport
    fitted: DirectionReport | None

    def table(self) -> list[str]:
        """Return a head line and a line for each measure; what was not measured has no column."""
        found = self.trained
        # With lists each query ranks its own, however many candidates there are.
        least, most = int(found.pool.min()), int(found.pool.max())
        ranked = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        lines = [f"  {self.query} to {self.candidate}: {found.n_queries:,} queries, each ranks {ranked}"]
        fitted = "" if self.fitted is None else f"  {'closed form':>11}"
        lines.append(f"    {'':<12} {'value':>7}  {'95 % interval':>16}  {'untrained':>9}{fitted}  {'chance':>7}")
        for name in [f"recall@{k}" for k in found.ks] + ["mrr", "median_rank"]:
            digits = 1 if name == "median_rank" else 3
            low_high = found.interval.get(name)
            interval = "-" if low_high is None else f"{low_high[0]:.{digits}f} to {low_high[1]:.{digits}f}"
            fitted = "" if self.fitted is None else f"  {self.fitted.values[name]:>11.{digits}f}"
            lines.append(
                f"    {name:<12} {found.values[name]:>7.{digits}f}  {interval:>16}  "
                f"{self.untrained.values[name]:>9.{digits}f}{fitted}  {found.chance[name]:>7.{digits}f}"
            )
        return lines
