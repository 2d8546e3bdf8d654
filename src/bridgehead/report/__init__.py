"""The report of a run and its model card: plain data in, one HTML file and one Markdown file out.

Owns what they say and how they look. Not about measuring (`evaluate`, `audits`) or about which run the content is from
(`runs`).
"""

from bridgehead.report.card import CardContent, render_card, write_card
from bridgehead.report.content import (
    Answer,
    Curves,
    DataCheck,
    Direction,
    Example,
    ExampleHit,
    Heatmap,
    Measure,
    QuerySet,
    ReportContent,
    ShuffledControl,
    Source,
    Table,
    direction_of,
)
from bridgehead.report.html import render_report, write_report

__all__ = [
    "Answer",
    "CardContent",
    "Curves",
    "DataCheck",
    "Direction",
    "Example",
    "ExampleHit",
    "Heatmap",
    "Measure",
    "QuerySet",
    "ReportContent",
    "ShuffledControl",
    "Source",
    "Table",
    "direction_of",
    "render_card",
    "render_report",
    "write_card",
    "write_report",
]
