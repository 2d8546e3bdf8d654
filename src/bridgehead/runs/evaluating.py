"""The stage evaluate: the figures of the test part beside baselines and controls, each query's own, and the contract.

This module is not about how any of it is measured (`evaluation`, `evaluate`) or about audits (`auditing`).
"""

from typing import Any

from bridgehead.runs.contract import measured_on
from bridgehead.runs.evaluation import closed_form, control_of, shuffled
from bridgehead.runs.evidence import evidence_lines, evidence_of
from bridgehead.runs.fitting import same_budget
from bridgehead.runs.folder import RunFolder, stage_key
from bridgehead.runs.folds.cross_validation import cross_validate
from bridgehead.runs.per_query import queries_hash, values_of, write_queries
from bridgehead.runs.pools import plain, pools_key
from bridgehead.runs.wording import evaluate_lines
from bridgehead.runs.work import Work, check_part

# What does not change the figures of the test part: cross-validation has a record of its own.
_ELSEWHERE = {"folds", "repeats", "seeds"}


def evaluate(work: Work) -> dict[str, Any]:
    """Measure retrieval on the test part, and cross-validate where that is due (`metrics.json`, `folds.json`).

    The record is that of the test part; `folds` is in it, and its lines follow, where there are folds.
    """
    record, folds = _test_part(work), cross_validate(work)
    return record if folds is None else {**record, "folds": folds, "lines": [*record["lines"], "", *folds["lines"]]}


def _test_part(work: Work) -> dict[str, Any]:
    """Measure the test part beside both baselines and the shuffled-links control."""
    run, config = work.run, work.run.config
    key = evaluate_key(run)
    if (found := run.done("evaluate", key)) and found["queries"] == queries_hash(run):
        return found
    check_part(work.part("test").links, "test")
    measured, simple = work.evaluation, work.untrained
    # Fitted here alone: whoever shows its figures later reads them from the record.
    if config.evaluate.closed_form != "none":
        work.progress("evaluate", f"closed form: {config.evaluate.closed_form}, no training", None, None)
    linear = closed_form(work.first_part("train"), work.first_asked, work.entities, work.unseen, config)
    control = _control(work)
    evidence = evidence_of(work, linear)
    content = {
        "measured_with": "evaluated heads, which never saw the test part",
        "all": measured.all.to_dict(),
        "unseen_text": None if measured.unseen is None else measured.unseen.to_dict(),
        "baseline": simple.all.to_dict(),
        "baseline_unseen_text": None if simple.unseen is None else simple.unseen.to_dict(),
        "closed_form": None if linear is None else linear.to_dict(),
        "closed_form_unseen_text": None if linear is None or linear.unseen is None else linear.unseen.to_dict(),
        "shuffled": None if control is None else control.to_dict(),
        "pool": work.asked.facts,
        "measurement": measured_on(work),
        **evidence,
    }
    values = values_of(work.prepared.table, work.asked.part)
    write_queries(run, measured.all, (work.asked.ids_a, work.asked.ids_b), values)
    lines = [*evaluate_lines(measured, simple, linear, control), *evidence_lines(work, evidence)]
    return run.finish("evaluate", key, {**content, "queries": queries_hash(run), "lines": lines})


def evaluate_key(run: RunFolder) -> str:
    """Return the key that the evaluation of the heads in the folder has; raises as `RunFolder.record`."""
    trained, config = run.record("train"), run.config
    pools = pools_key(config)
    return stage_key(
        trained["key"], trained["heads"], config.evaluate.model_dump(exclude=_ELSEWHERE), config.pairs.shown, pools
    )


def stored_control(run: RunFolder) -> Any:
    """Return the shuffled-links control of the evaluation, or None."""
    stored = run.record("evaluate")["shuffled"]
    return None if stored is None else control_of(stored)


def _control(work: Work) -> Any:
    """Return the shuffled-links control, or None. Encoders that train with it see the items of the test part only."""
    run = work.run
    asked = work.asked if run.config.live is None else plain(work.asked, work.part("test"))
    entities = work.entities[0][: asked.part.links.n_a], work.entities[1][: asked.part.links.n_b]
    part = work.first_part("train")
    fit = same_budget(
        run.config,
        work.start,
        part,
        run.path("shuffled"),
        test=asked.part,
        classes=work.classes(part),
        epochs=run.record("train")["epochs"],
        progress=work.progress,
    )
    return shuffled(fit, work.part("train"), asked, entities, run.config)
