"""How long an index of 10 GB takes to open, and to answer its first search.

The rows are one random block again and again and the codes random, which makes the files in a minute or two; they have
the size, the form and the checks of real ones. The time is taken in a process of its own, once with the files in the
page cache as far as there is room, and once after the kernel was asked to drop them. Prints JSON; the exit status is 1
when the limit is passed. Files lie in a temporary folder and are removed. Run: python bench/open_index.py
"""

import argparse
import itertools
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

LIMIT_SECONDS = 1.0
GIB = 1 << 30


def write_codes(path: Path, n: int, dim: int, rng: np.random.Generator) -> int:
    """Write an IVF index of n rows with random codes; return its number of lists."""
    import faiss

    from bridgehead.index.vectors.plan import n_lists

    lists = n_lists(n)
    quantizer = faiss.IndexFlatIP(dim)
    quantizer.add(rng.standard_normal((lists, dim), dtype=np.float32) / np.float32(dim**0.5))
    found = faiss.IndexIVFScalarQuantizer(
        quantizer, dim, lists, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT
    )
    found.train(rng.standard_normal((lists, dim), dtype=np.float32))
    bounds = np.linspace(0, n, lists + 1).astype(np.int64)
    for number, (first, last) in enumerate(itertools.pairwise(bounds)):
        ids, codes = np.arange(first, last), rng.integers(0, 256, (int(last - first), dim), dtype=np.uint8)
        found.invlists.add_entries(number, len(ids), faiss.swig_ptr(ids), faiss.swig_ptr(codes))
    found.ntotal = n
    faiss.write_index(found, str(path))
    return lists


def write_rows(path: Path, n: int, dim: int, rng: np.random.Generator) -> None:
    """Write n float16 rows, 65,536 different ones."""
    block = (rng.standard_normal((1 << 16, dim), dtype=np.float32) / np.float32(dim**0.5)).astype(np.float16)
    with open(path, "wb") as file:
        header = {"descr": block.dtype.str, "fortran_order": False, "shape": (n, dim)}
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, n, len(block)):
            block[: n - start].tofile(file)


def write_index(folder: Path, n: int, dim: int) -> int:
    """Write an index of one side of n rows; return the size of its files in bytes."""
    from bridgehead.index import IndexSide, VectorFacts
    from bridgehead.index.build import write_manifest
    from bridgehead.index.items import write_store
    from bridgehead.index.layout import NUMBER_FILE, ROW_FILE, STORE_FILE, VECTOR_FILE

    part = folder / "build-big"
    part.mkdir(parents=True)
    lists = write_codes(part / VECTOR_FILE.format(side="a"), n, dim, np.random.default_rng(0))
    np.save(part / NUMBER_FILE.format(side="a"), np.arange(n, dtype=np.int64))
    write_rows(part / ROW_FILE.format(side="a"), n, dim, np.random.default_rng(1))
    write_store(part / STORE_FILE, {"a": IndexSide("molecule", np.zeros((0, dim)), [], [], "rows")}, "own")
    connection = sqlite3.connect(part / STORE_FILE)
    with connection:
        connection.execute("UPDATE meta SET value = ? WHERE name IN ('base:a', 'size:a', 'next_number')", (n,))
    connection.close()
    facts = VectorFacts("ivf-sq8", n, dim, lists, 16, recall={"own side": 1.0})
    write_manifest(part, "model", "own", None, {"a": {"name": "molecule", "kind": "rows", "vectors": asdict(facts)}})
    return sum(path.stat().st_size for path in part.rglob("*"))


def opened(folder: Path, dim: int) -> dict[str, float]:
    """Open the index and search once; return milliseconds."""
    import faiss  # noqa: F401

    from bridgehead.index import open_index

    start = time.perf_counter()
    index = open_index(folder, "model")
    middle = time.perf_counter()
    index.search("a", np.random.default_rng(1).standard_normal((1, dim)), 10)
    end = time.perf_counter()
    index.close()
    return {"open_ms": round(1e3 * (middle - start), 1), "first_search_ms": round(1e3 * (end - middle), 1)}


def drop(folder: Path) -> None:
    """Ask the kernel to drop the pages of all files from its cache."""
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def main() -> int:
    """Write, open, print, and say whether the limit was kept."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gib", type=float, default=10.0, help="size of the index")
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--folder", help="where to make the temporary folder")
    parser.add_argument("--open", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.open:
        print(json.dumps(opened(Path(arguments.open), arguments.dim)))
        return 0
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name) / "index"
        n = int(arguments.gib * GIB / (3 * arguments.dim + 16))
        size = write_index(folder, n, arguments.dim)
        os.sync()
        result: dict[str, Any] = {"rows": n, "dim": arguments.dim, "gib": round(size / GIB, 2)}
        command = [sys.executable, __file__, "--open", str(folder), "--dim", str(arguments.dim)]
        for state in ("warm", "cold"):
            if state == "cold":
                drop(folder)
            found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            result[state] = json.loads(found)
    result["limit_ms"] = 1e3 * LIMIT_SECONDS
    print(json.dumps(result))
    return int(max(result[state]["open_ms"] for state in ("warm", "cold")) > result["limit_ms"])


if __name__ == "__main__":
    sys.exit(main())
