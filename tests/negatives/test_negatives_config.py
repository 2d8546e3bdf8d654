import subprocess
import sys

import pytest

from bridgehead.errors import ConfigError
from bridgehead.negatives import NegativesConfig


def test_the_defaults_are_random_batches_without_a_bank():
    config = NegativesConfig()
    assert (config.sampling, config.bank_size) == ("random", 0)


def test_a_config_written_out_in_full_is_read_back():
    for changes in ({}, {"sampling": "hard", "margin": 0.1}, {"sampling": "distinct", "bank_size": 100}):
        config = NegativesConfig.of(changes)
        assert NegativesConfig.of(config.model_dump()) == config == NegativesConfig.of(config)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"k_hard": 3}, "k_hard: read by sampling = 'hard' only, and sampling = 'random'"),
        ({"sampling": "distinct", "semi_hard": True}, "semi_hard: read by"),
        ({"sampling": "hard", "mine_from": "initial", "margin": 0.1}, "margin: read with mine_from = 'current' only"),
        ({"sampling": "hard", "lowest_rank": 9, "highest_rank": 8}, "lowest_rank = 9 is beyond highest_rank = 8"),
        ({"sampling": "hard", "lowest_rank": 98}, "hold 3 neighbours, fewer than k_hard = 4"),
        ({"sampling": "hardest"}, "sampling: Input should be"),
        ({"hardness": 3}, "hardness: unknown key"),
        ({"bank_size": -1}, "bank_size"),
        ({"sampling": "hard", "max_score": float("nan")}, "max_score"),
        ("hard", "expected a mapping"),
    ],
)
def test_settings_that_are_not_understood_are_refused_with_the_reason(settings, match):
    with pytest.raises(ConfigError, match=match):
        NegativesConfig.of(settings)


def test_the_settings_and_a_plan_need_neither_torch_nor_faiss():
    script = (
        "import sys; from bridgehead.negatives import NegativesConfig, BatchPlan; from bridgehead.links import Links;"
        "BatchPlan(Links.identity(9), 4, 0, NegativesConfig()).batches(0);"
        "sys.exit(bool({'torch', 'faiss'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0
