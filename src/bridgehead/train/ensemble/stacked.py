"""Several models of one architecture as one: their weights stacked, their gradients, and the loss of each.

A weight of shape (out, in) of S models is one tensor (S, in, out), so a layer of all models is one batched product. The
models are small, so what a step costs is the number of its operations: gradients are written down here rather than
recorded, and all weights lie in one piece of memory for the optimiser. The arithmetic is that of `align.heads` and
`align.losses.infonce` and must be changed with them. This module is not about what a training draws or decides.
"""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F

from bridgehead.align.architecture import NORM_EPSILON, HeadConfig
from bridgehead.align.model import TwoHeads
from bridgehead.errors import ArgumentError, NonFiniteRowsError

# The exponent up to which a sum of exponentials and its inverse are normal numbers, so that nothing need be shifted.
_LARGEST_EXPONENT = {torch.float32: 86.0, torch.float64: 700.0}

Tensors = dict[str, torch.Tensor]
Masks = Sequence[torch.Tensor | None]


class StackedModels:
    """S `TwoHeads` of one architecture; `weights` and `gradients` have their stacked tensors by their name there.

    Matrices are (S, in, out), biases and the weights of norms (S, 1, width), the logarithms of the scales (S,).
    `matrices` and `others` are one tensor each with all matrices and with all other learned weights, of which those by
    name are views, and the same holds for the gradients: what changes one changes the other. A scale that is not
    learned has no gradient. Raises `ArgumentError` for an architecture that is not stacked (see `StackedHead`).
    """

    def __init__(self, models: Sequence[TwoHeads], dtype: torch.dtype) -> None:
        states = [dict(model.named_parameters()) for model in models]
        stacked = {name: torch.stack([_stackable(state[name].detach()) for state in states]) for name in states[0]}
        logs = [_exact_log(model).to(dtype) for model in models]
        stacked["scale.log_logit_scale"] = torch.stack(logs)
        learned = {name for name, weight in states[0].items() if weight.requires_grad}
        is_matrix = {name: states[0][name].ndim == 2 for name in learned}
        self.weights: Tensors = {name: weight.to(dtype) for name, weight in stacked.items() if name not in learned}
        self.gradients: Tensors = {}
        self.matrices = self._joined({name: stacked[name] for name in stacked if is_matrix.get(name, False)}, dtype)
        self.others = self._joined({name: stacked[name] for name in stacked if not is_matrix.get(name, True)}, dtype)
        self.a, self.b = (
            StackedHead(getattr(models[0], head).config, _under(head, self.weights), _under(head, self.gradients))
            for head in ("head_a", "head_b")
        )
        self.log_scale = self.weights["scale.log_logit_scale"]
        self.low, self.high = models[0].scale._low, models[0].scale._high

    def _joined(self, weights: Tensors, dtype: torch.dtype) -> torch.Tensor:
        """Put weights into one tensor with a gradient, make those by name views of it, and return it."""
        flat = torch.cat([weight.reshape(-1) for weight in weights.values()]).to(dtype)
        gradient, start = torch.zeros_like(flat), 0
        for name, weight in weights.items():
            part = slice(start, start := start + weight.numel())
            self.weights[name] = flat[part].view(weight.shape)
            self.gradients[name] = gradient[part].view(weight.shape)
        flat.grad = gradient
        return flat

    @torch.no_grad()
    def project_(self) -> None:
        """Put the scales back into their bounds, in place, as `LogitScale.project_` does."""
        self.log_scale.clamp_(self.low, self.high)


