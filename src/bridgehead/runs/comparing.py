"""Two runs side by side: by how much they differ on the same queries, or why they cannot be compared.

Figures stand side by side only where both runs measured the same thing, which their contracts say (`contract`). This
module is not about the tests themselves (`evaluate.paired`, `evaluate.folds`) or about printing (`cli`).
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bridgehead.errors import MismatchError, RunStateError
from bridgehead.evaluate.paired import PairedDifference, p_text
from bridgehead.runs.contract import read_contract
from bridgehead.runs.folder import RunFolder
from bridgehead.runs.folds.comparison import compare_folds
from bridgehead.runs.per_query import DIRECTIONS, read_queries
from bridgehead.runs.query_pairs import differences_of, joined_queries, paired_entries

_HASH = 64
_SHOWN = ("recall@", "mrr", "map", "r_precision")
_MEANING = {
    "truth": "other links are true in the test part",
    "training links": "they were trained on other pairs, so one may have seen what the other had to guess",
    "held out": "what never crosses the split differs",
    "entities": "what counts as one entity differs",
    "pool": "the candidates differ, and recall falls with each further one",
    "candidate lists": "queries rank other lists of candidates",
    "queries": "other items ask",
    "number of candidates": "a larger pool is harder",
    "ks": "other k of recall@k were asked for: set evaluate.ks alike and evaluate again",
    "ties": "ties are counted in another way",
}


def compare_runs(
    first: RunFolder | str | Path, second: RunFolder | str | Path, n_permutations: int = 10_000, seed: int = 0
) -> dict[str, Any]:
    """Return by how much two evaluated runs differ on the same queries, metric by metric.

    The result has `differences` (key such as `a_to_b.recall@10` -> entries of `PairedDifference`, first less second,
    and `detectable`, what these queries could have shown), `model` (what differs between the two models), `out_of_fold`
    (the same over the folds of both cross-validations where both were made on the same folds, with the corrected t
    test; else None), `notes`, and `lines` to print. The number of resamples is that of the first run's config.

    Raises `RunStateError` for a run that is not evaluated, or whose evaluation is of other heads than it holds, and
    `MismatchError`, naming each entry that differs, when the two did not measure the same thing.
    """
    runs = RunFolder.of(first), RunFolder.of(second)
    contracts = [_current_contract(run) for run in runs]
    if differing := _differing(contracts[0]["measurement"], contracts[1]["measurement"]):
        raise MismatchError(_refusal(runs, differing))
    tables = [read_queries(run) for run in runs]
    options = {"n_resamples": runs[0].config.evaluate.n_resamples, "n_permutations": n_permutations, "seed": seed}
    joined = joined_queries(tables[0], tables[1], ["direction", "item"])
    found = differences_of(joined, options)
    model = [name for name, *_ in _differing(contracts[0]["model"], contracts[1]["model"])]
    folds, why = compare_folds(runs, options)
    content: dict[str, Any] = {
        "first": _facts(runs[0]),
        "second": _facts(runs[1]),
        "measurement": contracts[0].get("measurement_hash"),
        "model": model,
        "differences": {key: paired_entries(one) for key, one in found.items()},
        "out_of_fold": folds,
        "notes": [*_notes(runs, contracts, model), *why],
    }
    return content | {"lines": compare_lines(content, found, runs[0].config.pairs.shown)}


def _current_contract(run: RunFolder) -> dict[str, Any]:
    from bridgehead.runs.evaluating import evaluate_key

    # Before the contract: a run without an evaluation says so, and names the stage.
    record = run.record("evaluate")
    if record["key"] != evaluate_key(run):
        raise RunStateError(
            f"the evaluation in {run.folder} is of other heads or settings than the run now has; run: "
            f"bridgehead evaluate {run.folder}"
        )
    return read_contract(run)


def _facts(run: RunFolder) -> dict[str, str]:
    return {"folder": str(run.folder), "name": run.config.name}


def _differing(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """Return (name, first, second) of the entries that differ, in the order of the first."""
    names = dict.fromkeys([*first, *second])
    return [(name, first.get(name), second.get(name)) for name in names if first.get(name) != second.get(name)]


def _refusal(runs: tuple[RunFolder, RunFolder], differing: list[tuple[str, Any, Any]]) -> str:
    lines = [
        f"{runs[0].folder} and {runs[1].folder} did not measure the same thing, so the difference of their figures "
        "would mean nothing; their contracts differ in"
    ]
    for name, x, y in differing:
        meaning = f" ({_MEANING[name]})" if name in _MEANING else ""
        lines.append(f"  {name}: {_short(x)} and {_short(y)}{meaning}")
    lines.append("give both the same pairs, split and pool, and run: bridgehead evaluate RUN")
    return "\n".join(lines)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text[:12] if len(text) == _HASH and text.isalnum() else text


def _notes(runs: Sequence[RunFolder], contracts: Sequence[Mapping[str, Any]], model: list[str]) -> list[str]:
    notes = []
    for run, contract in zip(runs, contracts, strict=True):
        if contract["model"].get("training") != run.config.train.fingerprint():
            notes.append(
                f"the config of {run.folder} has other settings of training than its model was trained with; run: "
                f"bridgehead evaluate {run.folder}"
            )
    if not model:
        notes.append("both runs hold the same model")
    if runs[0].folder.resolve() == runs[1].folder.resolve():
        notes.append("both are the same folder")
    return notes


def compare_lines(
    content: Mapping[str, Any], found: Mapping[str, PairedDifference], names: tuple[str, str]
) -> list[str]:
    """Return a comparison as lines to print: a table for each direction, what it could show, and how to read it."""
    lines = [
        f"first:  {content['first']['folder']}",
        f"second: {content['second']['folder']}",
        f"what differs in the model: {', '.join(content['model']) or 'nothing'}",
    ]
    for direction, (query, candidate) in zip(DIRECTIONS, (names, names[::-1]), strict=True):
        own = {key.partition(".")[2]: one for key, one in found.items() if key.startswith(f"{direction}.")}
        if own:
            lines += _table(query, candidate, own, content["differences"], direction)
    n = sum(1 for key in found if _is_shown(key.partition(".")[2]))
    return [
        *lines,
        "difference: first less second, with its 95 % interval by entity; p: sign-flip permutation test by entity;",
        "could show: what these queries would show with 80 % power at 5 %, given how much the two answers differ.",
        f"{n} figures are looked at here, and one in twenty is below 0.05 by chance: choose yours before you look.",
        "Each run is one training, and another seed moves its figures too: folds with several seeds say by how much.",
        *([] if content["out_of_fold"] is None else content["out_of_fold"]["lines"]),
        *content["notes"],
    ]


def _is_shown(name: str) -> bool:
    return name.startswith(_SHOWN)


def _table(
    query: str, candidate: str, own: Mapping[str, PairedDifference], entries: Mapping[str, Any], direction: str
) -> list[str]:
    one = next(iter(own.values()))
    lines = [
        f"{query} to {candidate}: {one.n_queries:,} queries, {one.n_entities:,} entities",
        f"  {'':<12} {'first':>7}  {'second':>7}  {'difference':>10}  {'95 % interval':>16}  {'p':>8}  "
        f"{'could show':>10}",
    ]
    for name, found in own.items():
        if not _is_shown(name):
            continue
        between = "-" if found.interval is None else "{:+z.3f} to {:+z.3f}".format(*found.interval)
        least = entries[f"{direction}.{name}"]["detectable"]
        lines.append(
            f"  {name:<12} {found.first:>7.3f}  {found.second:>7.3f}  {found.value:>+z10.3f}  {between:>16}  "
            f"{p_text(found.p_value).removeprefix('= '):>8}  {'-' if least is None else format(least, '.3f'):>10}"
        )
    return lines
