"""The stages check, encode, train and refit of a run; each resumable, each skipped when it is done.

A stage is a function of `Work` and returns the record that it left in the run folder. `lines` in a record are what a
person should read. This module is not about measuring (`evaluating`, `auditing`), searching (`indexing`) or the command
line.
"""

import time
from typing import Any

from bridgehead.errors import BridgeheadError
from bridgehead.files import hash_array, hash_file, hash_json
from bridgehead.pairs import check_table
from bridgehead.runs.encoded import encode_table, fit_encoders, load_encoders, make_encoders, save_encoders
from bridgehead.runs.fitting import HEADS_FILE, Start, epoch_lines, fit_model, plan_lines, trained_lines
from bridgehead.runs.folder import RunFolder, stage_key
from bridgehead.runs.wording import check_lines, encode_lines, train_lines
from bridgehead.runs.work import Work, check_part, first_folder

__all__ = ["HEADS_FILE", "Work", "check", "encode", "refit", "train"]


def check(work: Work) -> dict[str, Any]:
    """Read, identify and split the pairs, and say what is in them (`pairs.json`)."""
    prepared, config = work.prepared, work.run.config
    plan = plan_lines(config)
    key = stage_key(prepared.key, prepared.sources, config.pairs.model_dump(), config.split.model_dump(), *plan)
    if found := work.run.done("check", key):
        return found
    texts = tuple(s for s, kind in (("a", config.pairs.kind_a), ("b", config.pairs.kind_b)) if kind == "text")
    report = check_table(
        prepared.table,
        prepared.identities.get("a"),
        prepared.identities.get("b"),
        texts=texts,  # type: ignore[arg-type]
    )
    split = prepared.split
    content = {
        "data": prepared.key,
        "sources": [
            {"name": source.path.rsplit("/", 1)[-1], "sha256": source.sha256} for source in prepared.table.sources
        ],
        "check": report.to_dict(),
        "split": {
            "hold_out": split.hold_out,
            "seed": split.seed,
            "counts": split.counts(),
            "notes": split.notes,
        },
        "n_links_dropped": int((prepared.dropped & (split.part_link == 0)).sum()),
    }
    return work.run.finish("check", key, {**content, "lines": [*check_lines(report, content, config), *plan]})


def encode(work: Work) -> dict[str, Any]:
    """Fit both encoders on the training part and encode every item (`encoders/`)."""
    config = work.run.config
    unfitted = [encoder.fingerprint() for encoder in make_encoders(config).values()]
    key = stage_key(work.prepared.key, config.encode.model_dump(exclude={"cache"}), unfitted)
    if (found := work.run.done("encode", key)) and _stored_encoders(
        work, [found[s]["fingerprint"] for s in ("a", "b")]
    ):
        return found
    check_part(work.prepared.train[2], "train")
    encoders = fit_encoders(work.run, work.prepared, work.prepared.train, work.progress)
    save_encoders(work.run, encoders, *first_folder(work.run))
    work.first_encoders = encoders
    content: dict[str, Any] = {}
    for side, rows in (("a", work.start.rows.a), ("b", work.start.rows.b)):
        encoded = rows.encoded
        content[side] = {
            "encoder": encoders[side].spec,
            "fingerprint": encoders[side].fingerprint(),
            "n_columns": encoders[side].n_columns,
            "report": encoded.report.to_dict(),
            "failures": [[failure.id, failure.reason] for failure in encoded.failures],
        }
    return work.run.finish("encode", key, {**content, "lines": encode_lines(content, config)})


def train(work: Work) -> dict[str, Any]:
    """Train on the training links, validating each epoch (`heads.safetensors`, `history.jsonl`).

    With `[live]` encoders are trained too, from those in `first/encoders` to those in `encoders`.
    """
    run = work.run
    key = _train_key(work)
    if (found := run.done("train", key)) and _model_fingerprint(run) == found.get("model"):
        return found
    part = work.first_part("train")
    check_part(part.links, "train")
    started = time.monotonic()
    result = fit_model(
        run.config,
        work.start,
        part,
        run.folder,
        valid=work.first_part("valid"),
        classes=work.classes(part),
        progress=epoch_lines(work.progress, "train"),
    )
    content = {
        "best_epoch": result.best_epoch,
        "epochs": len(result.history),
        "history": result.history,
        "notes": result.notes,
        "heads": hash_file(run.path(HEADS_FILE)),
        "model": _model_fingerprint(run),
        "trained": result.trained,
        "encoders": {
            side: {"encoder": encoder.spec, "fingerprint": encoder.fingerprint()}
            for side, encoder in load_encoders(run).items()
        },
        "seconds": round(time.monotonic() - started, 2),
    }
    lines = [*trained_lines(run.config, result.trained), *train_lines(content)]
    return run.finish("train", key, {**content, "lines": lines})


def refit(work: Work) -> dict[str, Any]:
    """Train encoders and heads on all pairs with the same settings and the chosen number of epochs (`refit/`)."""
    run = work.run
    trained = run.record("train")
    key = stage_key(trained["key"], trained["best_epoch"])
    if (found := run.done("refit", key)) and found["fingerprint"] == _model_fingerprint(run, "refit"):
        return found
    everything, table = work.prepared.everything(), work.prepared.table
    encoders = fit_encoders(run, work.prepared, everything, work.progress)
    if run.config.live is None:
        save_encoders(run, encoders, "refit")
    start = Start(encoders, encode_table(run, table, encoders, work.progress, "refit"), table)
    part = start.rows.of(everything)
    result = fit_model(
        run.config,
        start,
        part,
        run.path("refit"),
        classes=work.classes(part),
        epochs=trained["best_epoch"],
        progress=epoch_lines(work.progress, "refit"),
    )
    content = {
        "epochs": trained["best_epoch"],
        "fingerprint": _model_fingerprint(run, "refit"),
        "notes": result.notes,
        "lines": [
            f"refit on all {len(part.links):,} links for the {trained['best_epoch']} epochs that validation chose; "
            "no figure is ever measured with these heads on these pairs"
        ],
    }
    return run.finish("refit", key, content)


def _stored_encoders(work: Work, fingerprints: list[str]) -> bool:
    """Take the stored encoders where they are whole and have these fingerprints."""
    if "first_encoders" in vars(work):
        return True
    try:
        encoders = load_encoders(work.run, *first_folder(work.run))
    except (BridgeheadError, OSError, KeyError):
        return False
    if [encoder.fingerprint() for encoder in encoders.values()] != fingerprints:
        return False
    work.first_encoders = encoders
    return True


def _model_fingerprint(run: RunFolder, *parts: str) -> str | None:
    """Return the fingerprint of the model in the run folder or its subfolder `parts`, None where it is not whole."""
    heads = run.path(*parts, HEADS_FILE)
    try:
        encoders = load_encoders(run, *parts)
    except (BridgeheadError, OSError, KeyError):
        return None
    return hash_json([*(encoders[s].fingerprint() for s in ("a", "b")), hash_file(heads)]) if heads.is_file() else None


def _train_key(work: Work) -> str:
    encoded = encode(work)
    fingerprints = [encoded[side]["fingerprint"] for side in ("a", "b")]
    known = [hash_array(own) for own in work.classes(work.first_part("train")) or () if own is not None]
    live = [] if work.run.config.live is None else [work.run.config.live.model_dump(mode="json")]
    return stage_key(work.prepared.key, fingerprints, work.run.config.train.fingerprint(), *known, *live)
