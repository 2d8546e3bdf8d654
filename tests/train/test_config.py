import subprocess
import sys

import pytest

from bridgehead.errors import ConfigError
from bridgehead.train import TrainConfig


def test_every_field_explains_itself():
    assert all(len(field.description or "") > 15 for field in TrainConfig.model_fields.values())


def test_auto_standardises_dense_rows_and_makes_csr_rows_unit():
    heads = TrainConfig.of(hidden=(8,), hidden_b=()).heads((5, False), (7, True))
    assert (heads.a.input_norm, heads.b.input_norm) == ("standard", "unit")
    assert (heads.a.hidden, heads.b.hidden) == ((8,), ())
    assert (heads.a.input_dim, heads.b.input_dim) == (5, 7)


def test_without_widths_dense_rows_get_a_hidden_layer_and_csr_rows_a_linear_head():
    heads = TrainConfig.of().heads((5, False), (7, True))
    assert (heads.a.hidden, heads.b.hidden) == ((512,), ())


@pytest.mark.parametrize(("links", "size"), [(3, 32), (320, 32), (1000, 100), (5120, 512), (100_000, 512)])
def test_the_batch_follows_the_data_unless_it_is_given(links, size):
    assert TrainConfig.of().links_per_batch(links) == size
    assert TrainConfig.of(batch_size=77).links_per_batch(links) == 77


def test_the_fingerprint_is_of_what_shapes_the_result():
    base = TrainConfig.of().fingerprint()
    assert TrainConfig.of(checkpoint_seconds=1).fingerprint() == base
    assert TrainConfig.of(dropout=0.2).fingerprint() != base
    assert TrainConfig.of(seed=1).fingerprint() != base


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"epoch": 3}, r"epoch: unknown key; did you mean 'epochs'. \(got 3\)"),
        ({"epochs": 0}, "epochs: .*greater than or equal to 1"),
        ({"batch_size": 1}, "batch_size: .*greater than or equal to 2"),
        ({"dropout": 1.0}, "dropout: .*less than 1"),
        ({"learning_rate": float("nan")}, "learning_rate: .*finite"),
        ({"learning_rate": "fast"}, "learning_rate: .*number.*'fast'"),
        ({"logit_scale_init": 500}, "lies outside logit_scale_bounds"),
        ({"logit_scale_bounds": (5, 1)}, "lies outside logit_scale_bounds"),
        ({"betas": (0.9, 1.0)}, "betas"),
        ({"residual": True}, "residual needs a first hidden layer"),
        ({"seed": -1}, "seed"),
        ({"hidden": (10**9,)}, "hidden = .*expected widths of at least 1 and at most 65,536"),
        ({"logit_scale_bounds": (0, 1e300)}, "logit_scale_bounds .*float32"),
        ({"logit_scale_init": 1e-300, "logit_scale_bounds": None}, "logit_scale_init = 1e-300 .*float32"),
        ([("epochs", 3)], "expected a mapping of settings"),
        ("epochs", "expected a mapping of settings"),
        ({1: 2}, "1: .*string"),
    ],
)
def test_settings_that_cannot_be_are_refused_with_field_and_value(settings, match):
    with pytest.raises(ConfigError, match=match):
        TrainConfig.of(settings)


def test_zero_and_none_are_values():
    config = TrainConfig.of(warmup_epochs=0, weight_decay=0, patience=None, logit_scale_bounds=None)
    assert (config.warmup_epochs, config.weight_decay, config.patience, config.logit_scale_bounds) == (0, 0, None, None)


def test_reading_a_config_needs_no_torch():
    program = "import sys; from bridgehead.train import TrainConfig; TrainConfig.of(); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_form_for_a_loss_that_has_none_is_refused_when_the_settings_are_read():
    with pytest.raises(ConfigError, match="form = 'inside', and the sigmoid loss judges each pair by itself"):
        TrainConfig.of({"form": "inside", "loss": {"name": "sigmoid"}})


def test_none_is_a_word_where_a_default_is_something_else():
    config = TrainConfig.of(patience="none", logit_scale_bounds="none")
    assert config.patience is None and config.logit_scale_bounds is None
    stored = config.model_dump(mode="json")
    assert stored["patience"] == "none" and TrainConfig.of(stored) == config
