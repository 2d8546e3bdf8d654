"""Search over a million items: build from shards, memory, recall for each modality, and what our part of a call costs.

The rows are synthetic, of two modalities that lie apart (`synthetic_modalities`). In one run, in turns and query by
query: our call with a ready row (`SideView.search`), the bare FAISS call with the same index, lists and threads (for
ten hits and for as many candidates as we ask for), flat FAISS over float32, and a whole search of a text (`text:ngram`,
untrained heads of the usual size, items from the item file, with names for up to 100,000 items). Prints JSON; the exit
status is 1 when a limit is passed. Files lie in a temporary folder and are removed. The limits hold for 1,000,000 rows
on two quiet cores.
Run: python bench/search.py --rows 1000000
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from synthetic_modalities import Modalities, Rows, write_shards

LIMITS = {
    "search_ms": 5.0,
    "recall": 0.98,
    "over_bare_faiss_ms": 1.5,
    "text_over_bare_faiss_ms": 5.0,
    "resident_gib": 0.6,
    "build_peak_gib": 3.0,
}
GIB = 1 << 30
N_TRUTH = 400
# Three names for each of a million items take longer to write than their vectors, and no search reads them.
MOST_NAMED = 100_000
SMILES = ["CC(=O)Oc1ccccc1C(=O)O", "CC(C)NCC(O)COc1cccc2ccccc12"]


class Lazily:
    """A sequence of n values made from their positions, which takes no memory."""

    def __init__(self, n: int, make: Callable[[int], Any]) -> None:
        self.n, self.make = n, make

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, position: int) -> Any:
        if not 0 <= position < self.n:
            raise IndexError(position)
        return self.make(position)


def names(position: int) -> list[str]:
    """Return the names of an item."""
    return [f"compound {position}", f"synonym {position}-1", f"synonym {position}-2"]


def statements() -> list[str]:
    """Return the statements of the packaged data."""
    from bridgehead.pairs.starter_data import read_starter_frame

    return read_starter_frame()["statement"].explode().drop_nulls().unique(maintain_order=True).to_list()


def write_model(folder: Path, dim: int) -> Any:
    """Write encoders and untrained heads into `folder`; return the rows of the texts in the space."""
    import torch

    from bridgehead.align import HeadConfig, HeadsConfig, NumpyHeads, TwoHeads, save_heads
    from bridgehead.encode import make_encoder

    encoder_a = make_encoder("molecule:fingerprints", min_count=1, processes=1).fit(SMILES)
    encoder_b = make_encoder("text:ngram").fit(statements())
    encoder_a.save(folder / "encoders" / "a")
    encoder_b.save(folder / "encoders" / "b")
    torch.manual_seed(0)
    save_heads(
        TwoHeads(HeadsConfig(HeadConfig(encoder_a.n_columns, dim, sparse=True),
                             HeadConfig(encoder_b.n_columns, dim, sparse=True))),
        folder / "heads.safetensors",
    )  # fmt: skip
    return NumpyHeads.load(folder / "heads.safetensors").project_b(encoder_b.encode(statements()).rows)


def build(folder: Path, kind: str) -> None:
    """Build the index of the shards in `folder`; in a process of its own, so that its peak of memory is its own."""
    from bridgehead.encode import load_encoder
    from bridgehead.index import IndexSide, RowShards, VectorPlan, build_index
    from bridgehead.search import model_fingerprint

    shards = RowShards(sorted(folder.glob("shard-*.npy")))
    n = len(shards)
    texts = statements()
    text_rows, samples = np.load(folder / "texts.npy"), np.load(folder / "samples.npy")
    sides = {
        "a": IndexSide(
            "molecule",
            shards,
            Lazily(n, "item {}".format),
            Lazily(n, "m{}".format),
            "rows",
            Lazily(n, names) if n <= MOST_NAMED else None,
        ),
        "b": IndexSide("text", text_rows, texts, [f"t{number}" for number in range(len(texts))]),
    }
    encoders = [load_encoder(folder / "encoders" / side) for side in "ab"]
    fingerprint = model_fingerprint(*encoders, folder / "heads.safetensors")
    start = time.perf_counter()
    say = lambda line: print(f"{time.perf_counter() - start:7.1f} s  {line}", file=sys.stderr)  # noqa: E731
    facts = build_index(folder / "index", sides, fingerprint, {"a": samples}, VectorPlan(kind=kind), say)
    print(json.dumps({"seconds": round(time.perf_counter() - start, 1), "lines": facts.lines()}))


def resident() -> dict[str, float]:
    """Return the resident memory of this process in GiB: its own, and pages of mapped files (page cache)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    found = {line.split(":")[0]: int(line.split()[1]) for line in lines if line.startswith("Rss")}
    return {"own": found["RssAnon"] * 1024 / GIB, "mapped": found["RssFile"] * 1024 / GIB}


