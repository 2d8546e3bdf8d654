"""Zero-shot classification: items are put to the nearest of some described classes, without training on them.

Rows of items and of prompts in; answers, accuracy with chance, calibration, abstention, and how all of it moves with
the candidates out. Zero-shot means that no weight was changed for these classes: not that the concepts were absent from
training, nor that nobody chose the classes and wrote their descriptions. It sees rows, never a model;
`bridgehead.search` encodes.
"""

from bridgehead.evaluate.zero_shot.abstention import (
    AbstentionRule,
    CoveragePoint,
    calibrate_abstention,
    coverage_curve,
)
from bridgehead.evaluate.zero_shot.answers import NONE_OF_THESE, ClassifiedRows, classify_rows
from bridgehead.evaluate.zero_shot.calibration import Calibration, CalibrationBin, calibration_error
from bridgehead.evaluate.zero_shot.prompts import Prompts, prompts_of
from bridgehead.evaluate.zero_shot.prototypes import class_prototypes
from bridgehead.evaluate.zero_shot.record import NONE_LABEL, Abstained, ClassFigures, ZeroShotReport
from bridgehead.evaluate.zero_shot.report import zero_shot_report
from bridgehead.evaluate.zero_shot.sensitivity import (
    CandidateSet,
    Sensitivity,
    candidate_set_sensitivity,
    prompt_sets,
)

__all__ = [
    "NONE_LABEL",
    "NONE_OF_THESE",
    "Abstained",
    "AbstentionRule",
    "Calibration",
    "CalibrationBin",
    "CandidateSet",
    "ClassFigures",
    "ClassifiedRows",
    "CoveragePoint",
    "Prompts",
    "Sensitivity",
    "ZeroShotReport",
    "calibrate_abstention",
    "calibration_error",
    "candidate_set_sensitivity",
    "class_prototypes",
    "classify_rows",
    "coverage_curve",
    "prompt_sets",
    "prompts_of",
    "zero_shot_report",
]
