"""Exact ranks of both directions: time and peak memory against a bare matrix product and against two peers.

    python bench/ranks.py [--part product|peers|equal] [--n N] [--n-peers N] [--dim D] [--threads T] [--runs R]
                          [--open-clip WHEEL] [--path FOLDER]

`product`: `retrieval_report` of N x N rows (100,000 at 512 dimensions), all metrics with chance and intervals, both
directions, for one true candidate each and for five each, against the bare product in blocks of 64 MB (the faster of
numpy and torch). `peers`: N x N rows (20,000) against open_clip's `get_clip_metrics`, taken alone out of its wheel
(--open-clip; or an installed open_clip_train), and sentence-transformers' InformationRetrievalEvaluator with its
standard cut-offs, given the same ready embeddings, one run for each direction. `equal`: largest difference from ranx
(--path names a folder to import it from) and scikit-learn on random problems with many true candidates and no ties.
Without --part all three are run. Each measurement is in a process of its own, in turns; medians are printed, and the
ratio of medians beside what is asked. Memory is the peak of the process beyond the rows; CPU time, of all threads,
shows what a busy machine did to the clock.
"""

import argparse
import ast
import json
import os
import statistics
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

CHUNK = 64 << 20


def make_rows(n: int, dim: int, n_true: int) -> list[np.ndarray]:
    """Return unit float32 rows of both sides; `n_true` rows of each side share a centre, found about half the time."""
    rng = np.random.default_rng(0)
    sides = [np.empty((n, dim), dtype=np.float32) for _ in range(2)]
    step = 5000 // n_true * n_true
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        size = rows.stop - rows.start
        centres = np.repeat(rng.standard_normal((-(-size // n_true), dim), dtype=np.float32), n_true, axis=0)[:size]
        for side in sides:
            block = centres + 2.2 * rng.standard_normal((size, dim), dtype=np.float32)
            side[rows] = block / np.linalg.norm(block, axis=1, keepdims=True)
    return sides


def links_of(n: int, n_true: int) -> np.ndarray:
    """Return (row in a, row in b) of all pairs whose rows share a centre."""
    left = np.repeat(np.arange(n), n_true)
    right = left // n_true * n_true + np.tile(np.arange(n_true), n)
    return np.stack([left, right], axis=1)[right < n]


def bare_numpy(a: np.ndarray, b: np.ndarray) -> None:
    """Multiply all rows, a block of scores at a time, into the same memory."""
    step = max(1, CHUNK // (4 * len(b)))
    scores = np.empty((step, len(b)), dtype=np.float32)
    for start in range(0, len(a), step):
        rows = a[start : start + step]
        np.matmul(rows, b.T, out=scores[: len(rows)])


def bare_torch(a: np.ndarray, b: np.ndarray) -> None:
    """Do the same in torch."""
    import torch

    left, right = torch.from_numpy(a), torch.from_numpy(b).T
    step = max(1, CHUNK // (4 * len(b)))
    scores = torch.empty((step, len(b)))
    for start in range(0, len(a), step):
        rows = left[start : start + step]
        torch.matmul(rows, right, out=scores[: len(rows)])


def ours(n_true: int) -> Callable[[np.ndarray, np.ndarray], Any]:
    """Return what is measured: the whole report, intervals too."""
    from bridgehead.evaluate import retrieval_report

    return lambda a, b: retrieval_report(a, b, links_of(len(a), n_true) if n_true > 1 else None).to_dict()


def clip_metrics(wheel: Path | None) -> Callable[..., dict[str, float]]:
    """Return open_clip's `get_clip_metrics`, without the package around it."""
    import torch

    if wheel is None:
        from importlib.util import find_spec

        found = find_spec("open_clip_train")
        if found is None or not found.submodule_search_locations:
            raise SystemExit("open_clip_train is not installed: name its wheel with --open-clip, or leave out --part")
        source = (Path(found.submodule_search_locations[0]) / "train.py").read_text()
    else:
        with zipfile.ZipFile(wheel) as archive:
            source = archive.read("open_clip_train/train.py").decode()
    functions = [node for node in ast.parse(source).body if getattr(node, "name", "") == "get_clip_metrics"]
    names: dict[str, Any] = {"torch": torch, "np": np}
    exec(compile(ast.Module(functions, []), "get_clip_metrics", "exec"), names)
    return names["get_clip_metrics"]  # type: ignore[no-any-return]


def with_open_clip(wheel: Path | None) -> Callable[[np.ndarray, np.ndarray], Any]:
    """Return the peer's ranks of both directions."""
    import torch

    measure = clip_metrics(wheel)
    return lambda a, b: measure(torch.from_numpy(a), torch.from_numpy(b), torch.tensor(1.0))


def with_retrieval_evaluator(a: np.ndarray, b: np.ndarray) -> Any:
    """Return the peer's metrics, one evaluation for each direction, from ready embeddings."""
    import warnings

    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from sentence_transformers.evaluation import InformationRetrievalEvaluator
    from sentence_transformers.util import cos_sim

    class Ready(InformationRetrievalEvaluator):
        ready: torch.Tensor

        def embed_inputs(self, *_: Any, **__: Any) -> torch.Tensor:
            return self.ready

    found = {}
    names = [str(i) for i in range(len(a))]
    items, relevant = dict.fromkeys(names, ""), {name: {name} for name in names}
    for direction, queries, corpus in (("a_to_b", a, b), ("b_to_a", b, a)):
        judge = Ready(items, items, relevant, score_functions={"cosine": cos_sim}, write_csv=False)
        judge.ready = torch.from_numpy(queries)
        model = type("Model", (), {"similarity_fn_name": "cosine"})()
        scores = judge.compute_all_metrics(model, corpus_embeddings=torch.from_numpy(corpus))["cosine"]
        found[f"{direction}.recall@1"] = float(scores["accuracy@k"][1])
    return found


def way_of(name: str, options: argparse.Namespace) -> tuple[Callable[[np.ndarray, np.ndarray], Any], int]:
    """Return the function of a way by its name, and the number of true candidates of its rows."""
    if name.startswith("report"):
        n_true = 5 if name.endswith("5") else 1
        return ours(n_true), n_true
    if name == "open_clip":
        return with_open_clip(options.open_clip), 1
    ways = {"numpy": bare_numpy, "torch": bare_torch, "evaluator": with_retrieval_evaluator}
    return ways[name], 1


def peak_kilobytes() -> int:
    """Return the process's peak of resident memory since `forget_peak`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1])
    raise SystemExit("this system does not say how much memory a process took")


def run_one(name: str, options: argparse.Namespace) -> None:
    """Run one way in this process; print seconds, megabytes and what it found."""
    import torch

    torch.set_num_threads(options.threads)
    function, n_true = way_of(name, options)
    # Libraries are loaded and their threads started before the clock.
    function(*make_rows(600, options.dim, n_true))
    a, b = make_rows(options.n, options.dim, n_true)
    Path("/proc/self/clear_refs").write_text("5")
    before = peak_kilobytes()
    start, start_cpu = time.perf_counter(), time.process_time()
    found = function(a, b) or {}
    seconds, cpu = time.perf_counter() - start, time.process_time() - start_cpu
    recall = [float(found[key]) for key in ("a_to_b.recall@1", "image_to_text_R@1") if key in found]
    megabytes = (peak_kilobytes() - before) / 1024
    print(json.dumps({"seconds": seconds, "cpu": cpu, "megabytes": megabytes, "recall": recall}))


def measure(name: str, n: int, options: argparse.Namespace) -> dict[str, Any]:
    """Run one way in a process of its own and return what it printed."""
    arguments = [f"--n={n}", f"--dim={options.dim}", f"--threads={options.threads}", f"--way={name}"]
    arguments += [f"--open-clip={options.open_clip}"] if options.open_clip else []
    environment = os.environ | {"OMP_NUM_THREADS": str(options.threads)}
    done = subprocess.run(
        [sys.executable, __file__, *arguments], stdout=subprocess.PIPE, check=True, text=True, env=environment
    )
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def in_turns(names: list[str], n: int, options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Measure each way `--runs` times in turns; print and return medians."""
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    print(f"{n:,} x {n:,}, {options.dim} dimensions, {options.threads} threads, {options.runs} runs")
    for _ in range(options.runs):
        for name in names:
            results[name].append(measure(name, n, options))
    medians = {}
    for name, runs in results.items():
        seconds = [run["seconds"] for run in runs]
        medians[name] = {key: statistics.median(run[key] for run in runs) for key in ("seconds", "cpu", "megabytes")}
        recall = "".join(f"  recall@1 {value:.3f}" for value in runs[0]["recall"])
        print(f"  {name:10} {medians[name]['seconds']:8.2f} s ({min(seconds):.2f} to {max(seconds):.2f})  "
              f"{medians[name]['cpu']:8.2f} s of CPU  "
              f"{medians[name]['megabytes']:7.0f} MB{recall}", flush=True)  # fmt: skip
    return medians


def say(what: str, value: float, limit: float, most: bool = True) -> None:
    """Print a figure beside what is asked of it."""
    met = value <= limit if most else value >= limit
    print(
        f"  {what}: {value:.3g}, asked at {'most' if most else 'least'} {limit:g}: {'met' if met else 'NOT met'}",
        flush=True,
    )


def against_the_product(options: argparse.Namespace) -> None:
    """Compare the report with the bare product."""
    found = in_turns(["numpy", "torch", "report", "report 5"], options.n, options)
    bare = min(found["numpy"]["seconds"], found["torch"]["seconds"])
    say("one-to-one, times the bare product", found["report"]["seconds"] / bare, 1.6)
    say("five true candidates, times the bare product", found["report 5"]["seconds"] / bare, 3.0)
    for name in ("report", "report 5"):
        say(f"{name}, megabytes beyond the rows", found[name]["megabytes"], 1000)


def against_peers(options: argparse.Namespace) -> None:
    """Compare the report with the peers that rank or search the same rows."""
    found = in_turns(["report", "open_clip", "evaluator"], options.n_peers, options)
    own = found["report"]
    say("times as fast as get_clip_metrics", found["open_clip"]["seconds"] / own["seconds"], 2, most=False)
    say("share of its memory", own["megabytes"] / found["open_clip"]["megabytes"], 0.1)
    say("times as fast as the evaluator", found["evaluator"]["seconds"] / own["seconds"], 5, most=False)


def differences(seed: int, ranx: Any) -> dict[str, float]:
    """Return the largest difference from each library on one random problem, both directions."""
    from sklearn.metrics import label_ranking_average_precision_score, ndcg_score

    from bridgehead.evaluate import retrieval_report
    from bridgehead.links import Links

    rng = np.random.default_rng(seed)
    z_a, z_b = rng.standard_normal((150, 24)), rng.standard_normal((200, 24))
    links = Links(np.argwhere(rng.random((150, 200)) < 0.08), 150, 200)
    unit = [z / np.linalg.norm(z, axis=1, keepdims=True) for z in (z_a, z_b)]
    scores, truth = unit[0] @ unit[1].T, links.matrix.toarray()
    report = retrieval_report(z_a, z_b, links, n_resamples=0)
    found = {"scikit-learn": 0.0} | ({"ranx": 0.0} if ranx else {})
    for side, own, matches in ((report.a_to_b, scores, truth), (report.b_to_a, scores.T, truth.T)):
        asked = matches.any(axis=1)
        own, matches, values = own[asked], matches[asked], side.values
        theirs = {"map": label_ranking_average_precision_score(matches, own)}
        theirs |= {f"ndcg@{k}": ndcg_score(matches, own, k=k) for k in side.ks}
        found["scikit-learn"] = max(found["scikit-learn"], *(abs(values[name] - theirs[name]) for name in theirs))
        if ranx:
            names = {"mrr": "mrr", "map": "map", "r_precision": "r-precision"}
            for k in side.ks:
                names |= {f"recall@{k}": f"hit_rate@{k}", f"recall_all@{k}": f"recall@{k}", f"ndcg@{k}": f"ndcg@{k}"}
            judged = {f"q{i}": {f"d{j}": 1 for j in np.flatnonzero(row)} for i, row in enumerate(matches)}
            ranked = {f"q{i}": {f"d{j}": float(s) for j, s in enumerate(row)} for i, row in enumerate(own)}
            theirs = ranx.evaluate(ranx.Qrels(judged), ranx.Run(ranked), list(names.values()))
            found["ranx"] = max(found["ranx"], *(abs(values[name] - theirs[names[name]]) for name in names))
    return found


def equal_to_others(options: argparse.Namespace) -> None:
    """Compare the metrics with those of ranx and scikit-learn."""
    if options.path:
        sys.path.append(str(options.path))
    try:
        import ranx
    except ImportError as error:
        ranx = None
        print(f"ranx cannot be imported ({error}): it is left out; name its folder with --path")
    found = [differences(seed, ranx) for seed in range(5)]
    print("5 random problems of 150 x 200 rows, 8 % of pairs true, no ties")
    for name in found[0]:
        say(f"largest difference from {name}", max(one[name] for one in found), 1e-9)


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["product", "peers", "equal"])
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--n-peers", type=int, default=20_000)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--open-clip", type=Path, help="wheel of open_clip_torch")
    parser.add_argument("--path", type=Path, help="folder to import ranx from")
    parser.add_argument("--way", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        run_one(options.way, options)
        return
    parts = {"product": against_the_product, "peers": against_peers, "equal": equal_to_others}
    for name, part in parts.items():
        if options.part in (None, name):
            part(options)


if __name__ == "__main__":
    main()
