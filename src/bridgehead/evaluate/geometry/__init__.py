"""The shape of a shared space: alignment, uniformity, modality gap, hubs, effective rank, histograms of cosine.

Rows and links in, numbers out. It is not about ranks (`bridgehead.evaluate.report`); a space can look well and find
nothing, and the other way round, so nothing here is a verdict.
"""

from bridgehead.evaluate.geometry.alignment import alignment_cosine, alignment_distance, uniformity
from bridgehead.evaluate.geometry.correction import GapCorrection, gap_correction, mean_shift
from bridgehead.evaluate.geometry.gap import ModalityGap, modality_gap
from bridgehead.evaluate.geometry.hubs import Hubness, hubness, k_occurrence
from bridgehead.evaluate.geometry.similarity import Histogram, SimilarityHistograms, similarity_histograms
from bridgehead.evaluate.geometry.spread import Spread, effective_rank, spread
from bridgehead.evaluate.geometry.summary import Geometry, geometry_report

__all__ = [
    "GapCorrection",
    "Geometry",
    "Histogram",
    "Hubness",
    "ModalityGap",
    "SimilarityHistograms",
    "Spread",
    "alignment_cosine",
    "alignment_distance",
    "effective_rank",
    "gap_correction",
    "geometry_report",
    "hubness",
    "k_occurrence",
    "mean_shift",
    "modality_gap",
    "similarity_histograms",
    "spread",
    "uniformity",
]
