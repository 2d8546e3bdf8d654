"""Losses over links: each a pure function of two sets of rows, the scale and what matches what.

`contrast` is what they share. This folder is not about heads, batches, or where negatives come from.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "LossConfig": "config",
    "LossParts": "contrast",
    "MutualInformation": "information",
    "Objective": "objective",
    "Positives": "contrast",
    "alignment_term": "geometry",
    "decoupled_loss": "decoupled",
    "decoupled_parts": "decoupled",
    "guided_loss": "guided",
    "guided_parts": "guided",
    "hard_negative_loss": "hard_negative",
    "hard_negative_parts": "hard_negative",
    "hierarchical_loss": "hierarchical",
    "hierarchical_parts": "hierarchical",
    "info_nce": "infonce",
    "info_nce_parts": "infonce",
    "mutual_information_bound": "information",
    "no_signal": "information",
    "sigmoid_loss": "sigmoid",
    "sigmoid_parts": "sigmoid",
    "uniformity_term": "geometry",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
