"""Audits: claims about an alignment with a verdict. Arrays in, findings out; nothing here trains or loads a model."""

from bridgehead.audits.ceiling import Ceiling, ceiling_findings, recall_ceiling, row_classes
from bridgehead.audits.contradictions import items_of_several_entities
from bridgehead.audits.false_negatives import false_negative_findings
from bridgehead.audits.finding import Finding, Listing
from bridgehead.audits.guided_negatives import guided_negative_findings
from bridgehead.audits.leakage import key_leakage
from bridgehead.audits.near_text import near_duplicate_texts
from bridgehead.audits.nearest import KnownPairs, nearest_neighbour_report
from bridgehead.audits.order import order_findings, record_items
from bridgehead.audits.row_leakage import near_rows
from bridgehead.audits.shuffled import ShuffledControl, shuffle_links, shuffled_control, surviving_links
from bridgehead.audits.stretches import Stretch, order_stretches

__all__ = [
    "Ceiling",
    "Finding",
    "KnownPairs",
    "Listing",
    "ShuffledControl",
    "Stretch",
    "ceiling_findings",
    "false_negative_findings",
    "guided_negative_findings",
    "items_of_several_entities",
    "key_leakage",
    "near_duplicate_texts",
    "near_rows",
    "nearest_neighbour_report",
    "order_findings",
    "order_stretches",
    "recall_ceiling",
    "record_items",
    "row_classes",
    "shuffle_links",
    "shuffled_control",
    "surviving_links",
]
