"""The file of trained heads: the one place that knows its header, shared by torch and by numpy.

No torch here (unless tensors of torch are asked for). This module is not about writing (`model`) or arithmetic.
"""

import json
from pathlib import Path
from typing import Any, Literal

from safetensors import SafetensorError, safe_open

from bridgehead.align.architecture import FORMAT, VERSION, HeadsConfig
from bridgehead.errors import FormatVersionError, InputFileNotFoundError, RunStateError


def read_heads_file(path: str | Path, framework: Literal["numpy", "pt"]) -> tuple[HeadsConfig, dict[str, Any]]:
    """Return the architecture and the stored arrays (or tensors) of a file that `save_heads` wrote.

    Raises `InputFileNotFoundError`, `FormatVersionError` (another kind or version of file) and `RunStateError` (not a
    safetensors file, or a damaged one).
    """
    source = Path(path)
    if not source.is_file():
        raise InputFileNotFoundError(f"{source} does not exist; expected the file of trained heads (heads.safetensors)")
    try:
        with safe_open(str(source), framework=framework) as file:
            header = file.metadata() or {}
            found = (header.get("format"), header.get("version"))
            if found != (FORMAT, VERSION):
                raise FormatVersionError(
                    f"{source} has format {found[0]!r} version {found[1]!r}; this release reads {FORMAT!r} version "
                    f"{VERSION!r}: use the release that wrote it, or train again"
                )
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        config = HeadsConfig.from_dict(json.loads(header["config"]))
    except (SafetensorError, KeyError, json.JSONDecodeError, RecursionError) as error:
        raise RunStateError(f"{source} is damaged ({error}); train again or restore the file") from error
    _check_first(source, config, tensors)
    return config, tensors


def _check_first(source: Path, config: HeadsConfig, tensors: dict[str, Any]) -> None:
    """Raise `RunStateError` where the first layers are not as wide as stated, before a model takes memory for them."""
    for side, head in (("a", config.a), ("b", config.b)):
        stored = tensors.get(f"head_{side}.first.weight")
        shape = (head.input_dim, head.widths[0]) if head.sparse else (head.widths[0], head.input_dim)
        if stored is not None and tuple(stored.shape) != shape:
            raise RunStateError(
                f"{source}: weights do not fit the architecture it states: the first layer of head {side} has shape "
                f"{tuple(stored.shape)}, not {shape}; train again or restore the file"
            )


def sort_header(path: str | Path) -> None:
    """Put the texts in the header of a safetensors file in the order of their names, in place.

    The library writes them in an order of chance; a file is known by its hash, so equal heads need equal bytes.
    """
    with open(path, "rb+") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
        text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
        if len(text) <= size:
            file.seek(8)
            file.write(text.ljust(size))
