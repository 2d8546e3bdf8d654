"""`bridgehead demo`: the whole flow on the packaged ligands, with aspirin held out.

This module is not about the stages (`stages`) or the data (`pairs.starter`).
"""

import time
from pathlib import Path
from typing import Any

from bridgehead.runs.config import CHEMICALS, STARTER, RunConfig, config_of
from bridgehead.runs.flow import run
from bridgehead.runs.prepare import Progress

ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"
ASPIRIN_ID = "4139"


def demo_config(seed: int = 0) -> RunConfig:
    """Return the config of the demo: packaged ligands and their statements, aspirin's skeleton in the test part.

    `seed` is that of the split and of the training.
    """
    return config_of(
        {
            "schema": 1,
            "name": "Ligands and what they do",
            "pairs": {
                "path": STARTER,
                "a": "smiles",
                "b": "statement",
                "id": "id",
                "kind_a": "molecule",
                "kind_b": "text",
                "name_b": "text",
                "names": ["name", "synonyms"],
            },
            "split": {"hold_out": "a", "seed": seed, "test": [ASPIRIN]},
            "encode": {"a": "molecule:fingerprints", "b": "text:ngram"},
            # Chosen on the validation part: many negatives, wide rows, a third of the features hidden at a time.
            "train": {
                "seed": seed,
                "epochs": 12,
                "embed_dim": 512,
                "batch_size": 2048,
                "learning_rate": 4e-3,
                "input_dropout": 0.3,
            },
            "contract": {
                "unit": "a ligand of the Guide to PHARMACOLOGY and a plain-English statement of what it does, made "
                "from one of its curated interactions, at the level of the target or of its family",
                "crossing": "statements: ligands of one target share them, so most of the test part's were trained on; "
                "the figures for the others stand apart. Ligands, their salts and stereoisomers never cross",
                "match": "the interactions give the ligand that statement. What the database has not curated counts as "
                "wrong, so a miss may be a true effect",
                "pool": "the ligands and statements of the test part; many are of one target family, so near misses "
                "are frequent and most other candidates are easy",
                "shortcuts": "a few statements hold a ligand's name; names, formulas and length are audited, and alone "
                "they find no more than random ranking does",
            },
            "index": {"extra_a": [CHEMICALS]},
            "examples": [
                {"query": "inhibits cyclooxygenase and reduces inflammation", "of": "molecule", "expect": ASPIRIN_ID},
                {"query": "beta blocker that lowers blood pressure", "of": "molecule"},
                {"query": ASPIRIN, "of": "text"},
            ],
        }
    )


def demo(folder: str | Path = "runs/demo", seed: int = 0, progress: Progress | None = None) -> dict[str, Any]:
    """Run the demo in `folder` and return `lines` to print, the seconds it took, and the path of the report.

    A second call skips what is done. Raises as `run`.
    """
    started = time.monotonic()
    opened = run(demo_config(seed), folder, progress)
    lines: list[str] = []
    for stage in ("check", "encode", "train", "evaluate", "refit", "index"):
        lines += [f"== {stage}", *opened.record(stage)["lines"], ""]
        if stage == "evaluate":
            # What passed is on the page.
            lines += [
                "== audit",
                *(line for line in opened.record("audit")["lines"] if not line.startswith("PASS")),
                "",
            ]
    seconds = time.monotonic() - started
    lines += [
        f"{seconds:.0f} s. Read {opened.path('report.html')}, and search:",
        f'  bridgehead search {opened.folder} "beta blocker that lowers blood pressure"',
    ]
    return {
        "lines": lines,
        "seconds": round(seconds, 1),
        "report": str(opened.path("report.html")),
        "examples": opened.record("index")["examples"],
    }
