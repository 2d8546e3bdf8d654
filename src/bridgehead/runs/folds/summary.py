"""What the trainings of a cross-validation say together: figures over all out-of-fold queries, and two kinds of spread.

This module is not about training them (`cross_validation`), keeping them (`folds.store`) or comparing two runs by them
(`comparing`).
"""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from bridgehead.evaluate.detectable import detectable_difference
from bridgehead.evaluate.folds import fold_spread
from bridgehead.evaluate.intervals import bootstrap_intervals
from bridgehead.evaluate.paired import entity_numbers, paired_difference
from bridgehead.runs.config import RunConfig
from bridgehead.runs.folds.store import Trained
from bridgehead.runs.per_query import DIRECTIONS

PLACE = ["direction", "repeat", "fold", "item"]
"""What names an out-of-fold query: an item that is not held out may ask in several folds."""

_ABOUT = {*PLACE, "id", "entity", "n_true", "pool", "seed", "unseen"}
_IN_TABLE = ("recall@", "mrr", "median_rank")


def all_queries(trained: Sequence[Trained]) -> pl.DataFrame:
    """Return the queries of all trainings with the columns repeat, fold and seed."""
    return pl.concat(
        [
            one.queries.with_columns(
                pl.lit(one.training.repeat).alias("repeat"),
                pl.lit(one.training.fold).alias("fold"),
                pl.lit(one.training.seed).alias("seed"),
            )
            for one in trained
        ]
    )


def over_seeds(queries: pl.DataFrame) -> pl.DataFrame:
    """Return each out-of-fold query once, its metrics as their mean over the seeds."""
    metrics = [name for name in queries.columns if name not in _ABOUT]
    about = [pl.col(name).first() for name in ("id", "entity", "n_true", "pool", "unseen")]
    return queries.group_by(PLACE, maintain_order=True).agg(*about, *(pl.col(name).mean() for name in metrics))


def summary_of(trained: Sequence[Trained], config: RunConfig, n_folds: int) -> dict[str, Any]:
    """Return the record of a cross-validation, but for its keys.

    `measures` maps a key such as `a_to_b.recall@10` to `value` (the mean over all out-of-fold queries, each the mean
    over seeds), `low` and `high` (95 %, by entity, None without), `chance` (of the pools of the folds), `corrected`
    for recall ((value - chance) / (1 - chance)), `sd_seeds`, `sd_folds` (see `fold_spread`), `detectable` (see
    `_detectable`), `n_queries` and `n_entities`. `unseen_text` has the same of the queries of b whose text training
    never saw, spreads apart, None where these are all or none. `per_fold` has an entry for each fold of each repeat:
    number of queries, pools, links, `values` and `chance` by key, and the epoch that each seed kept.
    """
    queries = all_queries(trained)
    means = over_seeds(queries)
    seeds = sorted({one.training.seed for one in trained})
    measures = {}
    for direction in DIRECTIONS:
        for key, entries in _measured(means.filter(pl.col("direction") == direction), direction, config).items():
            of_trainings = _table(trained, key)
            spread = fold_spread(of_trainings)
            chance = _chance(trained, key, direction)
            measures[key] = {
                **entries,
                "chance": chance,
                **_corrected(key, entries["value"], chance),
                "sd_seeds": spread.sd_seeds,
                "sd_folds": spread.sd_folds,
                "detectable": _detectable(queries, direction, key.partition(".")[2], seeds),
            }
    content = {
        "hold_out": config.split.hold_out,
        "n_folds": n_folds,
        "n_repeats": 1 + max(one.training.repeat for one in trained),
        "n_seeds": len(seeds),
        "measures": measures,
        "unseen_text": _unseen(trained, means, config),
        "per_fold": _per_fold(trained),
    }
    return content | {"lines": fold_lines(content, config)}


def _measured(rows: pl.DataFrame, direction: str, config: RunConfig) -> dict[str, dict[str, Any]]:
    """Return value and interval of each metric over these queries of one direction."""
    metrics = {name: rows[name].to_numpy().astype(np.float64) for name in rows.columns if name not in _ABOUT}
    numbers = entity_numbers(rows["entity"].to_numpy(), len(rows))
    intervals = bootstrap_intervals(metrics, numbers, config.evaluate.n_resamples, config.evaluate.seed)
    values = {name: float(own.mean()) for name, own in metrics.items() if name != "rank"}
    values |= {"mean_rank": float(metrics["rank"].mean()), "median_rank": float(np.median(metrics["rank"]))}
    found = {}
    for name, value in values.items():
        low, high = intervals.get(name, (None, None))
        counts = {"n_queries": len(rows), "n_entities": int(numbers.max()) + 1}
        found[f"{direction}.{name}"] = {"value": value, "low": low, "high": high, **counts}
    return found


def _table(trained: Sequence[Trained], key: str) -> list[list[float]]:
    """Return a metric of each training, (folds of all repeats, seeds)."""
    rows: dict[tuple[int, int], list[float]] = {}
    for one in trained:
        rows.setdefault((one.training.repeat, one.training.fold), []).append(one.facts["values"][key])
    return list(rows.values())


def _chance(trained: Sequence[Trained], key: str, direction: str) -> float:
    weights = [one.facts["n_queries"][direction] for one in trained]
    return float(np.average([one.facts["chance"][key] for one in trained], weights=weights))


def _corrected(key: str, value: float, chance: float) -> dict[str, float]:
    return {"corrected": (value - chance) / (1 - chance)} if ".recall@" in key and chance < 1 else {}


