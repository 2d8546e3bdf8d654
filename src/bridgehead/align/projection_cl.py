"""`ProjectionCL`: projections of paired embeddings into one space, with a learned and bounded logit scale.

It is for those who have embeddings of both sides and write their own loop; `TwoHeads` is what `train` trains. This
module is not about encoders or about the loss, which is `losses.infonce.info_nce`.
"""

import math
import operator
from typing import Any

import torch
from torch import nn

from bridgehead.align.architecture import in_float32, real_number, whole_width
from bridgehead.align.features import check_features
from bridgehead.align.losses.contrast import unit
from bridgehead.align.losses.infonce import info_nce
from bridgehead.align.pretrained import Pretrained
from bridgehead.errors import ArgumentError, RunStateError, ShapeError


class ProjectionCL(Pretrained, nn.Module):
    """Two projection heads, (B, modality_dims[0]) and (B, modality_dims[1]) -> (B, embed_dim), and a logit scale.

    A head is a chain of `num_layers` linear layers with GELU and then dropout between them; the layers inside are
    `hidden_dim` wide (None: `embed_dim`), and `bias` gives all of them offsets. Weights start normal with variance
    1 / (width of the input) and offsets at 0, from torch's current generator, so that rows keep their length.

    `logit_scale` is the parameter, the logarithm of s, and `init_value` its start, log(logit_scale_init). What is used
    is s = exp(logit_scale) cut to [min_logit_scale, max_logit_scale] (no lower bound where it is None), so 1 / s is a
    temperature of at least 1 / max_logit_scale. A start outside the bounds is cut like any other value. Outside the
    bounds the part of the gradient that leads back passes and the part that leads further away does not: a scale that
    an optimiser took beyond a bound comes back as soon as the loss wants it to, where a plain clamp would keep it there
    for good.

    Attributes: `proj_a` and `proj_b` (`nn.Sequential`), `hidden_dim`, `init_value`, `logit_scale`, and `config`, the
    arguments; `save_pretrained` and `from_pretrained` come from `Pretrained`.

    Raises `ArgumentError` (a ValueError): modality_dims are not two, num_layers under 1, dropout outside [0, 1],
    logit_scale_init or max_logit_scale not over 0, min_logit_scale outside (0, max_logit_scale]; `ConfigError` (a
    ValueError): a width under 1; `RunStateError` (a RuntimeError): a head without a linear layer, which a subclass
    that builds its own could bring. The form is that of CLIP (Radford et al. 2021, arXiv:2103.00020, figure 3).

    >>> model = ProjectionCL(4, (6, 5))
    >>> logits_ab, logits_ba = model(torch.zeros(2, 6), torch.zeros(3, 5))
    >>> logits_ab.shape, logits_ba.shape, model.current_logit_scale()
    (torch.Size([2, 3]), torch.Size([3, 2]), 1.0)
    """

    def __init__(
        self,
        embed_dim: int = 512,
        modality_dims: tuple[int, int] = (1280, 768),
        *,
        bias: bool = False,
        logit_scale_init: float = 1.0,
        num_layers: int = 1,
        hidden_dim: int | None = None,
        dropout: float = 0.0,
        max_logit_scale: float = 10.0,
        min_logit_scale: float | None = None,
    ) -> None:
        super().__init__()
        self.embed_dim = whole_width("embed_dim", embed_dim)
        self.modality_dims = _two_widths(modality_dims)
        self.hidden_dim = self.embed_dim if hidden_dim is None else whole_width("hidden_dim", hidden_dim)
        self.num_layers = _number_of_layers(num_layers)
        dropout = real_number("dropout", dropout)
        if not 0 <= dropout <= 1:
            raise ArgumentError(f"dropout = {dropout}; expected a share in [0, 1]")
        logit_scale_init = real_number("logit_scale_init", logit_scale_init)
        self.max_logit_scale = real_number("max_logit_scale", max_logit_scale)
        self.min_logit_scale = None if min_logit_scale is None else real_number("min_logit_scale", min_logit_scale)
        _check_scale(logit_scale_init, self.max_logit_scale, self.min_logit_scale)
        self.bias, self.dropout = bool(bias), dropout
        self.config: dict[str, Any] = {
            "embed_dim": self.embed_dim,
            "modality_dims": list(self.modality_dims),
            "bias": self.bias,
            "logit_scale_init": logit_scale_init,
            "num_layers": self.num_layers,
            "hidden_dim": self.hidden_dim,
            "dropout": self.dropout,
            "max_logit_scale": self.max_logit_scale,
            "min_logit_scale": self.min_logit_scale,
        }
        self.proj_a = self.make_head(self.modality_dims[0])
        self.proj_b = self.make_head(self.modality_dims[1])
        self.init_value = math.log(logit_scale_init)
        self.logit_scale = nn.Parameter(torch.tensor(self.init_value))
        self.reset_parameters()

    def make_head(self, input_dim: int) -> nn.Module:
        """Return a new head for rows of this width; a subclass may build another, with at least one linear layer."""
        widths = [input_dim, *[self.hidden_dim] * (self.num_layers - 1), self.embed_dim]
        layers: list[nn.Module] = []
        for number in range(self.num_layers):
            if number:
                layers += [nn.GELU(), nn.Dropout(self.dropout)]
            layers.append(nn.Linear(widths[number], widths[number + 1], bias=self.bias))
        return nn.Sequential(*layers)

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw the weights of both heads anew and put the scale back to its start. Raises `RunStateError`."""
        for name, head in (("proj_a", self.proj_a), ("proj_b", self.proj_b)):
            linear = [layer for layer in head.modules() if isinstance(layer, nn.Linear)]
            if not linear:
                raise RunStateError(
                    f"{name} is a {type(head).__name__} without a linear layer; expected a head with at least one"
                )
            for layer in linear:
                nn.init.normal_(layer.weight, std=layer.in_features**-0.5)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)
        self.logit_scale.fill_(self.init_value)

    def encode_a(self, features: torch.Tensor) -> torch.Tensor:
        """Return the rows of modality A in the shared space, (..., embed_dim), not normalised.

        Raises `ShapeError` for another width.
        """
        return _encode(self.proj_a, features, self.modality_dims[0], "features_a")

    def encode_b(self, features: torch.Tensor) -> torch.Tensor:
        """As `encode_a`, for modality B."""
        return _encode(self.proj_b, features, self.modality_dims[1], "features_b")

    def forward(
        self, features_a: torch.Tensor, features_b: torch.Tensor, *, return_loss: bool = False, links: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor] | tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the logits L (B_a, B_b), L^T and, where `return_loss` is True, the loss, a scalar.

        With unit rows f_i, g_j of the projections, L_ij = s f_i . g_j with s cut to its bounds, in float32 or better
        whatever autocast says; a row projected to zero has logits of 0. The loss is (CE(L, I) + CE(L^T, I)) / 2, I the
        matching pairs on the diagonal; with `links` it is `info_nce` over them, and the batches may differ in size.

        Raises `ArgumentError` (a ValueError) when a loss without links is asked for and the batches differ in size,
        `ShapeError` (a ValueError) for another width or number of dimensions, and what `info_nce` raises.
        """
        z_a, z_b = self.encode_a(features_a), self.encode_b(features_b)
        if z_a.ndim != 2 or z_b.ndim != 2:
            raise ShapeError(
                f"features have shapes {tuple(features_a.shape)} and {tuple(features_b.shape)}; expected "
                f"(B, {self.modality_dims[0]}) and (B, {self.modality_dims[1]})"
            )
        if return_loss and links is None and len(z_a) != len(z_b):
            raise ArgumentError(
                f"the loss pairs row i with row i, and {len(z_a)} rows of a and {len(z_b)} of b came; expected equal "
                "numbers, or links=, the (row in a, row in b) pairs"
            )
        scale = self._scale()
        with torch.autocast(z_a.device.type, enabled=False):
            logits = scale * (unit(z_a) @ unit(z_b).T)
        if not return_loss:
            return logits, logits.T
        return logits, logits.T, info_nce(z_a, z_b, scale, links)

    def current_logit_scale(self) -> float:
        """Return s as it is used, within its bounds, for logging."""
        return float(self._scale().detach())

    def _scale(self) -> torch.Tensor:
        low = 0.0 if self.min_logit_scale is None else self.min_logit_scale
        scale: torch.Tensor = _Bounded.apply(_exp(self.logit_scale), low, self.max_logit_scale)  # type: ignore[no-untyped-call]
        return scale


