"""The report and the model card of a run, filled from its records; written again when a stage adds something to show.

This module is not about how they look (`report`).
"""

from pathlib import Path
from typing import Any

import numpy as np

from bridgehead import report
from bridgehead.errors import RunStateError
from bridgehead.files import hash_file
from bridgehead.pairs.chemicals_data import CHEMICALS_ATTRIBUTION
from bridgehead.pairs.starter_data import ATTRIBUTION
from bridgehead.runs.config import CHEMICALS, STARTER, RunConfig
from bridgehead.runs.contract import write_contract
from bridgehead.runs.evaluating import evaluate_key, stored_control
from bridgehead.runs.evaluation import Evaluation
from bridgehead.runs.fitting import HEADS_FILE, trained_lines
from bridgehead.runs.folder import RunFolder, stage_key
from bridgehead.runs.wording import closed_form_name
from bridgehead.runs.work import Work

_HEATMAP = 40
_STARTER_LICENCE = "ODbL-1.0 AND CC-BY-SA-4.0"


def report_run(work: Work) -> Path | None:
    """Write `report.html` and `card.md` where the evaluation is of the present heads; return the report's path.

    Files that show just this already are left as they are.
    """
    run = work.run
    if run.done("evaluate", evaluate_key(run)) is None:
        return None
    write_contract(run)
    keys = [run.record(stage)["key"] for stage in ("check", "encode", "train", "evaluate")]
    key = stage_key(keys, _stored(run).get("key"), _refit_is_there(run), run.config.name, run.config.pairs.shown)
    files = [run.path("report.html"), run.path("card.md")]
    found = run.done("report", key)
    if found is None or found["sha256"] != [hash_file(path) if path.is_file() else None for path in files]:
        content = content_of(work)
        report.write_report(files[0], content)
        report.write_card(files[1], _card(content, run.config))
        hashes = [hash_file(path) for path in files]
        run.finish("report", key, {"sha256": hashes, "lines": [f"wrote {path.name}" for path in files]})
    return files[0]


def content_of(work: Work) -> report.ReportContent:
    """Return what the report shows, from the records of the stages that are done."""
    run, config = work.run, work.run.config
    checked, encoded = run.record("check"), run.record("encode")
    trained, measured = run.record("train"), work.evaluation
    control = stored_control(run)
    names = config.pairs.shown
    # Its figures come from the record: to fit it again for a page would take as long as the fit.
    linear = run.record("evaluate").get("closed_form") or {}
    examples = _stored(run).get("examples", [])
    return report.ReportContent(
        title=config.name,
        names=names,
        aligned=_facts(config, checked, encoded, trained),
        query_sets=_query_sets(measured, run.record("evaluate"), names),
        baseline="ranks by the most similar training items and the texts they carry.",
        closed_form=closed_form_name(linear["method"]) if linear else "",
        closed_form_notes=linear.get("notes", []),
        curves=report.curves_of(trained["history"], trained["best_epoch"]),
        controls=[] if control is None else report.controls_of(control, measured.all),
        heatmap=_heatmap(measured),
        data=report.data_check_of(
            checked["check"],
            {name: encoded[side]["report"] for side, name in zip(("a", "b"), names, strict=True)},
            {name: encoded[side]["failures"] for side, name in zip(("a", "b"), names, strict=True)},
        ),
        examples=[_example(stored) for stored in examples],
        sources=_sources(config),
        refit=_refit_is_there(run),
    )


def _card(content: report.ReportContent, config: RunConfig) -> report.CardContent:
    a, b = content.names
    return report.CardContent(
        title=content.title,
        summary=f"Two heads that bring {a} and {b} into one space, {_on_what(config)}; made with bridgehead.",
        names=content.names,
        licence=_STARTER_LICENCE if config.pairs.path == STARTER else "other",
        aligned=content.aligned,
        query_sets=content.query_sets,
        uses=[f"Finding {a} items by {b} and {b} items by {a}, among items like those it was trained on."],
        limits=[
            "A hit is a reason to look, not evidence that it is right.",
            "Figures hold for this pool and this split; those of other pools cannot be compared with them.",
        ],
        sources=content.sources,
        refit=content.refit,
        closed_form=content.closed_form,
    )


def _on_what(config: RunConfig) -> str:
    if config.live is None:
        return "on frozen encoders"
    named = zip("ab", config.pairs.shown, strict=True)
    tuned = [name for side, name in named if any(stage.side == side for stage in config.live.stages)]
    return f"trained together with the encoder{'s' if len(tuned) > 1 else ''} of {' and '.join(tuned)}"


