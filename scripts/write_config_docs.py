"""Write docs/config.md from the settings' own types, defaults and descriptions.

    python scripts/write_config_docs.py

A test compares the file with what this would write.
"""

import json
import types
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from bridgehead.align.losses import LossConfig
from bridgehead.negatives import NegativesConfig
from bridgehead.runs.config import RunConfig
from bridgehead.train import AugmentConfig, TrainConfig
from bridgehead.train.live.config import Stage

TARGET = Path(__file__).resolve().parent.parent / "docs" / "config.md"
INTRODUCTION = """\
# The config of a run

<!-- Written by scripts/write_config_docs.py from the config modules of runs and train; change it there. -->

A run is described by one TOML file. `bridgehead init FILE` writes one with the columns guessed and explained. Relative
paths in it are taken from the folder that it lies in. An unknown key is refused, and a value out of range is refused
with the range. The run folder keeps the config with every default filled in.

```toml
schema = 1

[pairs]
path = "pairs.csv"
a = "smiles"
b = "description"
kind_a = "molecule"

[encode]
a = "molecule:fingerprints"
b = "text:ngram"
```

TOML has no null: where a default is *none*, the key is left out; where another default stands and none is meant, the
text `"none"` says so.
"""
PLAIN = {str: "text", int: "whole number", float: "number", bool: "true or false", Any: "any value"}
HEADING = ("| key | type | default | what it is |", "|---|---|---|---|")


def render() -> str:
    """Return the page: a table for the top of the file, then one for each section."""
    sections = {name: model for name, field in RunConfig.model_fields.items() if (model := _model(field.annotation))}
    top = {name: field for name, field in RunConfig.model_fields.items() if name not in sections}
    lines = [INTRODUCTION, "## At the top of the file", "", *_table(top)]
    for name, model in sections.items():
        lines += _section(name, RunConfig.model_fields[name].annotation, model)
    return "\n".join(lines) + "\n"


def _section(name: str, annotation: Any, model: type[BaseModel]) -> list[str]:
    """Return the table of a section, and after it those of its own sections, which its table leaves out."""
    one = any(_model(choice, deep=False) for choice in (annotation, *_choices(annotation)))
    shown = f"[{name}]" if one else f"[[{name}]]"
    inner = {key: found for key, field in model.model_fields.items() if (found := _model(field.annotation))}
    plain = {key: field for key, field in model.model_fields.items() if key not in inner}
    lines = ["", f"## `{shown}`", "", _first_line(model), "", *_table(plain)]
    for key, found in inner.items():
        lines += _section(f"{name}.{key}", model.model_fields[key].annotation, found)
    return lines


def _model(annotation: Any, deep: bool = True) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model, get_args(annotation))), None) if deep else None


def _choices(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else ()


def _first_line(model: type[BaseModel]) -> str:
    if model is TrainConfig:
        return "How the heads are trained."
    if model is LossConfig:
        return "Which loss; an option that it does not have is refused."
    if model is NegativesConfig:
        return "What an anchor is told from: how links meet in a batch, and rows of earlier batches."
    if model is AugmentConfig:
        return "How training rows are varied from step to step; all of it is off unless asked for."
    if model is Stage:
        return (
            "Weights that are frozen first and trained from an epoch on. Without any entry each encoder of `text:hf` "
            "is trained from epoch 1."
        )
    return (model.__doc__ or "").strip().splitlines()[0]


def _table(fields: dict[str, FieldInfo]) -> list[str]:
    return [*HEADING, *(_row(field.alias or name, field) for name, field in fields.items())]


def _row(name: str, field: FieldInfo) -> str:
    kind = _kind(field.annotation)
    bounds = ", ".join(filter(None, map(_bound, field.metadata)))
    cells = (f"`{name}`", f"{kind}, {bounds}" if bounds else kind, _default(field), field.description or "")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _kind(annotation: Any) -> str:
    if annotation in PLAIN:
        return PLAIN[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " or ".join(f"`{json.dumps(value)}`" for value in arguments)
    if get_origin(annotation) is Annotated:
        return _kind(arguments[0])
    if origin in (Union, types.UnionType):
        return " or ".join(_kind(argument) for argument in arguments if argument is not type(None))
    if origin is tuple:
        parts = [_kind(argument) for argument in arguments if argument is not Ellipsis]
        return f"list of {parts[0]}" if Ellipsis in arguments else f"list of {len(parts)}: {parts[0]}"
    return "table" if origin is dict else str(annotation)


def _bound(limit: Any) -> str:
    for name, sign in (("ge", "≥"), ("gt", ">"), ("le", "≤"), ("lt", "<")):
        if hasattr(limit, name):
            return f"{sign} {getattr(limit, name)}"
    return ""


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None:
        return "none"
    return f"`{json.dumps((round(value, 3) or value) if isinstance(value, float) else value)}`"


if __name__ == "__main__":
    TARGET.write_text(render(), encoding="utf-8")
