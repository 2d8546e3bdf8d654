"""What controls that train found, kept in the run folder: hours of training are not done again for a page.

This module is not about what they train (`controls`).
"""

from collections.abc import Callable
from typing import Any

from bridgehead.audits import Finding
from bridgehead.errors import BridgeheadError
from bridgehead.files import read_json, write_json
from bridgehead.runs.folder import stage_key
from bridgehead.runs.work import Work

CONTROLS_FILE = "controls.json"
_FORMAT = "bridgehead-controls"


def kept(work: Work, name: str, look: Callable[[], list[Finding]]) -> list[Finding]:
    """Return what the control `name` found for the evaluated model, from `controls.json` or by `look`."""
    run = work.run
    key = stage_key(run.record("evaluate")["key"], run.record("check")["key"], run.config.audit.control_seeds)
    stored = _stored(run.path(CONTROLS_FILE))
    if name in stored and stored[name]["key"] == key:
        return [Finding.of(entry) for entry in stored[name]["findings"]]
    found = look()
    of_model = {other: entry for other, entry in stored.items() if entry["key"] == key}
    entries = {**of_model, name: {"key": key, "findings": [finding.to_dict() for finding in found]}}
    write_json(run.path(CONTROLS_FILE), {"controls": entries}, _FORMAT)
    return found


def _stored(path: Any) -> dict[str, Any]:
    try:
        return dict(read_json(path, _FORMAT)["controls"])
    except (BridgeheadError, KeyError, TypeError, ValueError):
        return {}
