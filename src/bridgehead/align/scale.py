"""The learnable logit scale s = 1 / temperature and its bounds.

The parameter is the logarithm. This module is not about the loss, which takes s as it is.
"""

import math
from typing import Any

import torch
from torch import nn

from bridgehead.align.architecture import in_float32, real_number
from bridgehead.errors import ArgumentError


class LogitScale(nn.Module):
    """s = exp(log_logit_scale), kept in `bounds`.

    `init` is s at the start, over 0 (default 1/0.07, as in CLIP, Radford et al. 2021, section 2.5). `bounds` are
    (lowest, highest) s, 0 <= lowest <= highest; `None` is unbounded, a lowest of 0 bounds above only. Calling it
    returns s clamped; outside the bounds the clamp has no gradient, so training calls `project_` after each step,
    which puts the parameter back and never lets it stick. `learnable=False` keeps s as it is. s and its bounds are
    numbers that float32 holds in full, 1.2e-38 to 3.4e38. Raises `ArgumentError`.
    """

    def __init__(
        self, init: float = 1 / 0.07, bounds: tuple[float, float] | None = (1.0, 100.0), learnable: bool = True
    ) -> None:
        super().__init__()
        init, bounds = real_number("logit_scale", init), _two_numbers(bounds)
        if not (math.isfinite(init) and init > 0):
            raise ArgumentError(f"logit_scale starts at {init}; expected a finite number over 0 (1 / temperature)")
        if bounds is not None and not (0 <= bounds[0] <= bounds[1] and bounds[1] > 0):
            raise ArgumentError(f"logit_scale bounds are {bounds}; expected 0 <= lowest <= highest, or None")
        for name, number in (("starts at", init), *(("has the bound", bound) for bound in bounds or () if bound)):
            if not in_float32(number):
                raise ArgumentError(f"logit_scale {name} {number}; expected a number of float32, 1.2e-38 to 3.4e38")
        if bounds is not None and not bounds[0] <= init <= bounds[1]:
            raise ArgumentError(f"logit_scale starts at {init}, outside its bounds {bounds}; move one of them")
        self.bounds = bounds
        self.log_logit_scale = nn.Parameter(torch.tensor(math.log(init)), requires_grad=learnable)
        self._low, self._high = (-math.inf, math.inf) if bounds is None else _log_bounds(*bounds)
        self.project_()

    def forward(self) -> torch.Tensor:
        """Return s, a scalar tensor within the bounds."""
        return self.log_logit_scale.clamp(self._low, self._high).exp()

    @torch.no_grad()
    def project_(self) -> None:
        """Put the parameter back into its bounds, in place; a NaN stays, for the loss to find."""
        self.log_logit_scale.clamp_(self._low, self._high)

    @property
    def temperature(self) -> float:
        """1 / s."""
        return 1.0 / float(self.forward().detach())


def _two_numbers(bounds: Any) -> tuple[float, float] | None:
    if bounds is None:
        return None
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise ArgumentError(f"logit_scale bounds are {bounds!r:.80}; expected (lowest, highest), or None")
    return real_number("the lowest logit_scale", bounds[0]), real_number("the highest logit_scale", bounds[1])


def _log_bounds(low: float, high: float) -> tuple[float, float]:
    """Return the logarithms as float32 numbers whose exponentials do not leave the bounds by rounding."""
    bottom = torch.tensor(low).log()
    top = torch.tensor(high).log()
    while float(bottom.exp()) < low:
        bottom = torch.nextafter(bottom, torch.tensor(math.inf))
    while float(top.exp()) > high:
        top = torch.nextafter(top, torch.tensor(-math.inf))
    return float(bottom), max(float(bottom), float(top))
