"""The settings of augmentation, checked and explained; no torch here.

All of it is off unless asked for. This module is not about how rows are changed (`augment`).
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from bridgehead.errors import ConfigError
from bridgehead.settings import read_settings

Side = Literal["a", "b"]


class AugmentConfig(BaseModel):
    """How training rows or items are varied from step to step; frozen, and unknown keys are refused.

    Make one from untrusted values with `AugmentConfig.of(...)`, which raises `ConfigError` with one phrase per fault.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    random_smiles: tuple[Side, ...] = Field(
        (),
        description="Sides whose SMILES are written in another random way each epoch; live encoders of text only.",
    )
    token_dropout: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="Share of the non-zeros of CSR rows, or of a live encoder's tokens, left out of each item.",
    )
    rescale: bool = Field(True, description="Raise the non-zeros that stay, so that the mean of a CSR row is itself.")
    feature_noise: float = Field(
        0.0,
        ge=0,
        le=100,
        description="Noise on cached rows: of dense ones in standard deviations of the column, of CSR ones relative.",
    )
    latent_mixing: float | None = Field(
        None,
        ge=0.01,
        le=1000,
        description="FuseMix: mix pairs with one another, the share drawn from Beta(x, x); none: off.",
    )

    @classmethod
    def of(cls, settings: Any = None) -> "AugmentConfig":
        """Return a config from None, another config or a mapping. Raises `ConfigError`."""
        return read_settings(
            cls,
            settings,
            {},
            of="augment",
            name="augment",
            expected="a mapping of settings, such as {'feature_noise': 0.1}",
        )

    @property
    def is_off(self) -> bool:
        """Whether nothing is varied."""
        return not self.random_smiles and not self.changes_rows and not self.token_dropout

    @property
    def changes_rows(self) -> bool:
        """Whether cached rows are varied."""
        return bool(self.token_dropout or self.feature_noise or self.latent_mixing is not None)

    def check_cached(self, sparse_a: bool, sparse_b: bool) -> None:
        """Raise `ConfigError` for what cannot be done to rows that were encoded once, given which sides are CSR.

        A molecule's fingerprint is the same however its SMILES is written, and rows of a frozen text encoder stand in
        the cache: writing SMILES anew would change nothing.
        """
        if self.random_smiles:
            raise ConfigError(
                f"augment.random_smiles = {list(self.random_smiles)}: the rows are encoded once, and fingerprints do "
                "not depend on how a SMILES is written; expected a live encoder of SMILES text, so leave it out"
            )
        if self.token_dropout and not (sparse_a or sparse_b):
            raise ConfigError(
                f"augment.token_dropout = {self.token_dropout}: both sides have dense rows, which have no tokens; "
                "use input_dropout or augment.feature_noise for them"
            )

    def check_live(self) -> None:
        """Raise `ConfigError` for what cannot be done to the items of live encoders."""
        if self.feature_noise:
            raise ConfigError(
                f"augment.feature_noise = {self.feature_noise}: a live encoder reads items, not rows; use "
                "augment.token_dropout, or the encoder's own dropout"
            )
