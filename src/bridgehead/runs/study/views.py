"""What the study draws: held-out pairs in two dimensions before and after training, and a window of their scores.

This module is not about how they look (`report.study_figures`).
"""

from dataclasses import dataclass

import numpy as np

from bridgehead.align.model import TwoHeads
from bridgehead.runs.two_view import PairedRows
from bridgehead.vectors import FloatArray

N_IN_VIEW, VIEW_SEED = 20, 6050
N_IN_WINDOW, WINDOW_SEED = 40, 6052


@dataclass(frozen=True, eq=False)
class TwoDimensions:
    """The first two principal components of both sides' rows together, (n, 2) each; row i of `a` belongs to i of `b`.

    `share` in [0, 1] is the part of the rows' variance that the two components hold; `mate_cosine` and `other_cosine`
    are the mean cosines of true pairs and of all other pairs in the full space.
    """

    a: FloatArray
    b: FloatArray
    share: float
    mate_cosine: float
    other_cosine: float


def in_two_dimensions(model: TwoHeads, part: PairedRows, count: int = N_IN_VIEW) -> TwoDimensions:
    """Return the first `count` pairs (at least 2) of `part` under `model`, rows centred, in their principal plane.

    A component's sign is free; it is turned so that its largest weight is positive.
    """
    z_a, z_b = model.project_a(part.a[:count]), model.project_b(part.b[:count])
    both = np.concatenate([z_a, z_b]).astype(np.float64)
    centred = both - both.mean(axis=0)
    _, lengths, axes = np.linalg.svd(centred, full_matrices=False)
    plane = axes[:2] * np.sign(axes[:2][np.arange(2), np.abs(axes[:2]).argmax(axis=1)])[:, None]
    points = centred @ plane.T
    cosines = z_a.astype(np.float64) @ z_b.T
    return TwoDimensions(
        points[: len(z_a)], points[len(z_a) :], float((lengths[:2] ** 2).sum() / (lengths**2).sum()),
        float(np.diag(cosines).mean()), float(cosines[~np.eye(len(z_a), dtype=bool)].mean()),
    )  # fmt: skip


def score_window(model: TwoHeads, part: PairedRows, size: int = N_IN_WINDOW) -> FloatArray:
    """Return the cosines (size, size) of the first `size` images, in rows, with the first `size` texts, in columns."""
    return np.asarray(model.project_a(part.a[:size]) @ model.project_b(part.b[:size]).T)
