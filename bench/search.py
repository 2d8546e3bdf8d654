"""How long a search in the running process takes over 80,000 items, encoding of the query included.

The texts are the packaged statements through n-grams and untrained heads of the usual size; the rows of the 80,000
items are synthetic, noisy copies of text rows. The bare FAISS call, with the same index, lists and candidates, is
measured between the searches. Prints JSON; the exit status is 1 when the median passes the limit.
Run: python bench/search.py
"""

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bridgehead.align import HeadConfig, HeadsConfig, NumpyHeads, TwoHeads, save_heads
from bridgehead.encode import make_encoder
from bridgehead.index import IndexSide, build_index, open_index
from bridgehead.index.vectors import candidate_rows
from bridgehead.pairs.starter_data import read_starter_frame
from bridgehead.search import Space, model_fingerprint, open_space_of

LIMIT_MILLISECONDS = 30.0
N_ITEMS = 80_000
EMBED_DIM = 256
N_QUERIES = 200
# So much that neighbours spread over many lists, as they do when the queries are of another modality.
NOISE = 1.5
SMILES = ["CC(=O)Oc1ccccc1C(=O)O", "CC(C)NCC(O)COc1cccc2ccccc12"]


def build(folder: Path, statements: list[str]) -> float:
    """Write a model and an index of `N_ITEMS` synthetic rows; return the seconds that the index took."""
    encoder_a = make_encoder("molecule:fingerprints", min_count=1, processes=1).fit(SMILES)
    encoder_b = make_encoder("text:ngram").fit(statements)
    encoder_a.save(folder / "encoders" / "a")
    encoder_b.save(folder / "encoders" / "b")
    torch.manual_seed(0)
    config = HeadsConfig(
        HeadConfig(encoder_a.n_columns, EMBED_DIM, sparse=True), HeadConfig(encoder_b.n_columns, EMBED_DIM, sparse=True)
    )
    save_heads(TwoHeads(config), folder / "heads.safetensors")
    rows_b = NumpyHeads.load(folder / "heads.safetensors").project_b(encoder_b.encode(statements).rows)
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((N_ITEMS, EMBED_DIM)).astype(np.float32) / np.sqrt(EMBED_DIM)
    ids = [f"m{number}" for number in range(N_ITEMS)]
    names = [[f"compound {number}", f"synonym {number}-1", f"synonym {number}-2"] for number in range(N_ITEMS)]
    sides = {
        "a": IndexSide("molecule", rows_b[rng.integers(0, len(rows_b), N_ITEMS)] + NOISE * noise, ["C"] * N_ITEMS, ids,
                       "molecule", names),
        "b": IndexSide("text", rows_b, statements, [f"t{number}" for number in range(len(statements))]),
    }  # fmt: skip
    fingerprint = model_fingerprint(encoder_a, encoder_b, folder / "heads.safetensors")
    start = time.perf_counter()
    facts = build_index(folder / "index", sides, fingerprint, {"a": rows_b, "b": sides["a"].rows[:2000]})
    print("\n".join(facts.lines()), file=sys.stderr)
    return time.perf_counter() - start


def measure(space: Space, queries: list[str]) -> dict[str, list[float]]:
    """Return milliseconds of each whole search, of its parts and of the bare FAISS call, taken in turns."""
    vectors = space.index._vectors["a"]
    seconds: dict[str, list[float]] = {"search": [], "encode_and_project": [], "index": [], "bare_faiss": []}

    def timed(part: str, work: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = work()
        seconds[part].append(1e3 * (time.perf_counter() - start))
        return result

    for query in queries:
        timed("search", partial(space.search, query, k=10, of="molecule"))
        row = timed("encode_and_project", partial(project, space, query))
        timed("index", partial(space.index.search, "a", row, 10))
        timed("bare_faiss", partial(candidate_rows, vectors.found, row, 1024, vectors.nprobe))
    return seconds


def project(space: Space, query: str) -> Any:
    """Return the row of a text in the space."""
    return space.heads.project_b(space.encoders["b"].encode([query]).rows)


def main() -> int:
    """Build, measure, print, and say whether the limit was kept."""
    texts = read_starter_frame()["statement"].explode().drop_nulls().unique(maintain_order=True).to_list()
    with tempfile.TemporaryDirectory() as name:
        build_seconds = build(Path(name), texts)
        start = time.perf_counter()
        open_index(Path(name) / "index").close()
        open_milliseconds = 1e3 * (time.perf_counter() - start)
        rng = np.random.default_rng(1)
        queries = [" ".join(rng.permutation(texts[i].split())[:8]) for i in rng.integers(0, len(texts), N_QUERIES)]
        with open_space_of(name, Path(name) / "index") as space:
            measure(space, queries[:5])
            parts = measure(space, queries)
            nprobe = space.index.sides["a"].vectors.nprobe
            recall = space.index.sides["a"].vectors.recall
    medians = {part: statistics.median(values) for part, values in parts.items()}
    result = {
        "items": N_ITEMS,
        "dim": EMBED_DIM,
        "queries": N_QUERIES,
        "median_ms": {part: round(value, 2) for part, value in medians.items()},
        "p95_ms": round(float(np.percentile(parts["search"], 95)), 2),
        "search_to_bare_faiss": round(medians["search"] / medians["bare_faiss"], 1),
        "index_to_bare_faiss": round(medians["index"] / medians["bare_faiss"], 1),
        "nprobe": nprobe,
        "recall@10": round(recall, 4),
        "open_index_ms": round(open_milliseconds, 1),
        "build_seconds": round(build_seconds, 1),
        "limit_ms": LIMIT_MILLISECONDS,
    }
    print(json.dumps(result))
    return int(medians["search"] > LIMIT_MILLISECONDS)


if __name__ == "__main__":
    sys.exit(main())
