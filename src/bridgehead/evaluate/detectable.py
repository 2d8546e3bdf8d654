"""What difference a set of data could show at all: the power of a paired comparison by entity.

A difference that a comparison could not have found is no evidence that there is none. This module is not about the
comparison itself (`paired`).
"""

import math
from functools import lru_cache

import numpy as np
from scipy import special

from bridgehead.errors import ArgumentError
from bridgehead.evaluate.arguments import finite_number, whole_number
from bridgehead.evaluate.ties import Float64Array

_NODES = 200
_HALVINGS = 60
_SD = "the standard deviation of a difference, 0 or more"
_SHARE = "a share over 0 and under 1"


def detectable_difference(sd: float, n_entities: int, power: float = 0.8, level: float = 0.05) -> float | None:
    """Return the smallest true difference that a paired two-sided t test finds with probability `power`.

    `sd` is the standard deviation of the difference of an entity (`PairedDifference.sd`), in the metric's own unit,
    and `n_entities` how many there are. The difference is d * sd / sqrt(n) with the d at which the noncentral t
    distribution with n - 1 degrees of freedom is beyond the critical value of `level` with probability `power`; for
    many entities (1.96 + 0.84) * sd / sqrt(n) at 80 % and 5 %.

    One entity can show nothing: None. An `sd` of 0 gives 0: models that never differ would show any difference. A
    metric that cannot differ by so much (recall by more than 1) says that the data are too few.

    Raises `ArgumentError` for an `sd` that is negative or not finite, fewer than one entity, and shares outside (0, 1)
    or a power that is not above the level. Source: Cohen, Statistical Power Analysis (1988), chapter 2.

    >>> round(detectable_difference(0.5, 100), 3)
    0.141
    """
    sd = finite_number(sd, "sd", _SD, least=0)
    n_entities = whole_number(n_entities, "n_entities", 1)
    power, level = (finite_number(share, name, _SHARE) for name, share in (("power", power), ("level", level)))
    if not 0 < level < power < 1:
        raise ArgumentError(f"power = {power!r} and level = {level!r}; expected 0 < level < power < 1")
    if n_entities < 2:
        return None
    return sd / math.sqrt(n_entities) * _standard_errors(n_entities - 1, power, level)


def power_of(difference: float, sd: float, n_entities: int, level: float = 0.05) -> float:
    """Return the probability that a paired two-sided t test finds a true `difference` (the inverse of the above).

    The level itself for a difference of 0, 1 for an `sd` of 0 and another difference, 0 for one entity, which shows
    nothing. Raises `ArgumentError` for numbers that are not finite, an `sd` under 0, fewer than one entity, and a level
    outside (0, 1).
    """
    difference, sd = finite_number(difference, "difference"), finite_number(sd, "sd", _SD, least=0)
    n_entities, level = whole_number(n_entities, "n_entities", 1), finite_number(level, "level", _SHARE, above=0)
    if level >= 1:
        raise ArgumentError(f"level = {level!r}; expected {_SHARE}")
    if n_entities < 2:
        return 0.0
    if sd == 0:
        return 1.0 if difference else level
    return _power(abs(difference) / sd * math.sqrt(n_entities), n_entities - 1, level)


def _power(noncentrality: float, degrees: int, level: float) -> float:
    """Return P(|T| > c) of the noncentral t: the normal probability, averaged over the estimated SD.

    SciPy's own noncentral t is NaN in its tails.
    """
    critical = float(special.stdtrit(degrees, 1 - level / 2))
    estimated, weights = _estimated_sd(degrees)
    beyond = special.ndtr(noncentrality - critical * estimated) + special.ndtr(-noncentrality - critical * estimated)
    return float(weights @ beyond)


@lru_cache(maxsize=64)
def _estimated_sd(degrees: int) -> tuple[Float64Array, Float64Array]:
    """Return nodes and weights of the distribution of an estimated SD over the true one (Gauss-Legendre)."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return np.sqrt(2 * special.gammaincinv(degrees / 2, (nodes + 1) / 2) / degrees), weights / 2


@lru_cache(maxsize=256)
def _standard_errors(degrees: int, power: float, level: float) -> float:
    """Return how many standard errors a difference must be large."""
    lowest, highest = 0.0, 10.0
    while _power(highest, degrees, level) < power:
        highest *= 2
    for _ in range(_HALVINGS):
        middle = (lowest + highest) / 2
        lowest, highest = (middle, highest) if _power(middle, degrees, level) < power else (lowest, middle)
    return highest
