"""Symmetric InfoNCE over links: the loss that pulls linked rows together against all other rows of the batch.

Pure functions of rows, scale and links. This module is not about heads, batches or where negatives come from.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from bridgehead.errors import ArgumentError, LinksError, NonFiniteRowsError, ShapeError
from bridgehead.links import Links

Form = Literal["outside", "inside"]
Direction = Literal["both", "a_to_b", "b_to_a"]


@dataclass(frozen=True)
class InfoNCEParts:
    """A loss taken apart.

    `loss` is the scalar of `info_nce`; `a_to_b` and `b_to_a` its directions (None where `direction` leaves one out);
    `left_out_a` and `left_out_b` the numbers of rows without a positive, which are no anchors but stay candidates.
    """

    loss: torch.Tensor
    a_to_b: torch.Tensor | None
    b_to_a: torch.Tensor | None
    left_out_a: int
    left_out_b: int


def info_nce(
    z_a: torch.Tensor,
    z_b: torch.Tensor,
    logit_scale: torch.Tensor | float,
    links: Any = None,
    form: Form = "outside",
    direction: Direction = "both",
) -> torch.Tensor:
    """Return the InfoNCE loss of two sets of rows, a scalar of at least 0.

    With unit rows u, v, scores S_ij = s u_i . v_j, positives P_i and n_b candidates, an anchor i of a costs

        outside:  mean over p in P_i of -log( exp S_ip / sum_j exp S_ij )
        inside:   -log( sum over p in P_i of exp S_ip / sum_j exp S_ij )

    averaged over the anchors that have a positive; b to a likewise on the transposed scores; `direction="both"` is the
    mean of the two. inside <= outside always, and both are equal where each anchor has one positive.

    `z_a` (n_a, d) and `z_b` (n_b, d) need not be normalised: that happens here, in float32 or better whatever autocast
    says (half precision is raised to float32, float64 stays), and a zero row stays zero. `logit_scale` is s = 1 /
    temperature, 0 or more. `links` is None (row i with row i), `Links`, or (n, 2) pairs (row in a, row in b); all other
    positives of an anchor stay in the denominator. Rows without a positive are candidates but no anchors;
    `info_nce_parts` counts them. Identical rows give log n in a direction with n candidates; one candidate gives 0.

    Raises `ShapeError` (dimensions, widths), `ArgumentError` (form, direction, scale), `LinksError` (no link at all,
    or out of range) and `NonFiniteRowsError` (the loss is not finite; the message names the rows).

    >>> rows = torch.eye(3)
    >>> round(float(info_nce(rows, rows, logit_scale=2.0)), 4)
    0.2395

    Source: van den Oord et al. 2018 (arXiv:1807.03748) eq. 4; the symmetric form of CLIP (Radford et al. 2021, fig. 3);
    the two forms for several positives are L_out and L_in of Khosla et al. 2020 (arXiv:2004.11362), eq. 2 and 3, where
    ours of "inside" sums and does not average over positives.
    """
    return info_nce_parts(z_a, z_b, logit_scale, links, form, direction).loss


def info_nce_parts(
    z_a: torch.Tensor,
    z_b: torch.Tensor,
    logit_scale: torch.Tensor | float,
    links: Any = None,
    form: Form = "outside",
    direction: Direction = "both",
) -> InfoNCEParts:
    """Return `info_nce` with its directions and the numbers of rows left out; arguments and errors as there."""
    _check(z_a, z_b, form, direction)
    truth = Links.of(links, len(z_a), len(z_b)).expanded()
    if len(truth) == 0:
        raise LinksError(
            f"none of the {len(z_a)} x {len(z_b)} rows are linked, so no anchor has a positive; "
            "expected at least one link among the rows of a batch"
        )
    with torch.autocast(z_a.device.type, enabled=False):
        scale = _scale(logit_scale, z_a)
        unit_a, unit_b = _unit(z_a), _unit(z_b)
        wider = torch.promote_types(unit_a.dtype, unit_b.dtype)
        scores = scale * (unit_a.to(wider) @ unit_b.to(wider).T)
        positive = torch.zeros(scores.shape, dtype=torch.bool, device=scores.device)
        pairs = torch.from_numpy(truth.pairs).to(scores.device)
        positive[pairs[:, 0], pairs[:, 1]] = True
        a_to_b = _mean_cost(scores, positive, form) if direction != "b_to_a" else None
        b_to_a = _mean_cost(scores.T, positive.T, form) if direction != "a_to_b" else None
    found = [part for part in (a_to_b, b_to_a) if part is not None]
    loss = torch.stack(found).mean()
    if not torch.isfinite(loss):
        raise _not_finite(z_a, z_b, scale)
    left_out = [int((~positive.any(dim=side)).sum()) for side in (1, 0)]
    return InfoNCEParts(loss, a_to_b, b_to_a, *left_out)


def _mean_cost(scores: torch.Tensor, positive: torch.Tensor, form: Form) -> torch.Tensor:
    """Return the mean cost of the anchors (rows of `scores`) that have a positive."""
    counts = positive.sum(dim=1)
    anchors = counts > 0
    whole = torch.logsumexp(scores, dim=1)
    if form == "outside":
        costs = whole - (scores * positive).sum(dim=1) / counts.clamp(min=1)
    else:
        # Rows without a positive would be -inf with a NaN gradient: they are given all candidates, then left out.
        counted = positive | ~anchors[:, None]
        costs = whole - torch.logsumexp(scores.masked_fill(~counted, -math.inf), dim=1)
    return costs[anchors].mean()


def _unit(rows: torch.Tensor) -> torch.Tensor:
    """Return rows over their norm in float32 or better; zero rows stay zero and have a finite gradient."""
    rows = rows if rows.dtype == torch.float64 else rows.float()
    largest = rows.detach().abs().amax(dim=1, keepdim=True)
    # The direction does not depend on this factor, so leaving it out of the gradient is exact.
    rows = rows / torch.where(largest > 0, largest, torch.ones_like(largest))
    squares = (rows * rows).sum(dim=1, keepdim=True)
    return rows / torch.where(squares > 0, squares, torch.ones_like(squares)).sqrt()


def _scale(logit_scale: torch.Tensor | float, like: torch.Tensor) -> torch.Tensor:
    dtype = torch.float64 if like.dtype == torch.float64 else torch.float32
    if not isinstance(logit_scale, torch.Tensor | int | float | np.number):
        raise ArgumentError(
            f"logit_scale is a {type(logit_scale).__name__}; expected one number or tensor, s = 1 / temperature"
        )
    scale = torch.as_tensor(logit_scale, dtype=dtype, device=like.device)
    if scale.numel() != 1:
        raise ArgumentError(f"logit_scale has shape {tuple(scale.shape)}; expected one number, s = 1 / temperature")
    if not bool(torch.isfinite(scale)) or float(scale.detach()) < 0:
        raise ArgumentError(
            f"logit_scale = {float(scale.detach())}; expected a finite number of 0 or more (1 / temperature)"
        )
    return scale.reshape(())


def _check(z_a: torch.Tensor, z_b: torch.Tensor, form: str, direction: str) -> None:
    for name, rows in (("z_a", z_a), ("z_b", z_b)):
        if not isinstance(rows, torch.Tensor):
            raise ArgumentError(f"{name} is a {type(rows).__name__}; expected a torch tensor (n, d)")
        if rows.ndim != 2:
            raise ShapeError(f"{name} has shape {tuple(rows.shape)}; expected (n, d)")
        if rows.numel() == 0:
            raise ShapeError(f"{name} has shape {tuple(rows.shape)}; expected at least one row and one column")
        if not rows.is_floating_point():
            raise ArgumentError(f"{name} has dtype {rows.dtype}; expected floating point rows")
    if z_a.shape[1] != z_b.shape[1]:
        raise ShapeError(f"z_a has {z_a.shape[1]} columns and z_b {z_b.shape[1]}; both must live in one space")
    if form not in ("outside", "inside"):
        raise ArgumentError(f"form = {form!r}; expected 'outside' or 'inside'")
    if direction not in ("both", "a_to_b", "b_to_a"):
        raise ArgumentError(f"direction = {direction!r}; expected 'both', 'a_to_b' or 'b_to_a'")


def _not_finite(z_a: torch.Tensor, z_b: torch.Tensor, scale: torch.Tensor) -> NonFiniteRowsError:
    named = []
    for name, rows in (("z_a", z_a), ("z_b", z_b)):
        bad = torch.nonzero(~torch.isfinite(rows.detach()).all(dim=1)).flatten().tolist()
        if bad:
            more = f" and {len(bad) - 10} more" if len(bad) > 10 else ""
            named.append(f"rows {', '.join(map(str, bad[:10]))}{more} of {name} hold NaN or infinity")
    where = "; ".join(named) or f"all rows are finite, logit_scale is {float(scale.detach()):.6g}"
    return NonFiniteRowsError(f"the loss is not finite: {where}; expected finite rows (check inputs, learning rate)")
