"""Cross-validation of a run: every link held out once, heads and encoders made anew without it (`folds.json`).

A single test part of small data leaves most of the luck in the draw. Here each fold is ranked by a model that never saw
it, several times with other seeds, and what the seed moves is told from what the fold moves. This module is not about
what may not be separated (`pairs.folds`), storage (`folds.store`) or what it all says (`folds.summary`).
"""

import shutil
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import cached_property
from typing import Any

import numpy as np

from bridgehead.errors import ArgumentError, BridgeheadError
from bridgehead.evaluate import retrieval_report
from bridgehead.files import hash_array, hash_json, hash_texts, write_json
from bridgehead.links import Links
from bridgehead.pairs import deal_folds, split_pairs
from bridgehead.pairs.folds import Folds
from bridgehead.runs.encoded import PartRows, encode_table, fit_encoders, make_encoders
from bridgehead.runs.entities import entities_of
from bridgehead.runs.evaluation import unseen_texts
from bridgehead.runs.fitting import Start, epoch_lines, fit_model, projecting
from bridgehead.runs.folder import RunFolder, stage_key
from bridgehead.runs.folds.plan import LEAST_UNITS, FoldPlan, plan_of, settings_of
from bridgehead.runs.folds.store import (
    FOLDS_FILE,
    FORMAT,
    Trained,
    Training,
    load_training,
    queries_table,
    read_folds,
    store_training,
    tidy,
    working_folder,
)
from bridgehead.runs.folds.summary import summary_of
from bridgehead.runs.per_query import DIRECTIONS, values_of
from bridgehead.runs.prepare import Part, Progress, numbered, split_keys


def cross_validate(work: Any) -> dict[str, Any] | None:
    """Cross-validate a run whose stage encode is done, and return the record of `folds.json`; None where it is not due.

    It is due where `evaluate.folds` is above 0, or is left out and there are fewer than 3,000 entities (but at least
    20 that can be dealt out, and no encoder is trained, which takes long). Folds follow the rule of the split: what is
    held out, identities, group columns. Each is ranked, in both directions and over its own items alone, by a model
    whose encoders were fitted and whose heads were trained on the others, a share of which validates, as in the run.

    A training that is finished is taken from `folds/`: a killed call goes on where it stopped, and more repeats or
    seeds train only what is new. Raises `ConfigError` for one fold, and what dealing, encoding and training raise;
    where cross-validation was not asked for these are told to `work.progress` and the result is None. A `folds.json` of
    other data or settings is removed; one of these stays, also where it is not due now.
    """
    plan = plan_of(work)
    _remove_outdated(work)
    if plan is None:
        return None
    try:
        return _cross_validate(work, plan)
    except BridgeheadError as error:
        if plan.asked:
            raise
        work.progress("evaluate", f"no cross-validation: {error}", None, None)
        return None


def _cross_validate(work: Any, plan: FoldPlan) -> dict[str, Any]:
    run: RunFolder = work.run
    deals, trainings = _trainings(work, plan)
    key = _key(work, trainings)
    record = read_folds(run)
    if record is not None and record["key"] == key:
        return record
    if not plan.asked and deals[0].n_units < LEAST_UNITS:
        raise ArgumentError(f"{deals[0].n_units} separate entities; expected at least {LEAST_UNITS}")
    done: list[Trained] = []
    fold = None
    for training in trainings:
        found = load_training(run, training)
        if found is None:
            if fold is None or (fold.repeat, fold.number) != (training.repeat, training.fold):
                fold = _Fold(work, deals[training.repeat], training.repeat, training.fold)
            found = _train(fold, training, len(done), len(trainings))
        done.append(found)
    content = summary_of(done, run.config, plan.n_folds)
    content |= {"key": key, **_about(work), "folds_hash": _hash_of(work, deals)}
    content["trainings"] = [asdict(training) for training in trainings]
    write_json(run.path(FOLDS_FILE), content, FORMAT)
    tidy(run, {training.name for training in trainings})
    return content


