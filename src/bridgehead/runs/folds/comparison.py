"""Two cross-validations on the same folds side by side: over all out-of-fold queries, and fold by fold.

This module is not about the test parts of two runs (`comparing`) or about the tests themselves (`evaluate`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from bridgehead.evaluate.folds import CorrectedDifference, corrected_difference
from bridgehead.evaluate.paired import PairedDifference, p_text
from bridgehead.runs.folder import RunFolder
from bridgehead.runs.folds.plan import settings_of
from bridgehead.runs.folds.store import Trained, Training, load_training, read_folds
from bridgehead.runs.folds.summary import PLACE, all_queries, over_seeds
from bridgehead.runs.per_query import DIRECTIONS
from bridgehead.runs.query_pairs import differences_of, joined_queries, metric_names, paired_entries

_IN_TABLE = ("recall@", "mrr")


def compare_folds(
    runs: tuple[RunFolder, RunFolder], options: Mapping[str, Any]
) -> tuple[dict[str, Any] | None, list[str]]:
    """Return the comparison of two runs' cross-validations, None where there is none to make, and notes that say why.

    It has `n_folds`, `n_repeats`, `n_seeds` (of both), `ratio` (links held out over links of the other folds) and
    `differences`: key -> entries of the paired difference over all out-of-fold queries, each the mean over seeds, with
    `detectable`, and `corrected`, the corrected resampled t test over the folds (`evaluate.folds`). Raises
    `MismatchError` where the same folds have other queries in the two runs.
    """
    records = [read_folds(run) for run in runs]
    if why := _why_not(runs, records):
        return None, [why]
    trained = [_trained(run, record) for run, record in zip(runs, records, strict=True) if record is not None]
    missing = [run for run, found in zip(runs, trained, strict=True) if found is None]
    if missing:
        again = f"run: bridgehead evaluate {missing[0].folder}"
        return None, [f"folds are not compared: files in {missing[0].path('folds')} are missing or damaged; {again}"]
    first, second = (found for found in trained if found is not None)
    joined = joined_queries(over_seeds(all_queries(first)), over_seeds(all_queries(second)), PLACE)
    paired = differences_of(joined, options)
    ratio = _ratio(first)
    corrected = _by_fold(joined, ratio)
    content = {
        "n_folds": 1 + max(one.training.fold for one in first),
        "n_repeats": 1 + max(one.training.repeat for one in first),
        "n_seeds": [1 + max(one.training.seed for one in found) for found in (first, second)],
        "ratio": ratio,
        "differences": {
            key: {**paired_entries(one), "corrected": corrected[key].to_dict()} for key, one in paired.items()
        },
    }
    names = runs[0].config.pairs.shown
    return content | {"lines": _lines(content, paired, corrected, names)}, []


def _why_not(runs: tuple[RunFolder, RunFolder], records: Sequence[dict[str, Any] | None]) -> str | None:
    for run, record in zip(runs, records, strict=True):
        if record is None:
            return f"folds are not compared: {run.folder} has none; run: bridgehead evaluate {run.folder} --folds 5"
        if record["settings"] != settings_of(run.config):
            return (
                f"folds are not compared: those of {run.folder} are of other settings than it now has; run: bridgehead "
                f"evaluate {run.folder} --folds {record['n_folds']}"
            )
    first, second = (record or {} for record in records)
    if any(first[name] != second[name] for name in ("folds_hash", "n_folds", "n_repeats")):
        return (
            "folds are not compared: the two were made on other folds "
            f"({first['n_folds']} x {first['n_repeats']} and {second['n_folds']} x {second['n_repeats']}); give both "
            "the same pairs, split.seed, --folds and --repeats"
        )
    return None


def _trained(run: RunFolder, record: Mapping[str, Any]) -> list[Trained] | None:
    found = [load_training(run, Training(**training)) for training in record["trainings"]]
    whole = [one for one in found if one is not None]
    return whole if len(whole) == len(found) else None


def _ratio(trained: Sequence[Trained]) -> float:
    links = [one.facts["links"] for one in trained]
    return float(np.mean([own["test"] / (own["train"] + own["valid"]) for own in links]))


def _by_fold(joined: pl.DataFrame, ratio: float) -> dict[str, CorrectedDifference]:
    found = {}
    for name in metric_names(joined):
        difference = (pl.col(name) - pl.col(f"{name}_2")).mean().alias("difference")
        folds = joined.group_by("direction", "repeat", "fold", maintain_order=True).agg(difference)
        for direction in DIRECTIONS:
            own = folds.filter(pl.col("direction") == direction)["difference"].to_numpy()
            shown = "mean_rank" if name == "rank" else name
            found[f"{direction}.{shown}"] = corrected_difference(own, ratio)
    return found


def _lines(
    content: Mapping[str, Any],
    paired: Mapping[str, PairedDifference],
    corrected: Mapping[str, CorrectedDifference],
    names: tuple[str, str],
) -> list[str]:
    n = content["n_folds"] * content["n_repeats"]
    seeds = " and ".join(map(str, dict.fromkeys(content["n_seeds"])))
    lines = [f"out of fold, the same {n} folds in both, mean over {seeds} {'seed' if seeds == '1' else 'seeds'}:"]
    for direction, (query, candidate) in zip(DIRECTIONS, (names, names[::-1]), strict=True):
        lines += [
            f"  {query} to {candidate}",
            f"    {'':<12} {'first':>7}  {'second':>7}  {'difference':>10}  {'by entity: 95 %':>16}  {'p':>8}  "
            f"{'by fold: 95 %':>16}  {'p':>8}",
        ]
        for key, one in paired.items():
            side, _, name = key.partition(".")
            if side == direction and name.startswith(_IN_TABLE):
                folds = corrected[key]
                lines.append(
                    f"    {name:<12} {one.first:>7.3f}  {one.second:>7.3f}  {one.value:>+z10.3f}  "
                    f"{_between(one.interval):>16}  {_p(one.p_value):>8}  {_between(folds.interval):>16}  "
                    f"{_p(folds.p_value):>8}"
                )
    return [
        *lines,
        "by entity: holds for these models on other entities; by fold: for training on other data of this kind (the",
        "corrected resampled t test of Nadeau and Bengio, as folds share training data).",
    ]


def _between(interval: tuple[float, float] | None) -> str:
    return "-" if interval is None else "{:+z.3f} to {:+z.3f}".format(*interval)


def _p(p_value: float | None) -> str:
    return "-" if p_value is None else p_text(p_value).removeprefix("= ")
