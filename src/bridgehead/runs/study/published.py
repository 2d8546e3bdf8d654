"""The published figures of the study, mean and sample SD over the seeds 6050 to 6054, as printed to four decimals.

Keys are `split.condition.metric`; `a_to_b` is image to text. `paired_minus_shuffled` is the difference within seeds,
published for recall@1 on the held-out part alone. This module is not about measuring anything.
"""

from bridgehead.runs.study.spread import METRICS

SPLITS = ("validation", "held_out")
CONDITIONS = ("paired", "shuffled")
DIFFERENCE = "paired_minus_shuffled"

_IN_THE_ORDER_OF_METRICS = {
    "validation.paired": ((0.9911, 0.0084), (0.9900, 0.0061), (1.0, 0.0), (1.0, 0.0)),
    "validation.shuffled": ((0.0044, 0.0046), (0.0078, 0.0063), (0.0233, 0.0133), (0.0222, 0.0152)),
    "held_out.paired": ((0.9747, 0.0038), (0.9660, 0.0092), (1.0, 0.0), (1.0, 0.0)),
    "held_out.shuffled": ((0.0027, 0.0028), (0.0027, 0.0043), (0.0113, 0.0084), (0.0100, 0.0097)),
    f"held_out.{DIFFERENCE}": ((0.9720, 0.0038), (0.9633, 0.0105)),
}

PUBLISHED: dict[str, tuple[float, float]] = {
    f"{where}.{metric}": figures
    for where, row in _IN_THE_ORDER_OF_METRICS.items()
    for metric, figures in zip(METRICS, row, strict=False)
}
"""`split.condition.metric` -> (mean, SD)."""

TOLERANCE = 0.005
"""How far a mean may be from the published one.

The recalls are counts among 180 or 300 queries and 5 seeds, so a mean moves in steps of 1/900 or 1/1500; sums taken in
another order decide near-ties of scores otherwise in single queries of single seeds, which is a few such steps.
"""
