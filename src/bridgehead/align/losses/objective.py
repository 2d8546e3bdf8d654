"""What a training minimises: the loss that a config names, and terms beside it.

The only loss with state is the sigmoid, whose bias is learned. This module is not about the losses' arithmetic.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from bridgehead.align.losses.config import LossConfig
from bridgehead.align.losses.contrast import Direction, Form, LossParts, Positives, check_form, check_rows
from bridgehead.align.losses.decoupled import decoupled_parts
from bridgehead.align.losses.geometry import alignment_term, uniformity_term
from bridgehead.align.losses.guided import guided_parts
from bridgehead.align.losses.hard_negative import hard_negative_parts
from bridgehead.align.losses.hierarchical import hierarchical_parts
from bridgehead.align.losses.infonce import info_nce_parts
from bridgehead.align.losses.information import (
    MutualInformation,
    check_readable,
    is_readable,
    mutual_information_bound,
)
from bridgehead.align.losses.sigmoid import sigmoid_parts
from bridgehead.errors import ArgumentError, ConfigError

Sides = tuple[torch.Tensor, torch.Tensor]


class Objective(nn.Module):
    """The loss of a batch, as `config` names it, with alignment and uniformity added by their weights.

    loss = contrastive + alignment_weight alignment + uniformity_weight (uniformity of a + uniformity of b) / 2

    `form` and `direction` as in `info_nce`; the sigmoid knows no form. For "sigmoid" the module holds the learned
    `bias`, else it has no parameter. It draws nothing and keeps nothing between calls. `config` may be what
    `LossConfig.of` takes, a name or a mapping. Raises `ConfigError`, also for a form that the loss does not have.
    """

    def __init__(
        self,
        config: LossConfig | str | Mapping[str, Any] | None = None,
        form: Form = "outside",
        direction: Direction = "both",
    ) -> None:
        super().__init__()
        self.config = config if isinstance(config, LossConfig) else LossConfig.of(config)
        check_form(form)
        if direction not in ("both", "a_to_b", "b_to_a"):
            raise ArgumentError(f"direction = {direction!r}; expected 'both', 'a_to_b' or 'b_to_a'")
        if self.config.name == "sigmoid":
            if form != "outside":
                raise ConfigError(
                    f"form = {form!r}, and the sigmoid loss judges each pair by itself, so it has no forms; leave form "
                    "out"
                )
            self.bias = nn.Parameter(torch.tensor(self.config.bias_init))
        self.form, self.direction = form, direction

    @property
    def needs_guide(self) -> bool:
        """Whether `forward` needs the guide's rows of at least one side."""
        return self.config.name == "guided"

    @property
    def needs_classes(self) -> bool:
        """Whether `forward` needs the classes of both sides."""
        return self.config.name == "hierarchical"

    def forward(
        self,
        z_a: torch.Tensor,
        z_b: torch.Tensor,
        logit_scale: torch.Tensor | float,
        positives: Positives | None = None,
        *,
        classes: Sides | None = None,
        guide: tuple[torch.Tensor | None, torch.Tensor | None] | None = None,
    ) -> LossParts:
        """Return the loss of rows (n_a, d) and (n_b, d) taken apart.

        `positives` is what `info_nce` takes as links. `classes` are the classes of the batch's rows on both sides,
        -1 for none; `guide` the guide's rows of the batch, one side may be None. `a_to_b`, `b_to_a` and
        `terms["contrastive"]` are the loss without added terms; `terms` has "alignment" and "uniformity" where their
        weights are over 0, unweighted, and what the loss reports of itself. Raises `ArgumentError` where classes or
        guide are needed and missing, and what the losses raise.
        """
        if self.needs_classes and classes is None:
            raise ArgumentError("the loss is 'hierarchical', and no classes came; pass classes=(classes_a, classes_b)")
        if self.needs_guide and guide is None:
            raise ArgumentError("the loss is 'guided', and no guide came; pass guide=(rows_a, rows_b)")
        for name, pair in (("classes", classes), ("guide", guide)):
            if pair is not None and (not isinstance(pair, tuple | list) or len(pair) != 2):
                raise ArgumentError(f"{name} is a {type(pair).__name__}; expected a pair, (of a, of b)")
        check_rows(z_a, z_b)
        positives = Positives.of(positives, len(z_a), len(z_b), z_a.device)
        parts = self._contrastive(z_a, z_b, logit_scale, positives, classes, guide)
        loss, terms = parts.loss, {**(parts.terms or {}), "contrastive": parts.loss.detach()}
        if self.config.alignment_weight > 0:
            alignment = alignment_term(z_a, z_b, positives)
            loss, terms["alignment"] = loss + self.config.alignment_weight * alignment, alignment.detach()
        if self.config.uniformity_weight > 0:
            t = self.config.uniformity_t
            uniformity = (uniformity_term(z_a, t) + uniformity_term(z_b, t)) / 2
            loss, terms["uniformity"] = loss + self.config.uniformity_weight * uniformity, uniformity.detach()
        return replace(parts, loss=loss, terms=terms)

    def _contrastive(
        self,
        z_a: torch.Tensor,
        z_b: torch.Tensor,
        scale: torch.Tensor | float,
        positives: Positives,
        classes: Sides | None,
        guide: tuple[torch.Tensor | None, torch.Tensor | None] | None,
    ) -> LossParts:
        config, form, direction = self.config, self.form, self.direction
        tile = None if config.tile == "none" else config.tile
        rows = (z_a, z_b, scale)
        match config.name:
            case "info_nce":
                return info_nce_parts(*rows, positives, form, direction, tile=tile, products=config.products)
            case "decoupled":
                return decoupled_parts(*rows, positives, form=form, direction=direction)
            case "hard_negative":
                beta, tau_plus = config.beta, config.tau_plus
                return hard_negative_parts(
                    *rows, positives, beta=beta, tau_plus=tau_plus, form=form, direction=direction
                )
            case "sigmoid":
                return sigmoid_parts(
                    *rows, self.bias, positives, tile=tile, products=config.products, direction=direction
                )
            case "guided":
                guide_a, guide_b = guide or (None, None)
                return guided_parts(
                    *rows,
                    positives,
                    guide_a=guide_a,
                    guide_b=guide_b,
                    guide_space=config.guide_space,
                    margin=config.margin,
                    kind=config.margin_kind,
                    form=form,
                    direction=direction,
                )
            case "hierarchical":
                classes_a, classes_b = classes or (None, None)
                return hierarchical_parts(
                    *rows,
                    positives,
                    classes_a=classes_a,
                    classes_b=classes_b,
                    coarse_weight=config.coarse_weight,
                    form=form,
                    direction=direction,
                )

    def chance(self, n_a: int, n_b: int, positives: Positives | None = None) -> float | None:
        """Return the contrastive loss of rows without signal, all alike, or None where it has no closed form.

        With N candidates of which k are positives (1 without `positives`), averaged as the loss is:

            info_nce, hard_negative:  log N; form "inside" log(N / k)
            decoupled:                log(N - k); form "inside" log((N - k) / k); 0 where no anchor has a negative
            sigmoid:                  N times the entropy of a share k / N, what a bias alone can reach
            hierarchical:             log N; form "inside" None
            guided:                   None, as it depends on what is masked
        """
        if min(n_a, n_b) < 1:
            raise ArgumentError(f"n_a = {n_a}, n_b = {n_b}; expected at least one row on each side")
        name = self.config.name
        if name == "guided" or (name == "hierarchical" and self.form == "inside"):
            return None
        found = []
        if self.direction != "b_to_a":
            found.append(self._chance_of_one(n_b, None if positives is None else positives.counts_a))
        if self.direction != "a_to_b":
            found.append(self._chance_of_one(n_a, None if positives is None else positives.counts_b))
        return sum(found) / len(found)

    def _chance_of_one(self, n: int, counts: torch.Tensor | None) -> float:
        name, inside = self.config.name, self.form == "inside"
        k = torch.ones(1, dtype=torch.float64) if counts is None else counts[counts > 0].double().cpu()
        if name == "sigmoid":
            share = min(1.0, float(k.mean()) / n)
            return n * sum(-p * math.log(p) for p in (share, 1 - share) if p > 0)
        if name == "decoupled":
            k = k[k < n]
            if len(k) == 0:
                return 0.0
            return float((n - k).log().mean()) - (float(k.log().mean()) if inside else 0.0)
        return math.log(n) - (float(k.log().mean()) if inside else 0.0)

    def reads_mutual_information(self, positives: Positives) -> bool:
        """Return whether a batch's loss reads as mutual information: plain InfoNCE with one positive a row."""
        return is_readable(self.config.name, positives)

    def mutual_information(self, parts: LossParts, positives: Positives) -> MutualInformation:
        """Return the readout of a batch's `forward`. Raises `ArgumentError` where there is none (`check_readable`)."""
        check_readable(self.config.name, positives)
        loss = parts.loss if parts.terms is None else parts.terms["contrastive"]
        return mutual_information_bound(float(loss.detach()), self.n_candidates(positives.n_a, positives.n_b))

    def n_candidates(self, n_a: int, n_b: int) -> float:
        """Return the number of candidates of an anchor; of both directions the geometric mean."""
        return {"a_to_b": float(n_b), "b_to_a": float(n_a), "both": math.sqrt(n_a * n_b)}[self.direction]
