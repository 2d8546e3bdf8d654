"""`bridgehead.audit`: the findings of a run as a list.

This module is not about the stage itself (`stage`).
"""

from collections.abc import Sequence

from bridgehead.audits import Finding
from bridgehead.runs import flow
from bridgehead.runs.auditing.stage import stored_findings
from bridgehead.runs.flow import RunLike
from bridgehead.runs.folder import RunFolder
from bridgehead.runs.prepare import Progress


def audit(run: RunLike, progress: Progress | None = None, controls: Sequence[str] | None = None) -> list[Finding]:
    """Return what all audits that apply to a run found; stages before it run where they are not done.

    `run` is a run folder, a config file or a `RunConfig`. Findings come in the order of the audits; those stored in the
    folder are returned where they are of this evaluation. Which audits did not apply, and why, is in `audit.json`.
    `controls` are those that train again ("within", "one modality", "one-sided", "source tag") where they are not those
    of the config. Raises as `bridgehead.run`, and `ArgumentError` for an unknown control.
    """
    opened = RunFolder.of(run)
    flow.audit(opened, progress, controls)
    return stored_findings(opened)
