import pytest

from bridgehead.align.losses import LossConfig
from bridgehead.errors import ConfigError
from bridgehead.negatives import NegativesConfig
from bridgehead.runs.config import config_of
from bridgehead.train import AugmentConfig, TrainConfig
from bridgehead.train.live.config import LiveConfig

PAIRS = {"path": "pairs.csv", "a": "smiles", "b": "text"}
ENCODE = {"a": "molecule:fingerprints", "b": "text:ngram"}


@pytest.mark.parametrize(
    "key, meant",
    [("learning_rat", "learning_rate"), ("Epochs", "epochs"), ("embed_dims", "embed_dim")],
)
def test_an_unknown_setting_of_training_gets_the_nearest_known_one(key, meant):
    with pytest.raises(ConfigError, match=f"{key}: unknown key; did you mean '{meant}'"):
        TrainConfig.of({key: 3})


def test_a_key_in_the_wrong_section_is_sent_to_the_right_one():
    with pytest.raises(ConfigError, match=r"pairs\.epochs: unknown key; did you mean 'train\.epochs'"):
        config_of({"pairs": {**PAIRS, "epochs": 3}, "encode": ENCODE})


def test_a_misspelt_section_is_named_with_the_one_that_was_meant():
    with pytest.raises(ConfigError, match="trian: unknown key; did you mean 'train'"):
        config_of({"pairs": PAIRS, "encode": ENCODE, "trian": {}})


def test_a_key_like_no_other_gets_the_list_of_those_that_there_are():
    with pytest.raises(ConfigError, match=r"split\.zzz: unknown key; known here: hold_out, fractions"):
        config_of({"pairs": PAIRS, "encode": ENCODE, "split": {"zzz": 1}})


@pytest.mark.parametrize("settings", [{"logit_scale_init": -1.0}, {"embed_dim": 0}, {"logit_scale_init": 0}])
def test_a_negative_scale_and_a_space_of_no_dimensions_are_refused_with_the_range(settings):
    with pytest.raises(ConfigError, match="greater than"):
        TrainConfig.of(settings)


def test_a_misspelt_key_in_one_table_of_a_list_is_named_with_the_one_that_was_meant():
    with pytest.raises(ConfigError, match=r"stages\.1\.grup: unknown key; did you mean 'stages\.1\.group'"):
        LiveConfig.of({"stages": [{"group": "encoder_a"}, {"grup": "encoder_b"}]})
    with pytest.raises(ConfigError, match=r"examples\.0\.expects: unknown key; did you mean 'examples\.0\.expect'"):
        config_of({"pairs": PAIRS, "encode": ENCODE, "examples": [{"query": "x", "expects": "y"}]})
    with pytest.raises(ConfigError, match=r"stages\.0\.grup: unknown key; did you mean 'live\.stages\.0\.group'"):
        config_of({"pairs": PAIRS, "encode": ENCODE, "live": {"stages": [{"grup": "encoder_b"}]}})


def test_every_kind_of_settings_names_the_key_that_was_meant():
    for kind, key, meant in (
        (LossConfig, "betta", "beta"),
        (NegativesConfig, "k_hrad", "k_hard"),
        (AugmentConfig, "feature_nois", "feature_noise"),
        (LiveConfig, "mini_batches", "mini_batch"),
    ):
        with pytest.raises(ConfigError, match=f"{key}: unknown key; did you mean '{meant}'"):
            kind.of({key: 1})
