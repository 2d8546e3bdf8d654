"""What stands behind the figures of the test part: slices, pool sizes, the shape of the space, paired differences.

Everything is computed from rows and ranks that the evaluation has; nothing trains here. This module is not about the
figures themselves (`evaluation`) or about claims with a verdict (`auditing`).
"""

from typing import Any

from bridgehead.runs.evaluation import ClosedFormEvaluation
from bridgehead.runs.work import Work


def evidence_of(work: Work, linear: ClosedFormEvaluation | None) -> dict[str, Any]:
    """Return the further results of the stage evaluate, JSON-safe."""
    return {"against": _against(work, linear)}


def evidence_lines(work: Work, evidence: dict[str, Any]) -> list[str]:
    """Return what a person should read of them."""
    return []


def _against(work: Work, linear: ClosedFormEvaluation | None) -> dict[str, Any]:
    """Return trained minus untrained on the same queries: baseline -> direction -> metric -> difference."""
    others = {"baseline": work.evaluation.baseline, "closed_form": None if linear is None else linear.all}
    return {name: {} for name, other in others.items() if other is not None}
