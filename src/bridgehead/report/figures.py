"""Figures of the report as SVG text that stands inside an HTML page.

Ranks, recall, training and scores; the pictures of the space are in `space_figures`. No text of a user enters a figure:
names stand in the caption, where they are escaped. Not about the style (`drawing`) or what the figures mean in words
(`html`).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from scipy.special import gammaln

from bridgehead.report.content import Control, Curves, Heatmap, Measure
from bridgehead.report.drawing import FIRST, FOURTH, GREY, INK, RULE, SECOND, THIRD, drawing, plain_legend, svg_text
from bridgehead.vectors import FloatArray


def rank_histogram(
    ranks: Sequence[float] | FloatArray,
    n_candidates: int,
    n_true: Sequence[int] | Any = (),
    pool: Sequence[int] | Any = (),
) -> str:
    """Return the share of queries in each doubling bin of ranks: 1, 2-3, 4-7, ... up to `n_candidates`.

    `n_true` (one per query) adds what random order would give, by the hypergeometric distribution of the first true
    rank; `pool` (one per query) is how many candidates each ranked where those are not all `n_candidates`. Queries
    without a finite rank are left out.
    """
    values = np.asarray(ranks, dtype=np.float64)
    values = values[np.isfinite(values)]
    edges = doubling_edges(n_candidates)
    shares = np.histogram(values, bins=edges)[0] / max(1, len(values))
    with drawing(4.8, 2.7) as figure:
        axes = figure.add_subplot()
        places = np.arange(len(shares))
        axes.bar(places, shares, width=0.86, color=FIRST, label="measured")
        if len(n_true):
            expected = chance_shares(edges, n_candidates, n_true, pool)
            axes.stairs(
                expected, np.arange(len(edges)) - 0.5, baseline=None, color=SECOND, linewidth=1.8, label="chance"
            )
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, handlelength=1.2)
        axes.set_xticks(places, bin_labels(edges, n_candidates), rotation=45, ha="right", rotation_mode="anchor")
        axes.grid(visible=False, axis="x")
        axes.set_xlabel("rank of the best true candidate")
        axes.set_ylabel("share of queries")
        return svg_text(figure, "Histogram of ranks in bins that double")


def recall_bars(
    measured: Mapping[str, Mapping[str, Measure]], baselines: Mapping[str, Mapping[str, Measure]] | None = None
) -> str:
    """Return bars of recall@k for each group ("all queries", "unseen text") and then each baseline, chance as marks.

    Both map a legend to measures by name; those not called recall@k are passed over. Baselines have colours of their
    own, the same in every figure, whatever stands before them.
    """
    groups = {**measured, **(baselines or {})}
    colours = [(FIRST, THIRD)[number % 2] for number in range(len(measured))]
    colours += [(GREY, FOURTH)[number % 2] for number in range(len(groups) - len(measured))]
    names = sorted({name for group in groups.values() for name in group if name.startswith("recall@")}, key=_k)
    width = 0.8 / max(1, len(groups))
    with drawing(4.8, 2.7) as figure:
        axes = figure.add_subplot()
        for number, (legend, group) in enumerate(groups.items()):
            places = np.arange(len(names)) + (number - (len(groups) - 1) / 2) * width
            found = [(place, group[name]) for place, name in zip(places, names, strict=True) if name in group]
            _bars(axes, found, width * 0.92, colours[number], plain_legend(legend), first=number == 0)
        axes.set_xticks(np.arange(len(names)), names)
        axes.grid(visible=False, axis="x")
        axes.set_ylim(0, 1.02)
        axes.set_ylabel("share of queries")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, columnspacing=1.0, handlelength=1.2)
        return svg_text(figure, "Recall at k with intervals and chance")


def _bars(
    axes: Axes, found: Sequence[tuple[float, Measure]], width: float, colour: str, legend: str, *, first: bool
) -> None:
    if not found:
        return
    axes.bar([place for place, _ in found], [m.value for _, m in found], width=width, color=colour, label=legend)
    for place, measure in found:
        if measure.low is not None and measure.high is not None:
            axes.vlines(place, measure.low, measure.high, color=INK, linewidth=1.2)
    marks = [(place, m.chance) for place, m in found if m.chance is not None]
    if marks:
        axes.scatter(
            [place for place, _ in marks],
            [chance for _, chance in marks],
            marker="_",
            s=(70 * width) ** 2,
            color=SECOND,
            linewidths=2,
            zorder=3,
            label="chance" if first else None,
        )


def training_curves(curves: Curves) -> list[tuple[str, str]]:
    """Return (name, SVG) for each curve that was logged: "loss", "valid MRR", "valid recall@10", "logit_scale"."""
    drawn = []
    for name, values, colour in (
        ("loss", curves.loss, FIRST),
        ("valid MRR", curves.valid_mrr, THIRD),
        ("valid recall@10", curves.valid_recall, THIRD),
        ("logit_scale", curves.logit_scale, SECOND),
    ):
        if len(values):
            drawn.append((name, _curve(name, curves, values, colour)))
    return drawn


def _curve(name: str, curves: Curves, values: Sequence[float], colour: str) -> str:
    with drawing(3.4, 2.4) as figure:
        axes = figure.add_subplot()
        # A single epoch is a point, which a line alone would not show.
        axes.plot(curves.epoch, values, color=colour, marker="o", markersize=2.6, label=name)
        if name == "loss" and len(curves.chance_loss):
            axes.plot(curves.epoch, curves.chance_loss, color=SECOND, linestyle=(0, (1, 1)), label="random rows")
            axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, handlelength=1.4)
        if curves.best_epoch is not None:
            axes.axvline(curves.best_epoch, color=INK, linewidth=0.9, linestyle=(0, (4, 3)))
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.set_xlabel("epoch")
        axes.set_ylabel(name)
        if name == "logit_scale" and min(values) > 0:
            right = axes.secondary_yaxis("right", functions=(_inverse, _inverse))
            right.set_ylabel("temperature")
            # Equal steps of s are very unequal steps of 1 / s: few ticks, placed by the values themselves.
            right.set_yticks(np.linspace(1 / max(values), 1 / min(values), 4))
            right.yaxis.set_major_formatter("{x:.3g}")
        return svg_text(figure, f"{name} by epoch")


def _inverse(values: Any) -> Any:
    with np.errstate(divide="ignore"):
        return 1.0 / np.asarray(values, dtype=np.float64)


def shuffled_strip(control: Control) -> str:
    """Return one axis with the chance interval as a band, each shuffled run as a dot, and the real run as a diamond."""
    with drawing(4.8, 1.5) as figure:
        axes = figure.add_subplot()
        axes.axvspan(0, control.chance_high, color=RULE, label="chance, up to its 95 % bound")
        spread = np.linspace(-0.25, 0.25, len(control.runs)) if len(control.runs) > 1 else np.zeros(len(control.runs))
        axes.scatter(control.runs, spread, s=26, color=SECOND, zorder=3, label="shuffled links")
        axes.scatter([control.observed], [0], s=64, marker="D", color=FIRST, zorder=3, label="real links")
        axes.set_ylim(-0.6, 0.6)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlim(0, max([control.observed, control.chance_high, *control.runs, 1e-6]) * 1.08)
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, columnspacing=1.0, handletextpad=0.4)
        return svg_text(figure, "The measure with shuffled links, beside chance and the real links")


def score_heatmap(heatmap: Heatmap) -> str:
    """Return the scores as a square of cells, lighter is higher, with a ring on every true match off the diagonal."""
    scores = np.asarray(heatmap.scores, dtype=np.float64)
    with drawing(4.8, 4.2) as figure:
        axes = figure.add_subplot()
        image = axes.imshow(scores, cmap="cividis", interpolation="none")
        if heatmap.linked is not None:
            rows, columns = np.nonzero(np.asarray(heatmap.linked) & ~np.eye(len(scores), dtype=bool))
            axes.scatter(columns, rows, s=14, facecolors="none", edgecolors="#ffffff", linewidths=0.8)
        axes.grid(visible=False)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.set_xlabel("item of the second side")
        axes.set_ylabel("item of the first side")
        bar = figure.colorbar(image, ax=axes, shrink=0.85)
        bar.outline.set_visible(False)
        bar.set_label("cosine")
        return svg_text(figure, "Heatmap of scores, pairs on the diagonal")


def doubling_edges(n_candidates: int) -> FloatArray:
    """Return the edges of the bins [1, 2), [2, 4), [4, 8), ... that hold the ranks 1 to `n_candidates`."""
    return 2.0 ** np.arange(math.floor(math.log2(max(1, n_candidates))) + 2)


def bin_labels(edges: FloatArray, n_candidates: int) -> list[str]:
    """Return "1", "2–3", "4–7", ... for the bins between `edges`, the last one up to `n_candidates`."""
    spans = zip(edges[:-1].astype(int), np.minimum(edges[1:].astype(int) - 1, max(1, n_candidates)), strict=True)
    return [_short(low) if low == high else f"{_short(low)}–{_short(high)}" for low, high in spans]


def _short(value: int) -> str:
    return str(value) if value < 10_000 else f"{value / 1000:.0f}k"


def chance_shares(
    edges: FloatArray, n_candidates: int, n_true: Sequence[int] | Any, pool: Sequence[int] | Any = ()
) -> FloatArray:
    """Return the expected share of queries in each bin of ranks when candidates come in random order.

    The first of p true ones among N lies beyond rank r with probability C(N - r, p) / C(N, p). N is `pool`, one number
    a query, or else `n_candidates`. Queries with more true ones than candidates are left out.
    """
    true = np.asarray(n_true, dtype=np.int64)
    sizes = np.asarray(pool, dtype=np.int64) if len(pool) else np.full(len(true), n_candidates)
    possible = (true >= 1) & (true <= sizes)
    kinds, weights = np.unique(np.column_stack([sizes, true])[possible], axis=0, return_counts=True)
    n, p = kinds[:, 0], kinds[:, 1]
    beyond = np.zeros(len(edges))
    for index, edge in enumerate(edges):
        left = n - (edge - 1)
        within = p <= left
        rest = np.where(within, left, p)
        terms = gammaln(rest + 1) - gammaln(rest - p + 1) - gammaln(n + 1) + gammaln(n - p + 1)
        beyond[index] = np.exp(terms)[within] @ weights[within] / max(1, weights.sum())
    return np.asarray(beyond[:-1] - beyond[1:])


def _k(name: str) -> int:
    return int(name.partition("@")[2])
