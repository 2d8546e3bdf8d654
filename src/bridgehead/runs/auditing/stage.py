"""The stage audit: run the audits that apply, one after another, and keep what they found (`audit.json`).

This module is not about what they look at (`registry`) or how they are shown on a page (`reporting`).
"""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bridgehead.audits import Finding
from bridgehead.errors import BridgeheadError, ColumnError, ConfigError, RunStateError
from bridgehead.runs.auditing.applicable import NotApplicable
from bridgehead.runs.auditing.items import further_columns
from bridgehead.runs.auditing.registry import Audit, all_audits
from bridgehead.runs.auditing.table import VERDICTS, audit_lines
from bridgehead.runs.folder import RunFolder, stage_key
from bridgehead.runs.work import Work


def audit(work: Work) -> dict[str, Any]:
    """Run the audits of a run that is evaluated, and return the record.

    `findings` are entries of `Finding`, each with the seconds that it cost (an audit's shared among its findings),
    `skipped` the audits that did not run with the reason, `counts` how many findings have each verdict, `costs` the
    seconds of each audit and `seconds` those of all of it, `controls` those that train and were asked for. An audit
    that cannot do its work (too little data, a missing extra) is skipped with the reason and stops no other. Raises
    `ConfigError` where `audit.skip` names none, and `ColumnError` where `audit.columns` does.
    """
    run = work.run
    key = audit_key(run, work.controls)
    if found := run.done("audit", key):
        return found
    # Controls that were trained for an earlier call are more than is asked for now, and no reason to look again.
    if (found := current_audit(run)) and set(work.controls) <= set(found.get("controls", ())):
        return found
    wanted, skipped = wanted_of(work)
    _prepare(work)
    started = time.monotonic()
    findings: list[Finding] = []
    costs: dict[str, float] = {}
    for one in wanted:
        work.progress("audit", one.name, None, None)
        begun = time.monotonic()
        try:
            looked = _looked(one, work)
        except (NotApplicable, BridgeheadError, MemoryError) as error:
            looked = []
            skipped.append({"name": one.name, "reason": str(error) or "there is not enough memory for it"})
        costs[one.name] = round(time.monotonic() - begun, 2)
        each = round(costs[one.name] / max(1, len(looked)), 3)
        findings += [replace(_shown(finding, run.config.pairs.shown), seconds=each) for finding in looked]
    seconds = round(time.monotonic() - started, 2)
    content = {
        "findings": [_plain(finding.to_dict()) for finding in findings],
        "skipped": skipped,
        "counts": {verdict: Counter(f.verdict for f in findings)[verdict] for verdict in VERDICTS},
        "seconds": seconds,
        "costs": costs,
        "controls": list(work.controls),
    }
    return run.finish("audit", key, {**content, "lines": audit_lines(findings, skipped, seconds)})


def _looked(one: Audit, work: Work) -> list[Finding]:
    """Run an audit, its products of small matrices on one thread: the same on any machine, and quick on a busy one."""
    if one.control is not None:
        return one.look(work)
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        return one.look(work)


def _shown(finding: Finding, names: tuple[str, str]) -> Finding:
    """Return a finding whose direction is said in the names of the sides, which audits do not know."""
    a, b = names
    said = finding.name.replace("a_to_b.", f"{a} -> {b}, ").replace("b_to_a.", f"{b} -> {a}, ")
    return replace(finding, name=said)


def audit_key(run: RunFolder, controls: Sequence[str] | None = None) -> str:
    """Return the key that the audits of the evaluation in the folder have; raises as `RunFolder.record`.

    `controls` are those that train and were asked for (default: those of the config).
    """
    config = run.config
    asked = config.audit.controls if controls is None else controls
    return stage_key(
        run.record("evaluate")["key"],
        run.record("check")["key"],
        {**config.audit.model_dump(), "controls": sorted(set(asked))},
        [config.evaluate.slices, config.pairs.group, config.pairs.names],
        [one.name for one in all_audits()],
    )


def current_audit(run: RunFolder) -> dict[str, Any] | None:
    """Return the record of the audits where it is of the evaluation in the folder, whichever controls it has."""
    try:
        record = run.record("audit")
    except RunStateError:
        return None
    return record if record["key"] == audit_key(run, record.get("controls")) else None


def stored_findings(run: RunFolder) -> list[Finding]:
    """Return the findings of an audited run; raises as `RunFolder.record`."""
    return [Finding.of(entry) for entry in run.record("audit")["findings"]]


def wanted_of(work: Work) -> tuple[list[Audit], list[dict[str, str]]]:
    """Return the audits that run, and those that do not because nobody asked or because they were declined.

    Nothing but the table is looked at. Raises `ConfigError` and `ColumnError` as `audit`.
    """
    settings, audits = work.run.config.audit, all_audits()
    names = [one.name for one in audits]
    if unknown := [name for name in settings.skip if name not in names]:
        raise ConfigError(f"audit.skip names {', '.join(map(repr, unknown))}; the audits are {', '.join(names)}")
    columns = further_columns(work.prepared.table)
    if unknown := [name for name in settings.columns if name not in columns]:
        raise ColumnError(
            f"audit.columns: no further column {', '.join(map(repr, unknown))}; those beside the sides and the id are "
            f"{', '.join(columns) or 'none'}"
        )
    found, skipped = [], []
    for one in audits:
        if one.name in settings.skip:
            skipped.append({"name": one.name, "reason": "left out by audit.skip"})
        elif one.control is not None and one.control not in work.controls:
            skipped.append({"name": one.name, "reason": f"trains again; ask for it with --controls {one.control!r}"})
        else:
            found.append(one)
    return found, skipped


def _prepare(work: Work) -> None:
    """Make what audits share before any of them is timed: rows, and the evaluation that they are held against."""
    work.progress("audit", "rows and ranks", None, None)
    _ = work.start, work.evaluation


def _plain(value: Any) -> Any:
    """Return the entries of a finding as JSON gives them back: lists for tuples, plain numbers for those of numpy."""
    if isinstance(value, dict):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value
