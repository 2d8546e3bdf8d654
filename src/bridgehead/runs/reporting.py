"""The report and the model card of a run, filled from its records; written again when a stage adds something to show.

This module is not about how they look (`report`).
"""

import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bridgehead import report
from bridgehead.errors import RunStateError
from bridgehead.files import hash_file, hash_json
from bridgehead.pairs.chemicals_data import CHEMICALS_ATTRIBUTION
from bridgehead.pairs.starter_data import ATTRIBUTION
from bridgehead.runs.auditing.stage import current_audit
from bridgehead.runs.config import CHEMICALS, STARTER, RunConfig
from bridgehead.runs.contract import CONTRACT_FILE, read_contract, write_contract
from bridgehead.runs.costs import read_costs
from bridgehead.runs.evaluating import evaluate_key, stored_control
from bridgehead.runs.evaluation import Evaluation
from bridgehead.runs.fitting import HEADS_FILE, trained_lines
from bridgehead.runs.folder import RunFolder, stage_key
from bridgehead.runs.folds.store import read_folds
from bridgehead.runs.shown_config import shown_config
from bridgehead.runs.shown_items import ShownItems, query_cases
from bridgehead.runs.toml import to_toml
from bridgehead.runs.wording import closed_form_name
from bridgehead.runs.work import Work

_HEATMAP = 40
_PACKAGES = ("bridgehead", "numpy", "scipy", "scikit-learn", "torch", "rdkit", "faiss-cpu", "transformers")
_STARTER_LICENCE = "ODbL-1.0 AND CC-BY-SA-4.0"


def report_run(work: Work) -> Path | None:
    """Write `report.html` and `card.md` where the evaluation is of the present heads; return the report's path.

    Files that show just this already are left as they are.
    """
    run = work.run
    if run.done("evaluate", evaluate_key(run)) is None:
        return None
    contract = write_contract(run)
    keys = [run.record(stage)["key"] for stage in ("check", "encode", "train", "evaluate")]
    others = [_stored(run, "index").get("key"), _audits(run).get("key"), (read_folds(run) or {}).get("key")]
    facts = run.config.model_dump(include={"name", "pairs", "encode", "contract"})
    key = stage_key(keys, others, hash_json(contract), _refit_is_there(run), facts)
    files = [run.path("report.html"), run.path("card.md")]
    found = run.done("report", key)
    if found is None or found["sha256"] != [hash_file(path) if path.is_file() else None for path in files]:
        content = content_of(work)
        report.write_report(files[0], content)
        report.write_card(files[1], _card(content, run.config))
        hashes = [hash_file(path) for path in files]
        lines = [f"wrote {path}" for path in (*files, run.path(CONTRACT_FILE))]
        run.finish("report", key, {"sha256": hashes, "lines": lines})
    return files[0]


def content_of(work: Work) -> report.ReportContent:
    """Return what the report shows, from the records of the stages that are done."""
    run, config = work.run, work.run.config
    checked, encoded = run.record("check"), run.record("encode")
    trained, measured, record = run.record("train"), work.evaluation, run.record("evaluate")
    control = stored_control(run)
    names = config.pairs.shown
    # Its figures come from the record: to fit it again for a page would take as long as the fit.
    linear = record.get("closed_form") or {}
    findings, skipped = report.audits_of(_audits(run))
    folds = read_folds(run)
    shown = ShownItems(work)
    return report.ReportContent(
        title=config.name,
        names=names,
        aligned=_facts(config, checked, encoded, trained),
        query_sets=_query_sets(measured, record, names),
        baseline="ranks by the most similar training items and the texts they carry.",
        closed_form=closed_form_name(linear["method"]) if linear else "",
        closed_form_notes=linear.get("notes", []),
        curves=report.curves_of(trained["history"], trained["best_epoch"]),
        controls=[] if control is None else report.controls_of(control, measured.all),
        findings=findings,
        skipped=skipped,
        heatmap=_heatmap(measured),
        data=report.data_check_of(
            checked["check"],
            {name: encoded[side]["report"] for side, name in zip(("a", "b"), names, strict=True)},
            {name: encoded[side]["failures"] for side, name in zip(("a", "b"), names, strict=True)},
        ),
        examples=[_example(stored) for stored in _stored(run, "index").get("examples", [])],
        sources=_sources(config),
        refit=_refit_is_there(run),
        contract=report.contract_of(shown_config(read_contract(run))),
        slices=_slices(record, names),
        differences=_differences(record, names),
        geometry=report.geometry_of(record["geometry"], names, shown.item, record["gap_correction"]),
        views=_views(work),
        cases=query_cases(work, shown),
        folds=None if folds is None else report.folds_of(folds, names),
        costs=report.costs_of(read_costs(run)),
        versions=_versions(),
        config=to_toml(shown_config({**config.plain(), "folder": None})),
    )


