"""Models as folders: `config.json` beside weights in safetensors, on disk or by a name on the model hub.

The format is our own and needs no extra; huggingface_hub is imported when a hub name is used. This module is not about
what a model computes.
"""

import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, Self, TypeVar, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from bridgehead.encode.hub import find_folder
from bridgehead.errors import (
    ArgumentError,
    FormatVersionError,
    InputFileNotFoundError,
    MissingExtraError,
    RunStateError,
)
from bridgehead.files import atomic_path, hash_file, read_json, write_json

FORMAT = "bridgehead-model"
VERSION = 1
CONFIG_NAME = "config.json"
WEIGHTS_NAME = "model.safetensors"

_Model = TypeVar("_Model")


class Pretrained:
    """What a module gains by it: saving to a folder, loading from one, publishing.

    The class sets `self.config`, the arguments of its constructor by name, all of them plain values (numbers, texts,
    None, sequences and mappings of these; a sequence comes back as a tuple). `config.json` holds format, version, name
    of the class, these arguments and the SHA-256 of every other file; it is written last, each file atomically, so a
    folder whose saving was cut off is refused, never half-read.
    """

    config: dict[str, Any]

    def save_pretrained(self, folder: str | Path) -> None:
        """Write config and weights into `folder`, made where it is missing; an earlier model of ours is replaced.

        Raises `ArgumentError` when `folder` is a file or holds the config of something else, and `OSError` for a full
        disk.
        """
        target = _target(folder)
        _check_free(target)
        target.mkdir(parents=True, exist_ok=True)
        names = self._write_parts(target)
        content = {
            "class": type(self).__name__,
            "config": self.config,
            **self._state_beside_weights(),
            "files": {name: hash_file(target / name) for name in names},
        }
        write_json(target / CONFIG_NAME, content, FORMAT, VERSION)

    @classmethod
    def from_pretrained(cls, folder_or_name: str | Path, *, online: bool = False, revision: str | None = None) -> Self:
        """Return the model that `save_pretrained` wrote, in evaluation mode, on the CPU and in the dtype it had.

        `folder_or_name` is a folder, else a hub name (org/name) whose snapshot is in the hub's cache, or is fetched
        with `online`; `revision` is a branch, tag or commit there. Torch's random state is left as it was. Raises
        `InputFileNotFoundError`, `OfflineError`, `MissingExtraError`, `FormatVersionError` (another format, version or
        class) and `RunStateError` (a damaged file, or weights that do not fit the arguments).
        """
        folder, content = cls._opened(folder_or_name, online=online, revision=revision)
        return cls._restored(folder, content)

    def push_to_hub(
        self,
        name: str,
        *,
        private: bool = True,
        revision: str | None = None,
        message: str = "Upload model",
    ) -> str:
        """Upload what `save_pretrained` writes as the repository `name` (org/name); return the address of the commit.

        The repository is made where it is missing, and is then visible to its owner alone unless `private` is False;
        one that is there keeps its visibility. `revision` is the branch (default: the main one). Who may write is the
        business of huggingface_hub's own login. Raises `MissingExtraError`, and what huggingface_hub raises.
        """
        try:
            from huggingface_hub import HfApi
        except ImportError as error:
            raise MissingExtraError("huggingface-hub", "hub") from error
        hub = HfApi()
        with tempfile.TemporaryDirectory() as folder:
            self.save_pretrained(folder)
            repository = hub.create_repo(name, private=private, exist_ok=True).repo_id
            return str(
                hub.upload_folder(
                    repo_id=repository, folder_path=folder, revision=revision, commit_message=message, repo_type="model"
                )
            )

    # A class whose weights are more than one state dict replaces these three.

    def _write_parts(self, folder: Path) -> list[str]:
        """Write all but the config into `folder`; return the files' names, relative to it."""
        write_weights(folder / WEIGHTS_NAME, cast(nn.Module, self).state_dict())
        return [WEIGHTS_NAME]

    def _state_beside_weights(self) -> dict[str, Any]:
        """Return further fields of the config file, for what is neither argument nor weight."""
        return {}

    @classmethod
    def _restored(cls, folder: Path, content: dict[str, Any]) -> Self:
        """Return the model of an opened folder."""
        model = built(cls, content["config"], folder)
        load_weights(cast(nn.Module, model), folder / WEIGHTS_NAME)
        cast(nn.Module, model).eval()
        return model

    @classmethod
    def _opened(cls, folder_or_name: str | Path, *, online: bool, revision: str | None) -> tuple[Path, dict[str, Any]]:
        """Return the folder and its config after checking that class and files are those it was written with."""
        if not isinstance(folder_or_name, str | PathLike):
            raise ArgumentError(f"folder_or_name = {folder_or_name!r:.80}; expected the path of a folder or a hub name")
        folder = find_folder(str(folder_or_name), revision=revision, online=online)
        source = folder / CONFIG_NAME
        content = read_json(source, FORMAT, VERSION)
        if content.get("class") != cls.__name__:
            found = content.get("class")
            raise FormatVersionError(
                f"{source} describes a {found}; expected a {cls.__name__}: load it with {found}.from_pretrained"
            )
        if not isinstance(content.get("config"), dict) or not isinstance(content.get("files"), dict):
            raise RunStateError(f"{source} lacks 'config' or 'files'; it is damaged: save the model again")
        for name, expected in content["files"].items():
            if not (folder / name).is_file():
                raise InputFileNotFoundError(f"{folder / name} does not exist; {source} was written with it")
            if hash_file(folder / name) != expected:
                raise RunStateError(
                    f"{folder / name} is not the file that {source} was written with: one of them is damaged, or the "
                    "saving was cut off; save the model again, or restore both"
                )
        content["config"] = {name: _tuples(value) for name, value in content["config"].items()}
        return folder, content