def measured(calls: dict[str, Callable[[int], Any]], n: int) -> dict[str, list[float]]:
    """Return the milliseconds of each call for each query, in turns: of the clock, and ("... cpu") of all threads."""
    found: dict[str, list[float]] = {name + kind: [] for kind in ("", " cpu") for name in calls}
    for query in range(n):
        for name, call in calls.items():
            start, cpu = time.perf_counter(), time.process_time()
            call(query)
            found[name].append(1e3 * (time.perf_counter() - start))
            found[f"{name} cpu"].append(1e3 * (time.process_time() - cpu))
    return found


def flat_index(folder: Path, dim: int) -> Any:
    """Return flat FAISS over the float32 rows: the peer, and the truth."""
    import faiss

    flat = faiss.IndexFlatIP(dim)
    for path in sorted(folder.glob("shard-*.npy")):
        flat.add(np.load(path))
    return flat


def search(folder: Path, queries: dict[str, Rows], n_queries: int) -> dict[str, Any]:
    """Measure recall, time and memory of the index in `folder`."""
    from bridgehead.index.vectors import SideView, open_base
    from bridgehead.index.vectors.engine import search_parameters
    from bridgehead.search import open_space_of

    space = open_space_of(folder, folder / "index")
    facts = space.index.sides["a"].vectors
    space.index.close()
    before = resident()
    start = time.perf_counter()
    space = open_space_of(folder, folder / "index")
    opened = 1e3 * (time.perf_counter() - start)
    manifest = json.loads((folder / "index" / "index.json").read_text())
    base = open_base(folder / "index" / manifest["folder"], "a", facts)
    view = SideView(base)
    for rows in queries.values():
        view.search(rows, 10)
    after = resident()
    flat = flat_index(folder, facts.dim)
    recall = {name: recall_of(view, flat, rows[:N_TRUTH]) for name, rows in queries.items()}
    rows = queries["other side"]
    effort = {"nprobe": facts.nprobe} if facts.nprobe else {"ef": facts.ef} if facts.ef else {}
    parameters, _kept = search_parameters(effort, None)
    bare = partial(base.found.search, params=parameters)
    texts = text_queries(n_queries)
    calls: dict[str, Callable[[int], Any]] = {
        "ours": lambda q: view.search(rows[q : q + 1], 10),
        "bare_faiss_10": lambda q: bare(rows[q : q + 1], 10),
        "bare_faiss_candidates": lambda q: bare(rows[q : q + 1], facts.candidates),
        "text": lambda q: space.search(texts[q], k=10, of="molecule"),
    }
    measured(calls, 10)
    times = measured(calls, n_queries)
    times |= measured({"flat_faiss": lambda q: flat.search(rows[q : q + 1], 10)}, 20)
    space.index.close()
    return summary(facts, times, recall, {name: after[name] - before[name] for name in after}, opened)


def text_queries(n: int) -> list[str]:
    """Return n texts of eight words."""
    texts, rng = statements(), np.random.default_rng(1)
    return [" ".join(rng.permutation(texts[i].split())[:8]) for i in rng.integers(0, len(texts), n)]


def recall_of(view: Any, flat: Any, rows: Rows) -> float:
    """Return recall@10 of our search against flat FAISS."""
    truth = flat.search(rows, 10)[1]
    found = [ranked.numbers for ranked in view.search(rows, 10)]
    return float(np.mean([len(set(t.tolist()) & set(f.tolist())) / 10 for t, f in zip(truth, found, strict=True)]))


