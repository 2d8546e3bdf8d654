"""InfoNCE with negatives weighted by their hardness, and optionally corrected for those that are really positives.

This module is not about finding hard negatives outside the batch; that is `bridgehead.negatives`.
"""

import math
from typing import Any

import torch

from bridgehead.align.losses.contrast import Direction, Form, LossParts, View, check_form, contrast
from bridgehead.align.losses.infonce import log_sum_exp_of_positives
from bridgehead.align.losses.softmax import (
    check_number,
    has_negative,
    pull,
    without_autocast,
    without_positives,
)


def hard_negative_loss(
    z_a: torch.Tensor,
    z_b: torch.Tensor,
    logit_scale: torch.Tensor | float,
    links: Any = None,
    *,
    beta: float = 1.0,
    tau_plus: float = 0.0,
    form: Form = "outside",
    direction: Direction = "both",
) -> torch.Tensor:
    """Return InfoNCE over negatives weighted by exp(beta S), a scalar of at least 0.

    With scores S_ij = s u_i . v_j, positives P_i and the K candidates of anchor i that are no positives, the sum over
    negatives in the denominator of `info_nce` becomes

        R_i = sum over negatives j of w_ij exp S_ij,   w_ij = exp(beta S_ij) / mean over negatives k of exp(beta S_ik)
        N_i = max( (R_i - tau_plus K mean over p in P_i of exp S_ip) / (1 - tau_plus),  K exp(-s) )

        outside:  mean over p in P_i of -log( exp S_ip / (sum over q in P_i of exp S_iq + N_i) )
        inside:   -log( sum over p in P_i of exp S_ip / (sum over q in P_i of exp S_iq + N_i) )

    `beta`, 0 or more, is the concentration: it multiplies the score with s in it, as in the paper's released code, so
    that the weights get sharper as s grows. 0 is InfoNCE. `tau_plus`, in [0, 1), is the share of unlinked candidates
    that are thought to match all the same; what they would add is taken off, down to the least that K scores can sum
    to. 0 takes nothing off. The weights are part of the function and carry gradient.

    An anchor without negatives costs as in `info_nce`, 0 for one positive. Identical rows give log N for N candidates,
    whatever beta and tau_plus. All is summed as logarithms, so no beta and no s overflows. Arguments and errors as in
    `info_nce`; `ArgumentError` for beta or tau_plus out of range.

    >>> rows = torch.eye(3)
    >>> round(float(hard_negative_loss(rows, rows, logit_scale=2.0, beta=1.0)), 4)
    0.2395

    Source: Robinson et al. 2021 (arXiv:2010.04592) section 3 and the released code; the correction and its floor are
    those of Chuang et al. 2020 (arXiv:2007.00224) section 4, where M positives are averaged as here. Between two
    sides only; other positives stay in the denominator, unweighted.
    """
    return hard_negative_parts(
        z_a, z_b, logit_scale, links, beta=beta, tau_plus=tau_plus, form=form, direction=direction
    ).loss


def hard_negative_parts(
    z_a: torch.Tensor,
    z_b: torch.Tensor,
    logit_scale: torch.Tensor | float,
    links: Any = None,
    *,
    beta: float = 1.0,
    tau_plus: float = 0.0,
    form: Form = "outside",
    direction: Direction = "both",
) -> LossParts:
    """Return `hard_negative_loss` with its directions and the rows left out; arguments and errors as there."""
    check_form(form)
    beta = check_number("beta", beta, 0.0, math.inf, "a finite concentration of 0 or more (0 is InfoNCE)")
    tau_plus = check_number("tau_plus", tau_plus, 0.0, 1.0, "a share in [0, 1)")
    with without_autocast(z_a):
        given = contrast(z_a, z_b, logit_scale, links, direction)

        def cost(view: View) -> torch.Tensor:
            positives = log_sum_exp_of_positives(view)
            negatives = _weighted(view, beta)
            if tau_plus > 0:
                negatives = _debiased(view, negatives, positives, tau_plus, given.scale)
            total = torch.where(has_negative(view), torch.logaddexp(positives, negatives), positives)
            return view.mean_over_anchors(total - pull(view, form))

        return given.parts(cost, given.scale * given.cosines(), direction)


def _weighted(view: View, beta: float) -> torch.Tensor:
    """Return log R, (n,); any finite number for an anchor without negatives."""
    scores = without_positives(view)
    if beta == 0:
        return torch.logsumexp(scores, dim=1)
    # The weights are normalised before the scores are added: differences of sums over beta S would lose digits.
    return _log_count(view) + torch.logsumexp(scores + torch.log_softmax(beta * scores, dim=1), dim=1)


def _debiased(
    view: View, negatives: torch.Tensor, positives: torch.Tensor, tau_plus: float, scale: torch.Tensor
) -> torch.Tensor:
    """Return log N, (n,), of log R and log sum exp of the positives."""
    counts = _log_count(view)
    taken = math.log(tau_plus) + counts + positives - view.counts.clamp(min=1).to(positives.dtype).log()
    ratio = taken - negatives
    floor = counts - scale
    with torch.no_grad():
        kept = _log_one_minus_exp(ratio.clamp(max=0)) + negatives - math.log1p(-tau_plus) > floor
    # Where the floor holds, the other branch may have no finite gradient; a ratio of -1 stands in for it.
    rest = negatives + _log_one_minus_exp(torch.where(kept, ratio, -torch.ones_like(ratio))) - math.log1p(-tau_plus)
    return torch.where(kept, rest, floor)


def _log_one_minus_exp(x: torch.Tensor) -> torch.Tensor:
    return (-torch.expm1(x)).log()


def _log_count(view: View) -> torch.Tensor:
    """Return the logarithm of the number of negatives of each anchor, (n,); 0 where there is none."""
    return (view.scores.shape[1] - view.counts).clamp(min=1).to(view.scores.dtype).log()
