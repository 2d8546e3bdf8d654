"""The settings of training encoders themselves, checked and explained; no torch here.

They come beside `TrainConfig`, whose rates, batches, loss, device and precision hold for live encoders too. This module
is not about which encoders there are.
"""

import re
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from bridgehead.settings import read_settings

_GROUP = re.compile(r"encoder_(?P<side>[ab])(\.last_(?P<last>[1-9]\d*))?")


class Stage(BaseModel):
    """Weights that are frozen first and trained from an epoch on, at a rate of their own."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    group: str = Field(description="encoder_a, encoder_b, or the last n layers of one: encoder_a.last_2.")
    from_epoch: int = Field(1, ge=0, description="First epoch in which the group is trained; the first of all is 0.")
    learning_rate: float | None = Field(
        None, gt=0, description="The group's rate at its peak; none is encoder_learning_rate."
    )

    @field_validator("group")
    @classmethod
    def _known(cls, group: str) -> str:
        if not _GROUP.fullmatch(group):
            raise ValueError(f"{group!r} is no group; expected encoder_a, encoder_b, or encoder_a.last_2 and the like")
        return group

    @property
    def side(self) -> Literal["a", "b"]:
        """The side whose encoder it is."""
        return "a" if self.group.startswith("encoder_a") else "b"

    @property
    def last(self) -> int | None:
        """How many of the last layers; None for all of the encoder."""
        found = _GROUP.fullmatch(self.group)
        last = None if found is None else found["last"]
        return None if last is None else int(last)


class StagesConfig(BaseModel):
    """Which encoders are trained with the heads, from which epoch on and at which rate; without it none is."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    stages: tuple[Stage, ...] = Field(
        (Stage(group="encoder_a"), Stage(group="encoder_b")),
        description="What is trained beside the heads, and from which epoch; empty trains the heads alone.",
    )
    encoder_learning_rate: float = Field(2e-5, gt=0, description="AdamW's rate for encoders at its peak.")
    layer_decay: float | None = Field(
        None, gt=0, le=1, description="Factor on the rate from each layer to the one below it; none: one rate for all."
    )
    mini_batch: int | None = Field(
        32,
        ge=1,
        description="Items encoded at once: memory goes with it, gradients are those of the whole batch, for a second "
        "pass through the encoder. None: the whole batch in one pass.",
    )
    cache_frozen: bool = Field(
        True, description="Encode the items of a frozen encoder once and keep the rows until it is unfrozen."
    )

    @model_validator(mode="after")
    def _stages_follow(self) -> Self:
        for side in "ab":
            own = [stage for stage in self.stages if stage.side == side]
            epochs = [stage.from_epoch for stage in own]
            sizes = [float("inf") if stage.last is None else stage.last for stage in own]
            if sorted(set(epochs)) != epochs or sorted(set(sizes)) != sizes:
                names = ", ".join(f"{stage.group} from epoch {stage.from_epoch}" for stage in own)
                raise ValueError(
                    f"stages of one encoder come in order of epoch, each with more layers than the one before; got "
                    f"{names}"
                )
        return self


class LiveConfig(StagesConfig):
    """Settings of `fit_encoders` beside those of `TrainConfig`; frozen, and unknown keys are refused.

    Make one from untrusted values with `LiveConfig.of(...)`, which raises `ConfigError` with one phrase per fault.
    """

    max_tokens: int | None = Field(None, ge=1, description="Tokens an item is cut to; none: what the model takes.")
    pooling: Literal["cls", "mean", "max", "last"] = Field(
        "mean", description="From hidden states to a row, where encoders are given by name."
    )

    @classmethod
    def of(cls, settings: Any = None, **changes: Any) -> "LiveConfig":
        """Return a config from None, another config or a mapping, with `changes`. Raises `ConfigError`."""
        return read_settings(
            cls,
            settings,
            changes,
            of="live encoders",
            name="settings",
            expected="a mapping of settings, such as {'mini_batch': 16}",
        )
