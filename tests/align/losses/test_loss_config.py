import subprocess
import sys
import tomllib

import pytest
from pydantic import ValidationError

from bridgehead.align.losses.config import LossConfig
from bridgehead.errors import ConfigError


def test_the_default_is_info_nce_in_tiles_where_they_pay():
    config = LossConfig()
    assert (config.name, config.tile, config.alignment_weight, config.uniformity_weight) == ("info_nce", "auto", 0, 0)


def test_a_config_is_made_of_a_name_a_mapping_another_config_or_nothing():
    assert LossConfig.of() == LossConfig.of(None) == LossConfig()
    assert LossConfig.of("sigmoid", tile=256) == LossConfig(name="sigmoid", tile=256)
    assert LossConfig.of({"name": "guided"}, margin=0.2) == LossConfig.of(LossConfig(name="guided"), margin=0.2)


@pytest.mark.parametrize(
    "settings",
    [
        {"name": "info_nce", "tile": 512, "products": "bf16"},
        {"name": "info_nce", "tile": "none"},
        {"name": "decoupled", "tile": "auto"},
        {"name": "hard_negative", "beta": 0.0, "tau_plus": 0.1},
        {"name": "sigmoid", "bias_init": -5.0},
        {"name": "guided", "guide_space": "shared", "margin": 0.1, "margin_kind": "relative"},
        {"name": "hierarchical", "coarse_weight": 1.0},
        {"name": "sigmoid", "alignment_weight": 0.5, "uniformity_weight": 1.0, "uniformity_t": 3.0},
    ],
)
def test_options_that_go_with_the_loss_are_kept_and_all_of_them_can_be_written_and_read(settings):
    config = LossConfig.of(settings)
    assert {name: getattr(config, name) for name in settings} == settings
    assert LossConfig.of(config.model_dump(mode="json")) == config


def test_no_tiles_is_a_word_that_toml_can_say():
    assert LossConfig.of(tile=None).tile == LossConfig.of(tomllib.loads('tile = "none"')).tile == "none"


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"beta": 0.5}, "beta = 0.5 is an option of hard_negative, and the loss is 'info_nce'"),
        ({"name": "decoupled", "margin": 0.1}, "margin = 0.1 is an option of guided, and the loss is 'decoupled'"),
        ({"name": "guided", "coarse_weight": 0.1}, "coarse_weight = 0.1 is an option of hierarchical"),
        ({"name": "guided", "bias_init": 0.0}, "bias_init = 0.0 is an option of sigmoid"),
        ({"name": "guided", "products": "bf16"}, "products = 'bf16' is an option of info_nce and sigmoid"),
        ({"name": "decoupled", "tile": 64}, "tile = 64: only info_nce and sigmoid are computed in tiles"),
        ({"tile": 0}, "tile = 0; expected a number of rows of at least 1"),
        ({"tile": True}, "tile"),
        ({"tile": 2.5}, "tile"),
        ({"tile": "none", "products": "bf16"}, "products = 'bf16' are those of tiles"),
        ({"uniformity_t": 3.0}, "uniformity_t = 3 does nothing while uniformity_weight is 0"),
        ({"name": "infonce"}, "name: Input should be 'info_nce', "),
        ({"name": "hard_negative", "beta": -1}, r"beta: .*greater than or equal to 0"),
        ({"name": "hard_negative", "tau_plus": 1.0}, r"tau_plus: .*less than 1"),
        ({"name": "hierarchical", "coarse_weight": 1.1}, r"coarse_weight: .*less than or equal to 1"),
        ({"uniformity_weight": 1.0, "uniformity_t": 0.0}, r"uniformity_t: .*greater than 0"),
        ({"alignment_weight": float("nan")}, "alignment_weight: .*finite"),
        ({"temperature": 0.07}, "temperature: unknown key"),
        (["info_nce"], r"loss is a list \(\['info_nce'\]\); expected a name"),
    ],
)
def test_what_does_not_go_together_is_refused_with_what_to_do(settings, match):
    with pytest.raises(ConfigError, match=match):
        LossConfig.of(settings)


def test_a_config_is_frozen_and_each_of_its_settings_explained():
    with pytest.raises(ValidationError, match="frozen"):
        LossConfig().name = "sigmoid"
    assert all(field.description for field in LossConfig.model_fields.values())


def test_reading_settings_loads_no_torch():
    script = "import sys; from bridgehead.align.losses import LossConfig; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
