"""How figures of a page are drawn: the palette, the style, and SVG text that stands inside an HTML page.

Drawn by matplotlib's object interface alone (no pyplot, no state of a process), on a transparent ground. Colours are
CSS variables with a fallback, so that the page decides how they look on light and on dark; the palette (Okabe and Ito,
2008) and the colour map (cividis) read under every common colour blindness. Not about what is drawn (`figures`,
`space_figures`).
"""

import hashlib
import html
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

# Stand-ins for the CSS variables: matplotlib wants colours, the page wants names.
INK, RULE, FIRST, SECOND, THIRD = "#1d2731", "#d3d9df", "#0072b2", "#d55e00", "#009e73"
FOURTH, GREY = "#cc79a7", "#8a949e"
_VARIABLES = {INK: "ink", RULE: "rule", FIRST: "first", SECOND: "second", THIRD: "third", FOURTH: "fourth"}
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "bridgehead",
    "font.size": 9.0,
    "axes.labelsize": 9.0,
    "axes.linewidth": 0.8,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.8,
}
_STYLE_LOCK = threading.Lock()


@contextmanager
def drawing(width: float, height: float) -> Iterator[Figure]:
    """Give a figure (inches) in the report's style; it must be turned into text inside the block."""
    # rcParams belong to the process: one drawing at a time may set them, and leaves them as they were.
    with _STYLE_LOCK, matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(figure)
        yield figure


def svg_text(figure: Figure, label: str) -> str:
    """Return the drawing as an inline SVG element with `label` for those who do not see it."""
    text = StringIO()
    figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return _inline(text.getvalue(), label)


def _inline(text: str, label: str) -> str:
    """Turn a matplotlib SVG document into an element: no prologue, no metadata, fixed ids, colours as variables."""
    body = text[text.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>\s*", "", body, flags=re.DOTALL)
    # Ids are of the whole page, so each figure gets its own, and the same figure the same again.
    prefix = "f" + hashlib.sha256(body.encode()).hexdigest()[:8]
    names = {name: f"{prefix}-{n}" for n, name in enumerate(dict.fromkeys(re.findall(r'\bid="([^"]+)"', body)))}
    for pattern in (r'(\bid=")([^"]+)(")', r'(href="#)([^"]+)(")', r"(url\(#)([^)]+)(\))"):
        body = re.sub(pattern, lambda found: found[1] + names.get(found[2], found[2]) + found[3], body)
    for colour, name in _VARIABLES.items():
        body = body.replace(f": {colour}", f": var(--{name}, {colour})")
    opening, rest = body.split(">", 1)
    opening = re.sub(r'\s(width|height)="[^"]*"', "", opening)
    return f'{opening} role="img" aria-label="{html.escape(label)}">{rest}'


def plain_legend(text: str) -> str:
    """Return a legend that matplotlib's one font can write and that starts no formula."""
    return text.encode("ascii", "replace").decode().replace("$", r"\$")
