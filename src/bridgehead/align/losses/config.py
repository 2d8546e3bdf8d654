"""Which loss a training minimises, as settings, checked and explained; no torch here.

This module is not about the losses' arithmetic or about scale, form and direction, which all losses share.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt, field_validator, model_validator

from bridgehead.settings import read_settings

LossName = Literal["info_nce", "decoupled", "hard_negative", "sigmoid", "guided", "hierarchical"]

TILED: tuple[LossName, ...] = ("info_nce", "sigmoid")
"""Losses whose value and gradients can be had without the B x B matrix."""

_OPTIONS: dict[str, tuple[LossName, ...]] = {
    "products": TILED,
    "beta": ("hard_negative",),
    "tau_plus": ("hard_negative",),
    "bias_init": ("sigmoid",),
    "guide_space": ("guided",),
    "margin": ("guided",),
    "margin_kind": ("guided",),
    "coarse_weight": ("hierarchical",),
}


class LossConfig(BaseModel):
    """Settings of an `Objective`; frozen, and unknown keys are refused.

    An option that the named loss does not have may only stand at its default. Make one from untrusted values with
    `LossConfig.of(...)`, which raises `ConfigError` with one line per fault.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: LossName = Field(
        "info_nce",
        description="info_nce; decoupled: positives out of the denominator, for small batches; hard_negative: hard "
        "negatives weigh more; sigmoid: each pair by itself; guided: likely false negatives masked by the frozen "
        "encoders; hierarchical: classes beside links.",
    )
    tile: StrictInt | Literal["auto", "none"] = Field(
        "auto",
        description="Rows of a tile, so that no B x B matrix is held (info_nce, sigmoid); auto: by batch and memory; "
        "none: never.",
    )
    products: Literal["float32", "bf16"] = Field(
        "float32", description="Precision of a tile's matrix products; bf16 is faster where the processor has it."
    )
    beta: float = Field(
        1.0, ge=0, description="Concentration on hard negatives: weights exp(beta x score); 0 is info_nce."
    )
    tau_plus: float = Field(
        0.0, ge=0, lt=1, description="Share of unlinked pairs that are thought to match, taken off; 0: none."
    )
    bias_init: float = Field(
        -10.0,
        ge=-1e4,
        le=1e4,
        description="Start of the sigmoid's learned bias: at -10 pairs begin as unmatched, as nearly all are.",
    )
    guide_space: Literal["per_side", "shared"] = Field(
        "per_side",
        description="per_side: mask near-duplicates of positives within each side; shared: both sides' guide rows are "
        "in one space, mask what is nearer to the anchor than its positive.",
    )
    margin: float = Field(
        0.05, ge=0, description="How far under the positive's guide score a negative is masked already."
    )
    margin_kind: Literal["absolute", "relative"] = Field(
        "absolute", description="relative: the margin is a share of the positive's score, whatever its sign."
    )
    coarse_weight: float = Field(
        0.5, ge=0, le=1, description="Weight w of the coarse part: (1 - w) fine + w coarse; 0 is info_nce."
    )
    alignment_weight: float = Field(
        0.0, ge=0, description="Weight of the mean squared distance of linked rows, added to any loss."
    )
    uniformity_weight: float = Field(
        0.0, ge=0, description="Weight of how unevenly rows spread, the mean of both sides, added to any loss."
    )
    uniformity_t: float = Field(2.0, gt=0, le=1e4, description="Sharpness of the uniformity's Gaussian.")

    @field_validator("tile", mode="before")
    @classmethod
    def _none_is_a_word(cls, tile: Any) -> Any:
        # TOML has no null: as a word, a resolved config says what it means.
        return "none" if tile is None else tile

    @model_validator(mode="after")
    def _options_go_with_the_loss(self) -> "LossConfig":
        for option, names in _OPTIONS.items():
            value, default = getattr(self, option), type(self).model_fields[option].default
            if value != default and self.name not in names:
                raise ValueError(
                    f"{option} = {value!r} is an option of {' and '.join(names)}, and the loss is {self.name!r}; leave "
                    "it out, or name the loss that has it"
                )
        if not isinstance(self.tile, str):
            if self.tile < 1:
                raise ValueError(f"tile = {self.tile}; expected a number of rows of at least 1, 'auto' or 'none'")
            if self.name not in TILED:
                raise ValueError(
                    f"tile = {self.tile}: only {' and '.join(TILED)} are computed in tiles, and the loss is "
                    f"{self.name!r}; leave tile out"
                )
        if self.products != "float32" and self.tile == "none":
            raise ValueError(
                f"products = {self.products!r} are those of tiles, and tile = 'none'; leave one of them out"
            )
        if self.uniformity_t != 2.0 and self.uniformity_weight == 0:
            raise ValueError(
                f"uniformity_t = {self.uniformity_t:g} does nothing while uniformity_weight is 0; set both"
            )
        return self

    @classmethod
    def of(cls, settings: Any = None, **changes: Any) -> "LossConfig":
        """Return a config from None, a loss's name, another config or a mapping, with `changes`.

        Raises `ConfigError`.
        """
        return read_settings(
            cls,
            {"name": settings} if isinstance(settings, str) else settings,
            changes,
            of="the loss",
            name="loss",
            expected="a name such as 'info_nce', or a mapping of settings, such as {'name': 'hard_negative', "
            "'beta': 0.5}",
        )
