"""Figures of the space and of what stands behind a recall: maps with mates, similarity, recall by pool, folds.

In the style of `drawing`. No text of a user enters a figure: what a colour or a line is stands in the caption, where it
is escaped. Not about what the figures mean in words (`html`).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator, NullFormatter

from bridgehead.report.content import Fold, MapView, PoolCurve, Similarities
from bridgehead.report.drawing import FIRST, FOURTH, GREY, INK, RULE, SECOND, THIRD, drawing, svg_text
from bridgehead.report.wording import is_share, measure_label
from bridgehead.vectors import FloatArray, IntArray

MOST_MATES = 300
"""Mates in a map: more of them hide each other, and each is a kilobyte of the page's size before it is packed."""

_LINES = (FIRST, THIRD, FOURTH, SECOND, GREY, INK)
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1)), (0, (4, 1, 1, 1)))
# Two sizes of a pool whose ratio is smaller write their numbers over each other.
_APART = 1.4
_SIMILARITY = {
    "across, true": (FIRST, "-"),
    "across, random": (SECOND, (0, (5, 2))),
    "within a": (THIRD, (0, (1, 1))),
    "within b": (FOURTH, (0, (4, 1, 1, 1))),
}


def mates_map(view: MapView, most: int = MOST_MATES) -> str:
    """Return both sides in the plane: circles of a, triangles of b, and a segment between mates.

    At most `most` mates are drawn, evenly spaced in their order, and only the points they join; without links, at most
    `most` points of each side.
    """
    points_a, points_b, links = thinned(view, most)
    with drawing(4.8, 4.2) as figure:
        axes = figure.add_subplot()
        ends = np.full((3 * len(links), 2), np.nan)
        ends[0::3], ends[1::3] = points_a[links[:, 0]], points_b[links[:, 1]]
        # One path with gaps: a segment each would be ten times the size.
        axes.plot(*ends.T, color=GREY, linewidth=0.7, alpha=0.55, zorder=1)
        for points, marker, colour in ((points_a, "o", FIRST), (points_b, "^", SECOND)):
            axes.plot(*points.T, marker, color=colour, markersize=3.4, markeredgewidth=0, alpha=0.85, zorder=2)
        axes.set_aspect("equal", adjustable="datalim")
        axes.grid(visible=False)
        axes.set_xticks([])
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set_color(RULE)
        return svg_text(figure, "Map of both sides with segments between mates")


def thinned(view: MapView, most: int = MOST_MATES) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return the points and links that `mates_map` draws, the links renumbered to those points."""
    points_a = np.asarray(view.points_a, dtype=np.float64)
    points_b = np.asarray(view.points_b, dtype=np.float64)
    links = np.asarray([] if view.links is None else view.links, dtype=np.int64).reshape(-1, 2)
    if not len(links):
        return points_a[_spaced(len(points_a), most)], points_b[_spaced(len(points_b), most)], links
    links = links[_spaced(len(links), most)]
    rows_a, new_a = np.unique(links[:, 0], return_inverse=True)
    rows_b, new_b = np.unique(links[:, 1], return_inverse=True)
    return points_a[rows_a], points_b[rows_b], np.column_stack([new_a, new_b]).astype(np.int64)


def _spaced(n: int, most: int) -> IntArray:
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64)) if n else np.zeros(0, np.int64)


def similarity_histogram(similarities: Similarities) -> str:
    """Return the share of pairs in each bin of cosine, a line for each kind of pair."""
    edges = np.asarray(similarities.edges, dtype=np.float64)
    with drawing(4.8, 2.8) as figure:
        axes = figure.add_subplot()
        for number, (name, counts) in enumerate(similarities.counts.items()):
            colour, dash = _SIMILARITY.get(name, (_LINES[number % len(_LINES)], _DASHES[number % len(_DASHES)]))
            total = float(np.sum(counts))
            shares = np.asarray(counts, dtype=np.float64) / (total or 1.0)
            axes.stairs(shares, edges, color=colour, linestyle=dash, linewidth=1.6, baseline=None, label=name)
            if name == "across, true":
                axes.stairs(shares, edges, color=colour, alpha=0.15, fill=True)
        axes.set_xlim(*_used_bins(similarities))
        axes.set_ylim(bottom=0)
        axes.set_xlabel("cosine")
        axes.set_ylabel("share of pairs")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, columnspacing=1.0, handlelength=2.2)
        return svg_text(figure, "Histogram of cosine within each side and across, for true and for random pairs")


def _used_bins(similarities: Similarities) -> tuple[float, float]:
    """Return the ends of the bins that hold anything: a space in a narrow cone would be one stroke otherwise."""
    edges = np.asarray(similarities.edges, dtype=np.float64)
    filled = np.flatnonzero(np.sum([np.asarray(c, dtype=np.float64) for c in similarities.counts.values()], axis=0))
    if not len(filled):
        return float(edges[0]), float(edges[-1])
    first, last = max(0, filled[0] - 1), min(len(edges) - 1, filled[-1] + 2)
    return float(edges[first]), float(edges[last])


def pool_curves(curves: Sequence[PoolCurve]) -> str:
    """Return recall@k against the size of the pool on a logarithmic axis, a colour for each k, chance dotted."""
    with drawing(4.8, 2.8) as figure:
        axes = figure.add_subplot()
        for number, curve in enumerate(curves):
            colour, dash = _LINES[number % len(_LINES)], _DASHES[number // len(_LINES) % len(_DASHES)]
            sizes = [point.size for point in curve.points]
            axes.plot(
                sizes, [p.value for p in curve.points], color=colour, linestyle=dash, marker="o", markersize=3.5,
                label=f"recall@{curve.k}",
            )  # fmt: skip
            chance = [(p.size, p.chance) for p in curve.points if p.chance is not None]
            if chance:
                axes.plot(*zip(*chance, strict=True), color=colour, linestyle=(0, (1, 2)), linewidth=1.2)
        sizes = sorted({point.size for curve in curves for point in curve.points})
        axes.set_xscale("log")
        ticks = [size for size in sizes if size == sizes[-1] or sizes[-1] > _APART * size]
        axes.set_xticks(ticks, [f"{size:,}" for size in ticks])
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_ylim(0, 1.02)
        axes.set_xlabel("candidates in the pool")
        axes.set_ylabel("share of queries")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, columnspacing=1.0, handlelength=1.6)
        return svg_text(figure, "Recall against the size of the pool, chance dotted")


def fold_dots(folds: Sequence[Fold]) -> str:
    """Return a column of dots for each share that was measured, a dot for each fold, and a bar at their mean."""
    names = [name for name in dict.fromkeys(name for fold in folds for name in fold.values) if is_share(name)]
    with drawing(4.8, 2.6) as figure:
        axes = figure.add_subplot()
        for place, name in enumerate(names):
            values = [fold.values[name] for fold in folds if name in fold.values]
            spread = np.linspace(-0.12, 0.12, len(values)) if len(values) > 1 else np.zeros(len(values))
            axes.plot(place + spread, values, "o", color=FIRST, markersize=4.5, alpha=0.8, markeredgewidth=0)
            axes.hlines(float(np.mean(values)), place - 0.3, place + 0.3, color=INK, linewidth=1.4)
        axes.set_xticks(range(len(names)), [measure_label(name) for name in names])
        axes.set_xlim(-0.6, max(len(names), 1) - 0.4)
        axes.set_ylim(bottom=0)
        axes.set_ylabel("value in a fold")
        axes.grid(visible=False, axis="x")
        axes.yaxis.set_major_locator(MaxNLocator(5))
        return svg_text(figure, "Each measure in each fold, with the mean")
