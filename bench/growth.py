"""How time and memory of training grow with the batch and with the number of pairs.

    python bench/growth.py [--batches N ...] [--pairs N ...] [--quick]

Dense rows of 256 columns on both sides, one link each, and the settings of `fit_heads` as they come, but for the
batch. The first table has one number of pairs and growing batches, the second one batch and growing numbers of pairs.
Each line is measured in a process of its own: milliseconds a step over the last epoch, pairs a second, and the peak of
memory over what the process held before training, rows included in what it held.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

COLUMNS = 256
PAIRS, BATCH = 32_768, 4096


def memory(field: str) -> int:
    """Return a field of the process's memory in bytes: VmRSS is now, VmHWM the peak. Linux only."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(field + ":"):
            return 1024 * int(line.split()[1])
    raise RuntimeError(f"the system does not say {field}; this needs Linux")


def one(pairs: int, batch: int) -> dict[str, float]:
    """Train in this process and return what it took."""
    from bridgehead.train import TrainConfig, fit_heads

    rng = np.random.default_rng(0)
    # What is loaded and set up at first use is not what grows.
    few = rng.standard_normal((64, COLUMNS), dtype=np.float32)
    fit_heads(few, few, None, TrainConfig.of(epochs=1))
    rows_a, rows_b = (rng.standard_normal((pairs, COLUMNS), dtype=np.float32) for _ in range(2))
    rows_b += rows_a
    steps = -(-pairs // batch)
    config = TrainConfig.of(batch_size=batch, epochs=1 if steps > 50 else 2)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = memory("VmRSS")
    result = fit_heads(rows_a, rows_b, None, config)
    seconds = result.history[-1]["seconds"]
    return {"ms": 1e3 * seconds / steps, "rate": pairs / seconds, "peak": memory("VmHWM") - before}


def line(pairs: int, batch: int) -> None:
    """Measure in a process of its own and print a line of the table."""
    command = [sys.executable, __file__, "--one", str(pairs), str(batch)]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
    peak = found["peak"] / 2**20
    print(f"{pairs:>11,} {batch:>8,} {found['ms']:>12.1f} {found['rate']:>12,.0f} {peak:>12,.0f}", flush=True)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, nargs="+", default=[512, 1024, 2048, 4096, 8192, 16_384])
    parser.add_argument("--pairs", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--quick", action="store_true", help="batches to 2,048 and 10,000 and 40,000 pairs")
    parser.add_argument("--one", type=int, nargs=2, metavar=("PAIRS", "BATCH"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one(*given.one)))
        return
    fixed_pairs, fixed_batch = (8192, 512) if given.quick else (PAIRS, BATCH)
    if given.quick:
        given.batches, given.pairs = [512, 1024, 2048], [10_000, 40_000]
    head = f"{'pairs':>11} {'batch':>8} {'ms a step':>12} {'pairs/s':>12} {'peak MiB':>12}"
    print(f"growth with the batch\n{head}")
    for batch in given.batches:
        line(max(fixed_pairs, 2 * batch), batch)
    print(f"growth with the number of pairs\n{head}")
    for pairs in given.pairs:
        line(pairs, fixed_batch)


if __name__ == "__main__":
    main()
