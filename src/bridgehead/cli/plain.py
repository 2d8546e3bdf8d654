"""What is printed as plain text or JSON: characters that move a terminal's cursor are taken out of the user's data.

This module is not about which text is shown (`hits`, `session`).
"""

import dataclasses
import json
import math
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_SPACES = re.compile(r"\s+")


def printable(text: str) -> str:
    """Return `text` with control characters other than tab and newline replaced by the replacement character.

    A cell of a data file may hold the sequences that clear a screen or rename a window, or turn the direction of what
    follows.
    """
    return _CONTROLS.sub("\ufffd", text)


def spoken(message: str, options: Mapping[str, str]) -> str:
    """Return a message of the library with its arguments as a command or config has them.

    `options` is argument -> form, with {} for the value: `{"read_as": "--as {}"}`.
    """
    for argument, form in options.items():
        message = message.replace(f"leave {argument} out", f"leave {form.format('').strip()} out")
        for verb, said in (("pass ", "add "), ("", "")):
            message = re.sub(
                rf"(?<!['\w]){verb}{argument}='([^']*)'",
                lambda found, start=said, form=form: start + form.format(found[1]),  # type: ignore[misc]
                message,
            )
    return message


def cell(value: Any) -> str:
    """Return a value of an item as one line: a list is joined by `; `, None is empty, white space is one space."""
    if value is None:
        return ""
    text = "; ".join(cell(entry) for entry in value) if isinstance(value, list | tuple) else str(value)
    return printable(_SPACES.sub(" ", text).strip())


def to_json(content: Any, ascii_only: bool = False) -> str:
    """Return a JSON document, indented; NaN and infinity, which JSON lacks, become null.

    Dataclasses become objects, paths and unknown values text, NumPy's numbers and arrays plain ones.
    """
    return json.dumps(_plain(content), indent=2, ensure_ascii=ascii_only, allow_nan=False)


def _plain(content: Any) -> Any:
    if dataclasses.is_dataclass(content) and not isinstance(content, type):
        return {field.name: _plain(getattr(content, field.name)) for field in dataclasses.fields(content)}
    if isinstance(content, Mapping):
        return {str(key): _plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple | set | frozenset):
        return [_plain(value) for value in content]
    if isinstance(content, str):
        # Lone surrogates are no characters, and no encoding can write them.
        return content.encode("utf-8", "replace").decode()
    if content is None or isinstance(content, bool | int):
        return content
    if isinstance(content, float):
        return content if math.isfinite(content) else None
    if isinstance(content, PurePath):
        return str(content)
    # NumPy's scalars and arrays, without importing NumPy.
    return _plain(content.tolist()) if hasattr(content, "tolist") else str(content)
