"""Evaluation: exact ranks in bounded memory, metrics on ranks with interval and chance. Sees rows, never a model."""

from bridgehead.evaluate.record import DirectionReport, RetrievalReport
from bridgehead.evaluate.report import report_from_scores, retrieval_report

__all__ = ["DirectionReport", "RetrievalReport", "report_from_scores", "retrieval_report"]