class StackedHead:
    """One side's heads of S models, with the gradients of their weights written into `gradients`.

    Rows come already normalised (`shared_rows`). Raises `ArgumentError` for heads over CSR rows and for batch norm,
    whose running averages are no weights.
    """

    def __init__(self, config: HeadConfig, weights: Tensors, gradients: Tensors) -> None:
        self.config, self.weights, self.gradients = config, weights, gradients
        self.norm = str(config.norm)
        if self.norm == "batch":
            raise ArgumentError(
                "norm = 'batch' is not trained for several models at once; expected 'layer', 'rms' or "
                "'none', or fit_heads for each"
            )
        if config.sparse:
            raise ArgumentError("several models at once are trained on dense rows, and CSR rows came; use fit_heads")
        self.saved: list[tuple[torch.Tensor, ...]] = []

    @property
    def mask_widths(self) -> list[tuple[int, float]]:
        """The (width, share dropped) of the input and of each hidden layer, in the order in which `Head` draws them."""
        config = self.config
        return [(config.input_dim, config.input_dropout), *((width, config.dropout) for width in config.hidden)]

    @torch.no_grad()
    def forward(self, x: torch.Tensor, masks: Masks | None = None) -> torch.Tensor:
        """Return (S, n, embed_dim), not normalised, for x (S, n, input_dim), and keep what `backward` needs.

        `masks` multiply the input and each hidden layer before its product (dropout; None is none), one for each of
        `mask_widths`.
        """
        masks = masks or [None] * (1 + len(self.config.hidden))
        x = x if masks[0] is None else x * masks[0]
        hidden = below = first = torch.baddbmm(self.weights["first.bias"], x, self.weights["first.weight"])
        self.saved = [(x,)]
        for number, mask in enumerate(masks[1:]):
            before = hidden
            units = F.gelu(before) if self.config.activation == "gelu" else F.relu(before)
            units, *kept = self._normed(units, number)
            units = units if mask is None else units * mask
            below = below + units if self.config.skips(number) else units
            self.saved.append((below, before, *kept))
            hidden = torch.baddbmm(self.weights[f"rest.{number}.bias"], below, self.weights[f"rest.{number}.weight"])
        return hidden + first if self.config.residual == "output" else hidden

    @torch.no_grad()
    def backward(self, gradient: torch.Tensor, masks: Masks | None = None) -> None:
        """Write the gradients of the weights, given that (S, n, embed_dim) of the last `forward`'s output."""
        by_hidden, by_skip = gradient, None
        for number in reversed(range(len(self.config.hidden))):
            below, before, *kept = self.saved[number + 1]
            self._linear_backward(f"rest.{number}", below, by_hidden)
            by_below = torch.bmm(by_hidden, self.weights[f"rest.{number}.weight"].mT)
            by_below = by_below if by_skip is None else by_below + by_skip
            by_skip = by_below if self.config.skips(number) else None
            mask = None if masks is None else masks[number + 1]
            by_units = by_below if mask is None else by_below * mask
            by_units = self._norm_backward(by_units, kept, number)
            if self.config.activation == "gelu":
                by_hidden = torch.ops.aten.gelu_backward(by_units, before)
            else:
                by_hidden = torch.ops.aten.threshold_backward(by_units, before, 0)
        if self.config.residual == "output":
            by_hidden = by_hidden + gradient
        self._linear_backward("first", self.saved[0][0], by_hidden)

    def _linear_backward(self, name: str, entered: torch.Tensor, gradient: torch.Tensor) -> None:
        torch.bmm(entered.mT, gradient, out=self.gradients[f"{name}.weight"])
        torch.sum(gradient, 1, keepdim=True, out=self.gradients[f"{name}.bias"])

    def _normed(self, rows: torch.Tensor, number: int) -> tuple[torch.Tensor, ...]:
        """Return rows after the norm, and for its gradient the rows before its weights and the factor of each."""
        if self.norm == "none":
            return (rows,)
        if self.norm == "layer":
            variance, mean = torch.var_mean(rows, 2, correction=0, keepdim=True)
            factor = (variance + NORM_EPSILON).rsqrt()
            plain = (rows - mean) * factor
            weighted = torch.addcmul(
                self.weights[f"norms.{number}.bias"], plain, self.weights[f"norms.{number}.weight"]
            )
            return weighted, plain, factor
        factor = (rows.square().mean(2, keepdim=True) + NORM_EPSILON).rsqrt()
        plain = rows * factor
        return plain * self.weights[f"norms.{number}.weight"], plain, factor

    def _norm_backward(self, gradient: torch.Tensor, kept: Sequence[torch.Tensor], number: int) -> torch.Tensor:
        if self.norm == "none":
            return gradient
        plain, factor = kept
        torch.sum(gradient * plain, 1, keepdim=True, out=self.gradients[f"norms.{number}.weight"])
        if self.norm == "layer":
            torch.sum(gradient, 1, keepdim=True, out=self.gradients[f"norms.{number}.bias"])
        gradient = gradient * self.weights[f"norms.{number}.weight"]
        along = (gradient * plain).mean(2, keepdim=True)
        if self.norm == "layer":
            gradient = gradient - gradient.mean(2, keepdim=True)
        return gradient.addcmul_(plain, along, value=-1).mul_(factor)


@torch.no_grad()
def put_into(model: TwoHeads, stacked: Tensors, number: int) -> None:
    """Copy the weights of model `number` from stacked ones, as `StackedModels.weights` holds them, into `model`."""
    for name, weight in model.named_parameters():
        value = stacked[name][number]
        weight.copy_(value.T if weight.ndim == 2 else value.reshape(weight.shape))


