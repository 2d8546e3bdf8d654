"""What stands behind the figures of the test part: pool sizes, the shape of the space, paired differences, slices.

Everything is computed from rows and ranks that the evaluation has; nothing trains here. This module is not about the
figures themselves (`evaluation`) or about claims with a verdict (`auditing`).
"""

from typing import Any

import numpy as np

from bridgehead.evaluate import RetrievalReport, retrieval_report
from bridgehead.evaluate.candidate_lists import choose_among
from bridgehead.evaluate.grouped import grouped_reports
from bridgehead.evaluate.paired import compare_reports, p_text
from bridgehead.runs.evaluation import ClosedFormEvaluation
from bridgehead.runs.slicing import slices_of
from bridgehead.runs.work import Work
from bridgehead.texts import normalise

DIRECTIONS = ("a_to_b", "b_to_a")


def evidence_of(work: Work, linear: ClosedFormEvaluation | None) -> dict[str, Any]:
    """Return the further results of the stage evaluate, JSON-safe.

    `against` holds trained minus baseline on the same queries (`baseline`, `closed_form`, `closed_form_unseen_text`),
    by metric; `by_pool` recall by pool size, by direction and k; `slices` parts of the queries; `grouped` what counts
    as right where items are the same again; `among` choosing among few drawn at random; `geometry` and
    `gap_correction` the space's shape.
    """
    return {
        "against": _against(work, linear),
        "by_pool": _by_pool(work),
        "slices": slices_of(work),
        "grouped": _grouped(work),
        "among": _among(work),
        **_geometry(work),
    }


def evidence_lines(work: Work, evidence: dict[str, Any]) -> list[str]:
    """Return what a person should read of them: what training added, and recall by pool size."""
    a, b = work.run.config.pairs.shown
    shown = {"a_to_b": f"{a} to {b}", "b_to_a": f"{b} to {a}"}
    titles = {
        "closed_form": "what training added to the closed form (paired difference, 95 % interval by entity):",
        "closed_form_unseen_text": f"the same, only queries whose {b} never occurred in training:",
    }
    lines = []
    for name, title in titles.items():
        if found := evidence["against"].get(name):
            lines.append(title)
            lines += [f"  {shown[side]}: {_added(found, side, work)}" for side in DIRECTIONS if _has(found, side)]
    lines += [line for side in DIRECTIONS if (line := _pool_line(evidence["by_pool"][side], shown[side]))]
    return lines


def _has(found: dict[str, Any], side: str) -> bool:
    return any(name.startswith(side) for name in found)


def _added(found: dict[str, Any], side: str, work: Work) -> str:
    parts = []
    for metric in (f"recall@{max(work.run.config.evaluate.ks)}", "mrr"):
        one = found[f"{side}.{metric}"]
        between = "" if one["low"] is None else f" ({one['low']:+z.3f} to {one['high']:+z.3f})"
        parts.append(f"{metric} {one['value']:+z.3f}{between}, p {p_text(one['p_value'])}")
    return "; ".join(parts)


def _pool_line(found: dict[str, list[dict[str, Any]]], shown: str) -> str:
    k, points = list(found.items())[-1]
    if len(points) < 2:
        return ""
    said = ", ".join(f"{p['recall']:.3f} among {p['size']:,} (chance {p['chance']:.4f})" for p in points)
    return f"{shown}, recall@{k} by size of the pool: {said}"


def _against(work: Work, linear: ClosedFormEvaluation | None) -> dict[str, Any]:
    measured = work.evaluation
    found = {"baseline": _differences(work, measured.all, work.untrained.all)}
    if linear is not None and linear.all is not None:
        found["closed_form"] = _differences(work, measured.all, linear.all)
        if measured.unseen is not None and linear.unseen is not None:
            both = _differences(work, measured.unseen, linear.unseen)
            found["closed_form_unseen_text"] = {name: one for name, one in both.items() if name.startswith("b_to_a")}
    return found


def _differences(work: Work, first: RetrievalReport, second: RetrievalReport) -> dict[str, Any]:
    settings = work.run.config.evaluate
    metrics = [f"{side}.{name}" for side in DIRECTIONS for name in (*(f"recall@{k}" for k in settings.ks), "mrr")]
    options = {"n_resamples": settings.n_resamples, "seed": settings.seed}
    return {name: one.to_dict() for name, one in compare_reports(first, second, metrics, **options).items()}


def _by_pool(work: Work) -> dict[str, dict[str, list[dict[str, Any]]]]:
    settings = work.run.config.evaluate
    sizes = (*settings.pool_sizes, None)
    return {
        side: {
            str(k): [point.to_dict() for point in getattr(work.evaluation.all, side).recall_by_pool(k, sizes)]
            for k in settings.ks
        }
        for side in DIRECTIONS
    }


def _geometry(work: Work) -> dict[str, Any]:
    geometry, correction = work.space
    return {"geometry": geometry.to_dict(), "gap_correction": correction.to_dict()}


def _grouped(work: Work) -> dict[str, Any] | None:
    """Return recall where any item of the same entity or text is right, beside the declared mates alone."""
    measured, config = work.evaluation, work.run.config
    part = work.asked.part
    texts = [normalise(item) for item in work.items("b")]
    groups = (work.entities[0], np.unique(texts, return_inverse=True)[1].reshape(-1))
    if all(len(set(own)) == len(own) for own in (groups[0], texts)):
        # Nothing is the same again: both readings are one.
        return None
    found = grouped_reports(
        measured.z_a, measured.z_b, part.links, *groups, ks=config.evaluate.ks, names=config.pairs.shown,
        n_resamples=config.evaluate.n_resamples, seed=config.evaluate.seed, entities_a=work.entities[0],
        entities_b=work.entities[1], queries_a=work.asked.queries_a, queries_b=work.asked.queries_b,
        candidates=work.asked.candidates,
    )  # fmt: skip
    return found.to_dict()


def _among(work: Work) -> dict[str, dict[str, Any]]:
    """Return the figures of choosing among T candidates drawn at random, by T: not to be held against a whole pool."""
    measured, config, part = work.evaluation, work.run.config, work.asked.part
    found = {}
    for t in config.evaluate.choose_among:
        back = part.links.swapped()
        lists = tuple(choose_among(links, links.n_b, t, config.evaluate.seed) for links in (part.links, back))
        report = retrieval_report(
            measured.z_a, measured.z_b, part.links, ks=(1, *config.evaluate.ks), names=config.pairs.shown,
            n_resamples=config.evaluate.n_resamples, seed=config.evaluate.seed, entities_a=work.entities[0],
            entities_b=work.entities[1], queries_a=work.asked.queries_a, queries_b=work.asked.queries_b,
            candidates=(lists[0], lists[1]),
        )  # fmt: skip
        found[str(t)] = report.to_dict()
    return found
