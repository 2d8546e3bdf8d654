"""What the audits of a run cost: the whole suite on 10,000 synthetic pairs, controls that train aside.

Molecules are put together from cores, linkers and ends, texts describe their parts in changing words, and every audit
that molecules and texts can have applies (names, columns, groups). Training is short: it is not what is measured.
Prints JSON: seconds of each audit, of all of them, and what did not run. The exit status is 1 over the limit.
Run: python bench/audits.py [--pairs 10000] [--folder FOLDER]
"""

import argparse
import csv
import itertools
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from bridgehead import runs
from bridgehead.runs.config import config_of
from bridgehead.runs.folder import RunFolder

MOST_SECONDS = 180.0
"""For 10,000 pairs on two cores."""

CORES = ["c1ccccc1", "C1CCCCC1", "c1cccnc1", "C1CCOC1", "c1ccsc1", "C1CCNC1", "c1ccoc1", "C1CCSC1", "c1cncnc1", "C1CC1"]
LINKERS = ["", "C", "CC", "CO", "CS", "CNC", "C(=O)", "C(=O)N", "OC", "C=C"]
ENDS = ["O", "N", "Cl", "S", "F", "N#C", "Br", "OC(=O)", "CN", "I"]
WORDS = ["ring", "chain", "acid", "base", "salt", "ester", "amide", "halide", "sweet", "bitter", "toxic", "stable"]


def write_pairs(path: Path, n: int) -> None:
    """Write `n` pairs: no molecule twice, and a text for each that follows from its parts."""
    rng = np.random.default_rng(0)
    parts = list(itertools.product(CORES, LINKERS, ENDS, LINKERS, CORES))
    chosen = rng.choice(len(parts), size=n, replace=False)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "smiles", "text", "name", "source", "batch"])
        for number, place in enumerate(chosen.tolist()):
            first, linker, end, other, second = parts[place]
            smiles = f"{end}{linker}{first[:-1]}{first[-1]}{other}{second}"
            said = " ".join(rng.choice(WORDS, size=12).tolist())
            kinds = [CORES.index(first), LINKERS.index(linker), ENDS.index(end), LINKERS.index(other)]
            described = " ".join(f"part{place}kind{kind}" for place, kind in enumerate(kinds))
            text = f"Consists of {described} and core{CORES.index(second)}; {said}."
            # A few texts name their molecule, so that there is something to mask.
            text += f" Called compound-{number}." if number % 10 == 0 else ""
            writer.writerow([f"x{number}", smiles, text, f"compound-{number}", f"s{number % 5}", f"b{number % 400}"])


def config_for(path: Path) -> Any:
    """Return the config of a short training on the pairs."""
    return config_of(
        {
            "pairs": {"path": str(path), "a": "smiles", "b": "text", "id": "id", "kind_a": "molecule",
                      "names": ["name"], "group": ["batch"]},
            "encode": {"a": "molecule:fingerprints", "b": "text:ngram"},
            "train": {"epochs": 4, "embed_dim": 128},
            "evaluate": {"folds": 0, "shuffled": 0, "closed_form": "cca", "slices": ["source"]},
        }
    )  # fmt: skip


def main() -> int:
    """Run, audit, print, and say whether the limit was kept."""
    parser = argparse.ArgumentParser(description="Seconds of each audit of a run.")
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, default=None, help="where the run stays (default: nowhere)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        write_pairs(folder / "pairs.csv", given.pairs)
        run = RunFolder.of(config_for(folder / "pairs.csv"), folder / "run")
        runs.evaluate(run)
        run.path("audit.json").unlink(missing_ok=True)
        record = runs.audit(run)
    result = {
        "pairs": given.pairs,
        "cores": len(os.sched_getaffinity(0)),
        "seconds": record["seconds"],
        "seconds_of_audits": dict(sorted(record["costs"].items(), key=lambda one: -one[1])),
        "verdicts": record["counts"],
        "not_looked_at": [one["name"] for one in record["skipped"]],
        "limit_seconds": MOST_SECONDS,
    }
    print(json.dumps(result, indent=1))
    return int(record["seconds"] > MOST_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
