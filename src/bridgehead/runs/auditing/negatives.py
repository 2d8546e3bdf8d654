"""False negatives of a run's training, and what rows that cannot be told apart allow at most.

This module is not about how they are counted (`audits.false_negatives` and its neighbours).
"""

from bridgehead.audits import Finding, ceiling_findings, false_negative_findings, guided_negative_findings, row_classes
from bridgehead.runs.auditing.applicable import NotApplicable
from bridgehead.runs.auditing.items import ids_of, same_item
from bridgehead.runs.work import Work


def shared_labels(work: Work) -> list[Finding]:
    """Count the in-batch negatives that are the anchor's own entity or text again."""
    _check_sampling(work)
    part, config = work.first_part("train"), work.run.config
    return _judged(
        false_negative_findings(
            part.links,
            config.train.links_per_batch(len(part.links)),
            same_a=same_item(work, "a", part.items_a),
            same_b=same_item(work, "b", part.items_b),
            ids_a=ids_of(work, "a", part.items_a),
            ids_b=ids_of(work, "b", part.items_b),
            names=config.pairs.shown,
        )
    )


def guided(work: Work) -> list[Finding]:
    """Count the in-batch negatives that the encoders' own rows, before any training, take for what is linked."""
    _check_sampling(work)
    part, config = work.first_part("train"), work.run.config
    return _judged(
        guided_negative_findings(
            part.links,
            config.train.links_per_batch(len(part.links)),
            guide_a=part.rows_a,
            guide_b=part.rows_b,
            seed=config.evaluate.seed,
            ids_a=ids_of(work, "a", part.items_a),
            ids_b=ids_of(work, "b", part.items_b),
            names=config.pairs.shown,
        )
    )


def ceiling(work: Work) -> list[Finding]:
    """Say how much of recall@1 the rows of the test part allow: items with equal rows tie under any head."""
    test = work.part("test")
    return ceiling_findings(
        test.links,
        row_classes(test.rows_a),
        row_classes(test.rows_b),
        report=work.alone,
        ids_a=ids_of(work, "a", test.items_a),
        ids_b=ids_of(work, "b", test.items_b),
        names=work.run.config.pairs.shown,
    )


def _check_sampling(work: Work) -> None:
    if work.run.config.train.negatives.sampling == "distinct":
        raise NotApplicable("negatives.sampling = 'distinct' keeps such links out of one batch already")


def _judged(found: list[Finding]) -> list[Finding]:
    if not found:
        raise NotApplicable("needs two training links, one of which is a negative of the other")
    return found
