"""Settings of live encoders are checked before anything is loaded."""

import subprocess
import sys

import pytest

from bridgehead.errors import ConfigError
from bridgehead.train.live.config import LiveConfig, Stage


def test_heads_are_warmed_for_an_epoch_and_then_both_encoders_are_trained():
    stages = LiveConfig.of().stages
    assert [(stage.side, stage.last, stage.from_epoch) for stage in stages] == [("a", None, 1), ("b", None, 1)]


def test_a_stage_names_an_encoder_or_its_last_layers():
    stage = Stage(group="encoder_b.last_12", from_epoch=3, learning_rate=1e-5)
    assert (stage.side, stage.last) == ("b", 12)


@pytest.mark.parametrize("group", ["heads", "encoder_c", "encoder_a.last_0", "encoder_a.last_", "encoder_a.first_2"])
def test_another_group_is_refused(group):
    with pytest.raises(ConfigError, match=r"stages.0.group: .* is no group; expected encoder_a, encoder_b"):
        LiveConfig.of(stages=[{"group": group}])


@pytest.mark.parametrize(
    "stages",
    [
        [("encoder_a", 1), ("encoder_a.last_2", 2)],
        [("encoder_a.last_2", 3), ("encoder_a", 2)],
        [("encoder_a.last_2", 1), ("encoder_a.last_2", 2)],
        [("encoder_a.last_1", 1), ("encoder_a.last_2", 1)],
    ],
)
def test_stages_of_one_encoder_must_come_in_order_each_with_more_layers(stages):
    with pytest.raises(ConfigError, match="each with more layers than the one before"):
        LiveConfig.of(stages=[{"group": group, "from_epoch": epoch} for group, epoch in stages])


def test_an_unknown_key_gets_the_one_that_was_meant():
    with pytest.raises(ConfigError, match="minibatch: unknown key; did you mean 'mini_batch'"):
        LiveConfig.of({"minibatch": 3})
    with pytest.raises(ConfigError, match="settings is a int"):
        LiveConfig.of(3)


def test_a_config_comes_back_from_its_own_values():
    config = LiveConfig.of(mini_batch=None, stages=[{"group": "encoder_a.last_2", "from_epoch": 0}])
    assert LiveConfig.of(config.model_dump(mode="json")) == LiveConfig.of(config) == config


def test_reading_it_imports_no_torch():
    code = "import sys, bridgehead.train.live.config; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
