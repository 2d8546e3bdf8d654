"""InfoNCE without the negatives that a frozen guide takes for matches: false negatives are masked, not pushed away.

A guide is rows of the same items from encoders that are not trained here. This module is not about making them.
"""

import math
from dataclasses import replace
from typing import Any, Literal

import torch

from bridgehead.align.losses.contrast import Contrast, Direction, Form, LossParts, View, check_form, contrast, unit
from bridgehead.align.losses.softmax import check_number, pull, without_autocast
from bridgehead.errors import ArgumentError, NonFiniteRowsError, ShapeError

GuideSpace = Literal["per_side", "shared"]
MarginKind = Literal["absolute", "relative"]

_ROUNDING = 1e-6
"""Identical rows have a product of 1 to within this in float32."""


def guided_loss(
    z_a: torch.Tensor,
    z_b: torch.Tensor,
    logit_scale: torch.Tensor | float,
    links: Any = None,
    *,
    guide_a: torch.Tensor | None = None,
    guide_b: torch.Tensor | None = None,
    guide_space: GuideSpace = "per_side",
    margin: float = 0.05,
    kind: MarginKind = "absolute",
    form: Form = "outside",
    direction: Direction = "both",
) -> torch.Tensor:
    """Return `info_nce` in which a guide takes likely false negatives out of the denominators, a scalar of at least 0.

    A negative j of anchor i is masked where the guide scores it above a threshold, g_ij > t_i:

        absolute:  t_i = r_i - margin
        relative:  t_i = r_i - margin |r_i|, below r_i for a negative r_i too

    `guide_space` says what the guide's unit rows tell:

    - "shared": `guide_a` and `guide_b` lie in one space (an earlier aligned model, say). g_ij is the product of row i
      of one side and row j of the other, r_i the highest g of the positives of i: what is masked is nearer to the
      anchor than its nearest positive, less the margin.
    - "per_side": each lies in a space of its own (the frozen encoders), and either may be None. g_ij is the highest
      product of j with a positive of i, by `guide_b`, or of i with a positive of j, by `guide_a`; r_i is 1, a
      positive's product with itself, so both kinds of margin mean the same. What is masked is a near-duplicate of
      what is linked: of the matching text, or of the matching molecule. Both directions mask the same pairs.

    Positives are never masked, and rows without a positive mask nothing. Where all negatives are masked, positives
    alone stay in the denominator; one positive then costs 0. A zero row of a guide knows nothing and masks nothing
    with margins under 1.

    `guide_a` (n_a, any width) and `guide_b` (n_b, any width) get no gradient and are normalised here; `margin` is 0 or
    more, and at 0 "per_side" masks identical rows (to within 1e-6), "shared" what scores strictly above the positive.
    Other arguments and errors as in `info_nce`; `ArgumentError`, `ShapeError` and `NonFiniteRowsError` also for the
    guide. n x n guide scores are held.

    Source: Solatorio 2024 (arXiv:2402.16829) for "shared", between two sides only; the margins are those of
    Moreira et al. 2024 (arXiv:2407.15831) section 4, the relative one with |r| so that it never rises above r.
    """
    return guided_parts(
        z_a,
        z_b,
        logit_scale,
        links,
        guide_a=guide_a,
        guide_b=guide_b,
        guide_space=guide_space,
        margin=margin,
        kind=kind,
        form=form,
        direction=direction,
    ).loss


def guided_parts(
    z_a: torch.Tensor,
    z_b: torch.Tensor,
    logit_scale: torch.Tensor | float,
    links: Any = None,
    *,
    guide_a: torch.Tensor | None = None,
    guide_b: torch.Tensor | None = None,
    guide_space: GuideSpace = "per_side",
    margin: float = 0.05,
    kind: MarginKind = "absolute",
    form: Form = "outside",
    direction: Direction = "both",
) -> LossParts:
    """Return `guided_loss` with its directions; `terms["masked"]` is the share of negatives that the guide masks."""
    check_form(form)
    margin = check_number("margin", margin, 0.0, math.inf, "a finite margin of 0 or more")
    if kind not in ("absolute", "relative"):
        raise ArgumentError(f"kind = {kind!r}; expected 'absolute' or 'relative'")
    with without_autocast(z_a):
        given = contrast(z_a, z_b, logit_scale, links, direction)
        scores = given.scale * given.cosines()
        rows_a, rows_b = _checked(given, guide_a, guide_b, guide_space)
        views = given.views(scores, direction)
        with torch.no_grad():
            if guide_space == "shared":
                assert rows_a is not None and rows_b is not None
                likeness = rows_a @ rows_b.T
                masks = [_above_positive(view, margin, kind) for view in given.views(likeness, direction)]
            else:
                near = _near_duplicates(given, rows_a, rows_b, 1 - margin - _ROUNDING)
                masks = [near, near.T]
        forth, back = (
            None if view is None or mask is None else _cost(view, mask, form)
            for view, mask in zip(views, masks, strict=True)
        )
        parts = given.joined(forth, back)
    used = [mask for mask, view in zip(masks, views, strict=True) if mask is not None and view is not None]
    negatives = max(1, scores.numel() - len(given.positives))
    masked = torch.stack([mask.sum() / negatives for mask in used]).mean().to(parts.loss.dtype)
    return replace(parts, terms={"masked": masked})


