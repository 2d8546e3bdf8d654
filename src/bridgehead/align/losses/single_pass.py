"""InfoNCE of a small batch in one go: value and gradients from the rows as they come, for steps that take milliseconds.

A batch of 32 rows costs less to multiply than to keep a graph of forty operations for. Everything, the normalisation
included, is one operation here, whose gradients are taken while the scores are there. Larger batches are in `tiled`,
and the definition in `infonce`. This module is not about those.
"""

from typing import Any

import torch

from bridgehead.align.losses.contrast import Contrast, Direction, Positives, first_derivatives_only

_Pair = tuple[torch.Tensor | None, torch.Tensor | None]


def info_nce_single_pass(given: Contrast, direction: Direction) -> _Pair:
    """Return InfoNCE (form "outside") from a to b and from b to a, None where `direction` leaves one out.

    The formula is `info_nce`'s. The n_a x n_b scores are held three times over. Gradients reach the rows as they came
    and s; there is no second derivative.
    """
    losses: _Pair = _SinglePass.apply(given.z_a, given.z_b, given.scale, given.positives, direction)  # type: ignore[no-untyped-call]
    return losses


class _SinglePass(torch.autograd.Function):
    """(z_a, z_b, s) -> the loss from a to b and from b to a; the gradients of both are taken forward."""

    @staticmethod
    def forward(
        ctx: Any, z_a: torch.Tensor, z_b: torch.Tensor, scale: torch.Tensor, p: Positives, direction: Direction
    ) -> _Pair:
        ctx.set_materialize_grads(False)
        wide = torch.float64 if torch.float64 in (z_a.dtype, z_b.dtype) else torch.float32
        (unit_a, norms_a), (unit_b, norms_b) = _unit(z_a, wide), _unit(z_b, wide)
        cosines = unit_a @ unit_b.T
        scores = cosines * scale
        sides = [
            None if direction == "b_to_a" else _side(scores, 1, *p.shares_a, p),
            None if direction == "a_to_b" else _side(scores, 0, *p.shares_b, p),
        ]
        ctx.rows = (unit_a, norms_a, unit_b, norms_b, cosines, scale)
        ctx.by_scores = [None if side is None else side[1] for side in sides]
        ctx.dtypes = (z_a.dtype, z_b.dtype, scale.dtype)
        a_to_b, b_to_a = (None if side is None else side[0] for side in sides)
        return a_to_b, b_to_a

    @staticmethod
    @first_derivatives_only
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        unit_a, norms_a, unit_b, norms_b, cosines, scale = ctx.rows
        wanted = [
            (own, by) for own, by in zip(ctx.by_scores, gradients, strict=True) if own is not None and by is not None
        ]
        if not wanted:
            return None, None, None, None, None
        by_scores = wanted[0][0] * wanted[0][1]
        if len(wanted) == 2:
            by_scores = by_scores.addcmul_(wanted[1][0], wanted[1][1])
        by_scale = torch.dot(by_scores.reshape(-1), cosines.reshape(-1)) if ctx.needs_input_grad[2] else None
        by_cosines = by_scores.mul_(scale)
        by_a = _through_norm(by_cosines @ unit_b, unit_a, norms_a) if ctx.needs_input_grad[0] else None
        by_b = _through_norm(by_cosines.T @ unit_a, unit_b, norms_b) if ctx.needs_input_grad[1] else None
        found = zip((by_a, by_b, by_scale), ctx.dtypes, strict=True)
        return *(None if own is None else own.to(dtype) for own, dtype in found), None, None


def _unit(rows: torch.Tensor, wide: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Return unit rows and their norms (n, 1), 1 for a zero row; squares are summed in float64."""
    rows = rows.to(wide)
    norms = torch.linalg.vector_norm(rows, dim=1, keepdim=True, dtype=torch.float64).to(wide)
    norms = norms.masked_fill_(norms == 0, 1)
    return rows / norms, norms


def _side(
    scores: torch.Tensor, dim: int, weights: torch.Tensor, shares: torch.Tensor, p: Positives
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the loss of one direction and its derivative by the scores; candidates are along `dim`."""
    logs = torch.log_softmax(scores, dim)
    weights, shares = weights.to(scores.dtype), shares.to(scores.dtype)
    loss = -torch.dot(shares, logs.view(-1)[p.flat])
    by_scores = logs.exp_().mul_(weights.unsqueeze(dim))
    by_scores.view(-1).index_add_(0, p.flat, shares, alpha=-1)
    return loss, by_scores


def _through_norm(by_unit: torch.Tensor, unit: torch.Tensor, norms: torch.Tensor) -> torch.Tensor:
    """Return the gradient by rows, given that by unit rows: the part across them, over the norms."""
    along = (by_unit * unit).sum(dim=1, keepdim=True)
    return by_unit.addcmul_(unit, along, value=-1).div_(norms)
