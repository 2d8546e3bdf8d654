"""The signals of a training that converged: recall climbs, true pairs move together while rows stay apart, s settles.

They were named together by the tutorial that this package grew from; any one of them alone can mislead. This module is
not about how high recall is, which is measured on the test part.
"""

import numpy as np

from bridgehead.audits.data.linear_map import Float64Array
from bridgehead.audits.finding import Finding
from bridgehead.audits.training.history import History, check_history, first_series, scales
from bridgehead.errors import ArgumentError

LEAST_EPOCHS = 4
"""Fewer epochs have no first and last quarter to compare."""
FALLEN = 0.9
"""Share of its best below which the last recall has fallen: early stopping lets it slip by less."""
FULL = 0.95
"""Recall in the first quarter from which there is no room left to climb."""
DRIFT = 0.02
"""Change of ln s an epoch over the last quarter, above which the temperature still moves: 2 % an epoch doubles it in
35 epochs."""
LOST = 0.5
"""Share of its first magnitude below which uniformity has collapsed towards 0, where all rows are one point."""

CROWDED = -0.5
"""And whatever it was at first: squared distances of 0.25 on average, an angle of 29 degrees between two rows."""

_RECALL = (("valid_recall@10",), ("recall@10_a2b", "recall@10_b2a"), ("valid_mrr",))


def convergence_findings(history: History, learned: bool = True) -> list[Finding]:
    """Return which of the signals of convergence a history shows.

    `history` as `training` says, at least 4 epochs; `learned`: whether the logit scale was. Findings of the group
    "training", each only where every line holds what it needs; quarters are of the epochs, one epoch at least:

    - *recall climbs* (`valid_recall@10`, or the mean of `recall@10_a2b` and `recall@10_b2a`, or `valid_mrr`): value is
      the mean of the last quarter less the first epoch. Fails where it is not above 0 and no epoch was better than the
      first, or the last is under 0.9 of the first, unless it stayed at 0.95 or more; warns where it rose and lost all
      of it, or the last epoch is under 0.9 of the best one (over-fitting since).
    - *alignment rises* (`alignment` or `valid_alignment`, mean cosine of true pairs): value is the last quarter less
      the first epoch. Warns where it is not above 0.
    - *uniformity keeps* (`uniformity` or `valid_uniformity`, Wang and Isola 2020, negative; 0 is collapse): value is
      the last epoch's. Fails where it lost over half of its first magnitude, or is above -0.5.
    - *temperature settles* (`logit_scale` or `temperature`): value is the mean change of ln s an epoch over the last
      quarter. Warns above 0.02 either way. A rate that falls to 0 settles anything: read it with the scale's bound.

    Raises `ArgumentError` for fewer than 4 epochs or entries that are no finite numbers. Costs nothing.
    """
    check_history(history)
    n = len(history)
    if n < LEAST_EPOCHS:
        raise ArgumentError(f"the history has {n} epochs; expected at least {LEAST_EPOCHS} to see where it goes")
    found: list[Finding] = []
    recall = first_series(history, *_RECALL)
    if recall is not None:
        found.append(_climbs(*recall))
    alignment = first_series(history, ("valid_alignment",), ("alignment",))
    if alignment is not None:
        found.append(_rises(*alignment))
    uniformity = first_series(history, ("valid_uniformity",), ("uniformity",))
    if uniformity is not None:
        found.append(_keeps(uniformity[1]))
    scale = scales(history)
    if scale is not None and learned:
        found.append(_settles(_finite(scale, "logit scale")))
    return found


def _finite(values: Float64Array, name: str) -> Float64Array:
    if not np.isfinite(values).all():
        epoch = int(np.argmin(np.isfinite(values))) + 1
        raise ArgumentError(
            f"the history has a {name} of {values[epoch - 1]} in epoch {epoch}; expected finite numbers"
        )
    return values


def _gain(values: Float64Array) -> float:
    """Return the mean of the last quarter less the first epoch: most of the way is often made in a few epochs."""
    return float(values[-max(1, len(values) // 4) :].mean() - values[0])


def _climbs(name: str, values: Float64Array) -> Finding:
    gain, best = _gain(_finite(values, name)), int(np.argmax(values))
    title, expected = "recall climbs", f"above 0: {name} is higher in the last quarter of the epochs than in epoch 1"
    if min(values[0], values[-1]) >= FULL:
        why = f"{name} was at {values[0]:.3f} from the start and kept it: there was nowhere to climb"
        return Finding(title, gain, expected, "pass", why, "training")
    if gain <= 0 and (best == 0 or values[-1] < FALLEN * values[0]):
        why = f"{name} went from {values[0]:.3f} to {values[-1]:.3f}: training did not help it, or undid what it had"
        return Finding(title, gain, expected, "fail", why, "training")
    if gain <= 0 or values[-1] < FALLEN * values[best]:
        why = (
            f"{name} was best in epoch {best + 1} ({values[best]:.3f}) and fell to {values[-1]:.3f}: over-fitting "
            "since; the epoch that validation chose is what counts"
        )
        return Finding(title, gain, expected, "warn", why, "training")
    why = f"{name} went from {values[0]:.3f} to {values[-1]:.3f}"
    return Finding(title, gain, expected, "pass", why, "training")


def _rises(name: str, values: Float64Array) -> Finding:
    gain = _gain(_finite(values, name))
    title, expected = (
        "alignment rises",
        "above 0: true pairs are closer in the last quarter of the epochs than in epoch 1",
    )
    moved = f"their mean cosine went from {values[0]:.3f} to {values[-1]:.3f}"
    if gain <= 0:
        why = f"{moved}: true pairs did not come closer, though recall may rise where others moved away"
        return Finding(title, gain, expected, "warn", why, "training")
    return Finding(title, gain, expected, "pass", moved, "training")


def _keeps(values: Float64Array) -> Finding:
    first, last = float(_finite(values, "uniformity")[0]), float(values[-1])
    title = "uniformity keeps"
    most = min(LOST * first, CROWDED)
    expected = f"at most {most:.2f}: rows stay apart (0 is one point for all, about -4 even over the sphere)"
    if last > most:
        why = f"it went from {first:.2f} to {last:.2f}: rows move together, and true pairs with them, which is collapse"
        return Finding(title, last, expected, "fail", why, "training")
    return Finding(title, last, expected, "pass", f"it went from {first:.2f} to {last:.2f}", "training")


def _settles(scale: Float64Array) -> Finding:
    if (scale <= 0).any():
        raise ArgumentError("the history has a logit scale of 0 or less; expected 1 / temperature, above 0")
    quarter = max(1, len(scale) // 4)
    drift = float(np.log(scale[-1] / scale[-1 - quarter]) / quarter)
    title, expected = "temperature settles", f"ln s moves by at most {DRIFT:g} an epoch in the last quarter"
    moved = f"s went from {scale[0]:.1f} to {scale[-1]:.1f}, and by {drift:+.1%} an epoch at the end"
    if abs(drift) > DRIFT:
        why = f"{moved}: it still drifts, so longer training would end elsewhere"
        return Finding(title, drift, expected, "warn", why, "training")
    return Finding(title, drift, expected, "pass", moved, "training")
