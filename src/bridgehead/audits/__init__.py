"""Audits: claims about an alignment with a verdict. Arrays in, findings out; nothing here trains or loads a model."""

from bridgehead.audits.finding import Finding, Listing
from bridgehead.audits.nearest import KnownPairs, nearest_neighbour_report
from bridgehead.audits.shuffled import ShuffledControl, shuffle_links, shuffled_control, surviving_links

__all__ = [
    "Finding",
    "KnownPairs",
    "Listing",
    "ShuffledControl",
    "nearest_neighbour_report",
    "shuffle_links",
    "shuffled_control",
    "surviving_links",
]
