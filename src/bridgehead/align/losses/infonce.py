"""Symmetric InfoNCE over links: the loss that pulls linked rows together against all other rows of the batch.

Pure functions of rows, scale and links. This module is not about heads, batches or where negatives come from.
"""

from typing import Any

import torch

from bridgehead.align.losses.contrast import Direction, Form, LossParts, View, check_form, contrast
from bridgehead.align.losses.single_pass import info_nce_single_pass
from bridgehead.align.losses.tiled import info_nce_tiled
from bridgehead.align.losses.tiles import Products, Tile, check_tile, is_small


def info_nce(
    z_a: torch.Tensor,
    z_b: torch.Tensor,
    logit_scale: torch.Tensor | float,
    links: Any = None,
    form: Form = "outside",
    direction: Direction = "both",
    tile: Tile = None,
    products: Products = "float32",
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

    `tile` bounds the memory: with a number, the scores are held in squares of that many rows and columns and computed
    once more for the gradient; value and gradient are the same to rounding (1e-10 in float64, 1e-5 in float32). "auto"
    chooses by the batch and the memory there is (`choose_tile`; up to 128 rows all scores are held, for speed) and
    suits any batch. None holds all n_a x n_b scores, and is the reference. Only None has second derivatives; the others
    refuse `create_graph=True`.

    `products="bf16"`, with `tile`, takes the matrix products in bfloat16, which pays where the processor has
    instructions for it. Scores, except those of positives, are then off by at most s / 256, so the loss is too; on
    random and on nearly aligned rows of 16 to 512 columns it was within 0.001 of 1 + itself up to s = 100. The gradient
    was within 2 % of its norm there, as long as the loss was not near 0: where nothing is left to learn, what is left
    of the gradient is rounding.

    Raises `ShapeError` (dimensions, widths), `ArgumentError` (form, direction, scale, tile, products), `LinksError` (no
    link at all, or out of range) and `NonFiniteRowsError` (the loss is not finite; the message names the rows).

    >>> rows = torch.eye(3)
    >>> round(float(info_nce(rows, rows, logit_scale=2.0)), 4)
    0.2395

    Source: van den Oord et al. 2018 (arXiv:1807.03748) eq. 4; the symmetric form of CLIP (Radford et al. 2021, fig. 3);
    the two forms for several positives are L_out and L_in of Khosla et al. 2020 (arXiv:2004.11362), eq. 2 and 3, where
    ours of "inside" sums and does not average over positives.
    """
    return info_nce_parts(z_a, z_b, logit_scale, links, form, direction, tile, products).loss


def info_nce_parts(
    z_a: torch.Tensor,
    z_b: torch.Tensor,
    logit_scale: torch.Tensor | float,
    links: Any = None,
    form: Form = "outside",
    direction: Direction = "both",
    tile: Tile = None,
    products: Products = "float32",
) -> LossParts:
    """Return `info_nce` with its directions and the numbers of rows left out; arguments and errors as there."""
    check_form(form)
    check_tile(tile, products)
    with torch.autocast(z_a.device.type if isinstance(z_a, torch.Tensor) else "cpu", enabled=False):
        given = contrast(z_a, z_b, logit_scale, links, direction)
        if tile == "auto" and products == "float32" and is_small(len(z_a), len(z_b)):
            if form == "outside":
                return given.joined(*info_nce_single_pass(given, direction))
        elif tile is not None:
            return given.joined(*info_nce_tiled(given, form, direction, tile, products))
        cost = _outside if form == "outside" else _inside
        return given.parts(cost, given.scale * given.cosines(), direction)


def _outside(view: View) -> torch.Tensor:
    costs = torch.logsumexp(view.scores, dim=1) - view.mean_over_positives(view.positive_scores)
    return view.mean_over_anchors(costs)


def _inside(view: View) -> torch.Tensor:
    costs = torch.logsumexp(view.scores, dim=1) - log_sum_exp_of_positives(view)
    return view.mean_over_anchors(costs)


def log_sum_exp_of_positives(view: View) -> torch.Tensor:
    """Return for each anchor log sum exp of the scores of its positives, (n,); 0 where there is none."""
    scores = view.positive_scores
    # The largest score of each anchor keeps the exponentials in range; rows without a positive get exp(0) x 0.
    largest = (
        scores.detach()
        .new_zeros(len(view.counts))
        .scatter_reduce(0, view.anchor, scores.detach(), "amax", include_self=False)
    )
    sums = view.sum_over_positives((scores - largest[view.anchor]).exp())
    return largest + torch.where(view.counts > 0, sums, torch.ones_like(sums)).log()
