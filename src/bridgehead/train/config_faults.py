"""What is wrong with settings, one phrase per fault, with the key that was probably meant.

This module is not about which settings there are (`config`).
"""

import difflib
from typing import Any, get_args

from pydantic import BaseModel, ValidationError


def config_faults(error: ValidationError, model: type[BaseModel], whole: str) -> str:
    """Return the faults of `error`, raised by `model`, joined by semicolons.

    Each names its key (`whole` where it is about all of them) and what came; an unknown key gets the nearest known one,
    from another section where it is known there.
    """
    return "; ".join(_fault(dict(fault), model, whole) for fault in error.errors())


def _fault(fault: dict[str, Any], model: type[BaseModel], whole: str) -> str:
    path = [str(part) for part in fault["loc"]]
    key = ".".join(path) or whole
    if fault["type"] != "extra_forbidden":
        return f"{key}: {fault['msg']} (got {fault['input']!r:.80})"
    return f"{key}: unknown key{_meant(path, model)} (got {fault['input']!r:.80})"


def _meant(path: list[str], model: type[BaseModel]) -> str:
    known = list(_keys(model, ""))
    # Of a list of tables every entry has the same keys: its number is no part of a name.
    section = ".".join(part for part in path[:-1] if not part.isdigit())
    here = [name.rpartition(".")[2] for name in known if name.rpartition(".")[0] == section]
    if near := difflib.get_close_matches(path[-1].lower(), here, n=1):
        return f"; did you mean {'.'.join([*path[:-1], near[0]])!r}?"
    if elsewhere := [name for name in known if name.rpartition(".")[2] == path[-1]]:
        return f"; did you mean {elsewhere[0]!r}?"
    return f"; known here: {', '.join(here)}"


def _keys(model: type[BaseModel], prefix: str) -> Any:
    for name, field in model.model_fields.items():
        name = field.alias or name
        yield prefix + name
        for inner in _types(field.annotation):
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                yield from _keys(inner, f"{prefix}{name}.")


def _types(annotation: Any) -> Any:
    yield annotation
    for inner in get_args(annotation):
        yield from _types(inner)
