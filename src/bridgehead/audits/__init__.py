"""Audits: claims about an alignment with a verdict. Arrays in, findings out; nothing here trains or loads a model."""

from bridgehead.audits.finding import Finding, Listing
from bridgehead.audits.nearest import KnownPairs, nearest_neighbour_report
from bridgehead.audits.order import order_findings, record_items
from bridgehead.audits.shuffled import ShuffledControl, shuffle_links, shuffled_control, surviving_links
from bridgehead.audits.stretches import Stretch, order_stretches

__all__ = [
    "Finding",
    "KnownPairs",
    "Listing",
    "ShuffledControl",
    "Stretch",
    "nearest_neighbour_report",
    "order_findings",
    "order_stretches",
    "record_items",
    "shuffle_links",
    "shuffled_control",
    "surviving_links",
]
