"""Figures of a study of several seeds: recall with SD and chance, and windows of scores on one scale.

In the style of `drawing`; names enter as plain ASCII. Not about what the figures mean in words (`study_page`).
"""

from collections.abc import Sequence

import numpy as np

from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.report.drawing import FIRST, FOURTH, GREY, INK, SECOND, THIRD, drawing, plain_legend, svg_text
from bridgehead.vectors import FloatArray

_COLOURS = (FIRST, FOURTH, THIRD, GREY)


def spread_bars(
    labels: Sequence[str],
    series: Sequence[tuple[str, Sequence[float], Sequence[float]]],
    chance: Sequence[float],
    label: str = "Recall with the SD over seeds, and chance",
) -> str:
    """Return bars of shares in [0, 1]: a group for each of `labels`, a bar in it for each of up to four `series`.

    A series is (legend, means, sds), and `chance` has a value for each label, drawn as a mark across its group. Error
    bars are one SD either way, cut at 0. `ArgumentError` for other numbers of series, `ShapeError` for other lengths.
    """
    if not 1 <= len(series) <= len(_COLOURS):
        raise ArgumentError(f"{len(series)} series; expected 1 to {len(_COLOURS)}, as many as there are colours")
    lengths = {len(labels), len(chance)} | {len(part) for _, *parts in series for part in parts}
    if len(lengths) > 1:
        raise ShapeError(f"labels, means, sds and chance have {sorted(lengths)} entries; expected one for each label")
    places, width = np.arange(len(labels)), 0.76 / len(series)
    with drawing(4.8, 2.9) as figure:
        axes = figure.add_subplot()
        for number, (legend, means, sds) in enumerate(series):
            at = places + (number - (len(series) - 1) / 2) * width
            values, spread = np.asarray(means, dtype=np.float64), np.asarray(sds, dtype=np.float64)
            axes.bar(at, values, width=width * 0.92, color=_COLOURS[number], label=plain_legend(legend))
            ends = np.stack([np.minimum(spread, values), spread])
            for place, value, above in zip(at, values, values + spread, strict=True):
                axes.annotate(
                    f"{value:.3f}", (place, above), (0, 3), textcoords="offset points", ha="center", fontsize=7
                )
            axes.errorbar(at, values, yerr=ends, fmt="none", ecolor=INK, elinewidth=1.1, capsize=2.6)
        axes.hlines(chance, places - 0.44, places + 0.44, color=SECOND, linewidth=1.6, label="chance")
        axes.set_xticks(places, [plain_legend(text) for text in labels])
        axes.grid(visible=False, axis="x")
        axes.set_ylim(0, 1.1)
        axes.set_yticks(np.linspace(0, 1, 6))
        axes.set_ylabel("share of queries")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(series) + 1, handlelength=1.2)
        return svg_text(figure, label)


def score_window(scores: FloatArray, low: float, high: float, rows: str = "image", columns: str = "text") -> str:
    """Return cosines (n, m) as cells, lighter is higher; `low` and `high` end the scale, so that windows compare.

    Scores beyond the ends have their colour; arrows on the bar say so. Raises `ShapeError` for no matrix and
    `ArgumentError` when `low` is not below `high`.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 2 or 0 in values.shape:
        raise ShapeError(f"scores have shape {values.shape}; expected (n, m), at least one cell")
    if not low < high:
        raise ArgumentError(f"low = {low}, high = {high}; expected low below high")
    beyond = {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}
    with drawing(4.4, 3.8) as figure:
        axes = figure.add_subplot()
        image = axes.imshow(values, cmap="cividis", vmin=low, vmax=high, interpolation="none")
        axes.grid(visible=False)
        axes.set_xlabel(f"{plain_legend(columns)} candidate")
        axes.set_ylabel(f"{plain_legend(rows)} query")
        extend = beyond[bool(values.min() < low), bool(values.max() > high)]
        bar = figure.colorbar(image, ax=axes, shrink=0.85, extend=extend)
        bar.outline.set_visible(False)
        bar.set_label("cosine")
        return svg_text(figure, "Scores of queries against candidates, true pairs on the diagonal")
