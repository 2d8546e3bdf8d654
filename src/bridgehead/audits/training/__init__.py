"""Audits of a training: what its history and the rows it ended with say of scale, loss, collapse, gap and convergence.

A history is a list of dicts, one an epoch: the lines of `history.jsonl`, or those that `train_alignment` returns. What
a line does not hold is not judged. This folder is not about controls that train again (`controls`).
"""

from bridgehead.audits.training.collapse import collapse_findings
from bridgehead.audits.training.convergence import convergence_findings
from bridgehead.audits.training.gap import EvaluatedPart, gap_findings
from bridgehead.audits.training.loss import loss_findings
from bridgehead.audits.training.scale import scale_findings

__all__ = [
    "EvaluatedPart",
    "collapse_findings",
    "convergence_findings",
    "gap_findings",
    "loss_findings",
    "scale_findings",
]
