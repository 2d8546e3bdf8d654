"""From encoder rows to one shared space: heads, the logit scale, losses, the two-headed model and its numpy twin.

The names are loaded when they are first used, so that the twin (`NumpyHeads`) can be imported without torch. This
folder is not about data, batches or optimisation (`train`), nor about judging the space (`evaluate`).
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "HeadConfig": "architecture",
    "HeadsConfig": "architecture",
    "CsrBatch": "bags",
    "csr_batch": "bags",
    "Head": "heads",
    "LossParts": "losses",
    "Positives": "losses",
    "info_nce": "losses",
    "info_nce_parts": "losses",
    "LogitScale": "scale",
    "TwoHeads": "model",
    "load_heads": "model",
    "save_heads": "model",
    "NumpyHeads": "twin",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