def _detectable(queries: pl.DataFrame, direction: str, metric: str, seeds: Sequence[int]) -> float | None:
    """Return the smallest difference of two single trainings that these queries would show, None where unknown.

    It rests on how much the answers of two trainings with other seeds differ by entity (the root mean square of the SD
    over all pairs of seeds): two settings that answer alike but for their seed. Settings that answer otherwise differ
    more, so it is the least that any comparison on these folds can show. Seeds that answer alike say nothing of it.
    """
    column = "rank" if metric == "mean_rank" else metric
    if len(seeds) < 2 or column not in queries.columns:
        return None
    rows = queries.filter(pl.col("direction") == direction).sort([*PLACE, "seed"])
    wide = rows.group_by(PLACE, maintain_order=True).agg(pl.col("entity").first(), pl.col(column))
    whole = wide.filter(pl.col(column).list.len() == len(seeds))
    if not len(whole):
        return None
    values, entities = np.array(whole[column].to_list(), dtype=np.float64), whole["entity"].to_numpy()
    found = [
        paired_difference(values[:, x], values[:, y], entities, n_resamples=0, n_permutations=1)
        for x, y in combinations(range(len(seeds)), 2)
    ]
    variance = float(np.mean([one.sd**2 for one in found if one.sd is not None] or [0.0]))
    return detectable_difference(math.sqrt(variance), found[0].n_entities) if variance else None


def _unseen(trained: Sequence[Trained], means: pl.DataFrame, config: RunConfig) -> dict[str, Any] | None:
    rows = means.filter(pl.col("direction") == "b_to_a")
    some = rows.filter(pl.col("unseen"))
    if not 0 < len(some) < len(rows):
        return None
    found = _measured(some, "b_to_a", config)
    counted = [(one, one.queries.filter(pl.col("unseen").fill_null(False)).height) for one in trained]
    with_some = [(one.facts["unseen_chance"], n) for one, n in counted if n]
    for key, entries in found.items():
        name = key.partition(".")[2]
        chance = float(np.average([own[name] for own, _ in with_some], weights=[n for _, n in with_some]))
        entries |= {"chance": chance, **_corrected(key, entries["value"], chance)}
    return found


def _per_fold(trained: Sequence[Trained]) -> list[dict[str, Any]]:
    groups: dict[tuple[int, int], list[Trained]] = {}
    for one in trained:
        groups.setdefault((one.training.repeat, one.training.fold), []).append(one)
    found = []
    for (repeat, fold), own in groups.items():
        facts = own[0].facts
        found.append(
            {
                "repeat": repeat,
                "fold": fold,
                "n_queries": facts["n_queries"],
                "pool": facts["pool"],
                "links": facts["links"],
                "values": {key: float(np.mean([one.facts["values"][key] for one in own])) for key in facts["values"]},
                "chance": facts["chance"],
                "best_epochs": [one.facts["best_epoch"] for one in own],
                "seconds": round(sum(one.facts["seconds"] for one in own), 2),
            }
        )
    return found


def fold_lines(content: Mapping[str, Any], config: RunConfig) -> list[str]:
    """Return a cross-validation as lines to print: a table for each direction, and how to read the two spreads."""
    a, b = config.pairs.shown
    held = {"a": a, "b": b, "both": f"{a} and {b}"}[content["hold_out"]]
    n_models = content["n_folds"] * content["n_repeats"] * content["n_seeds"]
    times = f", dealt {content['n_repeats']} times" if content["n_repeats"] > 1 else ""
    lines = [
        f"cross-validation: {content['n_folds']} folds of entities of {held}{times}, {content['n_seeds']} "
        f"seed{'s' if content['n_seeds'] > 1 else ''} each ({n_models} trainings); no model saw its fold",
    ]
    measures = content["measures"]
    for direction, (query, candidate) in zip(DIRECTIONS, ((a, b), (b, a)), strict=True):
        own = {key.partition(".")[2]: one for key, one in measures.items() if key.startswith(f"{direction}.")}
        lines += _direction_lines(query, candidate, own, [fold["pool"][direction] for fold in content["per_fold"]])
    if content["unseen_text"] is not None:
        shown = [(key, one) for key, one in content["unseen_text"].items() if key.startswith("b_to_a.recall@")]
        values = ", ".join(
            f"{key.partition('.')[2]} {one['value']:.3f} (chance {one['chance']:.3f})" for key, one in shown
        )
        lines.append(f"  only {b} never seen in training, {shown[0][1]['n_queries']:,} queries: {values}")
    return [
        *lines,
        "SD seeds: what another training of a fold changes; SD folds: what other data changes (each fold ranks its own",
        "items, so their pools differ); could show: the least difference of two trainings that all these queries would",
        "show with 80 % power at 5 %, if their answers differ no more than those of two seeds.",
    ]


def _direction_lines(query: str, candidate: str, own: Mapping[str, Mapping[str, Any]], pools: list[int]) -> list[str]:
    one = next(iter(own.values()))
    low, high = min(pools), max(pools)
    among = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    lines = [
        f"  {query} to {candidate}: {one['n_queries']:,} queries of {one['n_entities']:,} entities, each ranks {among}",
        f"    {'':<12} {'value':>7}  {'95 % interval':>16}  {'chance':>7}  {'SD seeds':>8}  {'SD folds':>8}  "
        f"{'could show':>10}",
    ]
    for name, entries in own.items():
        if not name.startswith(_IN_TABLE):
            continue
        digits = 1 if name.endswith("_rank") else 3

        def show(value: float | None, digits: int = digits) -> str:
            return "-" if value is None else f"{value:.{digits}f}"

        between = "-" if entries["low"] is None else f"{show(entries['low'])} to {show(entries['high'])}"
        lines.append(
            f"    {name:<12} {show(entries['value']):>7}  {between:>16}  {show(entries['chance']):>7}  "
            f"{show(entries['sd_seeds']):>8}  {show(entries['sd_folds']):>8}  {show(entries['detectable']):>10}"
        )
    return lines