def _cost(view: View, mask: torch.Tensor, form: Form) -> torch.Tensor:
    sums = torch.logsumexp(view.scores.masked_fill(mask, -math.inf), dim=1)
    return view.mean_over_anchors(sums - pull(view, form))


def _above_positive(view: View | None, margin: float, kind: MarginKind) -> torch.Tensor | None:
    """Return (n, m) boolean: negatives that score above an anchor's highest positive, less the margin.

    `view` has the guide's scores.
    """
    if view is None:
        return None
    # Rows that are no anchors keep infinity as their threshold.
    highest = view.scores.new_full((len(view.counts),), math.inf)
    highest = highest.scatter_reduce(0, view.anchor, view.positive_scores, "amax", include_self=False)
    threshold = highest - (margin if kind == "absolute" else margin * highest.abs().clamp(max=1))
    mask = view.scores > threshold[:, None]
    mask[view.anchor, view.candidate] = False
    return mask


def _near_duplicates(
    given: Contrast, rows_a: torch.Tensor | None, rows_b: torch.Tensor | None, threshold: float
) -> torch.Tensor:
    """Return (n_a, n_b) boolean: negatives that are near a positive, seen from either side."""
    p = given.positives
    near = torch.zeros(p.n_a, p.n_b, dtype=torch.bool, device=p.a.device)
    if rows_b is not None:
        near |= _reached(rows_b, p.a, p.b, p.n_a, threshold)
    if rows_a is not None:
        near |= _reached(rows_a, p.b, p.a, p.n_b, threshold).T
    near[p.a, p.b] = False
    return near


def _reached(
    rows: torch.Tensor, anchor: torch.Tensor, candidate: torch.Tensor, n: int, threshold: float
) -> torch.Tensor:
    """Return (n, m) boolean: candidates, with guide rows (m, d), that are near one of the anchor's positives."""
    close = (rows @ rows.T > threshold).float()
    # Counts of positives that are near: sums of ones, so the order of addition does not matter.
    return rows.new_zeros(n, len(rows), dtype=torch.float32).index_add_(0, anchor, close[candidate]) > 0


def _checked(
    given: Contrast, guide_a: torch.Tensor | None, guide_b: torch.Tensor | None, guide_space: str
) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """Return the guide's rows as unit rows without gradient, on the device of the batch."""
    if guide_space not in ("per_side", "shared"):
        raise ArgumentError(f"guide_space = {guide_space!r}; expected 'per_side' or 'shared'")
    if guide_a is None and guide_b is None:
        raise ArgumentError("neither guide_a nor guide_b is given; expected the guide's rows of at least one side")
    if guide_space == "shared" and (guide_a is None or guide_b is None):
        raise ArgumentError("guide_space = 'shared' needs the guide's rows of both sides; pass guide_a and guide_b")
    n_a, n_b = given.positives.n_a, given.positives.n_b
    rows_a, rows_b = _unit_rows("guide_a", guide_a, n_a, given), _unit_rows("guide_b", guide_b, n_b, given)
    if guide_space == "shared" and rows_a is not None and rows_b is not None and rows_a.shape[1] != rows_b.shape[1]:
        raise ShapeError(
            f"guide_a has {rows_a.shape[1]} columns and guide_b {rows_b.shape[1]}; both must live in one space, or "
            "pass guide_space='per_side'"
        )
    return rows_a, rows_b


def _unit_rows(name: str, rows: torch.Tensor | None, n: int, given: Contrast) -> torch.Tensor | None:
    if rows is None:
        return None
    if not isinstance(rows, torch.Tensor) or not rows.is_floating_point():
        raise ArgumentError(f"{name} is a {type(rows).__name__}; expected a tensor of floating point rows")
    if rows.ndim != 2 or len(rows) != n or rows.shape[1] == 0:
        raise ShapeError(f"{name} has shape {tuple(rows.shape)}; expected ({n}, d), one row for each row of the batch")
    found = unit(rows.detach().to(given.unit_a.device))
    bad = (~torch.isfinite(found).all(dim=1)).nonzero().flatten().tolist()
    if bad:
        raise NonFiniteRowsError(
            f"rows {', '.join(map(str, bad[:10]))} of {name} hold NaN or infinity ({len(bad)} in all); expected finite "
            "rows of the guide"
        )
    return found.to(given.unit_a.dtype)