def _example(stored: dict[str, Any]) -> report.Example:
    answers = [
        report.Answer(
            heads=answer["heads"],
            hits=[
                report.ExampleHit(hit["rank"], hit["name"], hit["score"], hit["text"], hit["expected"])
                for hit in answer["hits"]
            ],
            expected_rank=answer["expected_rank"],
            n_candidates=answer["n_candidates"],
        )
        for answer in stored["answers"]
    ]
    return report.Example(stored["query"], stored["read_as"], stored["expected"], answers)


def _refit_is_there(run: RunFolder) -> bool:
    return run.path("refit", HEADS_FILE).is_file()


def _stored(run: RunFolder) -> dict[str, Any]:
    """Return the record of the index, empty where there is none or a half one."""
    try:
        return run.record("index")
    except RunStateError:
        return {}


def _facts(config: RunConfig, checked: dict[str, Any], encoded: dict[str, Any], trained: dict[str, Any]) -> Any:
    split = checked["split"]
    # Those that were evaluated: with [live] the stage train tunes what the stage encode stored.
    encoders = trained.get("encoders", encoded)
    facts = [
        (name, f"{encoders[side]['encoder']}, {encoded[side]['n_columns']:,} columns")
        for side, name in zip(("a", "b"), config.pairs.shown, strict=True)
    ]
    held = {"a": config.pairs.shown[0], "b": config.pairs.shown[1], "both": "both sides"}[split["hold_out"]]
    facts.append(("held out", f"entities of {held}, split seed {split['seed']}"))
    for part, counts in split["counts"].items():
        facts.append((part, ", ".join(f"{count:,} {what}" for what, count in _named(counts, config).items())))
    facts += [("trained with the heads", line) for line in trained_lines(config, trained.get("trained", []))]
    facts.append(("heads", f"epoch {trained['best_epoch']} of {trained['epochs']}, sha256 {trained['heads'][:16]}"))
    for side, name in zip(("a", "b"), config.pairs.shown, strict=True):
        facts.append((f"fingerprint of the {name} encoder", encoders[side]["fingerprint"][:16]))
    return facts


def _named(counts: dict[str, int], config: RunConfig) -> dict[str, int]:
    names = {"a": config.pairs.shown[0], "b": config.pairs.shown[1]}
    return {names.get(what, what): count for what, count in counts.items()}


def _query_sets(measured: Evaluation, stored: dict[str, Any], names: tuple[str, str]) -> list[report.QuerySet]:
    shown = _directions(measured.all, measured.baseline, stored.get("closed_form"), names)
    sets = [report.QuerySet("all queries", shown)]
    if measured.unseen is not None:
        note = f"Only those {names[1]} items whose text no training link carries; the pool is the same."
        shown = _directions(measured.unseen, measured.baseline_unseen, stored.get("closed_form_unseen_text"), names)
        sets.append(report.QuerySet("text unseen in training", shown[1:], note))
    return sets


def _directions(found: Any, baseline: Any, linear: Any, names: tuple[str, str]) -> list[report.Direction]:
    a, b = names
    forth, back = (report.stored_measures(linear or {}, side) for side in ("a_to_b", "b_to_a"))
    return [
        report.direction_of(found.a_to_b, a, b, baseline and baseline.a_to_b, forth),
        report.direction_of(found.b_to_a, b, a, baseline and baseline.b_to_a, back),
    ]


def _heatmap(measured: Evaluation) -> report.Heatmap | None:
    """Scores of the first pairs of which no item stands in an earlier one, so that pairs lie on the diagonal."""
    seen_a: set[int] = set()
    seen_b: set[int] = set()
    pairs: list[tuple[int, int]] = []
    for a, b in measured.asked.part.links.pairs.tolist():
        if a not in seen_a and b not in seen_b and len(pairs) < _HEATMAP:
            pairs.append((a, b))
            seen_a.add(a)
            seen_b.add(b)
    if len(pairs) < 2:
        return None
    rows_a, rows_b = (np.asarray(rows) for rows in zip(*pairs, strict=True))
    linked = measured.asked.part.links.within(rows_a, rows_b).matrix.toarray()
    return report.Heatmap(measured.z_a[rows_a] @ measured.z_b[rows_b].T, linked)


def _sources(config: RunConfig) -> list[report.Attribution]:
    sources = []
    if config.pairs.path == STARTER:
        sources.append(report.Attribution("Guide to PHARMACOLOGY", _STARTER_LICENCE, ATTRIBUTION))
    if CHEMICALS in config.index.extra_a:
        sources.append(report.Attribution("chemicals", "MIT", CHEMICALS_ATTRIBUTION))
    return sources
