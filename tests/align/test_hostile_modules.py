"""What heads, losses as modules and saved models make of arguments that nobody should give: one sentence that helps."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from bridgehead.align import (
    DualEncoderAligner,
    HeadConfig,
    HeadsConfig,
    InfoNCELoss,
    LogitScale,
    NumpyHeads,
    ProjectionCL,
    ProjectionHead,
    TwoHeads,
    TwoTowers,
    fit_closed_form,
    load_heads,
    save_heads,
)
from bridgehead.errors import ArgumentError, ConfigError, RunStateError, ShapeError

CALLS = {
    "ProjectionCL": lambda rows: ProjectionCL(4, (3, 3)).encode_a(rows),
    "ProjectionHead": lambda rows: ProjectionHead(3, 4)(rows),
    "TwoTowers": lambda rows: TwoTowers(3, 3).encode_a(rows),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.ones((2, 3)), "is a ndarray; expected a tensor"),
        ([[1.0, 2.0, 3.0]], "is a list; expected a tensor"),
        (None, "is a NoneType; expected a tensor"),
        (torch.ones(2, 3, dtype=torch.float64), r"float64 and the weights torch.float32; .* use .to\(torch.float32\)"),
        (torch.ones(2, 3, dtype=torch.int64), "int64 and the weights torch.float32"),
    ],
)
def test_a_head_says_what_it_wants_instead_of_rows_that_it_cannot_read(call: Any, rows: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call(rows)


def test_autocast_bridges_the_dtypes_of_rows_and_weights() -> None:
    model = ProjectionCL(4, (3, 3))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert model.encode_a(torch.ones(2, 3, dtype=torch.bfloat16)).shape == (2, 4)


@pytest.mark.parametrize("option", ["dropout", "logit_scale_init", "max_logit_scale", "min_logit_scale"])
def test_options_that_are_no_numbers_are_value_errors_that_name_them(option: str) -> None:
    with pytest.raises(ArgumentError, match=f"{option} = 'x'; expected a number"):
        ProjectionCL(4, (3, 3), **{option: "x"})  # type: ignore[arg-type]


@pytest.mark.parametrize("bound", [1e-50, 1e300])
def test_a_bound_of_the_scale_that_float32_does_not_hold_is_refused(bound: float) -> None:
    with pytest.raises(ArgumentError, match=r"max_logit_scale = .*; expected a number over 0 \(of float32"):
        ProjectionCL(4, (3, 3), max_logit_scale=bound)
    assert ProjectionCL(4, (3, 3), max_logit_scale=math.inf, logit_scale_init=50.0).current_logit_scale() == (
        pytest.approx(50.0)
    )


@pytest.mark.parametrize("temperature", ["0.07", None])
def test_a_temperature_that_is_no_number_is_refused(temperature: Any) -> None:
    with pytest.raises(ArgumentError, match=r"initial_temperature = .*; expected a number"):
        InfoNCELoss(temperature)


@pytest.mark.parametrize("folder", ["", None, 5, "a\0b"])
def test_a_model_is_not_saved_to_what_is_no_path(folder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentError, match="expected the path of a folder to save the model in"):
        ProjectionHead(3, 4).save_pretrained(folder)
    assert list(tmp_path.iterdir()) == []


def test_a_model_is_not_saved_through_a_link_to_nothing(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    with pytest.raises(ArgumentError, match="is a link to what does not exist"):
        ProjectionHead(3, 4).save_pretrained(tmp_path / "link")


def test_saving_and_loading_read_the_home_folder_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    ProjectionHead(3, 4).save_pretrained("~/model")
    assert (tmp_path / "home" / "model" / "config.json").is_file()
    assert ProjectionHead.from_pretrained("~/model").config == {"input_dim": 3, "projection_dim": 4}


def test_loading_from_what_is_no_path_does_not_ask_the_hub_for_it() -> None:
    with pytest.raises(ArgumentError, match="folder_or_name = None; expected the path of a folder or a hub name"):
        ProjectionHead.from_pretrained(None)  # type: ignore[arg-type]


def test_a_config_nested_beyond_reading_is_damaged(tmp_path: Path) -> None:
    ProjectionHead(3, 4).save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text("[" * 100_000)
    with pytest.raises(RunStateError, match="is not JSON"):
        ProjectionHead.from_pretrained(tmp_path)


def test_a_module_in_place_of_an_encoders_name_is_sent_to_from_modules() -> None:
    with pytest.raises(ArgumentError, match=r"encoder_b_name is a Linear; .*from_modules"):
        DualEncoderAligner("folder", nn.Linear(2, 2))  # type: ignore[arg-type]


def test_an_encoder_that_is_no_module_is_refused() -> None:
    with pytest.raises(ArgumentError, match="encoder_b is a str; expected a torch module"):
        DualEncoderAligner.from_modules(nn.Linear(2, 2), "folder", 2, 2)  # type: ignore[arg-type]


@pytest.mark.parametrize("rate", [-1.0, math.nan, "x"])
def test_a_learning_rate_that_no_optimiser_should_get_is_refused(rate: Any) -> None:
    model = DualEncoderAligner.from_modules(nn.Linear(2, 2), nn.Linear(2, 2), 2, 2, projection_dim=2)
    with pytest.raises(ArgumentError, match=r"learning_rate = .*; expected"):
        model.parameter_groups(rate)
    with pytest.raises(ArgumentError, match=r"learning_rate = .*; expected"):
        model.parameter_groups(1e-3, encoder_learning_rate=rate)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"init": "x"}, "logit_scale = 'x'; expected a number"),
        ({"bounds": (1.0,)}, r"bounds are \(1\.0,\); expected \(lowest, highest\), or None"),
        ({"bounds": 5}, "bounds are 5; expected"),
        ({"bounds": ("a", "b")}, "the lowest logit_scale = 'a'; expected a number"),
    ],
)
def test_a_scale_of_what_is_no_number_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        LogitScale(**arguments)


@pytest.mark.parametrize("spread", [-1.0, math.nan, math.inf])
def test_a_spread_that_no_weights_can_start_with_is_refused(spread: float) -> None:
    with pytest.raises(ConfigError, match=r"init_std = .*; expected a finite"):
        HeadConfig(4, 4, sparse=True, init_std=spread)


def test_towers_name_a_width_where_widths_are_expected() -> None:
    with pytest.raises(ConfigError, match="hidden = 5"):
        TwoTowers(3, 4, hidden=5)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["cca", "ridge", "procrustes"])
def test_a_closed_form_of_rows_without_columns_is_refused(method: Any) -> None:
    with pytest.raises(ShapeError, match=r"rows of b have shape \(5, 0\); expected at least one column"):
        fit_closed_form(np.eye(5), np.zeros((5, 0)), method=method)


def test_a_regularisation_that_is_no_number_is_refused() -> None:
    with pytest.raises(ArgumentError, match="regularisation = 'x'; expected a number"):
        fit_closed_form(np.eye(5), np.eye(5), regularisation="x")  # type: ignore[arg-type]


def _heads_with(path: Path, config: str) -> Path:
    save_heads(TwoHeads(HeadsConfig(HeadConfig(3, 4), HeadConfig(5, 4))), path)
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + size])
    header["__metadata__"]["config"] = config or header["__metadata__"]["config"].replace(
        '"input_dim": 3', '"input_dim": 1000000000'
    )
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + raw[8 + size :])
    return path


@pytest.mark.parametrize("load", [load_heads, NumpyHeads.load], ids=["torch", "numpy"])
def test_heads_of_a_width_that_their_weights_do_not_have_take_no_memory_for_it(load: Any, tmp_path: Path) -> None:
    with pytest.raises(RunStateError, match=r"first layer of head a has shape \(512, 3\), not \(512, 1000000000\)"):
        load(_heads_with(tmp_path / "heads.safetensors", ""))


@pytest.mark.parametrize("load", [load_heads, NumpyHeads.load], ids=["torch", "numpy"])
def test_heads_whose_description_is_nested_beyond_reading_are_damaged(load: Any, tmp_path: Path) -> None:
    with pytest.raises(RunStateError, match="is damaged"):
        load(_heads_with(tmp_path / "heads.safetensors", "[" * 100_000))