def built(cls: type[_Model], arguments: Mapping[str, Any], folder: Path) -> _Model:
    """Return `cls(**arguments)` with torch's random state left alone. Raises `RunStateError` when that fails."""
    with torch.random.fork_rng(devices=[]):
        try:
            return cls(**arguments)
        except (TypeError, ValueError) as error:
            raise RunStateError(
                f"{folder / CONFIG_NAME}: no {cls.__name__} can be made of its arguments ({error}); it is damaged, or "
                "another release wrote it"
            ) from error


def write_weights(path: Path, tensors: Mapping[str, torch.Tensor]) -> None:
    """Write tensors as safetensors, atomically; those that share memory are written each by itself."""
    seen: set[int] = set()
    apart = {}
    for name, value in tensors.items():
        tensor = value.detach().cpu().contiguous()
        place = tensor.untyped_storage().data_ptr()
        apart[name] = tensor.clone() if place in seen else tensor
        seen.add(place)
    atomic_path(path, lambda name: save_file(apart, name))


def load_weights(module: nn.Module, path: Path, ignored: Iterable[str] = ()) -> None:
    """Put the tensors of a safetensors file into `module`, which takes their dtypes.

    Every tensor of the module must be there, but for those under a prefix of `ignored`. Raises `RunStateError`.
    """
    try:
        tensors = load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise RunStateError(f"{path} is damaged ({error}); save the model again or restore the file") from error
    for name, own in (*module.named_parameters(), *module.named_buffers()):
        if name in tensors and own.is_floating_point() and tensors[name].is_floating_point():
            own.data = own.data.to(tensors[name].dtype)
    try:
        missing, unexpected = module.load_state_dict(tensors, strict=False)
    except RuntimeError as error:
        raise RunStateError(f"{path}: weights do not fit the arguments beside them: {error}") from error
    missing = [name for name in missing if not name.startswith(tuple(ignored))]
    if missing or unexpected:
        raise RunStateError(
            f"{path}: weights do not fit the arguments beside them: it lacks {_some(missing)}, and has "
            f"{_some(unexpected)} that the model does not know"
        )


@contextmanager
def replacing(folder: Path, names: tuple[str, ...]) -> Iterator[list[Path]]:
    """Give a path beside each of `names`, and put what was written there in their place once all of it is written.

    So a disk that fills leaves the earlier model whole; weights may be read from the very files that are replaced.
    """
    beside = [folder / f".{name}.part" for name in names]
    try:
        for path in beside:
            _remove(path)
        yield beside
        for path, name in zip(beside, names, strict=True):
            _remove(folder / name)
            path.rename(folder / name)
    finally:
        for path in beside:
            _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _target(folder: Any) -> Path:
    """Return where to save, ~ written out as loading does. Raises `ArgumentError` for what is no path."""
    if not isinstance(folder, str | PathLike) or not str(folder) or "\0" in str(folder):
        raise ArgumentError(f"folder = {folder!r:.80}; expected the path of a folder to save the model in")
    return Path(folder).expanduser()


def _check_free(folder: Path) -> None:
    """Raise `ArgumentError` where saving would destroy what is not a model of ours."""
    if folder.is_symlink() and not folder.exists():
        raise ArgumentError(f"{folder} is a link to what does not exist; expected a folder to save the model in")
    if folder.exists() and not folder.is_dir():
        raise ArgumentError(f"{folder} is a file; expected a folder to save the model in")
    config = folder / CONFIG_NAME
    if not config.exists():
        return
    try:
        found = json.loads(config.read_text(encoding="utf-8"))
        ours = isinstance(found, dict) and found.get("format") == FORMAT
    except (OSError, ValueError):
        ours = False
    if not ours:
        raise ArgumentError(
            f"{config} is the config of something else, which saving would replace; name another folder"
        )


def _tuples(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_tuples(entry) for entry in value)
    return {name: _tuples(entry) for name, entry in value.items()} if isinstance(value, dict) else value


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "") if names else "none"
