"""How figures are written in the report and the card: labels, explanations and number formats.

Not about HTML or Markdown: everything here returns plain text.
"""

import math
import re

from bridgehead.report.measured import Direction, Measure

DASH = "–"

_EXPLANATIONS = {
    "mrr": "mean of 1 / rank of the first true item",
    "r_precision": "share of a query's P true items among the first P",
    "map": "mean over queries of the precision at each true item",
    "mean_rank": "mean rank of the first true item",
    "median_rank": "half of the queries find a true item at this rank or before",
}
_LABELS = {
    "mrr": "MRR",
    "map": "MAP",
    "r_precision": "R-precision",
    "mean_rank": "mean rank",
    "median_rank": "median rank",
}


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


def is_share(name: str) -> bool:
    """Say whether a measure lies in [0, 1] and is best at 1, so that a bar can show it."""
    return not name.endswith("rank")


def signed(value: float | None, name: str = "") -> str:
    """Return a difference with its sign: "+0.012", "-0.003"; a dash where there is none."""
    shown = number(value, name)
    return shown if value is None or shown == DASH or value < 0 else f"+{shown}"


def chance(value: float | None) -> str:
    """Return a p value with three digits, "< 0.001" below that; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return DASH
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def figure(value: float | None) -> str:
    """Return a number of any kind: whole ones with their thousands apart, others with four digits; else a dash."""
    if value is None or not math.isfinite(value):
        return DASH
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1e}" if abs(value) < 0.0005 else f"{value:.4g}"


def times(value: float | None) -> str:
    """Return how often something happened: whole from 10 on, with one decimal below."""
    if value is None or not math.isfinite(value):
        return DASH
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}".removesuffix(".0")


def seconds(value: float | None) -> str:
    """Return a time in the unit that reads well: "under 0.1 s", "3.2 s", "4 min 05 s", "2 h 03 min"."""
    if value is None or not math.isfinite(value) or value < 0:
        return DASH
    if value < 0.1:
        return "under 0.1 s"
    if value < 59.5:
        return f"{value:.1f} s" if value < 9.95 else f"{value:.0f} s"
    whole = round(value)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60:02d} min"


def memory(value: int | None) -> str:
    """Return an amount of memory in MB or GB (powers of ten), or a dash."""
    if value is None or value < 0:
        return DASH
    return f"{value / 1e9:,.1f} GB" if value >= 1e9 else f"{value / 1e6:,.0f} MB"


def cell(value: object) -> str:
    """Return what a cell of a list holds as text: numbers as `figure`, nothing for None, texts as they are."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return figure(float(value)) if isinstance(value, float) else str(value)
    return str(value)


def candidates(direction: Direction) -> str:
    """Return what each query ranked: "812 candidates", or "a list of its own (2 to 61 candidates, median 7)"."""
    sizes = direction.pool_sizes
    if sizes is None:
        return f"{count(direction.n_candidates)} candidates"
    least, median, most = (count(size) for size in sizes)
    return f"a list of its own ({least} to {most} candidates, median {median})"


def opening(text: str) -> str:
    """Return a sentence with a capital where it begins with a word; a symbol or a name of the program stays.

    >>> opening("recall climbs"), opening("s went from 14 to 17"), opening("valid_mrr rose")
    ('Recall climbs', 's went from 14 to 17', 'valid_mrr rose')
    """
    word = re.match(r"[a-z]+(?:-[a-z]+)*(?=[\s,.:;]|$)", text)
    return text[:1].upper() + text[1:] if word and (len(word[0]) > 1 or word[0] == "a") else text
