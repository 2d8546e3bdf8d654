"""InfoNCE by tiles against the plain PyTorch loss, forward and backward: time, memory, and how both grow.

    python bench/loss.py [speed] [memory] [growth] [--runs N] [--quick] [--figure FILE]

Every measurement is a process of its own, and the kinds take turns, so that a load from elsewhere meets all of them.
Memory is the largest resident size of the process less what it was when the inputs were there, less the gradients.

speed    24,576 x 512: the plain loss (F.normalize, matmul, two cross-entropies), tiles with products in float32 and in
         bfloat16, and the four bare products of matrices that tiles need, in both.
memory   131,072 x 128 by tiles.
growth   2,048 to 49,152 rows of 512, the plain loss up to 24,576; and 1 to 64 links a row at 8,192.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
import torch.nn.functional as F

from bridgehead.align.losses.contrast import Positives
from bridgehead.align.losses.infonce import info_nce

KINDS = ("plain", "tiles", "tiles bf16", "bare", "bare bf16")
SCALE = 1 / 0.07
Result = dict[str, float]


def plain_loss(z_a: torch.Tensor, z_b: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Return the symmetric loss as one would write it at first."""
    scores = scale * F.normalize(z_a, dim=1) @ F.normalize(z_b, dim=1).T
    target = torch.arange(len(z_a))
    return (F.cross_entropy(scores, target) + F.cross_entropy(scores.T, target)) / 2


def bare_products(u: torch.Tensor, v: torch.Tensor) -> Callable[[], None]:
    """Return the four products that the loss and its gradient take when scores are computed twice, results reused."""
    scores, result = torch.zeros(len(u), len(v), dtype=u.dtype), torch.zeros_like(u)

    def products() -> None:
        for _ in range(2):
            torch.mm(u, v.T, out=scores)
        torch.mm(scores, v, out=result)
        torch.mm(scores.T, u, out=result)

    return products


def step(kind: str, rows: int, columns: int, links: int) -> tuple[Callable[[], float], int]:
    """Return a function that takes one step of `kind` and returns the loss, and the bytes of the gradients."""
    generator = torch.Generator().manual_seed(0)
    z_a, z_b = (torch.randn(rows, columns, generator=generator) for _ in range(2))
    if kind.startswith("bare"):
        dtype = torch.bfloat16 if kind.endswith("bf16") else torch.float32
        products = bare_products(F.normalize(z_a).to(dtype), F.normalize(z_b).to(dtype))
        return lambda: products() or 0.0, 0
    scale = torch.tensor(SCALE, requires_grad=True)
    z_a.requires_grad_()
    z_b.requires_grad_()
    first = torch.arange(rows).repeat(links)
    positives = Positives(first, (first + torch.arange(links).repeat_interleave(rows)) % rows, rows, rows)

    def one_step() -> float:
        if kind == "plain":
            loss = plain_loss(z_a, z_b, scale)
        else:
            products = "bf16" if kind.endswith("bf16") else "float32"
            loss = info_nce(z_a, z_b, scale, positives, tile="auto", products=products)
        loss.backward()
        return float(loss.detach())

    return one_step, 2 * z_a.numel() * z_a.element_size()


