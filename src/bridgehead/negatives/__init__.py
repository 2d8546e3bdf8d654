"""Which links meet in a batch, and what an anchor is told apart from: mining, samplers, a memory bank, a curriculum.

The names are loaded when they are first used, so that settings can be read without torch or FAISS. This folder sees
rows and links, never a model; losses are in `align`, the training loop in `train`.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "NegativesConfig": "config",
    "BatchPlan": "plan",
    "MinedNegatives": "mining",
    "NegativeRange": "mining",
    "mine_across": "mining",
    "mine_within": "mining",
    "mine_sides": "mining",
    "random_batches": "ordering",
    "hard_batches": "anchored",
    "repeated_hard_batches": "anchored",
    "HardEpoch": "anchored",
    "LinkNeighbours": "anchored",
    "distinct_batches": "disjoint",
    "DistinctEpoch": "disjoint",
    "RandomBatches": "samplers",
    "DistinctBatches": "samplers",
    "HardBatches": "samplers",
    "HardNegativeBatchSampler": "hard_sampler",
    "MemoryBank": "bank",
    "Extended": "bank",
    "bank_loss": "bank",
    "hard_count": "curriculum",
    "hard_share": "curriculum",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