def _about(work: Any) -> dict[str, str]:
    """Return what a record must share with the run to be about it: whatever shows it looks at no more than the file."""
    return {"data": work.prepared.key, "settings": settings_of(work.run.config)}


def _remove_outdated(work: Any) -> None:
    record = read_folds(work.run)
    if record is None or any(record.get(name) != value for name, value in _about(work).items()):
        work.run.path(FOLDS_FILE).unlink(missing_ok=True)


def _trainings(work: Any, plan: FoldPlan) -> tuple[list[Folds], list[Training]]:
    """Return the folds of each repeat, and all trainings in the order in which they run."""
    deals = [_deal(work, plan.n_folds, repeat) for repeat in range(plan.n_repeats)]
    config = work.run.config
    unfitted = [encoder.fingerprint() for encoder in make_encoders(config).values()]
    # Classes come from columns that the key of the data does not cover.
    sources = work.prepared.sources if config.train.loss.name == "hierarchical" else []
    known = stage_key(
        work.prepared.key,
        settings_of(config),
        unfitted,
        sources,
        config.split.model_dump(),
        config.pairs.entity,
        list(config.evaluate.ks),
    )
    trainings = [
        Training(repeat, fold, seed, stage_key(known, hash_array(deal.of_link), fold, seed))
        for repeat, deal in enumerate(deals)
        for fold in range(plan.n_folds)
        for seed in range(plan.n_seeds)
    ]
    return deals, trainings


def _key(work: Any, trainings: list[Training]) -> str:
    config = work.run.config
    return stage_key(
        [training.key for training in trainings], config.pairs.shown, config.evaluate.n_resamples, config.evaluate.seed
    )


def _deal(work: Any, n_folds: int, repeat: int) -> Folds:
    config = work.run.config
    return deal_folds(
        work.prepared.table.links, n_folds, seed=config.split.seed + repeat, **_what_belongs_together(work)
    )


def _what_belongs_together(work: Any) -> dict[str, Any]:
    """Return the arguments that folds and split share, as `prepare` gives them to the split."""
    config, table = work.run.config, work.prepared.table
    keys = split_keys(config, table, work.prepared.identities)
    if keys["keys_a"] is None and table.a.entities is not None:
        keys["keys_a"] = [(entity,) for entity in table.a.entities]
    hold_out = config.split.hold_out
    groups = table.group_labels("b" if hold_out == "b" else "a") if table.groups else None
    return {"hold_out": hold_out, "groups": groups, "items_a": table.a.items, "items_b": table.b.items, **keys}


def _hash_of(work: Any, deals: list[Folds]) -> str:
    """Return the hash of which pair of items lies in which fold, whatever the order of the records."""
    table = work.prepared.table
    texts = []
    for deal in deals:
        of_link = zip(deal.truth.pairs.tolist(), deal.of_link.tolist(), strict=True)
        texts.append(hash_texts(sorted(f"{table.a.items[a]}\0{table.b.items[b]}\0{fold}" for (a, b), fold in of_link)))
    return hash_json(texts)


