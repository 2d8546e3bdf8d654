"""Saving a module to a folder and getting it back; everything that is not such a folder is refused."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from bridgehead.align.pretrained import Pretrained, write_weights
from bridgehead.errors import ArgumentError, FormatVersionError, InputFileNotFoundError, OfflineError, RunStateError


class Small(Pretrained, nn.Module):
    """A module of two arguments, one of them a sequence."""

    def __init__(self, widths: tuple[int, ...] = (3, 2), bias: bool = True) -> None:
        super().__init__()
        assert isinstance(widths, tuple)
        self.config = {"widths": widths, "bias": bias}
        self.layer = nn.Linear(*widths, bias=bias)
        self.norm = nn.BatchNorm1d(widths[1])


class Other(Small):
    """Another class of the same weights."""


def edit(folder: Path, **fields: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def test_what_is_saved_comes_back_whole_in_evaluation_mode_and_leaves_random_state_alone(tmp_path: Path) -> None:
    model = Small((5, 4), bias=False)
    model.norm(torch.randn(8, 4))  # moves the running statistics
    model.save_pretrained(tmp_path / "model")
    state = torch.random.get_rng_state()
    again = Small.from_pretrained(tmp_path / "model")
    assert torch.equal(torch.random.get_rng_state(), state)
    assert again.config == model.config == {"widths": (5, 4), "bias": False} and not again.training
    for name, value in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], value), name


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_the_dtype_stays(tmp_path: Path, dtype: torch.dtype) -> None:
    model = Small().to(dtype)
    model.save_pretrained(tmp_path)
    again = Small.from_pretrained(tmp_path)
    assert again.layer.weight.dtype == dtype and torch.equal(again.layer.weight, model.layer.weight)


def test_equal_models_give_equal_files_and_saving_again_replaces(tmp_path: Path) -> None:
    first, second = Small(), Small()
    second.load_state_dict(first.state_dict())
    first.save_pretrained(tmp_path / "a")
    second.save_pretrained(tmp_path / "b")
    for name in ("config.json", "model.safetensors"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    Small((2, 7)).save_pretrained(tmp_path / "a")
    assert Small.from_pretrained(tmp_path / "a").config["widths"] == (2, 7)
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["config.json", "model.safetensors"]


def test_weights_that_share_memory_are_saved(tmp_path: Path) -> None:
    weight = torch.arange(6.0).reshape(2, 3)
    write_weights(tmp_path / "w.safetensors", {"whole": weight, "tied": weight, "part": weight[:1]})
    from safetensors.numpy import load_file

    found = load_file(tmp_path / "w.safetensors")
    assert np.array_equal(found["whole"], found["tied"]) and found["part"].tolist() == [[0.0, 1.0, 2.0]]


def test_a_folder_that_is_missing_incomplete_or_of_another_class_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputFileNotFoundError, match="expected a folder with a model, or a hub name"):
        Small.from_pretrained(tmp_path / "absent")
    with pytest.raises(InputFileNotFoundError, match=r"config.json does not exist; expected a file of format"):
        Small.from_pretrained(tmp_path)
    Small().save_pretrained(tmp_path)
    with pytest.raises(FormatVersionError, match=r"describes a Small; expected a Other: load it with Small\.from_pre"):
        Other.from_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(InputFileNotFoundError, match=r"model.safetensors does not exist; .* was written with it"):
        Small.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    "fields, error, message",
    [
        ({"version": 2}, FormatVersionError, "version 2; this release reads 'bridgehead-model' version 1"),
        ({"format": "bert"}, FormatVersionError, "has format 'bert'"),
        ({"config": None}, RunStateError, "lacks 'config' or 'files'"),
        ({"config": {"widths": [3, 2], "colour": 1}}, RunStateError, "no Small can be made of its arguments"),
        ({"config": {"widths": [4, 2]}}, RunStateError, "weights do not fit the arguments"),
        ({"config": {"bias": False}}, RunStateError, "has layer.bias that the model does not know"),
    ],
)
def test_a_config_that_is_not_what_was_saved_is_refused(
    tmp_path: Path, fields: dict[str, Any], error: type[Exception], message: str
) -> None:
    Small().save_pretrained(tmp_path)
    edit(tmp_path, **fields)
    with pytest.raises(error, match=message):
        Small.from_pretrained(tmp_path)


@pytest.mark.parametrize("place", [0, 20, -1])
def test_a_byte_that_is_another_is_found(tmp_path: Path, place: int) -> None:
    Small().save_pretrained(tmp_path)
    data = bytearray((tmp_path / "model.safetensors").read_bytes())
    data[place] ^= 1
    (tmp_path / "model.safetensors").write_bytes(data)
    with pytest.raises(RunStateError, match="one of them is damaged, or the saving was cut off"):
        Small.from_pretrained(tmp_path)


def test_weights_of_a_later_saving_that_was_cut_off_are_not_taken_with_the_older_config(tmp_path: Path) -> None:
    Small().save_pretrained(tmp_path)
    write_weights(tmp_path / "model.safetensors", Small().state_dict())
    with pytest.raises(RunStateError, match="the saving was cut off"):
        Small.from_pretrained(tmp_path)


def test_saving_never_replaces_a_model_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(ArgumentError, match="the config of something else"):
        Small().save_pretrained(tmp_path)
    assert not (tmp_path / "model.safetensors").exists()
    with pytest.raises(ArgumentError, match="is a file; expected a folder"):
        Small().save_pretrained(tmp_path / "config.json")


def test_a_hub_name_is_not_fetched_unless_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_network: None
) -> None:
    import huggingface_hub

    with pytest.raises(OfflineError, match="hf download some-org/some-model"):
        Small.from_pretrained("some-org/some-model")
    Small((2, 2)).save_pretrained(tmp_path)
    asked = {}

    def fetch(name: str, revision: str | None, allow_patterns: list[str]) -> str:
        asked.update(name=name, revision=revision)
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    model = Small.from_pretrained("some-org/some-model", online=True, revision="v1")
    assert model.config["widths"] == (2, 2) and asked == {"name": "some-org/some-model", "revision": "v1"}


def test_pushing_uploads_what_saving_writes_to_a_private_repository(
    monkeypatch: pytest.MonkeyPatch, no_network: None
) -> None:
    import huggingface_hub

    calls: list[Any] = []

    class Hub:
        def create_repo(self, name: str, private: bool, exist_ok: bool) -> Any:
            calls.append((name, private, exist_ok))
            return type("Url", (), {"repo_id": f"me/{name}"})

        def upload_folder(self, *, folder_path: str, **options: Any) -> str:
            calls.append((options["repo_id"], sorted(path.name for path in Path(folder_path).iterdir())))
            return "https://hub/commit/1"

    monkeypatch.setattr(huggingface_hub, "HfApi", Hub)
    assert Small().push_to_hub("model") == "https://hub/commit/1"
    assert calls == [("model", True, True), ("me/model", ["config.json", "model.safetensors"])]


WITHOUT_EXTRAS = """
import sys
for name in ("huggingface_hub", "transformers", "tokenizers"):
    sys.modules[name] = None
import torch
from bridgehead.align.pretrained import Pretrained
from bridgehead.errors import MissingExtraError

class Small(Pretrained, torch.nn.Linear):
    def __init__(self, n):
        super().__init__(n, n)
        self.config = {"n": n}

Small(2).save_pretrained(sys.argv[1])
print(Small.from_pretrained(sys.argv[1]).config)
for call in (lambda: Small.from_pretrained("org/name"), lambda: Small(2).push_to_hub("org/name")):
    try:
        call()
    except MissingExtraError as error:
        print(error)
"""


def test_folders_need_no_extra_and_hub_names_say_which_one_they_need(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS, str(tmp_path)], capture_output=True, text=True, timeout=120
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "{'n': 2}", done.stderr
    assert len(lines) == 3 and all("pip install 'bridgehead[hub]'" in line for line in lines[1:])
