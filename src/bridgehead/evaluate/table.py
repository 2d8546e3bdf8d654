"""One direction's report as a table to read: pool size, intervals, chance, and what was left out or out of reach.

This module computes nothing (`record`) and knows no format but plain lines.
"""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from bridgehead.evaluate.record import DirectionReport

_RANKS = ("mean_rank", "median_rank")

NO_SPREAD = ("map", "median_rank")
"""Metrics whose spread under random ranking has no closed form here, so that chance has no interval."""


def table_lines(report: "DirectionReport", query: str, candidate: str) -> list[str]:
    """Return the table of a direction as lines, for queries and candidates of these shown names."""
    head = f"{query} -> {candidate}: {report.n_queries:,} queries, each ranks {_pool(report)} candidates"
    rows: list[tuple[str, ...]] = [("metric", "value", "95 % interval", "chance", "chance bound", "corrected")]
    rows += [_row(report, name) for name in report.values]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    table = [
        "  "
        + "  ".join(cell.rjust(w) if i else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True)))
        for row in rows
    ]
    return [head, *(f"  ({note})" for note in _notes(report)), *table]


def _pool(report: "DirectionReport") -> str:
    least, most = int(report.pool.min()), int(report.pool.max())
    if least == most == report.n_candidates:
        return f"{most:,}"
    size = f"{most:,}" if least == most else f"{least:,} to {most:,} (median {np.median(report.pool):,.0f})"
    return f"a list of {size} out of {report.n_candidates:,}"


def _notes(report: "DirectionReport") -> list[str]:
    notes = []
    if report.n_true_missing:
        notes.append(
            f"{report.n_true_missing:,} of {int(report.n_true.sum()):,} true items are not in their query's list: not "
            f"retrieved; {report.n_out_of_reach:,} {'query has' if report.n_out_of_reach == 1 else 'queries have'} none"
        )
    if report.n_without_truth:
        notes.append(f"{report.n_without_truth:,} queries without a true candidate left out")
    if report.n_ties:
        notes.append(f"{report.n_ties:,} queries with a tie at a true candidate, counted as its expectation")
    if report.interval and report.n_entities != report.n_queries:
        notes.append(f"intervals over {report.n_entities:,} entities")
    return notes


def _row(report: "DirectionReport", name: str) -> tuple[str, ...]:
    def show(value: float, digits: int = 3) -> str:
        return f"{value:.1f}" if name in _RANKS else f"{value:.{digits}f}"

    interval = "{} to {}".format(*map(show, report.interval[name])) if name in report.interval else "-"
    # For a rank, lower is better: the bound that a real result must pass is the lower one.
    better = 0 if name in _RANKS else 1
    bound = "-" if name in NO_SPREAD else show(report.chance_interval(name)[better], 4)
    corrected = show(report.corrected[name]) if name in report.corrected else "-"
    return name, show(report.values[name]), interval, show(report.chance[name], 4), bound, corrected
