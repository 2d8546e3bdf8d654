import subprocess
import sys

import pytest

from bridgehead.errors import ConfigError
from bridgehead.train.augment_config import AugmentConfig


def test_everything_is_off_unless_asked_for() -> None:
    config = AugmentConfig.of(None)
    assert config.is_off and not config.changes_rows
    config.check_cached(False, False)
    config.check_live()


@pytest.mark.parametrize(
    "settings",
    [{"random_smiles": ["a"]}, {"token_dropout": 0.1}, {"feature_noise": 0.1}, {"latent_mixing": 1.0}],
)
def test_each_setting_switches_something_on(settings: dict[str, object]) -> None:
    assert not AugmentConfig.of(settings).is_off


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"token_dropuot": 0.1}, "did you mean 'token_dropout'"),
        ({"token_dropout": 1.0}, "token_dropout: Input should be less than 1"),
        ({"feature_noise": -1}, "feature_noise"),
        ({"latent_mixing": 0}, "latent_mixing"),
        ({"random_smiles": ["c"]}, "random_smiles"),
        (3, "augment is a int"),
    ],
)
def test_a_setting_that_is_not_understood_is_named(settings: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        AugmentConfig.of(settings)


def test_cached_rows_refuse_what_cannot_change_them() -> None:
    with pytest.raises(ConfigError, match="do not depend on how a SMILES is written"):
        AugmentConfig.of({"random_smiles": ["a"]}).check_cached(True, True)
    with pytest.raises(ConfigError, match="dense rows, which have no tokens"):
        AugmentConfig.of({"token_dropout": 0.1}).check_cached(False, False)
    AugmentConfig.of({"token_dropout": 0.1}).check_cached(True, False)


def test_live_items_refuse_noise_on_rows() -> None:
    with pytest.raises(ConfigError, match="reads items, not rows"):
        AugmentConfig.of({"feature_noise": 0.1}).check_live()
    AugmentConfig.of({"random_smiles": ["a", "b"], "latent_mixing": 0.5}).check_live()


def test_reading_the_settings_loads_no_torch() -> None:
    code = "import sys, bridgehead.train.augment_config; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
