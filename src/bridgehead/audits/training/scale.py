"""The logit scale s = 1 / temperature at the end of a training: stopped by its bound, or gone where nothing is learnt.

Whether it settled is one of the signals of `convergence`. This module is not about the losses that have no scale: do
not ask it of them.
"""

import numpy as np

from bridgehead.audits.data.linear_map import Float64Array
from bridgehead.audits.finding import Finding
from bridgehead.audits.training.history import History, check_history, scales
from bridgehead.errors import ArgumentError
from bridgehead.evaluate.arguments import finite_number

AT_BOUND = 0.01
"""Within 1 % of a bound s is at it: training puts it back after every step, and rounding moves it by less."""
COLLAPSED, SHARP, DIVERGED = 1000.0, 200.0, 1.0
"""s from which one candidate takes all of the softmax (cosines 0.01 apart are told 22,000 to 1), from which it is far
beyond the 10 to 100 where learnt temperatures usually end, below which opposite rows are told 7 to 1 at most."""


def scale_findings(
    history: History, bounds: tuple[float, float] | None = (1.0, 100.0), learned: bool = True
) -> list[Finding]:
    """Return where the logit scale ended: away from its bounds, and in a range in which a softmax can learn.

    `history` as `training` says, with `logit_scale` or `temperature` a line; `bounds` are (lowest, highest) s that
    training held it to, None for none, `learned` whether it was learned at all. Two findings of the group "training":

    - *logit scale at its bound* (only with bounds): value is the share of epochs that ended within 1 % of a bound.
      Expected is that the last epoch did not. At the highest it warns: the bound decides the temperature, and data
      whose negatives are too easy look so. At the lowest it fails: the loss would rather tell nothing apart.
    - *temperature*: value is the last 1 / s. It fails from s = 1,000 (collapsed) and under s = 1 (diverged), warns from
      s = 200.

    A scale that was not learned, or a history without one, gives no finding. Raises `ArgumentError` (an empty history,
    bounds that are no pair). Costs nothing.
    """
    check_history(history)
    low, high = _checked_bounds(bounds)
    found = scales(history)
    if found is None or not learned:
        return []
    if not np.isfinite(found).all():
        raise ArgumentError("the history has a logit scale that is NaN or infinite; expected finite numbers")
    findings = [] if bounds is None else [_at_bound(found, low, high)]
    return [*findings, _temperature(float(found[-1]))]


def _checked_bounds(bounds: tuple[float, float] | None) -> tuple[float, float]:
    if bounds is None:
        return 0.0, float("inf")
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise ArgumentError(f"bounds = {bounds!r}; expected (lowest, highest) logit scale, or None")
    low, high = (finite_number(bound, "bounds", "(lowest, highest) logit scale", least=0) for bound in bounds)
    if low > high:
        raise ArgumentError(f"bounds = {bounds!r}; expected (lowest, highest) logit scale, or None")
    return low, high


def _at_bound(found: Float64Array, low: float, high: float) -> Finding:
    at_high, at_low = found >= high * (1 - AT_BOUND), found <= low * (1 + AT_BOUND)
    share = float((at_high | at_low).mean())
    name, expected = "logit scale at its bound", f"the last epoch ends between {low:g} and {high:g}, not at either"
    if at_low[-1]:
        why = (
            f"s ended at its lowest, {low:g}: the loss is smaller the less it tells candidates apart, so the links may "
            "be wrong, or the rows without signal"
        )
        return Finding(name, share, expected, "fail", why, "training")
    if at_high[-1]:
        since = len(found) - int(np.argmin(at_high[::-1])) if not at_high.all() else 0
        why = (
            f"s reached its highest, {high:g}, in epoch {since + 1} and stayed: the bound and not the data decides the "
            "temperature; negatives may be too easy (larger batches, mined negatives), or the pairs few"
        )
        return Finding(name, share, expected, "warn", why, "training")
    return Finding(name, share, expected, "pass", f"s ended at {found[-1]:.1f}, where the loss put it", "training")


def _temperature(scale: float) -> Finding:
    name, value = "temperature", 1 / scale if scale > 0 else 0.0
    expected = f"between {1 / SHARP:g} and {1 / DIVERGED:g}; learnt ones usually end between 0.01 and 0.1"
    if scale >= COLLAPSED:
        why = "collapsed: one candidate takes all of the softmax, so only the hardest pairs of a batch are learnt from"
        return Finding(name, value, expected, "fail", why, "training")
    if scale < DIVERGED:
        why = "diverged: the softmax is nearly even whatever the cosines are, so hardly anything is learnt from them"
        return Finding(name, value, expected, "fail", why, "training")
    if scale >= SHARP:
        why = "very sharp: the loss leans on a few hardest pairs, wrong ones among them; bound the scale, or look there"
        return Finding(name, value, expected, "warn", why, "training")
    return Finding(name, value, expected, "pass", f"s = {scale:.1f} tells cosines apart and still learns", "training")
