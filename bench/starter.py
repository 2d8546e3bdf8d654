"""What the packaged data reaches: retrieval beside the untrained baseline, shuffled links, and where aspirin comes.

    python bench/starter.py [--folder runs/bench] [--seeds 0 1 2] [--shuffled 5]

For each seed it runs the demo's config (split and training with that seed) with several shuffled-link controls, and
prints the means at the end. Expect some minutes a seed on two cores.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from bridgehead import runs
from bridgehead.align.twin import NumpyHeads
from bridgehead.pairs.starter_data import read_starter_frame
from bridgehead.runs.demonstration import ASPIRIN_ID, demo_config
from bridgehead.runs.encoded import load_encoders
from bridgehead.runs.folder import RunFolder
from bridgehead.runs.stages import Work
from bridgehead.search import open_space

QUERY = "inhibits cyclooxygenase and reduces inflammation"


def main() -> None:
    """Run the seeds and print a line for each and the means."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--folder", type=Path, default=Path("runs/bench"))
    arguments.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    arguments.add_argument("--shuffled", type=int, default=5)
    given = arguments.parse_args()
    rows = []
    for seed in given.seeds:
        config = demo_config(seed)
        config = config.model_copy(update={"evaluate": config.evaluate.model_copy(update={"shuffled": given.shuffled})})
        run = runs.run(config, given.folder / f"seed{seed}")
        rows.append(figures(run))
        print(f"seed {seed}: " + ", ".join(f"{name} {show(value)}" for name, value in rows[-1].items()), flush=True)
    print("mean: " + ", ".join(f"{name} {show(float(np.mean([row[name] for row in rows])))}" for name in rows[0]))
    print("median: " + ", ".join(f"{name} {show(float(np.median([row[name] for row in rows])))}" for name in rows[0]))


def show(value: float) -> str:
    """Return a rank as it is and a share with four digits."""
    return f"{value:,.0f}" if value >= 2 else f"{value:.4f}"


def figures(run: RunFolder) -> dict[str, float]:
    """Return the figures of a finished run."""
    metrics = run.record("evaluate")
    found: dict[str, float] = {}
    for name, part in (
        ("", "all"),
        ("unseen ", "unseen_text"),
        ("untrained ", "baseline"),
        ("closed form ", "closed_form"),
    ):
        values: dict[str, Any] = metrics[part]
        found[f"{name}text to molecule recall@10"] = values["b_to_a.recall@10"]
        found[f"{name}molecule to text MRR"] = values["a_to_b.mrr"]
    for key, mean in metrics["shuffled"]["mean"].items():
        found[f"shuffled {key}"] = mean
        found[f"shuffled {key}: bound"] = metrics["shuffled"]["bound"][key]
    return found | held_out(run) | aspirin(run)


def held_out(run: RunFolder) -> dict[str, float]:
    """Return how many of the first ten held-out molecules for the query inhibit cyclooxygenase or inflammation."""
    work = Work(run, lambda *_: None)
    test = work.part("test")
    heads: NumpyHeads = work.heads
    query = heads.project_b(load_encoders(run)["b"].encode([QUERY]).rows)[0]
    order = np.argsort(-(heads.project_a(test.rows_a) @ query), kind="stable")[:10]
    statements = [[work.prepared.table.b.items[b] for b in test.items_b[_partners(test, row)]] for row in order]
    right = [any("yclooxygenase" in text or "nflammat" in text for text in texts) for texts in statements]
    return {"right among the first 10 held out": float(sum(right))}


def _partners(test: Any, row: int) -> Any:
    return test.links.pairs[test.links.pairs[:, 0] == row, 1]


def aspirin(run: RunFolder) -> dict[str, float]:
    """Return aspirin's rank for the query: among annotated ligands and among all, held out and after refit."""
    annotated = read_starter_frame().filter(read_starter_frame()["statement"].list.len() > 0)["id"].to_list()
    found: dict[str, float] = {}
    for heads, name in (("evaluated", "held out"), ("refit", "refit")):
        with open_space(run.folder, heads) as space:
            ranked = space.rank_of(QUERY, ASPIRIN_ID, of="molecule")
            assert ranked is not None
            found[f"aspirin {name} of all"] = float(ranked[0])
            known = set(annotated)
            hits = space.search(QUERY, k=ranked[0], of="molecule")
            found[f"aspirin {name} of annotated"] = float(sum(hit.id in known for hit in hits))
            found["all"] = float(ranked[1])
    return found


if __name__ == "__main__":
    main()