class PairedLoss:
    """InfoNCE of S models at once where row i of a batch matches row i alone, with its gradients by hand.

    `forth` (S,) is the weight of each model's direction a to b, and the rest to 1 that of b to a. What it returns
    equals `info_nce` on each model's rows to rounding. It keeps the (S, n, n) scores of the last batch's size, so that
    steps of equal size allocate nothing of that order.
    """

    def __init__(self, forth: torch.Tensor) -> None:
        self.forth = forth[:, None, None]
        self.back = 1 - self.forth
        self.scores = torch.empty(0)
        self.weights = torch.empty(0)

    @torch.no_grad()
    def __call__(
        self, z_a: torch.Tensor, z_b: torch.Tensor, scale: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return losses (S,) and their gradients by z_a and z_b (S, n, d) and by the logarithm of `scale` (S,)."""
        (unit_a, inverse_a), (unit_b, inverse_b) = _unit(z_a), _unit(z_b)
        scaled = unit_a * scale[:, None, None]
        losses, logs = self._losses(scaled, unit_b, scale)
        weights = self._weights(*logs)
        by_a = torch.bmm(weights, unit_b) * scale[:, None, None]
        by_b = torch.bmm(weights.mT, scaled)
        along_a = (by_a * unit_a).sum(2, keepdim=True)
        by_a = by_a.addcmul_(unit_a, along_a, value=-1).mul_(inverse_a)
        by_b = by_b.addcmul_(unit_b, (by_b * unit_b).sum(2, keepdim=True), value=-1).mul_(inverse_b)
        # d S / d log s = S, and the sum of S by its gradients is the part of them along the rows.
        return losses, by_a, by_b, along_a.sum((1, 2))

    @torch.no_grad()
    def losses(self, z_a: torch.Tensor, z_b: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        """Return the losses (S,) alone."""
        (unit_a, _), (unit_b, _) = _unit(z_a), _unit(z_b)
        return self._losses(unit_a * scale[:, None, None], unit_b, scale)[0]

    def _losses(
        self, scaled: torch.Tensor, unit_b: torch.Tensor, scale: torch.Tensor
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        """Return losses (S,) and what `_weights` reads beside `scores`, which become exponentials where they can."""
        shape = (*scaled.shape[:2], unit_b.shape[1])
        if self.scores.shape != shape or self.scores.dtype != scaled.dtype:
            self.scores = scaled.new_empty(shape)
        n, scores = shape[1], torch.bmm(scaled, unit_b.mT, out=self.scores)
        truth = scores.diagonal(dim1=1, dim2=2).sum(1)
        if float(scale.max()) + math.log(n) <= _LARGEST_EXPONENT[scores.dtype]:
            powers = scores.exp_()
            kept = tuple(powers.sum(dim, keepdim=True) for dim in (2, 1))
            log_a, log_b = kept[0].log(), kept[1].log()
        else:
            kept = log_a, log_b = tuple(scores.logsumexp(dim, keepdim=True) for dim in (2, 1))
            kept = (*kept, scores)
        losses = (self.forth * log_a).sum((1, 2)) + (self.back * log_b).sum((1, 2)) - truth
        return losses / n, kept

    def _weights(self, of_a: torch.Tensor, of_b: torch.Tensor, scores: torch.Tensor | None = None) -> torch.Tensor:
        """Return the gradients by the scores (S, n, n), from sums of exponentials, or logarithms of them and scores."""
        n = self.scores.shape[1]
        forth, back = self.forth / n, self.back / n
        if scores is None:
            if self.weights.shape != self.scores.shape or self.weights.dtype != self.scores.dtype:
                self.weights = torch.empty_like(self.scores)
            weights = torch.add(forth / of_a, back / of_b, out=self.weights).mul_(self.scores)
        else:
            weights = torch.exp(scores - of_a).mul_(forth).add_(torch.exp(scores - of_b).mul_(back))
        weights.diagonal(dim1=1, dim2=2).sub_(1 / n)
        return weights


def check_losses(losses: torch.Tensor, names: Sequence[str]) -> None:
    """Raise `NonFiniteRowsError`, naming the models, unless all losses (S,) are finite."""
    bad = torch.nonzero(~torch.isfinite(losses)).flatten().tolist()
    if bad:
        raise NonFiniteRowsError(
            f"the loss of {', '.join(names[number] for number in bad)} is not finite; expected finite rows (check "
            "inputs, learning rate)"
        )


def _unit(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return unit rows and the factors 1 / norm; a zero row stays zero with the factor 1."""
    # In float64 the squares of float32 numbers neither overflow nor vanish.
    norms = torch.linalg.vector_norm(rows, dim=2, keepdim=True, dtype=torch.float64)
    inverse = norms.reciprocal_().nan_to_num_(nan=math.nan, posinf=1.0).to(rows.dtype)
    return rows * inverse, inverse


def _stackable(weight: torch.Tensor) -> torch.Tensor:
    return weight.T if weight.ndim == 2 else weight[None] if weight.ndim == 1 else weight


def _exact_log(model: TwoHeads) -> torch.Tensor:
    """Return log s in float64, without the rounding to float32 where it still is the start that was asked for."""
    log, start = model.scale.log_logit_scale.detach(), math.log(model.config.logit_scale)
    return torch.tensor(start, dtype=torch.float64) if float(log) == float(torch.tensor(start)) else log


def _under(head: str, tensors: Tensors) -> Tensors:
    return {name.removeprefix(f"{head}."): tensor for name, tensor in tensors.items() if name.startswith(f"{head}.")}