def _exp(logarithm: torch.Tensor) -> torch.Tensor:
    """Return exp, far beyond the bounds of any use cut so that value and gradient are finite numbers of float32."""
    return (logarithm + (logarithm.clamp(-80, 80) - logarithm).detach()).exp()


class _Bounded(torch.autograd.Function):
    """clamp(s, low, high), whose gradient outside the bounds is only what leads back."""

    @staticmethod
    def forward(ctx: Any, s: torch.Tensor, low: float, high: float) -> torch.Tensor:
        ctx.below, ctx.above = s < low, s > high
        return s.clamp(low, high)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        # A step goes against the gradient: above the bound a positive one leads back, below it a negative one.
        zero = torch.zeros_like(gradient)
        leads_away = (ctx.above & (gradient < 0)) | (ctx.below & (gradient > 0))
        return torch.where(leads_away, zero, gradient), None, None


def _encode(head: nn.Module, features: torch.Tensor, width: int, name: str) -> torch.Tensor:
    check_features(features, name, width, head)
    projected: torch.Tensor = head(features)
    return projected


def _two_widths(dims: Any) -> tuple[int, int]:
    found = tuple(dims) if isinstance(dims, tuple | list) else (dims,)
    if len(found) != 2:
        raise ArgumentError(f"modality_dims = {dims!r}; expected exactly two widths, (of a, of b)")
    return whole_width("modality_dims[0]", found[0]), whole_width("modality_dims[1]", found[1])


def _number_of_layers(number: Any) -> int:
    try:
        layers = operator.index(number)
    except TypeError:
        layers = 0
    if layers < 1:
        raise ArgumentError(f"num_layers = {number!r}; expected a whole number of at least 1")
    return layers


def _check_scale(start: float, high: float, low: float | None) -> None:
    if not (start > 0 and in_float32(start)):
        raise ArgumentError(
            f"logit_scale_init = {start}; expected a finite number over 0 (of float32), 1 / temperature"
        )
    if not (high > 0 and (high == math.inf or in_float32(high))):
        raise ArgumentError(f"max_logit_scale = {high}; expected a number over 0 (of float32, or infinity)")
    if low is not None and not (0 < low <= high and in_float32(low)):
        raise ArgumentError(f"min_logit_scale = {low}; expected None or a number in (0, {high}], up to max_logit_scale")
