"""The stage audit: run the audits that apply, one after another, and keep what they found (`audit.json`).

This module is not about what they look at (`registry`) or how they are shown on a page (`reporting`).
"""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bridgehead.audits import Finding
from bridgehead.audits.finding import Verdict
from bridgehead.errors import BridgeheadError, ConfigError
from bridgehead.runs.auditing.registry import Audit, NotApplicable, all_audits
from bridgehead.runs.folder import RunFolder, stage_key
from bridgehead.runs.work import Work

_VERDICTS: tuple[Verdict, ...] = ("fail", "warn", "pass")


def audit(work: Work) -> dict[str, Any]:
    """Run the audits of a run that is evaluated, and return the record.

    `findings` are entries of `Finding`, `skipped` the audits that did not run with the reason, `counts` how many
    findings have each verdict, `seconds` what all of it cost. An audit that cannot do its work (too little data, a
    missing extra) is skipped with the reason and stops no other. Raises `ConfigError` where `audit.skip` names none.
    """
    run = work.run
    key = audit_key(run)
    if found := run.done("audit", key):
        return found
    started = time.monotonic()
    findings: list[Finding] = []
    skipped: list[dict[str, str]] = []
    for one in _wanted(work):
        work.progress("audit", one.name, None, None)
        try:
            findings += _timed(one, work)
        except (NotApplicable, BridgeheadError, MemoryError) as error:
            skipped.append({"name": one.name, "reason": str(error) or "there is not enough memory for it"})
    seconds = round(time.monotonic() - started, 2)
    content = {
        "findings": [finding.to_dict() for finding in findings],
        "skipped": skipped,
        "counts": {verdict: Counter(f.verdict for f in findings)[verdict] for verdict in _VERDICTS},
        "seconds": seconds,
    }
    return run.finish("audit", key, {**content, "lines": audit_lines(findings, skipped, seconds)})


def audit_key(run: RunFolder) -> str:
    """Return the key that the audits of the evaluation in the folder have; raises as `RunFolder.record`."""
    config = run.config
    return stage_key(
        run.record("evaluate")["key"],
        run.record("check")["key"],
        config.audit.model_dump(),
        [one.name for one in all_audits()],
    )


def stored_findings(run: RunFolder) -> list[Finding]:
    """Return the findings of an audited run; raises as `RunFolder.record`."""
    return [Finding.of(entry) for entry in run.record("audit")["findings"]]


def _wanted(work: Work) -> list[Audit]:
    settings = work.run.config.audit
    audits = all_audits()
    names = [one.name for one in audits]
    if unknown := [name for name in settings.skip if name not in names]:
        raise ConfigError(f"audit.skip names {', '.join(map(repr, unknown))}; the audits are {', '.join(names)}")
    return [one for one in audits if one.name not in settings.skip]


def _timed(one: Audit, work: Work) -> list[Finding]:
    started = time.monotonic()
    found = one.look(work)
    each = round((time.monotonic() - started) / max(1, len(found)), 3)
    return [replace(finding, seconds=each) for finding in found]


def audit_lines(findings: Sequence[Finding], skipped: Sequence[dict[str, str]], seconds: float) -> list[str]:
    """Return the findings as a table to read, failed ones first, with what each means."""
    order = {verdict: number for number, verdict in enumerate(_VERDICTS)}
    counts = Counter(finding.verdict for finding in findings)
    lines = [
        f"{len(findings)} claims in {seconds:.0f} s: "
        + ", ".join(f"{counts[verdict]} {verdict}" for verdict in _VERDICTS)
    ]
    for finding in sorted(findings, key=lambda found: order[found.verdict]):
        lines.append(f"{finding.verdict.upper():4}  {finding.name}: {finding.value:.4g} (expected {finding.expected})")
        if finding.verdict != "pass":
            lines.append(f"      {finding.why}")
    lines += [f"not looked at: {one['name']} ({one['reason']})" for one in skipped]
    return lines
