"""Writing settings as TOML, for the resolved config of a run; the standard library only reads it."""

import json
from collections.abc import Mapping
from typing import Any


def to_toml(settings: Mapping[str, Any]) -> str:
    """Return nested mappings of texts, numbers, booleans and lists as TOML; keys whose value is None are left out.

    Lists of mappings become arrays of tables. Reading it back with `tomllib` gives the same values.
    """
    return "\n".join(_table(settings, ())).strip() + "\n"


def _table(settings: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    lines, deeper = [], []
    for key, value in settings.items():
        name = (*path, key)
        if isinstance(value, Mapping):
            deeper += ["", f"[{_dotted(name)}]", *_table(value, name)]
        elif isinstance(value, list) and value and all(isinstance(entry, Mapping) for entry in value):
            for entry in value:
                deeper += ["", f"[[{_dotted(name)}]]", *_table(entry, name)]
        elif value is not None:
            lines.append(f"{_key(key)} = {_value(value)}")
    return lines + deeper


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else _text(key)


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(map(_key, path))


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items() if v is not None) + "}"
    # repr, because TOML writes inf and nan as Python does.
    return _text(value) if isinstance(value, str) else repr(value)


def _text(value: str) -> str:
    # A JSON text is a TOML basic string but for DEL, which TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
