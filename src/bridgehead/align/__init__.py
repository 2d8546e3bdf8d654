"""From encoder rows to one shared space: heads, the logit scale, losses, the two-headed model and its numpy twin.

The names are loaded when they are first used, so that the twin (`NumpyHeads`) can be imported without torch. This
folder is not about data, batches or optimisation (`train`), nor about judging the space (`evaluate`).
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "ClosedForm": "closed_form",
    "CsrBatch": "bags",
    "DualEncoderAligner": "dual_encoder",
    "Head": "heads",
    "HeadConfig": "architecture",
    "HeadsConfig": "architecture",
    "InfoNCELoss": "infonce_module",
    "LogitScale": "scale",
    "LossConfig": "losses",
    "LossParts": "losses",
    "MutualInformation": "losses",
    "NumpyHeads": "twin",
    "Objective": "losses",
    "Positives": "losses",
    "Pretrained": "pretrained",
    "ProjectionCL": "projection_cl",
    "ProjectionHead": "projection_head",
    "TwoHeads": "model",
    "TwoTowers": "towers",
    "alignment_term": "losses",
    "csr_batch": "bags",
    "decoupled_loss": "losses",
    "decoupled_parts": "losses",
    "fit_closed_form": "closed_form",
    "guided_loss": "losses",
    "guided_parts": "losses",
    "hard_negative_loss": "losses",
    "hard_negative_parts": "losses",
    "hierarchical_loss": "losses",
    "hierarchical_parts": "losses",
    "info_nce": "losses",
    "info_nce_parts": "losses",
    "load_heads": "model",
    "mutual_information_bound": "losses",
    "no_signal": "losses",
    "save_heads": "model",
    "sigmoid_loss": "losses",
    "sigmoid_parts": "losses",
    "tower": "towers",
    "uniformity_term": "losses",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
