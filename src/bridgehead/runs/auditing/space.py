"""The shape of a run's space, and what training adds to scorers without training.

This module is not about how either is measured (`runs.evidence`) or judged (`audits`).
"""

from typing import Any

from bridgehead.audits import Finding, geometry_findings
from bridgehead.audits.baseline import judged_differences
from bridgehead.evaluate.paired import PairedDifference
from bridgehead.runs.auditing.applicable import NotApplicable
from bridgehead.runs.auditing.items import ids_of
from bridgehead.runs.evidence import DIRECTIONS
from bridgehead.runs.wording import closed_form_name
from bridgehead.runs.work import Work


def geometry(work: Work) -> list[Finding]:
    """Look at true pairs against random ones, the gap between the sides, and hubs."""
    test = work.part("test")
    found, correction = work.space
    return geometry_findings(found, correction, ids_of(work, "a", test.items_a), ids_of(work, "b", test.items_b))


def neighbours(work: Work) -> list[Finding]:
    """Hold the trained model against looking up the most similar training items."""
    record, settings = work.run.record("evaluate"), work.run.config.evaluate
    stored = record["against"]["baseline"]
    wanted = [f"{side}.{metric}" for side in DIRECTIONS for metric in (f"recall@{max(settings.ks)}", "mrr")]
    return judged_differences({key: _difference(stored[key]) for key in wanted}, "the nearest training neighbours")


def closed_form(work: Work) -> list[Finding]:
    """Hold the trained model against the linear map without training that the evaluation fitted."""
    record, settings = work.run.record("evaluate"), work.run.config.evaluate
    stored = record["against"].get("closed_form")
    if stored is None:
        notes = (record.get("closed_form") or {}).get("notes") or ["evaluate.closed_form = 'none'"]
        raise NotApplicable(f"no linear map was fitted: {notes[0]}")
    wanted = [f"{side}.{metric}" for side in DIRECTIONS for metric in (f"recall@{max(settings.ks)}", "mrr")]
    called = f"linear maps ({closed_form_name(record['closed_form']['method'])})"
    return judged_differences({key: _difference(stored[key]) for key in wanted}, called)


def _difference(stored: dict[str, Any]) -> PairedDifference:
    """Return a paired difference from its entries in the record of the evaluation."""
    fields = {name: stored[name] for name in stored if name not in ("low", "high", "sd")}
    return PairedDifference(**fields, interval=None if stored["low"] is None else (stored["low"], stored["high"]))
