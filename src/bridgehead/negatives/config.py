"""How the links of a training are put into batches and where hard negatives come from: the settings, explained.

No torch and no FAISS here. This module is not about the batches themselves (`plan`).
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from bridgehead.settings import read_settings

_HARD_ONLY = (
    "k_hard", "repeat_neighbours", "mine_from", "lowest_rank", "highest_rank", "max_score", "margin",
    "relative_margin", "semi_hard", "mine_every", "start_epoch", "ramp_epochs", "ramp",
)  # fmt: skip
_NEEDS_POSITIVE_SCORE = ("margin", "relative_margin", "semi_hard", "mine_every")


class NegativesConfig(BaseModel):
    """Settings of `BatchPlan` and of the memory bank; frozen, and unknown keys are refused.

    Settings that the chosen `sampling` does not read must stay at their defaults. Make one from untrusted values with
    `NegativesConfig.of(...)`, which raises `ConfigError` with one line per fault.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    sampling: Literal["random", "hard", "distinct"] = Field(
        "random",
        description="random: links in a drawn order; hard: anchors with their hardest neighbours; distinct: no two "
        "links of a batch match across or are the same item again.",
    )
    k_hard: int = Field(4, ge=1, le=10_000, description="Hard neighbours that an anchor brings, at the ramp's end.")
    repeat_neighbours: bool = Field(
        False,
        description="Whether a link may be in several batches of an epoch: then each anchor has all its k_hard "
        "neighbours, at 1 + k_hard times the batches. False: each link is in one batch an epoch.",
    )
    mine_from: Literal["initial", "current"] = Field(
        "current",
        description="current: similarity across the sides, under the heads of the epoch; initial: similarity within "
        "each side, before training (across the sides it means nothing there yet).",
    )
    lowest_rank: int = Field(1, ge=1, description="Rank of the hardest neighbour that is taken, among non-matching.")
    highest_rank: int = Field(100, ge=1, description="Rank of the easiest neighbour that is taken.")
    max_score: float | None = Field(
        None, ge=-1, le=1, description="Highest cosine of a negative; what is above may be the same thing again."
    )
    margin: float | None = Field(
        None, ge=0, le=2, description="How far below the cosine of the anchor's positive a negative must lie."
    )
    relative_margin: float | None = Field(
        None, ge=0, le=1, description="The same as a share of the positive's cosine (of its magnitude)."
    )
    semi_hard: bool = Field(
        False,
        description="Take the hardest of those below the positive only: those above it are likely to match unseen.",
    )
    mine_every: int = Field(5, ge=1, description="Epochs between two minings from current heads.")
    start_epoch: int = Field(1, ge=0, description="First epoch with hard negatives; the first of all is 0.")
    ramp_epochs: int = Field(5, ge=0, description="Epochs over which hard neighbours rise to k_hard; 0: at once.")
    ramp: Literal["linear", "cosine"] = Field("linear", description="Shape of that rise.")
    bank_size: int = Field(
        0,
        ge=0,
        le=10_000_000,
        description="Rows of earlier batches kept as further negatives, on each side; 0 is none.",
    )

    @model_validator(mode="after")
    def _options_fit(self) -> "NegativesConfig":
        if self.sampling != "hard" and (changed := self._changed(_HARD_ONLY)):
            raise ValueError(f"{', '.join(changed)}: read by sampling = 'hard' only, and sampling = {self.sampling!r}")
        if self.mine_from == "initial" and (changed := self._changed(_NEEDS_POSITIVE_SCORE)):
            raise ValueError(
                f"{', '.join(changed)}: read with mine_from = 'current' only; from initial rows one mines once and "
                "within each side, where an anchor has no positive to compare with (max_score works)"
            )
        if self.lowest_rank > self.highest_rank:
            raise ValueError(f"lowest_rank = {self.lowest_rank} is beyond highest_rank = {self.highest_rank}")
        if (held := self.highest_rank - self.lowest_rank + 1) < self.k_hard:
            ranks = f"{self.lowest_rank} to {self.highest_rank}"
            raise ValueError(f"ranks {ranks} hold {held} neighbours, fewer than k_hard = {self.k_hard}")
        return self

    def _changed(self, names: tuple[str, ...]) -> list[str]:
        # A stored config names every setting, so what counts is the value, not whether it was written down.
        return [name for name in names if getattr(self, name) != type(self).model_fields[name].default]

    @classmethod
    def of(cls, settings: Any = None, **changes: Any) -> "NegativesConfig":
        """Return a config from None, another config or a mapping, with `changes`. Raises `ConfigError`."""
        return read_settings(
            cls,
            settings,
            changes,
            of="negatives",
            name="settings",
            expected="a mapping of settings, such as {'sampling': 'hard'}",
        )
