"""The stages of a run: check, encode, train, evaluate, refit, index; each resumable, each skipped when it is done.

A stage is a function of `Work`, which carries what earlier stages made in this process, and returns the record that it
left in the run folder. `lines` in a record are what a person should read. This module is not about the command line.
"""

import time
from functools import cached_property
from typing import Any

from bridgehead.align.twin import NumpyHeads
from bridgehead.encode import Encoder
from bridgehead.errors import BridgeheadError, LinksError
from bridgehead.files import hash_array, hash_file, hash_json
from bridgehead.links import Links
from bridgehead.pairs import check_table
from bridgehead.runs.classes import classes_of
from bridgehead.runs.encoded import (
    PartRows,
    Rows,
    encode_table,
    fit_encoders,
    load_encoders,
    make_encoders,
    save_encoders,
)
from bridgehead.runs.evaluation import Evaluation, closed_form, control_of, measure, shuffled, unseen_texts
from bridgehead.runs.fitting import HEADS_FILE, Start, epoch_lines, fit_model, plan_lines, same_budget, trained_lines
from bridgehead.runs.folder import RunFolder, stage_key
from bridgehead.runs.prepare import Prepared, Progress, prepare
from bridgehead.runs.wording import check_lines, encode_lines, evaluate_lines, train_lines

__all__ = ["HEADS_FILE", "Work", "check", "encode", "evaluate", "refit", "train"]


class Work:
    """A run under way in this process: what the stages share, made when it is first needed."""

    def __init__(self, run: RunFolder, progress: Progress) -> None:
        self.run = run
        self.progress = progress

    @cached_property
    def prepared(self) -> Prepared:
        """The table, its identities and its split."""
        return prepare(self.run, self.progress)

    @cached_property
    def first_encoders(self) -> dict[str, Encoder]:
        """The encoders fitted on the training part, as stored by the stage encode: before any training."""
        return load_encoders(self.run, *_first(self.run))

    @cached_property
    def start(self) -> Start:
        """The encoders and the rows of all items before any training."""
        table = self.prepared.table
        return Start(self.first_encoders, encode_table(self.run, table, self.first_encoders, self.progress), table)

    @cached_property
    def rows(self) -> Rows:
        """Rows of all items under the evaluated encoders, which with `[live]` are those that the stage train left."""
        if self.run.config.live is None:
            return self.start.rows
        return encode_table(self.run, self.prepared.table, load_encoders(self.run), self.progress)

    def part(self, name: Any) -> PartRows:
        """Rows and links of train, valid or test."""
        return self.rows.of(self.prepared.part(name))

    def first_part(self, name: Any) -> PartRows:
        """Rows before any training, and links, of train, valid or test."""
        return self.start.rows.of(self.prepared.part(name))

    def classes(self, part: PartRows) -> tuple[Any, Any] | None:
        """Coarse classes of a part's items, where the loss reads them."""
        config = self.run.config
        if config.train.loss.name != "hierarchical":
            return None
        of_a, of_b = classes_of(self.prepared.table, config.pairs.class_a, config.pairs.class_b)
        return None if of_a is None else of_a[part.items_a], None if of_b is None else of_b[part.items_b]

    @cached_property
    def heads(self) -> NumpyHeads:
        """The evaluated heads."""
        return NumpyHeads.load(self.run.path(HEADS_FILE))

    @cached_property
    def evaluation(self) -> Evaluation:
        """The measurements on the test part, made anew where this process did not make them."""
        self.progress("evaluate", "retrieval on the test part, and the untrained baseline", None, None)
        first = (self.first_part("train"), self.first_part("test"))
        return measure(self.heads, self.part("train"), self.part("test"), self.unseen, self.run.config, first)

    @cached_property
    def unseen(self) -> Any:
        """Which items of b in the test part have a text that no training link carries."""
        return unseen_texts(self.prepared.table.b.items, self.prepared.train[1], self.part("test").items_b)


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
    save_encoders(work.run, encoders, *_first(work.run))
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


def evaluate(work: Work) -> dict[str, Any]:
    """Measure retrieval on the test part beside both baselines and the shuffled-links control (`metrics.json`)."""
    run = work.run
    trained = run.record("train")
    key = evaluate_key(run)
    if found := run.done("evaluate", key):
        return found
    check_part(work.part("test").links, "test")
    measured = work.evaluation
    # Fitted here alone: whoever shows its figures later reads them from the record.
    if run.config.evaluate.closed_form != "none":
        work.progress("evaluate", f"closed form: {run.config.evaluate.closed_form}, no training", None, None)
    linear = closed_form(work.first_part("train"), work.first_part("test"), work.unseen, run.config)
    control = shuffled(_control(work, trained["epochs"]), work.part("train"), work.part("test"), run.config)
    content = {
        "measured_with": "evaluated heads, which never saw the test part",
        "all": measured.all.to_dict(),
        "unseen_text": None if measured.unseen is None else measured.unseen.to_dict(),
        "baseline": measured.baseline.to_dict(),
        "baseline_unseen_text": None if measured.baseline_unseen is None else measured.baseline_unseen.to_dict(),
        "closed_form": None if linear is None else linear.to_dict(),
        "closed_form_unseen_text": None if linear is None or linear.unseen is None else linear.unseen.to_dict(),
        "shuffled": None if control is None else control.to_dict(),
    }
    return run.finish("evaluate", key, {**content, "lines": evaluate_lines(measured, linear, control)})


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


def evaluate_key(run: RunFolder) -> str:
    """Return the key that the evaluation of the heads in the folder has; raises as `RunFolder.record`."""
    trained = run.record("train")
    return stage_key(trained["key"], trained["heads"], run.config.evaluate.model_dump(), run.config.pairs.shown)


def stored_control(run: RunFolder) -> Any:
    """Return the shuffled-links control of the evaluation, or None."""
    stored = run.record("evaluate")["shuffled"]
    return None if stored is None else control_of(stored)


def _stored_encoders(work: Work, fingerprints: list[str]) -> bool:
    """Take the stored encoders where they are whole and have these fingerprints."""
    if "first_encoders" in vars(work):
        return True
    try:
        encoders = load_encoders(work.run, *_first(work.run))
    except (BridgeheadError, OSError, KeyError):
        return False
    if [encoder.fingerprint() for encoder in encoders.values()] != fingerprints:
        return False
    work.first_encoders = encoders
    return True


def _first(run: RunFolder) -> tuple[str, ...]:
    """Return the subfolder of the encoders before any training: none where they are the evaluated ones."""
    return () if run.config.live is None else ("first",)


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


def _control(work: Work, epochs: int) -> Any:
    """Return `fit(links, seed)` of the shuffled-links control."""
    part = work.first_part("train")
    return same_budget(
        work.run.config,
        work.start,
        part,
        work.run.path("shuffled"),
        test=work.part("test"),
        classes=work.classes(part),
        epochs=epochs,
        progress=work.progress,
    )


def check_part(links: Links, name: str) -> None:
    """Raise `LinksError` where a part has no links."""
    if not len(links):
        raise LinksError(
            f"the {name} part has no links; give it a share in split.fractions, or more pairs that are not left out "
            "(see: bridgehead check)"
        )
