"""Where a pretrained model lies on disk, what it holds and what may be opened: no torch, no network.

A model is a folder with `config.json`, a tokenizer and weights in safetensors. This module is not about running it.
"""

import re
from dataclasses import dataclass, field
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

from bridgehead.errors import EncoderError, InputFileNotFoundError, MissingExtraError, OfflineError
from bridgehead.files import hash_file, hash_json

_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
# Every file that shapes a row of a text; weights come with them.
SHAPING = (
    "config.json",
    "tokenizer*",
    "vocab*",
    "merges.txt",
    "special_tokens_map.json",
    "added_tokens.json",
    "*.model",
)
_FETCHED = ["*.json", "*.safetensors", "*.txt", "*.model"]
_LIBRARIES = ("torch", "transformers", "tokenizers")


@dataclass(frozen=True)
class ModelFolder:
    """A model on disk. `hidden_size` is the width of its hidden states, `notes` what a user should know.

    Of a model that `is_encoder_decoder` only the first half is used.
    """

    path: Path
    hidden_size: int
    notes: list[str] = field(default_factory=list)
    is_encoder_decoder: bool = False

    @cached_property
    def content_hash(self) -> str:
        """Hash (hex) of weights, config and tokenizer: two copies of a model have the same."""
        names = sorted({file for pattern in (*SHAPING, "*.safetensors") for file in self.path.glob(pattern)})
        return hash_json({file.name: hash_file(file) for file in names if file.is_file()})

    @property
    def libraries(self) -> dict[str, str]:
        """Versions of the libraries that shape the rows."""
        return {name: _version(name) for name in _LIBRARIES}


def find_model(name: str, *, revision: str | None = None, online: bool = False) -> ModelFolder:
    """Return the folder of a model: `name` itself where that is a folder, else its snapshot in the hub's cache.

    Raises as `find_folder` does, and `EncoderError` when the folder holds no model.
    """
    return _checked(find_folder(name, revision=revision, online=online))


def find_folder(name: str, *, revision: str | None = None, online: bool = False) -> Path:
    """Return where `name` lies: itself where that is a folder, else its snapshot in the hub's cache; not looked into.

    With `online` a model that is not cached is fetched first. Raises `OfflineError` with the command that fetches it,
    `InputFileNotFoundError` for a folder that does not exist, and `EncoderError` when the hub does not give it.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    if not _HUB_NAME.fullmatch(name) or name.startswith((".", "~")):
        raise InputFileNotFoundError(f"{name} does not exist; expected a folder with a model, or a hub name (org/name)")
    return _fetched(name, revision) if online else _cached(name, revision)


def _cached(name: str, revision: str | None) -> Path:
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError as error:
        raise MissingExtraError("huggingface-hub", "hub") from error
    found = try_to_load_from_cache(name, "config.json", revision=revision)
    if not isinstance(found, str):
        option = f" --revision {revision}" if revision else ""
        raise OfflineError(
            f"the model {name!r} is not on this machine (neither a folder nor in the hub's cache), and nothing is "
            f"fetched unless asked for; run: hf download {name}{option} (huggingface-cli download {name}{option} in "
            "older releases), or set online = true"
        )
    return Path(found).parent


def _fetched(name: str, revision: str | None) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise MissingExtraError("huggingface-hub", "hub") from error
    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=_FETCHED))
    except (OSError, ValueError) as error:
        raise EncoderError(
            f"the model {name!r} cannot be fetched ({error}); check the name, the revision and the connection"
        ) from error


def _checked(path: Path) -> ModelFolder:
    config = _json(path / "config.json")
    if not any(path.glob("*.safetensors")):
        raise EncoderError(
            f"{path} holds no weights in safetensors; pickled weights (pytorch_model.bin) can run code and are never "
            "opened: convert them, or take a revision with model.safetensors"
        )
    size = next((config[key] for key in ("hidden_size", "d_model", "n_embd", "dim") if key in config), None)
    if not isinstance(size, int):
        raise EncoderError(f"{path}/config.json names no hidden size; expected the config of a text model")
    parts = [config]
    if (path / "tokenizer_config.json").is_file():
        parts.append(_json(path / "tokenizer_config.json"))
    notes = []
    if any("auto_map" in part for part in parts):
        notes.append("the model comes with code of its own, which is not run: the library's own classes are used")
    return ModelFolder(path, size, notes, bool(config.get("is_encoder_decoder")))


def _json(path: Path) -> dict[str, Any]:
    import json

    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise EncoderError(f"{path.parent} holds no {path.name}; expected a folder with a model") from error
    except ValueError as error:
        raise EncoderError(f"{path} is not JSON ({error})") from error
    if not isinstance(content, dict):
        raise EncoderError(f"{path} holds a {type(content).__name__}; expected a JSON object")
    return content


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "absent"
