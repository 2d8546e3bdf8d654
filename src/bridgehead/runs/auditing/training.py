"""The training of a run: its history, and the rows it ended with.

This module is not about what the numbers mean (`audits.training`).
"""

from typing import Any

from bridgehead.audits import (
    EvaluatedPart,
    Finding,
    collapse_findings,
    convergence_findings,
    gap_findings,
    loss_findings,
    scale_findings,
)
from bridgehead.runs.work import Work


def history(work: Work) -> list[Finding]:
    """Look at the last loss and the logit scale."""
    train, lines = work.run.config.train, _history(work)
    scale = scale_findings(lines, train.logit_scale_bounds, train.learn_scale)
    return [*loss_findings(lines, warm=train.warmup_epochs), *scale]


def convergence(work: Work) -> list[Finding]:
    """Look for the signals of a training that converged."""
    return convergence_findings(_history(work), learned=work.run.config.train.learn_scale)


def collapse(work: Work) -> list[Finding]:
    """Look whether the rows of the test part point in one direction, or use few dimensions."""
    test, measured = work.first_part("test"), work.evaluation
    sparse = any(hasattr(rows, "tocsr") for rows in (test.rows_a, test.rows_b))
    n_a, n_b = work.part("test").links.n_a, work.part("test").links.n_b
    before = None if sparse else (test.rows_a, test.rows_b)
    return collapse_findings(measured.z_a[:n_a], measured.z_b[:n_b], names=work.run.config.pairs.shown, before=before)


def gap(work: Work) -> list[Finding]:
    """Hold pairs that were trained on against those that validate, or where none do those of test, in equal pools."""
    train, valid = work.part("train"), work.part("valid")
    held_out = valid if len(valid.links) else work.part("test")
    return gap_findings(_projected(work, train), _projected(work, held_out), seed=work.run.config.evaluate.seed)


def _projected(work: Work, part: Any) -> EvaluatedPart:
    return EvaluatedPart(work.heads.project_a(part.rows_a), work.heads.project_b(part.rows_b), part.links)


def _history(work: Work) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = work.run.record("train")["history"]
    return lines
