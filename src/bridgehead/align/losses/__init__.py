"""Losses over links: each a pure function of two sets of rows, the scale and what matches what.

`contrast` is what they share. This folder is not about heads, batches, or where negatives come from.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "LossParts": "contrast",
    "Positives": "contrast",
    "info_nce": "infonce",
    "info_nce_parts": "infonce",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
