"""Settings read from untrusted values: one error for all faults, each with the key that was probably meant.

This module is not about which settings there are: those stand where they are used.
"""

import difflib
from collections.abc import Mapping
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from bridgehead.errors import ConfigError

Model = TypeVar("Model", bound=BaseModel)


def read_settings(
    model: type[Model], settings: Any, changes: Mapping[str, Any], *, of: str, name: str, expected: str
) -> Model:
    """Return `model` of None, an instance of it or a mapping, with `changes`.

    `of` is what the settings are of ("training"), `name` what they are called in a message about all of them, and
    `expected` what could have come. Raises `ConfigError` with one phrase per fault.
    """
    if isinstance(settings, model):
        if not changes:
            return settings
        settings = settings.model_dump()
    if settings is not None and not isinstance(settings, Mapping):
        raise ConfigError(f"{name} is a {type(settings).__name__} ({settings!r:.80}); expected {expected}")
    try:
        return model.model_validate({**(settings or {}), **changes})
    except ValidationError as error:
        raise ConfigError(f"the settings of {of} are not understood: {config_faults(error, model, name)}") from error


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
