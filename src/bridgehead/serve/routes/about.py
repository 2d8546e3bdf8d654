"""What is being served, for the page and for clients: sides, what was measured, examples, whose data it is.

Read from the records of the run; a run that lacks one is served without it. Not about searching.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bridgehead import __version__
from bridgehead.errors import BridgeheadError
from bridgehead.runs.attribution import attribution_of
from bridgehead.runs.folder import RunFolder
from bridgehead.search.query import MODES
from bridgehead.search.reading import READINGS
from bridgehead.serve.settings import MAX_K

_METRICS = ("recall@1", "recall@5", "recall@10", "mrr", "median_rank")
_BEFORE_REFIT = (
    "Measured before refit, on pairs held out from training. The heads that answer here were then trained again on all "
    "pairs with the same settings; no figure is of those."
)
_EVALUATED = "Measured with these heads, on pairs held out from training."


def about_content(space: Any, folder: Path | None, heads: str) -> dict[str, Any]:
    """Return the body of `/about`."""
    run = _run_of(folder)
    return {
        "name": "alignment" if run is None else run.config.name,
        "version": __version__,
        "heads": heads,
        "sides": [_side(space, side, run) for side in sorted(space.index.sides)],
        "readings": list(READINGS),
        "modes": list(MODES),
        "max_k": MAX_K,
        "examples": [] if run is None else [example.query for example in run.config.examples],
        "measured": None if run is None else _measured(run, space.names, heads),
        "report": "/report" if report_file(folder) is not None else None,
        "attribution": "" if run is None else attribution_of(run.config),
    }


def report_file(folder: Path | None) -> Path | None:
    """Return the report of a run, or None where it has none."""
    path = None if folder is None else folder / "report.html"
    return path if path is not None and path.is_file() else None


def records_stamp(folder: Path | None) -> tuple[int, ...]:
    """Return what changes when a record that `about_content` reads is written anew."""
    if folder is None:
        return ()
    paths = [folder / name for name in ("config.toml", "metrics.json", "report.html")]
    return tuple(path.stat().st_mtime_ns if path.is_file() else 0 for path in paths)


def _run_of(folder: Path | None) -> RunFolder | None:
    try:
        return None if folder is None else RunFolder.of(folder)
    except BridgeheadError:
        return None


def _side(space: Any, side: str, run: RunFolder | None) -> dict[str, Any]:
    facts = space.index.sides[side]
    recall = facts.vectors.recall
    return {
        "side": side,
        "name": space.names[side],
        "kind": space.kinds[side],
        "n_items": space.index.size(side),
        "method": facts.vectors.method,
        "recall": dict(recall) if isinstance(recall, Mapping) else {facts.vectors.queries: recall},
        "fields": [_field(one) for one in space.index.fields(side)],
        # The field of an item's payload that holds its partners: whole on side a, by their ids on side b.
        "partners": None if run is None else run.config.pairs.b if side == "a" else run.config.pairs.a,
    }


def _field(one: Any) -> dict[str, Any]:
    return {
        "name": one.name,
        "kind": one.kind,
        "n_items": one.n_items,
        "least": one.least,
        "most": one.most,
        "common": [list(pair) for pair in one.common],
    }


def _measured(run: RunFolder, names: Mapping[str, str], heads: str) -> dict[str, Any] | None:
    try:
        figures = run.record("evaluate")["all"]
    except BridgeheadError:
        return None
    rows = [
        row
        for way in ("a_to_b", "b_to_a")
        for metric in _METRICS
        if (row := _row(figures, way, metric, f"{names[way[0]]} to {names[way[-1]]}")) is not None
    ]
    return {"text": _BEFORE_REFIT if heads == "refit" else _EVALUATED, "rows": rows}


def _row(figures: Mapping[str, Any], way: str, metric: str, direction: str) -> dict[str, Any] | None:
    value = figures.get(f"{way}.{metric}")
    if value is None:
        return None
    return {
        "direction": direction,
        "metric": metric,
        "value": value,
        "low": figures.get(f"{way}.{metric}.low"),
        "high": figures.get(f"{way}.{metric}.high"),
        "chance": figures.get(f"{way}.chance_{metric}"),
        "n_queries": figures[f"{way}.n_queries"],
        "n_candidates": figures[f"{way}.n_candidates"],
    }
