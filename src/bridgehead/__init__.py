"""bridgehead aligns two modalities in one space, proves that the alignment is real, and searches across it.

The flow, from a table of pairs to a search bar:

    pairs -> encode -> align/train -> evaluate / audit -> report -> index -> search

    import bridgehead as bh

    run = bh.run("config.toml")                         # every stage, resumable; single ones are in bridgehead.runs
    with bh.open_space(run.folder) as space:            # heads="evaluated" for those that never saw the test pairs
        hits = space.search("inhibits cyclooxygenase")  # list of bh.Hit

The parts stand by themselves too: `read_pairs` reads a file into a table with `Links` (what matches what),
`make_encoder` turns items into rows, `Aligner` trains two heads on rows under `info_nce`, and `retrieval_report` says
how well they find each other, beside chance. What a user can get wrong raises a `BridgeheadError`.

Public names are loaded when they are first used, so that importing bridgehead is quick and imports no heavy library.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bridgehead.align.losses.infonce import info_nce
    from bridgehead.encode import make_encoder
    from bridgehead.errors import BridgeheadError
    from bridgehead.evaluate import retrieval_report
    from bridgehead.links import Links
    from bridgehead.pairs import read_pairs
    from bridgehead.runs import run
    from bridgehead.search import Hit, open_space
    from bridgehead.train.aligner import Aligner

__version__ = "0.1.0"

_HOMES = {
    "Aligner": "bridgehead.train.aligner",
    "BridgeheadError": "bridgehead.errors",
    "Hit": "bridgehead.search",
    "Links": "bridgehead.links",
    "info_nce": "bridgehead.align.losses.infonce",
    "make_encoder": "bridgehead.encode",
    "open_space": "bridgehead.search",
    "read_pairs": "bridgehead.pairs",
    "retrieval_report": "bridgehead.evaluate",
    "run": "bridgehead.runs",
}

__all__ = [
    "Aligner",
    "BridgeheadError",
    "Hit",
    "Links",
    "__version__",
    "info_nce",
    "make_encoder",
    "open_space",
    "read_pairs",
    "retrieval_report",
    "run",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Kept as an attribute, so that the next use does not come here.
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
