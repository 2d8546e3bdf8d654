"""Two terms on the shape of the space: how near linked rows are, and how evenly rows spread over the sphere.

Terms to add to a loss or to watch beside it; as measures of trained rows they stand in `evaluate`. This module is not
about telling items apart.
"""

import math
from typing import Any

import torch

from bridgehead.align.losses.contrast import check_rows, contrast, first_derivatives_only, unit
from bridgehead.align.losses.softmax import check_number, without_autocast
from bridgehead.errors import NonFiniteRowsError

BLOCK_NUMBERS = 1 << 22
"""Distances that are held at a time, 16 MB of float32."""


def alignment_term(z_a: torch.Tensor, z_b: torch.Tensor, links: Any = None) -> torch.Tensor:
    """Return the mean squared distance of linked unit rows, a scalar in [0, 4]; each link counts once.

    mean over links (i, j) of |u_i - v_j|^2 = 2 - 2 cos. 0 where linked rows point the same way. Memory is of the
    order of the links. Arguments and errors as in `info_nce`.

    Source: Wang and Isola 2020 (arXiv:2005.10242) section 4.1, alpha = 2.
    """
    with without_autocast(z_a):
        given = contrast(z_a, z_b, 1.0, links)
        p = given.positives
        term = (given.unit_a[p.a] - given.unit_b[p.b]).square().sum(dim=1).mean()
        given.check_finite(term)
        idle_a, idle_b = p.left_out
        given.check_idle(idle_a > 0, idle_b > 0)
    return term


def uniformity_term(z: torch.Tensor, t: float = 2.0) -> torch.Tensor:
    """Return the log of the mean Gaussian potential of pairs of unit rows, a scalar in [-4 t, 0].

    log mean over i < j of exp(-t |u_i - u_j|^2): the lower, the more evenly the rows spread. Identical rows give 0; a
    single row has no pair and gives 0, without gradient. A row that stands in `z` twice is a pair at distance 0.

    `z` (n, d) need not be normalised; `t` is over 0. Distances are formed in blocks of rows, again for the gradient:
    memory beyond the rows is 4 million numbers, never n x n. The gradient itself cannot be differentiated again.
    Raises `ArgumentError`, `ShapeError` and `NonFiniteRowsError`.

    Source: Wang and Isola 2020 (arXiv:2005.10242) section 4.1.
    """
    check_rows(z, z)
    t = check_number("t", t, math.ulp(0.0), math.inf, "a finite number over 0")
    with without_autocast(z):
        rows = unit(z)
        if len(rows) == 1:
            return 0.0 * rows.sum()
        term: torch.Tensor = _LogMeanPotential.apply(rows, t)  # type: ignore[no-untyped-call]
    if not bool(torch.isfinite(term.detach())):
        bad = (~torch.isfinite(z.detach()).all(dim=1)).nonzero().flatten().tolist()
        raise NonFiniteRowsError(
            f"the uniformity of the rows is not finite: rows {', '.join(map(str, bad[:10]))} hold NaN or infinity; "
            "expected finite rows"
        )
    return term


class _LogMeanPotential(torch.autograd.Function):
    """log mean over i < j of exp(-t |u_i - u_j|^2), in blocks of rows."""

    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, t: float) -> torch.Tensor:
        # Over ordered pairs i != j: the mean is the same, and a block of rows meets all others.
        sums = [torch.logsumexp(block.flatten(), dim=0) for _, block in _blocks(rows, t)]
        log_sum = torch.logsumexp(torch.stack(sums), dim=0)
        ctx.save_for_backward(rows, log_sum)
        ctx.t = t
        return log_sum - math.log(len(rows) * (len(rows) - 1))

    @staticmethod
    @first_derivatives_only
    def backward(ctx: Any, above: torch.Tensor) -> tuple[torch.Tensor, None]:
        rows, log_sum = ctx.saved_tensors
        gradient = torch.empty_like(rows)
        for start, block in _blocks(rows, ctx.t):
            # Shares of ordered pairs; a row is in each of its pairs twice, once from either end.
            shares = (block - log_sum).exp_()
            own = rows[start : start + len(shares)]
            gradient[start : start + len(shares)] = own * shares.sum(dim=1, keepdim=True) - shares @ rows
        return gradient.mul_(-4.0 * ctx.t).mul_(above), None


def _blocks(rows: torch.Tensor, t: float) -> Any:
    """Yield (first row, -t |u_i - u_j|^2 of a block of rows i against all j), -inf where i = j."""
    n = len(rows)
    squares = rows.square().sum(dim=1)
    step = max(1, BLOCK_NUMBERS // n)
    for start in range(0, n, step):
        own = rows[start : start + step]
        distances = squares[start : start + step, None] + squares - 2 * (own @ rows.T)
        block = distances.clamp_(min=0).mul_(-t)
        block.diagonal(start).fill_(-math.inf)
        yield start, block
