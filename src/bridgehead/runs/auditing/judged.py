"""`bridgehead.audit`: the findings of a run as a list.

This module is not about the stage itself (`stage`).
"""

from bridgehead.audits import Finding
from bridgehead.runs.auditing.stage import stored_findings
from bridgehead.runs.flow import RunLike, through
from bridgehead.runs.folder import RunFolder
from bridgehead.runs.prepare import Progress


def audit(run: RunLike, progress: Progress | None = None) -> list[Finding]:
    """Return what all audits that apply to a run found; stages before it run where they are not done.

    `run` is a run folder, a config file or a `RunConfig`. Findings come in the order of the audits; those stored in the
    folder are returned where they are of this evaluation. Which audits did not apply, and why, is in `audit.json`.
    Raises as `bridgehead.run`.
    """
    opened = RunFolder.of(run)
    through(opened, "audit", progress)
    return stored_findings(opened)
