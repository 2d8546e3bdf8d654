"""Audits: claims about an alignment with a verdict. Arrays in, findings out; nothing here trains or loads a model."""

from bridgehead.audits.baseline import baseline_findings
from bridgehead.audits.controls.one_modality import constant_rows, frequency_report, one_modality_findings, random_rows
from bridgehead.audits.controls.one_sided import one_sided_findings
from bridgehead.audits.controls.shuffled import (
    ShuffledControl,
    shuffle_links,
    shuffle_within,
    shuffled_control,
    surviving_links,
)
from bridgehead.audits.controls.within_groups import within_groups_findings
from bridgehead.audits.data.mispairs import ScoredLinks, linear_folds, mispair_findings
from bridgehead.audits.data.order import order_findings, record_items
from bridgehead.audits.data.quality import broad_findings, generic_findings
from bridgehead.audits.data.stretches import Stretch, order_stretches
from bridgehead.audits.false_negatives.ceiling import Ceiling, ceiling_findings, recall_ceiling, row_classes
from bridgehead.audits.false_negatives.guided import guided_negative_findings
from bridgehead.audits.false_negatives.in_batch import false_negative_findings
from bridgehead.audits.finding import Finding, Listing
from bridgehead.audits.geometry_findings import geometry_findings
from bridgehead.audits.leakage.contradictions import items_of_several_entities
from bridgehead.audits.leakage.keys import key_leakage
from bridgehead.audits.leakage.near_text import near_duplicate_texts
from bridgehead.audits.leakage.rows import near_rows
from bridgehead.audits.nearest import KnownPairs, nearest_neighbour_report
from bridgehead.audits.shortcuts.columns import change_columns
from bridgehead.audits.shortcuts.drop import Drop, drop_findings, drops, masked_drop
from bridgehead.audits.shortcuts.judged import column_shortcut, length_shortcut, shortcut_findings
from bridgehead.audits.shortcuts.named import mask_names, name_shortcut
from bridgehead.audits.shortcuts.source_tag import PairedRows, TagScale, plant_tag, source_tag_findings
from bridgehead.audits.shortcuts.word_overlap import overlap_shortcut
from bridgehead.audits.training import (
    EvaluatedPart,
    collapse_findings,
    convergence_findings,
    gap_findings,
    loss_findings,
    scale_findings,
)

__all__ = [
    "Ceiling",
    "Drop",
    "EvaluatedPart",
    "Finding",
    "KnownPairs",
    "Listing",
    "PairedRows",
    "ScoredLinks",
    "ShuffledControl",
    "Stretch",
    "TagScale",
    "baseline_findings",
    "broad_findings",
    "ceiling_findings",
    "change_columns",
    "collapse_findings",
    "column_shortcut",
    "constant_rows",
    "convergence_findings",
    "drop_findings",
    "drops",
    "false_negative_findings",
    "frequency_report",
    "gap_findings",
    "generic_findings",
    "geometry_findings",
    "guided_negative_findings",
    "items_of_several_entities",
    "key_leakage",
    "length_shortcut",
    "linear_folds",
    "loss_findings",
    "mask_names",
    "masked_drop",
    "mispair_findings",
    "name_shortcut",
    "near_duplicate_texts",
    "near_rows",
    "nearest_neighbour_report",
    "one_modality_findings",
    "one_sided_findings",
    "order_findings",
    "order_stretches",
    "overlap_shortcut",
    "plant_tag",
    "random_rows",
    "recall_ceiling",
    "record_items",
    "row_classes",
    "scale_findings",
    "shortcut_findings",
    "shuffle_links",
    "shuffle_within",
    "shuffled_control",
    "source_tag_findings",
    "surviving_links",
    "within_groups_findings",
]