def _audits(run: RunFolder) -> dict[str, Any]:
    """Return the record of the audits where it is of the present evaluation, else nothing."""
    return current_audit(run) or {}


def _slices(record: dict[str, Any], names: tuple[str, str]) -> list[report.SliceTable]:
    found = []
    for direction, (query, candidate) in (("a_to_b", names), ("b_to_a", names[::-1])):
        own = {name.partition(".")[2]: value for name, value in record["all"].items() if name.startswith(direction)}
        whole = report.measures_of(own)
        found += [
            report.slices_of(slices, name, query, candidate, whole)
            for name, slices in record["slices"][direction].items()
        ]
    return found


def _differences(record: dict[str, Any], names: tuple[str, str]) -> list[report.Difference]:
    said = {
        "baseline": "against the untrained baseline",
        "closed_form": "against the closed form",
        "closed_form_unseen_text": "against the closed form, unseen text",
    }
    return [
        one for name, stored in record["against"].items() for one in report.differences_of(stored, names, said[name])
    ]


def _views(work: Work) -> list[report.MapView]:
    """Both sides of some test pairs in the plane, by the rows that training starts from and by the trained ones."""
    measured, part, first = work.evaluation, work.asked.part, work.first_asked.part
    return report.plane_views(measured.z_a, measured.z_b, part.links, before=(first.rows_a, first.rows_b))


def _versions() -> list[tuple[str, str]]:
    found = [("Python", platform.python_version())]
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            found.append((name, version(name)))
    return found


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
        contract=content.contract,
        findings=content.findings,
        skipped=content.skipped,
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


def _stored(run: RunFolder, stage: str) -> dict[str, Any]:
    """Return the record of a stage, empty where there is none or a half one."""
    try:
        return run.record(stage)
    except RunStateError:
        return {}


def _facts(config: RunConfig, checked: dict[str, Any], encoded: dict[str, Any], trained: dict[str, Any]) -> Any:
    split = checked["split"]
    # Those that were evaluated: with [live] the stage train tunes what the stage encode stored.
    encoders = trained.get("encoders", encoded)
    facts = [
        (name, f"{shown_config(encoders[side]['encoder'])}, {encoded[side]['n_columns']:,} columns")
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
    pools = {side: report.pools_of(stored["by_pool"][side]) for side in ("a_to_b", "b_to_a")}
    shown = _directions(measured.all, stored["baseline"], stored.get("closed_form"), names, pools)
    sets = [report.QuerySet("all queries", shown)]
    if measured.unseen is not None:
        note = f"Only those {names[1]} items whose text no training link carries; the pool is the same."
        shown = _directions(
            measured.unseen, stored["baseline_unseen_text"], stored.get("closed_form_unseen_text"), names
        )
        sets.append(report.QuerySet("text unseen in training", shown[1:], note))
    return sets


def _directions(
    found: Any, baseline: Any, linear: Any, names: tuple[str, str], pools: dict[str, Any] | None = None
) -> list[report.Direction]:
    a, b = names
    curves = pools or {}
    sides: tuple[Literal["a_to_b", "b_to_a"], ...] = ("a_to_b", "b_to_a")
    forth, back = (report.stored_measures(linear or {}, side) for side in sides)
    simple_forth, simple_back = (report.stored_measures(baseline or {}, side) for side in sides)
    return [
        report.direction_of(found.a_to_b, a, b, simple_forth, forth, curves.get("a_to_b", ())),
        report.direction_of(found.b_to_a, b, a, simple_back, back, curves.get("b_to_a", ())),
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
    elif config.pairs.licence is not None:
        sources.append(report.Attribution("pairs", config.pairs.licence))
    if CHEMICALS in (*config.index.extra_a, *config.evaluate.pool_a):
        sources.append(report.Attribution("chemicals", "MIT", CHEMICALS_ATTRIBUTION))
    for side, name in zip("ab", config.pairs.shown, strict=True):
        spec, licence = getattr(config.encode, side), getattr(config.encode, f"licence_{side}")
        # An encoder that is fitted here has no weights of somebody else.
        if licence is not None or "hf=" in spec:
            sources.append(report.Attribution(f"encoder of {name} ({_called(spec)})", licence or "", kind="encoder"))
    return sources


def _called(spec: str) -> str:
    """Return an encoder's name without the folders that a local one lies in."""
    return " + ".join(
        f"{kind}{equals}{Path(name).name}" for kind, equals, name in (p.partition("=") for p in spec.split(" + "))
    )
