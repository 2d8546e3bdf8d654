"""The findings of a run as a table to read. This module is not about what was found (`stage`)."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from bridgehead.audits import Finding
from bridgehead.audits.finding import Verdict

VERDICTS: tuple[Verdict, ...] = ("fail", "warn", "pass")
"""The verdicts, worst first."""
_SHOWN = 3


def audit_lines(findings: Sequence[Finding], skipped: Sequence[dict[str, str]], seconds: float) -> list[str]:
    """Return the findings as a table to print, failed ones first, with what each that does not pass means.

    Under those that do not pass stands the first of the cases behind them; all that are kept are in `audit.json`. Then
    come the audits that did not run, with what they would need.
    """
    counts = Counter(finding.verdict for finding in findings)
    said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS)
    lines = [f"{len(findings)} claims, {seconds:.0f} s: {said}", ""]
    ordered = sorted(findings, key=lambda finding: VERDICTS.index(finding.verdict))
    rows = [("", "about", "claim", "value", "s"), *(_cells(finding) for finding in ordered)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row, finding in zip(rows, [None, *ordered], strict=True):
        expected = "expected" if finding is None else finding.expected
        text, numbers = row[:3], row[3:]
        aligned = [cell.ljust(width) for cell, width in zip(text, widths[:3], strict=True)]
        aligned += [cell.rjust(width) for cell, width in zip(numbers, widths[3:], strict=True)]
        lines.append(f"{'  '.join(aligned)}  {expected}")
        if finding is not None and finding.verdict != "pass":
            lines += [f"      {line}" for line in _why(finding)]
    if skipped:
        lines += ["", "not looked at:", *(f"  {one['name']}: {one['reason']}" for one in skipped)]
    return lines


def _cells(finding: Finding) -> tuple[str, str, str, str, str]:
    cost = "" if finding.seconds is None else f"{finding.seconds:.1f}"
    return finding.verdict.upper(), finding.group, finding.name, f"{finding.value:.4g}", cost


def _why(finding: Finding) -> list[str]:
    lines = [finding.why]
    listed = finding.listed
    if listed is not None and listed.rows:
        cases = ["; ".join(_named(listed.columns, row)) for row in listed.rows[:_SHOWN]]
        lines += [f"- {case}" for case in cases]
        if listed.total > len(cases):
            lines.append(f"- and {listed.total - len(cases):,} more, the worst {len(listed.rows)} in audit.json")
    return lines


def _named(columns: Sequence[str], row: Sequence[Any]) -> list[str]:
    return [f"{column} {cell}" for column, cell in zip(columns, row, strict=True) if cell not in ("", None)]
