"""How figures are written in the report and the card: labels, explanations and number formats.

Not about HTML or Markdown: everything here returns plain text.
"""

import math
import re

from bridgehead.report.content import Measure

DASH = "–"

_EXPLANATIONS = {
    "mrr": "mean of 1 / rank of the first true item",
    "map": "mean over queries of the precision at each true item",
    "mean_rank": "mean rank of the first true item",
    "median_rank": "half of the queries find a true item at this rank or before",
}
_LABELS = {"mrr": "MRR", "map": "MAP", "mean_rank": "mean rank", "median_rank": "median rank"}


def measure_label(name: str) -> str:
    """Return the name of a measure as it is shown: "mrr" is MRR, "recall@10" stays."""
    return _LABELS.get(name, name.replace("_", " "))


def measure_explained(name: str) -> str:
    """Return what a measure means in a few words, or "" for one that is not known here."""
    if found := re.fullmatch(r"recall@(\d+)", name):
        return f"share of queries with a true item among the first {found[1]}"
    if found := re.fullmatch(r"recall_all@(\d+)", name):
        return f"share of a query's true items among the first {found[1]}"
    return _EXPLANATIONS.get(name, "")


def number(value: float | None, name: str = "") -> str:
    """Return a figure as text: ranks with one decimal, counts grouped, shares and means with three decimals.

    A share that is above 0 but would read 0.000 keeps two significant digits. None and NaN are a dash.
    """
    if value is None or not math.isfinite(value):
        return DASH
    if name.endswith("rank"):
        return f"{value:,.1f}".removesuffix(".0")
    if 0 < abs(value) < 0.0005:
        return f"{value:.1e}"
    return f"{value:.3f}"


def interval(measure: Measure, name: str = "") -> str:
    """Return the 95 % interval of a figure as text, or a dash."""
    if measure.low is None or measure.high is None:
        return DASH
    return f"{number(measure.low, name)} to {number(measure.high, name)}"


def count(value: int | None) -> str:
    """Return a whole number with its thousands apart, or a dash."""
    return DASH if value is None else f"{value:,}"
