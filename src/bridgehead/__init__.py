"""bridgehead aligns two modalities in one space, proves that the alignment is real, and searches across it.

The flow, from a table of pairs to a search bar:

    pairs -> encode -> align/train -> evaluate / audit -> report -> index -> search

    import bridgehead as bh

    run = bh.run("config.toml")                         # every stage, resumable; single ones are in bridgehead.runs
    with bh.open_space(run.folder) as space:            # heads="evaluated" for those that never saw the test pairs
        hits = space.search("inhibits cyclooxygenase")  # list of bh.Hit

The parts stand by themselves too: `read_pairs` reads a file into a table with `Links` (what matches what),
`make_encoder` turns items into rows, `Aligner` trains two heads on rows under `info_nce`, and `retrieval_report` says
how well they find each other, beside chance. `DualEncoderAligner`, `ProjectionCL`, `InfoNCELoss` and their like are the
same for those who write their own loop in torch; all losses are in `bridgehead.align`, hard negatives in
`bridgehead.negatives`. What a user can get wrong raises a `BridgeheadError`.

Public names are loaded when they are first used, so that importing bridgehead is quick and imports no heavy library.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bridgehead.align.dual_encoder import DualEncoderAligner
    from bridgehead.align.infonce_module import InfoNCELoss
    from bridgehead.align.losses.infonce import info_nce
    from bridgehead.align.projection_cl import ProjectionCL
    from bridgehead.align.projection_head import ProjectionHead
    from bridgehead.encode import make_encoder
    from bridgehead.errors import BridgeheadError
    from bridgehead.evaluate import retrieval_report
    from bridgehead.evaluate.alignment_metrics import AlignmentMetrics
    from bridgehead.links import Links
    from bridgehead.negatives.hard_sampler import HardNegativeBatchSampler
    from bridgehead.pairs import read_pairs
    from bridgehead.runs import run
    from bridgehead.runs.auditing.judged import audit
    from bridgehead.search import Hit, open_space
    from bridgehead.train.aligner import Aligner
    from bridgehead.train.alignment import train_alignment
    from bridgehead.train.dataset import MoleculeTextDataset

__version__ = "0.1.0"

_HOMES = {
    "Aligner": "bridgehead.train.aligner",
    "AlignmentMetrics": "bridgehead.evaluate.alignment_metrics",
    "BridgeheadError": "bridgehead.errors",
    "DualEncoderAligner": "bridgehead.align.dual_encoder",
    "HardNegativeBatchSampler": "bridgehead.negatives.hard_sampler",
    "Hit": "bridgehead.search",
    "InfoNCELoss": "bridgehead.align.infonce_module",
    "Links": "bridgehead.links",
    "MoleculeTextDataset": "bridgehead.train.dataset",
    "ProjectionCL": "bridgehead.align.projection_cl",
    "ProjectionHead": "bridgehead.align.projection_head",
    "audit": "bridgehead.runs.auditing.judged",
    "info_nce": "bridgehead.align.losses.infonce",
    "make_encoder": "bridgehead.encode",
    "open_space": "bridgehead.search",
    "read_pairs": "bridgehead.pairs",
    "retrieval_report": "bridgehead.evaluate",
    "run": "bridgehead.runs",
    "train_alignment": "bridgehead.train.alignment",
}

__all__ = [
    "Aligner",
    "AlignmentMetrics",
    "BridgeheadError",
    "DualEncoderAligner",
    "HardNegativeBatchSampler",
    "Hit",
    "InfoNCELoss",
    "Links",
    "MoleculeTextDataset",
    "ProjectionCL",
    "ProjectionHead",
    "__version__",
    "audit",
    "info_nce",
    "make_encoder",
    "open_space",
    "read_pairs",
    "retrieval_report",
    "run",
    "train_alignment",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Kept as an attribute, so that the next use does not come here.
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
