"""Evaluation: exact ranks in bounded memory, metrics on ranks with interval and chance. Sees rows, never a model."""

from bridgehead.evaluate.alignment_metrics import AlignmentMetrics
from bridgehead.evaluate.candidate_lists import choose_among, within_tolerance
from bridgehead.evaluate.cliffs import Cliffs, activity_cliffs
from bridgehead.evaluate.detectable import detectable_difference, power_of
from bridgehead.evaluate.folds import CorrectedDifference, FoldSpread, corrected_difference, fold_spread
from bridgehead.evaluate.grouped import GroupedReports, grouped_reports
from bridgehead.evaluate.paired import PairedDifference, compare_reports, paired_difference
from bridgehead.evaluate.pool_size import PoolPoint
from bridgehead.evaluate.record import DirectionReport, RetrievalReport
from bridgehead.evaluate.report import report_from_scores, retrieval_report
from bridgehead.evaluate.similarity import nearest_similarity
from bridgehead.evaluate.slices import Bins, Slice, length_bins, quintiles, slice_report

__all__ = [
    "AlignmentMetrics",
    "Bins",
    "Cliffs",
    "CorrectedDifference",
    "DirectionReport",
    "FoldSpread",
    "GroupedReports",
    "PairedDifference",
    "PoolPoint",
    "RetrievalReport",
    "Slice",
    "activity_cliffs",
    "choose_among",
    "compare_reports",
    "corrected_difference",
    "detectable_difference",
    "fold_spread",
    "grouped_reports",
    "length_bins",
    "nearest_similarity",
    "paired_difference",
    "power_of",
    "quintiles",
    "report_from_scores",
    "retrieval_report",
    "slice_report",
    "within_tolerance",
]
