"""Evaluation: exact ranks in bounded memory, metrics on ranks with interval and chance. Sees rows, never a model."""

from bridgehead.evaluate.alignment_metrics import AlignmentMetrics
from bridgehead.evaluate.record import DirectionReport, RetrievalReport
from bridgehead.evaluate.report import report_from_scores, retrieval_report

__all__ = ["AlignmentMetrics", "DirectionReport", "RetrievalReport", "report_from_scores", "retrieval_report"]
