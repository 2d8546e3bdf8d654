"""Audits: claims about an alignment with a verdict. Arrays in, findings out; nothing here trains or loads a model."""

from bridgehead.audits.baseline import baseline_findings
from bridgehead.audits.ceiling import Ceiling, ceiling_findings, recall_ceiling, row_classes
from bridgehead.audits.contradictions import items_of_several_entities
from bridgehead.audits.false_negatives import false_negative_findings
from bridgehead.audits.finding import Finding, Listing
from bridgehead.audits.guided_negatives import guided_negative_findings
from bridgehead.audits.leakage import key_leakage
from bridgehead.audits.near_text import near_duplicate_texts
from bridgehead.audits.nearest import KnownPairs, nearest_neighbour_report
from bridgehead.audits.one_modality import constant_rows, frequency_report, one_modality_findings
from bridgehead.audits.one_sided import one_sided_findings
from bridgehead.audits.order import order_findings, record_items
from bridgehead.audits.row_leakage import near_rows
from bridgehead.audits.shuffled import (
    ShuffledControl,
    shuffle_links,
    shuffle_within,
    shuffled_control,
    surviving_links,
)
from bridgehead.audits.stretches import Stretch, order_stretches
from bridgehead.audits.within_groups import within_groups_findings

__all__ = [
    "Ceiling",
    "Finding",
    "KnownPairs",
    "Listing",
    "ShuffledControl",
    "Stretch",
    "baseline_findings",
    "ceiling_findings",
    "constant_rows",
    "false_negative_findings",
    "frequency_report",
    "guided_negative_findings",
    "items_of_several_entities",
    "key_leakage",
    "near_duplicate_texts",
    "near_rows",
    "nearest_neighbour_report",
    "one_modality_findings",
    "one_sided_findings",
    "order_findings",
    "order_stretches",
    "recall_ceiling",
    "record_items",
    "row_classes",
    "shuffle_links",
    "shuffle_within",
    "shuffled_control",
    "surviving_links",
    "within_groups_findings",
]
