"""`InfoNCELoss`: the symmetric InfoNCE loss as a module that learns its temperature.

The loss itself is `losses.infonce.info_nce`. This module is not about heads or a scale with bounds (`scale`).
"""

import math
from typing import Any

import torch
from torch import nn

from bridgehead.align.architecture import in_float32, real_number
from bridgehead.align.losses.infonce import info_nce
from bridgehead.errors import ArgumentError


class InfoNCELoss(nn.Module):
    """InfoNCE with a learned temperature tau, of which `log_temperature` is the logarithm and the parameter.

    Calling it with rows z_a (n_a, d) and z_b (n_b, d) returns `info_nce(z_a, z_b, 1 / tau, links)`, a scalar of at
    least 0. Rows are normalised there; without `links` row i matches row i.

    tau has no bounds: nothing is clamped, so its gradient is never cut off. A tau so small that 1 / tau leaves float32
    is refused by the loss; a training that should keep tau within bounds takes `scale.LogitScale` and `info_nce`.

    Raises `ArgumentError` for a temperature that is not over 0 and a number of float32; calling it raises as `info_nce`
    does. Source: van den Oord et al. 2018 (arXiv:1807.03748) eq. 4; Radford et al. 2021 (arXiv:2103.00020), figure 3
    and the start of 0.07 in section 2.5.

    >>> round(float(InfoNCELoss(0.5)(torch.eye(3), torch.eye(3)).detach()), 4)
    0.2395
    """

    def __init__(self, initial_temperature: float = 0.07) -> None:
        super().__init__()
        initial_temperature = real_number("initial_temperature", initial_temperature)
        if not (initial_temperature > 0 and in_float32(initial_temperature)):
            raise ArgumentError(
                f"initial_temperature = {initial_temperature}; expected a finite number over 0 (of float32), such as "
                "0.07"
            )
        self.config = {"initial_temperature": initial_temperature}
        self.log_temperature = nn.Parameter(torch.tensor(math.log(initial_temperature)))

    @property
    def temperature(self) -> float:
        """tau = exp(log_temperature)."""
        return float(self.log_temperature.detach().exp())

    def forward(self, z_a: torch.Tensor, z_b: torch.Tensor, links: Any = None) -> torch.Tensor:
        """Return the loss, a scalar tensor."""
        return info_nce(z_a, z_b, (-self.log_temperature).exp(), links)
