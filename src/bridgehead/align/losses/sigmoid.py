"""Sigmoid loss: each pair of rows is told by itself whether it matches, with a bias for how rarely pairs do.

This module is not about the memory-bounded sum itself (`tiled`).
"""

from typing import Any, Literal

import numpy as np
import torch

from bridgehead.align.losses.contrast import Contrast, Direction, LossParts, Positives, contrast, in_range
from bridgehead.align.losses.softmax import without_autocast
from bridgehead.align.losses.tiled import sigmoid_tiled
from bridgehead.align.losses.tiles import Products, Tile, check_tile
from bridgehead.errors import ArgumentError


def sigmoid_loss(
    z_a: torch.Tensor,
    z_b: torch.Tensor,
    logit_scale: torch.Tensor | float,
    bias: torch.Tensor | float = -10.0,
    links: Any = None,
    *,
    tile: Tile = None,
    products: Products = "float32",
    direction: Direction = "both",
) -> torch.Tensor:
    """Return the sigmoid loss of SigLIP, a scalar of at least 0.

    With unit rows u, v, logits x_ij = s u_i . v_j + bias and y_ij = 1 for linked rows, else -1, an anchor i of a costs

        sum over all candidates j of log(1 + exp(-y_ij x_ij))

    averaged over the anchors that have a positive. A direction decides who the anchors are, so what is divided by: for
    square batches with row i linked to row i both directions are the same number, the sum over all pairs / n.
    `direction="both"` is the mean of the two. Rows without a positive stay candidates.

    `bias` is one finite number or tensor, -10 at the start in the paper, with s = 10: most pairs do not match, and so
    they cost next to nothing from the first step on. `tile` is None (n_a x n_b logits are held), a number of rows or
    "auto": the same value and gradients without them; `products` as in `info_nce`. Logits that are equal for all
    pairs cost least at a bias where the sigmoid is 1/n: log n + (n - 1) log(n / (n - 1)). Other arguments and errors
    as in `info_nce`.

    >>> rows = torch.eye(2)
    >>> round(float(sigmoid_loss(rows, rows, logit_scale=2.0, bias=-1.0)), 4)
    0.6265

    Source: Zhai et al. 2023 (arXiv:2303.15343) section 3.2 and algorithm 1, whose sign of the bias this is; several
    positives and rectangular batches are ours.
    """
    return sigmoid_parts(z_a, z_b, logit_scale, bias, links, tile=tile, products=products, direction=direction).loss


def sigmoid_parts(
    z_a: torch.Tensor,
    z_b: torch.Tensor,
    logit_scale: torch.Tensor | float,
    bias: torch.Tensor | float = -10.0,
    links: Any = None,
    *,
    tile: Tile = None,
    products: Products = "float32",
    direction: Direction = "both",
) -> LossParts:
    """Return `sigmoid_loss` with its directions and the rows left out; arguments and errors as there."""
    check_tile(tile, products)
    with without_autocast(z_a):
        given = contrast(z_a, z_b, logit_scale, links, direction)
        shift = _bias(bias, given.unit_a)
        if tile is None:
            costs = _costs(given, shift)
            return given.parts(lambda view: view.mean_over_anchors(view.scores.sum(dim=1)), costs, direction)
        return given.joined(*_tiled(given, shift, tile, products, direction))


def _costs(given: Contrast, bias: torch.Tensor) -> torch.Tensor:
    """Return log(1 + exp(-y x)) for all pairs, (n_a, n_b)."""
    p = given.positives
    against = given.scale * given.cosines() + bias
    signed = against.index_put((p.a, p.b), -against[p.a, p.b])
    return -torch.nn.functional.logsigmoid(-signed)


def _tiled(
    given: Contrast, bias: torch.Tensor, tile: int | Literal["auto"], products: Products, direction: Direction
) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    scale = given.scale.to(bias.dtype)

    def total(unit_a: torch.Tensor, unit_b: torch.Tensor, positives: Positives) -> torch.Tensor:
        return sigmoid_tiled(unit_a, unit_b, scale, bias, positives, tile, products)

    p, (unit_a, unit_b) = given.positives, (given.unit_a, given.unit_b)
    if p.left_out == (0, 0):
        # Every row is an anchor of its direction: one sum serves both.
        whole = total(unit_a, unit_b, p)
        return None if direction == "b_to_a" else whole / p.n_a, None if direction == "a_to_b" else whole / p.n_b
    forth = back = None
    if direction != "b_to_a":
        rows, at = _anchors(p.counts_a)
        forth = total(unit_a[rows], unit_b, Positives(at[p.a], p.b, len(rows), p.n_b)) / len(rows)
    if direction != "a_to_b":
        rows, at = _anchors(p.counts_b)
        back = total(unit_a, unit_b[rows], Positives(p.a, at[p.b], p.n_a, len(rows))) / len(rows)
    return forth, back


def _anchors(counts: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the rows that have a positive, and for each row its place among them."""
    has = counts > 0
    return has.nonzero().flatten(), has.cumsum(0) - 1


def _bias(bias: torch.Tensor | float, like: torch.Tensor) -> torch.Tensor:
    if isinstance(bias, bool) or not isinstance(bias, torch.Tensor | int | float | np.number):
        raise ArgumentError(f"bias is a {type(bias).__name__}; expected one number or tensor")
    shift = torch.as_tensor(in_range(bias), dtype=like.dtype, device=like.device)
    if shift.numel() != 1 or not bool(torch.isfinite(shift.detach()).all()):
        raise ArgumentError(f"bias = {bias!r:.80}; expected one finite number")
    return shift.reshape(())
