"""A coarse loss over classes (drug class, family) beside the fine one over links.

Descriptions are often about a class of items rather than one of them. This module is not about where classes come
from; they never become links.
"""

import math
from dataclasses import replace
from typing import Any

import torch

from bridgehead.align.losses.contrast import Contrast, Direction, Form, LossParts, Positives, View, check_form, contrast
from bridgehead.align.losses.softmax import check_number, pull, without_autocast
from bridgehead.errors import ArgumentError, ShapeError


def hierarchical_loss(
    z_a: torch.Tensor,
    z_b: torch.Tensor,
    logit_scale: torch.Tensor | float,
    links: Any = None,
    *,
    classes_a: Any,
    classes_b: Any,
    coarse_weight: float = 0.5,
    form: Form = "outside",
    direction: Direction = "both",
) -> torch.Tensor:
    """Return (1 - w) fine + w coarse, a scalar of at least 0, with w = `coarse_weight` in [0, 1].

    fine is `info_nce` over `links`, where items of one class stay negatives of each other. coarse is `info_nce` with
    the same scores and form in which the positives of a row are the rows of the other side that have its class or are
    linked to it. So the fine part tells items apart and the coarse part keeps classes together; as the weights sum to
    1, the loss keeps its range, and identical rows give log n whatever w (form "outside"). w = 0 is `info_nce`.

    `classes_a` (n_a,) and `classes_b` (n_b,) are integers, one numbering for both sides, negative for no class. A row
    without a link but with a class is an anchor of the coarse part only. Other arguments and errors as in `info_nce`;
    `ArgumentError` for the weight or for classes that are no integers, `ShapeError` for their number. n_a x n_b
    scores and a mask are held.

    >>> rows = torch.eye(2)
    >>> round(float(hierarchical_loss(rows, rows, 2.0, classes_a=[0, 1], classes_b=[0, 1])), 4)
    0.1269

    Source: the weighted sum is ours, for texts coarser than what they describe; the coarse part is the supervised
    contrastive loss of Khosla et al. 2020 (arXiv:2004.11362) between two sides.
    """
    return hierarchical_parts(
        z_a,
        z_b,
        logit_scale,
        links,
        classes_a=classes_a,
        classes_b=classes_b,
        coarse_weight=coarse_weight,
        form=form,
        direction=direction,
    ).loss


def hierarchical_parts(
    z_a: torch.Tensor,
    z_b: torch.Tensor,
    logit_scale: torch.Tensor | float,
    links: Any = None,
    *,
    classes_a: Any,
    classes_b: Any,
    coarse_weight: float = 0.5,
    form: Form = "outside",
    direction: Direction = "both",
) -> LossParts:
    """Return `hierarchical_loss` with directions and `terms` "fine" and "coarse"; left out is what fine leaves out."""
    check_form(form)
    weight = check_number("coarse_weight", coarse_weight, 0.0, math.nextafter(1.0, 2.0), "a weight in [0, 1]")

    def cost(view: View) -> torch.Tensor:
        return view.mean_over_anchors(torch.logsumexp(view.scores, dim=1) - pull(view, form))

    with without_autocast(z_a):
        given = contrast(z_a, z_b, logit_scale, links, direction)
        scores = given.scale * given.cosines()
        fine = given.parts(cost, scores, direction)
        coarse = replace(given, positives=_of_one_class(given, classes_a, classes_b)).parts(cost, scores, direction)
        parts = given.joined(*(_mixed(a, b, weight) for a, b in _directions(fine, coarse)))
    return replace(parts, terms={"fine": fine.loss.detach(), "coarse": coarse.loss.detach()})


def _directions(fine: LossParts, coarse: LossParts) -> list[tuple[torch.Tensor | None, torch.Tensor | None]]:
    return [(fine.a_to_b, coarse.a_to_b), (fine.b_to_a, coarse.b_to_a)]


def _mixed(fine: torch.Tensor | None, coarse: torch.Tensor | None, weight: float) -> torch.Tensor | None:
    return None if fine is None or coarse is None else (1 - weight) * fine + weight * coarse


def _of_one_class(given: Contrast, classes_a: Any, classes_b: Any) -> Positives:
    """Return the pairs of rows of an equal class, and the linked ones."""
    p = given.positives
    a = _classes("classes_a", classes_a, p.n_a, p.a.device)
    b = _classes("classes_b", classes_b, p.n_b, p.a.device)
    same = (a[:, None] == b[None, :]) & (a >= 0)[:, None]
    same[p.a, p.b] = True
    rows, columns = same.nonzero(as_tuple=True)
    return Positives(rows, columns, p.n_a, p.n_b)


def _classes(name: str, classes: Any, n: int, device: torch.device) -> torch.Tensor:
    if classes is None:
        raise ArgumentError(f"{name} is None; expected {n} integers, one class for each row, negative for none")
    try:
        found = torch.as_tensor(classes, device=device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ArgumentError(
            f"{name} is no array of numbers ({error}); expected {n} integers, negative for none"
        ) from error
    if found.dtype in (torch.uint16, torch.uint32, torch.uint64):
        # Torch compares these with nothing; what int64 does not hold would turn negative, so into no class.
        found = found.to(torch.int64)
        if bool((found < 0).any()):
            raise ArgumentError(f"{name} holds a number of 2^63 or more; expected integers of int64")
    if found.is_floating_point() or found.is_complex() or found.dtype == torch.bool:
        raise ArgumentError(f"{name} has dtype {found.dtype}; expected integers, negative for no class")
    if found.shape != (n,):
        raise ShapeError(f"{name} has shape {tuple(found.shape)}; expected ({n},), one class for each row of the batch")
    return found