class _Fold:
    """One fold: what trains, validates and tests, and the rows of it all under encoders fitted on what trains."""

    def __init__(self, work: Any, folds: Folds, repeat: int, number: int) -> None:
        self.work, self.repeat, self.number = work, repeat, number
        self.label = f"fold {number + 1} of {folds.n_folds}" + (f", repeat {repeat + 1}" if repeat else "")
        held_out = folds.of_link == number
        self.test: Part = numbered(folds.truth.pairs[held_out])
        rest, dropped = folds.truth.pairs[~held_out], work.prepared.dropped[~held_out]
        validates = self._validating(rest)
        self.train: Part = numbered(rest[~validates & ~dropped])
        self.valid: Part = numbered(rest[validates])

    def _validating(self, pairs: Any) -> Any:
        """Mark the links of the other folds that validate: the share that the run has, whole entities again."""
        config, table = self.work.run.config, self.work.prepared.table
        train, valid, _ = config.split.fractions
        nobody = np.zeros(len(pairs), dtype=bool)
        if valid == 0:
            return nobody
        share = valid / (train + valid)
        try:
            split = split_pairs(
                Links(pairs, table.links.n_a, table.links.n_b),
                fractions=(1 - share, share, 0),
                seed=config.split.seed + self.repeat,
                **_what_belongs_together(self.work),
            )
        except ArgumentError:
            # One entity alone: nothing is left to validate with, and the last epoch is kept.
            return nobody
        return split.part_link == 1

    @cached_property
    def start(self) -> Start:
        """The encoders fitted on what trains, and the rows of all items under them."""
        work = self.work
        say = _said(work.progress, self.label)
        encoders = fit_encoders(work.run, work.prepared, self.train, say)
        if [encoder.fingerprint() for encoder in encoders.values()] == [
            encoder.fingerprint() for encoder in work.first_encoders.values()
        ]:
            # Nothing in them is fitted: the rows of the run are those of every fold.
            start: Start = work.start
            return start
        return Start(encoders, encode_table(work.run, work.prepared.table, encoders, say), work.prepared.table)

    def rows(self, part: Part) -> PartRows:
        """Return the rows and links of a part of the fold."""
        return self.start.rows.of(part)


def _said(progress: Progress, label: str) -> Progress:
    def say(_stage: str, message: str, done: int | None, total: int | None) -> None:
        progress("evaluate", f"{label}: {message}", done, total)

    return say


def _train(fold: _Fold, training: Training, n_done: int, n_all: int) -> Trained:
    """Train one model of a fold, measure it on the fold, and store what it found."""
    work = fold.work
    run, config = work.run, work.run.config
    place = working_folder(run, training)
    tidy(run, working=place)
    started = time.monotonic()
    train, test = fold.rows(fold.train), fold.rows(fold.test)
    label = f"training {n_done + 1} of {n_all} ({fold.label}, seed {training.seed + 1}): "
    result = fit_model(
        config,
        fold.start,
        train,
        place,
        train=config.train.model_copy(update={"seed": config.train.seed + training.seed}),
        valid=fold.rows(fold.valid),
        classes=work.classes(train),
        progress=epoch_lines(work.progress, "evaluate", label),
    )
    facts, queries = _measured(work, fold, projecting(config, place, work.prepared.table, test), test)
    facts |= {"best_epoch": result.best_epoch, "seconds": round(time.monotonic() - started, 2)}
    found = store_training(run, training, facts, queries)
    # As large as the run's own, and measured: kept no longer.
    shutil.rmtree(place, ignore_errors=True)
    return found


def _measured(work: Any, fold: _Fold, model: Any, test: PartRows) -> tuple[dict[str, Any], Any]:
    config, table = work.run.config, work.prepared.table
    labels = entities_of(work, test)
    report = retrieval_report(
        model.project_a(test.rows_a),
        model.project_b(test.rows_b),
        test.links,
        ks=config.evaluate.ks,
        names=config.pairs.shown,
        entities_a=labels[0],
        entities_b=labels[1],
        n_resamples=0,
    )
    unseen = unseen_texts(table.b.items, fold.train[1], test.items_b)
    ids = [table.a.ids[n] for n in test.items_a.tolist()], [table.b.ids[n] for n in test.items_b.tolist()]
    mask = unseen[report.b_to_a.queries]
    facts = {
        "links": {name: len(getattr(fold, name)[2]) for name in ("train", "valid", "test")},
        "values": _by_key(lambda direction: direction.values, report),
        "chance": _by_key(lambda direction: direction.chance, report),
        "n_queries": {name: getattr(report, name).n_queries for name in DIRECTIONS},
        "pool": {name: getattr(report, name).n_candidates for name in DIRECTIONS},
        "unseen_chance": report.b_to_a.subset(mask, n_resamples=0).chance if mask.any() else None,
    }
    return facts, queries_table(report, ids, values_of(table, test), labels, unseen)


def _by_key(which: Callable[[Any], dict[str, float]], report: Any) -> dict[str, float]:
    return {f"{name}.{metric}": v for name in DIRECTIONS for metric, v in which(getattr(report, name)).items()}