def summary(facts: Any, times: dict[str, list[float]], recall: dict[str, float], memory: dict[str, float],
            opened: float) -> dict[str, Any]:  # fmt: skip
    """Return the record of a run."""
    medians = {name: statistics.median(values) for name, values in times.items()}
    over = {name: medians[name] - medians["bare_faiss_10"] for name in ("ours", "text")}
    return {
        "method": facts.method, "n_lists": facts.n_lists, "nprobe": facts.nprobe, "ef": facts.ef,
        "candidates": facts.candidates,
        "recall@10": {name: round(value, 4) for name, value in recall.items()},
        "median_ms": {name: round(value, 3) for name, value in medians.items()},
        "p95_ms": {
            name: round(float(np.percentile(values, 95)), 3) for name, values in times.items() if "cpu" not in name
        },
        "over_bare_faiss_ms": {name: round(value, 3) for name, value in over.items()},
        "ratio_to_bare_faiss": round(medians["ours"] / medians["bare_faiss_10"], 2),
        "ratio_to_bare_faiss_of_our_candidates": round(medians["ours"] / medians["bare_faiss_candidates"], 2),
        "ratio_of_flat_faiss_to_ours": round(medians["flat_faiss"] / medians["ours"], 1),
        "resident_gib": {name: round(value, 3) for name, value in memory.items()},
        "open_space_ms": round(opened, 1),
    }  # fmt: skip


def passed(result: dict[str, Any]) -> list[str]:
    """Return the limits that a run passes."""
    checks = {
        "search_ms": result["median_ms"]["ours"] < LIMITS["search_ms"],
        "recall": result["recall@10"]["other side"] >= LIMITS["recall"],
        "over_bare_faiss_ms": result["over_bare_faiss_ms"]["ours"] <= LIMITS["over_bare_faiss_ms"],
        "text_over_bare_faiss_ms": result["over_bare_faiss_ms"]["text"] <= LIMITS["text_over_bare_faiss_ms"],
        "resident_gib": result["resident_gib"]["own"] <= LIMITS["resident_gib"],
        "build_peak_gib": result["build"]["peak_gib"] <= LIMITS["build_peak_gib"],
    }
    return [name for name, kept in checks.items() if not kept]


def run(folder: Path, n: int, dim: int, kind: str, n_queries: int) -> dict[str, Any]:
    """Make the data, build in a process of its own, and measure."""
    modalities = Modalities(dim)
    _, latents = write_shards(folder, modalities, n)
    rng = np.random.default_rng(2)
    asked = latents[rng.permutation(len(latents))]
    sampled, held_out = asked[: len(asked) // 2], asked[len(asked) // 2 :][: max(n_queries, N_TRUTH)]
    np.save(folder / "texts.npy", write_model(folder, dim))
    np.save(folder / "samples.npy", modalities.rows(sampled, 1, rng))
    queries = {"other side": modalities.rows(held_out, 1, rng), "own side": modalities.rows(held_out, 0, rng)}
    command = [sys.executable, __file__, "--build", str(folder), "--kind", kind]
    built = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    built["peak_gib"] = round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / GIB, 2)
    print("\n".join(built["lines"]), file=sys.stderr)
    return {"rows": n, "dim": dim, "build": built, **search(folder, queries, n_queries)}


def main() -> int:
    """Build, measure, print, and say whether the limits were kept."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=80_000, help="number of items (1000000 for the limits)")
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--kind", default="ivf-sq8", help="kind of vectors, or auto")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--folder", help="where to make the temporary folder")
    parser.add_argument("--build", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.build:
        build(Path(arguments.build), arguments.kind)
        return 0
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        result = run(Path(name), arguments.rows, arguments.dim, arguments.kind, arguments.queries)
    result |= {"limits": LIMITS, "over_limit": passed(result)}
    print(json.dumps(result))
    return int(bool(result["over_limit"]))


if __name__ == "__main__":
    sys.exit(main())
