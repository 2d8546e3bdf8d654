"""What the softmax losses share: the pull of an anchor's positives, and its negatives alone.

This module is not about any one loss; what comes before it (unit rows, links) is `contrast`.
"""

import math
from numbers import Real

import torch

from bridgehead.align.losses.contrast import Form, View, in_range
from bridgehead.align.losses.infonce import log_sum_exp_of_positives
from bridgehead.errors import ArgumentError


def without_autocast(rows: object) -> torch.autocast:
    """Return a context in which products keep the precision of their operands, for the device of `rows`."""
    return torch.autocast(rows.device.type if isinstance(rows, torch.Tensor) else "cpu", enabled=False)


def pull(view: View, form: Form) -> torch.Tensor:
    """Return what draws each anchor to its positives, (n,): the mean of their scores, or log sum exp of them."""
    if form == "outside":
        return view.mean_over_positives(view.positive_scores)
    return log_sum_exp_of_positives(view)


def has_negative(view: View) -> torch.Tensor:
    """Return (n,) boolean: whether an anchor has a candidate that is no positive."""
    return view.counts < view.scores.shape[1]


def without_positives(view: View) -> torch.Tensor:
    """Return the scores (n, m) with -inf for positives; all 0 for an anchor that has no negative."""
    # A row of -inf alone would have no gradient.
    away = torch.zeros_like(view.anchor, dtype=view.scores.dtype)
    away = away.masked_fill(has_negative(view)[view.anchor], -math.inf)
    return view.scores.index_put((view.anchor, view.candidate), away)


def mean_where(costs: torch.Tensor, is_anchor: torch.Tensor) -> torch.Tensor:
    """Return the mean of `costs` (n,) over the anchors, 0 where there is none."""
    return torch.where(is_anchor, costs, torch.zeros_like(costs)).sum() / is_anchor.sum().clamp(min=1)


def check_number(name: str, number: object, low: float, high: float, expected: str) -> float:
    """Return `number` as a float in [low, high). Raises `ArgumentError`."""
    if isinstance(number, bool) or not isinstance(number, Real) or not low <= in_range(number) < high:
        raise ArgumentError(f"{name} = {number!r}; expected {expected}")
    return float(number)
