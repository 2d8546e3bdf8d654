"""The report of a run and its model card: plain data in, one HTML file and one Markdown file out.

Owns what they say and how they look. Not about measuring (`evaluate`, `audits`) or about which run the content is from
(`runs`).
"""

from bridgehead.report.card import CardContent, render_card, write_card
from bridgehead.report.content import (
    Answer,
    Attribution,
    Control,
    Curves,
    DataCheck,
    Direction,
    Example,
    ExampleHit,
    Heatmap,
    Measure,
    QuerySet,
    ReportContent,
    Table,
)
from bridgehead.report.gather import controls_of, curves_of, data_check_of, direction_of, stored_measures
from bridgehead.report.html import render_report, write_report

__all__ = [
    "Answer",
    "Attribution",
    "CardContent",
    "Control",
    "Curves",
    "DataCheck",
    "Direction",
    "Example",
    "ExampleHit",
    "Heatmap",
    "Measure",
    "QuerySet",
    "ReportContent",
    "Table",
    "controls_of",
    "curves_of",
    "data_check_of",
    "direction_of",
    "render_card",
    "render_report",
    "stored_measures",
    "write_card",
    "write_report",
]
