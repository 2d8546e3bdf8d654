"""Decoupled contrastive loss: InfoNCE whose denominator holds the negatives alone.

This module is not about InfoNCE itself (`infonce`) or about weights on negatives (`hard_negative`).
"""

from typing import Any

import torch

from bridgehead.align.losses.contrast import Direction, Form, LossParts, View, check_form, contrast
from bridgehead.align.losses.softmax import (
    has_negative,
    mean_where,
    pull,
    without_autocast,
    without_positives,
)


def decoupled_loss(
    z_a: torch.Tensor,
    z_b: torch.Tensor,
    logit_scale: torch.Tensor | float,
    links: Any = None,
    *,
    form: Form = "outside",
    direction: Direction = "both",
) -> torch.Tensor:
    """Return the decoupled contrastive loss (DCL), a scalar of any sign.

    With scores S and positives P_i as in `info_nce`, an anchor i of a costs

        outside:  mean over p in P_i of -S_ip + log sum over j not in P_i of exp S_ij
        inside:   -log sum over p in P_i of exp S_ip + log sum over j not in P_i of exp S_ij

    so that no linked item stands in the denominator: a positive that is already near no longer weakens the push from
    negatives, which helps most in small batches. Averaged over anchors; b to a and `direction` as in `info_nce`.

    An anchor whose candidates are all positives has nothing to be told from: it is left out like one without a
    positive, and `decoupled_parts` counts both. A direction in which no anchor remains is 0. Identical rows give
    log(N - 1) for N candidates and one positive. Arguments and errors as in `info_nce`.

    >>> rows = torch.eye(3)
    >>> round(float(decoupled_loss(rows, rows, logit_scale=2.0)), 4)
    -1.3069

    Source: Yeh et al. 2022 (arXiv:2110.06848) section 3, here between two sides only, without the negatives of the own
    side; several positives are ours.
    """
    return decoupled_parts(z_a, z_b, logit_scale, links, form=form, direction=direction).loss


def decoupled_parts(
    z_a: torch.Tensor,
    z_b: torch.Tensor,
    logit_scale: torch.Tensor | float,
    links: Any = None,
    *,
    form: Form = "outside",
    direction: Direction = "both",
) -> LossParts:
    """Return `decoupled_loss` with its directions; rows without a positive or without a negative count as left out."""
    check_form(form)
    with without_autocast(z_a):
        given = contrast(z_a, z_b, logit_scale, links, direction)
        scores = given.scale * given.cosines()
        # Where no anchor remains the loss is 0 whatever the rows are, and NaN would pass unseen.
        given.check_finite(scores.detach().sum())
        parts = given.parts(lambda view: _cost(view, form), scores, direction)
    p = given.positives
    idle_a, idle_b = int((p.counts_a == p.n_b).sum()), int((p.counts_b == p.n_a).sum())
    return LossParts(parts.loss, parts.a_to_b, parts.b_to_a, parts.left_out_a + idle_a, parts.left_out_b + idle_b)


def _cost(view: View, form: Form) -> torch.Tensor:
    costs = torch.logsumexp(without_positives(view), dim=1) - pull(view, form)
    return mean_where(costs, (view.counts > 0) & has_negative(view))
