"""What the stages say: their results as lines for a terminal or a log.

This module is not about printing (`cli`) or the report (`report`).
"""

from collections.abc import Mapping
from typing import Any

from bridgehead.audits import ShuffledControl
from bridgehead.evaluate import DirectionReport
from bridgehead.pairs import CheckReport
from bridgehead.runs.config import RunConfig
from bridgehead.runs.evaluation import Evaluation


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
    return [
        f"{content['epochs']} epochs in {content['seconds']:.0f} s; kept epoch {content['best_epoch']}: loss "
        f"{best['loss']:.3f} (random rows {best['chance_loss']:.3f}){valid}, logit_scale {best['logit_scale']:.1f} "
        f"(temperature {best['temperature']:.4f})",
        *content["notes"],
    ]


def evaluate_lines(measured: Evaluation, control: ShuffledControl | None) -> list[str]:
    """Return the main figures of an evaluation, each beside the baseline's and chance, and the verdict of the control.

    The file of metrics holds all of them.
    """
    a, b = measured.all.names
    found, baseline = measured.all, measured.baseline
    lines = ["test part, all queries:", *_table(found.a_to_b, baseline.a_to_b, a, b)]
    lines += _table(found.b_to_a, baseline.b_to_a, b, a)
    if measured.unseen is not None and measured.baseline_unseen is not None:
        lines.append(f"only queries whose {b} never occurred in training:")
        lines += _table(measured.unseen.b_to_a, measured.baseline_unseen.b_to_a, b, a)
    lines.append(
        "intervals: 95 %, by entity; untrained: ranks by the most similar training items; metrics.json has more"
    )
    return lines if control is None else [*lines, *control.lines()]


def _table(found: DirectionReport, baseline: DirectionReport, query: str, candidate: str) -> list[str]:
    names = [f"recall@{k}" for k in found.ks] + ["mrr", "median_rank"]
    rows = [("", "value", "95 % interval", "untrained", "chance")]
    for name in names:
        digits = 1 if name == "median_rank" else 3
        low_high = found.interval.get(name)
        interval = "-" if low_high is None else f"{low_high[0]:.{digits}f} to {low_high[1]:.{digits}f}"
        values = (found.values[name], baseline.values[name], found.chance[name])
        value, untrained, chance = (f"{number:.{digits}f}" for number in values)
        rows.append((name, value, interval, untrained, chance))
    return [
        f"  {query} to {candidate}: {found.n_queries:,} queries, each ranks {found.n_candidates:,}",
        *(f"    {name:<12} {value:>7}  {interval:>16}  {untrained:>9}  {chance:>7}"
          for name, value, interval, untrained, chance in rows),
    ]  # fmt: skip
