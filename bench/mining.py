"""Time and peak memory of mining hard negatives, against a plain blockwise search written in numpy and in torch.

    python bench/mining.py [--rows N] [--dim D] [--anchors M] [--k K] [--threads T] [--runs R] [--quick]

Rows are clustered (20 a cluster) and of two sides; row i of a matches row i of b. Each way runs in a process of its
own, in turns: `exact` and `index` are `mine_across` without and with its inverted file; `numpy` is a product of a block
with all rows, positives masked, and argpartition; `torch` a product of 4,096 anchors with all rows and topk, as
sentence-transformers' miner does without FAISS. `--anchors` mines for the first M rows of a only and makes a run short.
Memory is the peak of the process beyond the rows. `agreement` is the share of the neighbours that `numpy` found.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

WAYS = ["exact", "index", "numpy", "torch"]
PER_CLUSTER = 20
NOISE = 0.7


def make_rows(n: int, dim: int) -> list[np.ndarray]:
    """Return unit float32 rows of both sides: noisy copies of shared centres."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((max(1, n // PER_CLUSTER), dim), dtype=np.float32)
    labels = rng.integers(0, len(centres), n)
    sides = [centres[labels] + NOISE * rng.standard_normal((n, dim), dtype=np.float32) for _ in range(2)]
    return [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in sides]


def with_numpy(a: np.ndarray, b: np.ndarray, k: int) -> np.ndarray:
    """Return the k nearest non-matching rows of b, unordered, block after block."""
    found = []
    step = max(1, (64 << 20) // (4 * len(b)))
    for start in range(0, len(a), step):
        scores = a[start : start + step] @ b.T
        rows = np.arange(len(scores))
        scores[rows, start + rows] = -np.inf
        found.append(np.argpartition(scores, len(b) - k, axis=1)[:, len(b) - k :].copy())
    return np.concatenate(found)


def with_torch(a: np.ndarray, b: np.ndarray, k: int) -> np.ndarray:
    """Return the same by topk over 4,096 anchors at a time; one more is fetched and the match dropped."""
    import torch

    found = []
    candidates = torch.from_numpy(b)
    for start in range(0, len(a), 4096):
        block = torch.from_numpy(a[start : start + 4096])
        numbers = torch.topk(block @ candidates.T, k + 1, dim=1).indices.numpy()
        other = numbers != start + np.arange(len(numbers))[:, None]
        order = np.argsort(~other, axis=1, kind="stable")[:, :k]
        found.append(np.take_along_axis(numbers, order, axis=1))
    return np.concatenate(found)


def run_one(way: str, options: argparse.Namespace, folder: Path) -> None:
    """Mine in this process; print seconds, megabytes and, where it was measured, recall; leave the neighbours."""
    import torch

    from bridgehead.links import Links
    from bridgehead.negatives import mine_across

    a, b = make_rows(options.rows, options.dim)
    a = a[: options.anchors or options.rows]
    links = Links(np.stack([np.arange(len(a))] * 2, axis=1), len(a), len(b))
    torch.set_num_threads(options.threads)
    # Libraries are loaded and their threads started before the clock.
    mine_across(a[:50], b[:50], k=1, threads=options.threads)
    recall = None
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    if way in ("exact", "index"):
        limit = 2**40 if way == "exact" else 1
        mined = mine_across(a, b, links, k=options.k, exact_up_to=limit, threads=options.threads)
        found, recall = mined.neighbours, mined.recall
    else:
        found = (with_numpy if way == "numpy" else with_torch)(a, b, options.k)
    seconds = time.perf_counter() - start
    megabytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    np.save(folder / f"{way}.npy", found)
    print(json.dumps({"seconds": seconds, "megabytes": megabytes, "recall": recall}))


def measure(way: str, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Run one way in a process of its own and return what it printed."""
    arguments = [f"--{name}={getattr(options, name)}" for name in ("rows", "dim", "anchors", "k", "threads")]
    command = [sys.executable, __file__, *arguments, f"--way={way}", f"--folder={folder}"]
    environment = {"OMP_NUM_THREADS": str(options.threads), "PATH": ""}
    done = subprocess.run(command, capture_output=True, check=True, text=True, env=environment)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def agreement(folder: Path, way: str) -> float:
    """Return the share of the neighbours of the numpy search that this way found."""
    found, exact = np.load(folder / f"{way}.npy"), np.load(folder / "numpy.npy")
    return (
        float(np.mean([len(np.intersect1d(x, y)) for x, y in zip(found[:2000], exact[:2000], strict=True)]))
        / (exact.shape[1])
    )


def main() -> None:
    """Measure each way in turns and print medians, spreads and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--anchors", type=int, default=0, help="0: all rows of a")
    parser.add_argument("--k", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="10,000 rows, three runs")
    parser.add_argument("--way", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.quick:
        options.rows, options.runs = 10_000, 3
    if options.way:
        run_one(options.way, options, options.folder)
        return
    with tempfile.TemporaryDirectory() as name:
        results: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
        for _ in range(options.runs):
            for way in WAYS:
                results[way].append(measure(way, options, Path(name)))
        medians = {way: statistics.median(run["seconds"] for run in runs) for way, runs in results.items()}
        print(f"{options.anchors or options.rows:,} anchors, {options.rows:,} x {options.dim}, k = {options.k}, "
              f"{options.threads} threads, {options.runs} runs")  # fmt: skip
        for way, runs in results.items():
            seconds = [run["seconds"] for run in runs]
            print(
                f"{way:6} {medians[way]:8.2f} s ({min(seconds):.2f} to {max(seconds):.2f})  "
                f"{statistics.median(run['megabytes'] for run in runs):7.0f} MB  "
                f"{medians['numpy'] / medians[way]:5.2f} x numpy  {medians['torch'] / medians[way]:5.2f} x torch  "
                f"agreement {agreement(Path(name), way):.4f}"
            )


if __name__ == "__main__":
    main()
