"""The settings of one training, checked and explained; no torch here.

This module is not about data or encoders, whose settings stand in a run's config.
"""

from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    field_serializer,
    field_validator,
    model_validator,
)

from bridgehead.align.architecture import MAX_WIDTH, HeadConfig, HeadsConfig, in_float32
from bridgehead.align.losses.config import LossConfig
from bridgehead.files import hash_json
from bridgehead.negatives.config import NegativesConfig
from bridgehead.settings import read_settings
from bridgehead.train.augment_config import AugmentConfig


class TrainConfig(BaseModel):
    """Settings of `fit_heads`; frozen, and unknown keys are refused.

    Make one from untrusted values with `TrainConfig.of(...)`, which raises `ConfigError` with one line per fault.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    embed_dim: int = Field(256, ge=1, le=MAX_WIDTH, description="Dimensions of the shared space.")
    hidden: tuple[int, ...] | None = Field(
        None,
        description="Widths of both heads' hidden layers; empty is linear. None: linear for CSR rows, else (512,).",
    )
    hidden_a: tuple[int, ...] | None = Field(None, description="Hidden widths of side a, where they differ.")
    hidden_b: tuple[int, ...] | None = Field(None, description="Hidden widths of side b, where they differ.")
    activation: Literal["gelu", "relu"] = Field("gelu", description="Non-linearity after each hidden layer.")
    dropout: float = Field(0.1, ge=0, lt=1, description="Share of hidden units dropped in training.")
    input_dropout: float = Field(0.0, ge=0, lt=1, description="Share of input entries dropped in training.")
    norm: Literal["layer", "batch", "rms", "none"] = Field(
        "layer", description="Norm after each activation: with it depth trains evenly whatever the rows."
    )
    residual: Literal["none", "output", "layers"] = Field(
        "none",
        description="output: the first layer's output is added to the head's, which needs hidden[0] = embed_dim; "
        "layers: a skip around each hidden layer as wide as the one before.",
    )
    input_norm: Literal["auto", "none", "unit", "standard"] = Field(
        "auto", description="What is done to rows first; auto is standard for dense rows and unit for CSR rows."
    )
    init_std: float = Field(1.0, gt=0, description="Start of the embedding bags, standard deviation x sqrt(width).")
    storage: Literal["float32", "float16"] = Field(
        "float16",
        description="How embedding bags are stored; float16 halves the file and changes scores by under 1e-3.",
    )
    epochs: int = Field(30, ge=1, le=100_000, description="Longest training, in passes over the links.")
    batch_size: int | None = Field(
        None, ge=2, description="Links a batch: more negatives, fewer steps. None: 512, less with under 5,120 links."
    )
    learning_rate: float = Field(1e-3, gt=0, description="AdamW's rate at its peak.")
    weight_decay: float = Field(
        0.01, ge=0, description="Decoupled decay of matrices; biases, norms and scale have none."
    )
    betas: tuple[float, float] = Field((0.9, 0.98), description="AdamW's averages of the gradient and its square.")
    warmup_epochs: float = Field(1.0, ge=0, description="Epochs over which the rate rises from 0, before the cosine.")
    logit_scale_init: float = Field(1 / 0.07, gt=0, description="s = 1 / temperature at the start, as in CLIP.")
    logit_scale_bounds: tuple[float, float] | None = Field(
        (1.0, 100.0), description='Lowest and highest s; "none": unbounded.'
    )
    learn_scale: bool = Field(True, description="Whether s is learned.")
    form: Literal["outside", "inside"] = Field("outside", description="How several positives of an anchor are summed.")
    direction: Literal["both", "a_to_b", "b_to_a"] = Field("both", description="Which side's rows are anchors.")
    loss: LossConfig = Field(LossConfig(), description="Which loss, and its options.")
    negatives: NegativesConfig = Field(NegativesConfig(), description="What the anchors are told from.")
    augment: AugmentConfig = Field(AugmentConfig(), description="How training rows are varied from step to step.")
    patience: int | None = Field(
        6, ge=1, description='Epochs without a better validation before the stop; "none": never.'
    )
    device: str = Field(
        "cpu", min_length=1, description="Where to train: cpu, cuda, cuda:1, mps, or accelerate: what accelerate finds."
    )
    precision: Literal["float32", "bf16", "fp16"] = Field(
        "float32", description="What heads multiply in; weights, moments, normalisation and logits stay float32."
    )
    seed: int = Field(0, ge=0, lt=2**63, description="Seed of weights, order and dropout.")
    tensorboard: bool = Field(False, description="Also write the history for TensorBoard, where it is installed.")
    checkpoint_seconds: float = Field(15.0, ge=0, description="Least time between two checkpoints; 0 is every step.")

    @model_validator(mode="after")
    def _heads_can_be_made(self) -> "TrainConfig":
        low_high = self.logit_scale_bounds
        if not in_float32(self.logit_scale_init):
            raise ValueError(f"logit_scale_init = {self.logit_scale_init} is no number of float32, 1.2e-38 to 3.4e38")
        if not all(bound == 0 or in_float32(bound) for bound in low_high or ()):
            raise ValueError(f"logit_scale_bounds = {low_high} are no numbers of float32, 0 or 1.2e-38 to 3.4e38")
        if low_high is not None and not (0 <= low_high[0] <= self.logit_scale_init <= low_high[1]):
            raise ValueError(f"logit_scale_init = {self.logit_scale_init} lies outside logit_scale_bounds {low_high}")
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas = {self.betas}; expected two numbers in [0, 1)")
        if self.form != "outside" and self.loss.name == "sigmoid":
            raise ValueError(f"form = {self.form!r}, and the sigmoid loss judges each pair by itself; leave form out")
        self.heads((1, False), (1, False))
        return self

    @field_validator("patience", "logit_scale_bounds", mode="before")
    @classmethod
    def _none_is_a_word(cls, value: Any) -> Any:
        # TOML has no null, and left out these are not none.
        return None if value == "none" else value

    @field_serializer("patience", "logit_scale_bounds", when_used="json")
    def _word_for_none(self, value: Any) -> Any:
        return "none" if value is None else value

    @field_validator("norm", "residual", mode="before")
    @classmethod
    def _as_named(cls, value: Any, info: ValidationInfo) -> Any:
        # Both were true or false once.
        if isinstance(value, bool):
            return {"norm": ("none", "layer"), "residual": ("none", "output")}[str(info.field_name)][value]
        return value

    @classmethod
    def of(cls, settings: Any = None, **changes: Any) -> "TrainConfig":
        """Return a config from None, another config or a mapping, with `changes`. Raises `ConfigError`."""
        return read_settings(
            cls,
            settings,
            changes,
            of="training",
            name="settings",
            expected="a mapping of settings, such as {'batch_size': 256}",
        )

    def heads(self, a: tuple[int, bool], b: tuple[int, bool]) -> HeadsConfig:
        """Return the architecture for the (width, is it CSR) of each side's rows."""
        return HeadsConfig(
            self._head(*a, self.hidden_a),
            self._head(*b, self.hidden_b),
            self.logit_scale_init,
            self.logit_scale_bounds,
            self.learn_scale,
        )

    def _head(self, input_dim: int, sparse: bool, hidden: tuple[int, ...] | None) -> HeadConfig:
        # Tens of thousands of columns over a few thousand items are already more than enough weights: on the starter
        # data a linear head reached a validation MRR of 0.54, one hidden layer 0.51.
        auto = "unit" if sparse else "standard"
        widths: tuple[int, ...] = () if sparse else (512,)
        for given in (self.hidden, hidden):
            widths = widths if given is None else given
        return HeadConfig(
            input_dim=input_dim,
            embed_dim=self.embed_dim,
            hidden=widths,
            activation=self.activation,
            dropout=self.dropout,
            input_dropout=self.input_dropout,
            norm=self.norm,
            residual=self.residual,
            sparse=sparse,
            input_norm=auto if self.input_norm == "auto" else self.input_norm,
            init_std=self.init_std,
        )

    def links_per_batch(self, n_links: int) -> int:
        """Return `batch_size`, or where it is None 512, lowered to a tenth of the links but not under 32.

        Small data would otherwise see a step or two an epoch and be barely trained in the planned epochs.
        """
        return self.batch_size if self.batch_size is not None else min(512, max(32, n_links // 10))

    def fingerprint(self) -> str:
        """Return a hash of all that shapes the result; how often a checkpoint is written and who reads along do not."""
        return hash_json(self.model_dump(mode="json", exclude={"checkpoint_seconds", "tensorboard"}))
