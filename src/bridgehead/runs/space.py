"""The shape of the space on the test part, and what taking each side's mean away would change.

This module is not about how it is measured (`evaluate.geometry`) or judged (`auditing.space`).
"""

from typing import Any

from bridgehead.evaluate.geometry import GapCorrection, Geometry, gap_correction, geometry_report


def space_of(work: Any) -> tuple[Geometry, GapCorrection]:
    """Return the geometry of the test part, and what taking each side's mean (of the training rows) would change."""
    measured, config, test = work.evaluation, work.run.config, work.part("test")
    z_a, z_b = measured.z_a[: test.links.n_a], measured.z_b[: test.links.n_b]
    geometry = geometry_report(z_a, z_b, test.links, config.pairs.shown, seed=config.evaluate.seed)
    train = work.part("train")
    whole = len(z_a) == len(measured.z_a) and len(z_b) == len(measured.z_b) and work.asked.candidates is None
    correction = gap_correction(
        z_a,
        z_b,
        test.links,
        fit=(work.heads.project_a(train.rows_a), work.heads.project_b(train.rows_b)),
        ks=config.evaluate.ks,
        names=config.pairs.shown,
        entities_a=work.entities[0][: len(z_a)],
        entities_b=work.entities[1][: len(z_b)],
        n_resamples=config.evaluate.n_resamples,
        seed=config.evaluate.seed,
        before=measured.all if whole else None,
    )
    return geometry, correction