def resident(field: str) -> int:
    """Return VmRSS or VmHWM of this process in bytes."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def measure_here(kind: str, rows: int, columns: int, links: int) -> Result:
    """Take one step in this process, after a small one of the same kind; return seconds, bytes beyond, and the loss."""
    warm, _ = step(kind, 300, columns, 1)
    warm()
    taken, gradients = step(kind, rows, columns, links)
    before = resident("VmRSS")
    start = time.perf_counter()
    loss = taken()
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "beyond": resident("VmHWM") - before - gradients, "loss": loss}


def measure(kind: str, rows: int, columns: int, links: int = 1) -> Result:
    """Return `measure_here` of a fresh process."""
    command = [sys.executable, __file__, "--measure", kind, str(rows), str(columns), str(links)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{kind} at {rows} x {columns} failed ({done.returncode}): {done.stderr.strip()[-500:]}")
    found: Result = json.loads(done.stdout)
    return found


def spread(values: Sequence[float]) -> str:
    """Return the median and the range."""
    return f"{statistics.median(values):8.2f} ({min(values):.2f} to {max(values):.2f})"


def speed(rows: int, columns: int, runs: int) -> None:
    """Print time and memory of all kinds, and the ratios run by run."""
    found: dict[str, list[Result]] = {kind: [] for kind in KINDS}
    for _ in range(runs):
        for kind in KINDS:
            found[kind].append(measure(kind, rows, columns))
    print(f"\n{rows:,} x {columns}, forward and backward, {runs} runs, median (range)")
    print("              seconds                     MB beyond inputs and gradients   loss")
    for kind in KINDS:
        seconds = spread([each["seconds"] for each in found[kind]])
        beyond = statistics.median(each["beyond"] for each in found[kind]) / 1e6
        memory = "" if kind.startswith("bare") else f"{beyond:10,.0f}   {found[kind][0]['loss']:.6f}"
        print(f"{kind:12s}{seconds:30s}{memory}")

    def ratio(above: str, below: str, field: str = "seconds") -> str:
        return spread([x[field] / y[field] for x, y in zip(found[above], found[below], strict=True)])

    print(f"plain / tiles, time             {ratio('plain', 'tiles')}   (aim: 1.6)")
    print(f"plain / tiles bf16, time        {ratio('plain', 'tiles bf16')}   (aim: 4, with matrix instructions)")
    print(f"bare / tiles, share of the rate {ratio('bare', 'tiles')}   (aim: 0.8)")
    print(f"bare / tiles, both in bf16      {ratio('bare bf16', 'tiles bf16')}")
    print(f"tiles / plain, memory           {ratio('tiles', 'plain', 'beyond')}   (aim: under 0.1)")


def memory(rows: int, columns: int, runs: int) -> None:
    """Print memory and time of a batch whose scores would fill tens of gigabytes."""
    for kind in ("tiles", "tiles bf16"):
        found = [measure(kind, rows, columns) for _ in range(runs)]
        beyond = spread([each["beyond"] / 1e6 for each in found])
        seconds = spread([each["seconds"] for each in found])
        print(f"{rows:,} x {columns} {kind:10s}  MB beyond inputs and gradients {beyond}   seconds {seconds}")


def growth(sizes: Sequence[int], columns: int, plain_up_to: int, figure: Path | None) -> None:
    """Print how time and memory grow with the batch and with links a row, and draw the first."""
    found: dict[str, list[tuple[int, Result]]] = {"plain": [], "tiles": [], "tiles bf16": []}
    print("\nrows         kind          seconds   MB beyond inputs and gradients")
    for rows in sizes:
        for kind, results in found.items():
            if kind != "plain" or rows <= plain_up_to:
                results.append((rows, measure(kind, rows, columns)))
                one = results[-1][1]
                print(f"{rows:<12,} {kind:12s} {one['seconds']:8.2f} {one['beyond'] / 1e6:10,.0f}", flush=True)
    rows = min(8192, sizes[-1])
    print(f"\nlinks a row  at {rows:,} rows   seconds   MB beyond inputs and gradients")
    for links in (1, 4, 16, 64):
        one = measure("tiles", rows, columns, links)
        print(f"{links:<12} {'tiles':12s} {one['seconds']:8.2f} {one['beyond'] / 1e6:10,.0f}", flush=True)
    if figure is not None:
        draw(found, figure)


def draw(found: dict[str, list[tuple[int, Result]]], file: Path) -> None:
    """Write the growth of time and memory with the batch as two panels with logarithmic axes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    labels = {"seconds": "seconds", "beyond": "bytes beyond inputs and gradients"}
    for panel, (field, label) in zip(panels, labels.items(), strict=True):
        for kind, results in found.items():
            panel.loglog([rows for rows, _ in results], [one[field] for _, one in results], marker="o", label=kind)
        panel.set(xlabel="rows of the batch", ylabel=label)
        panel.legend()
    figure.savefig(file)
    pyplot.close(figure)


def main() -> None:
    """Measure one kind for a parent process, or everything that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=["speed", "memory", "growth", []])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="small batches, to see that it works")
    parser.add_argument("--figure", type=Path, help="draw the growth into this file")
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        kind, *numbers = options.measure
        print(json.dumps(measure_here(kind, *(int(each) for each in numbers))))
        return
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}")
    wanted = options.what or ["speed", "memory", "growth"]
    if "speed" in wanted:
        speed(*((4096, 256) if options.quick else (24_576, 512)), options.runs)
    if "memory" in wanted:
        memory(*((16_384, 64) if options.quick else (131_072, 128)), min(options.runs, 2))
    if "growth" in wanted:
        sizes = (1024, 2048, 4096) if options.quick else (2048, 4096, 8192, 16_384, 24_576, 32_768, 49_152)
        growth(sizes, 128 if options.quick else 512, 4096 if options.quick else 24_576, options.figure)


if __name__ == "__main__":
    main()
