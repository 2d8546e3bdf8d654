"""Making a FAISS index from stored rows: training on a sample, adding block by block, saving what was added.

Everything here is the same whatever the number of threads and wherever a kill fell. How much is looked at afterwards
is measured in `tuning`.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bridgehead.errors import RunStateError
from bridgehead.files import atomic_path
from bridgehead.index.vectors.base import Twins
from bridgehead.index.vectors.engine import faiss_library
from bridgehead.index.vectors.plan import HNSW_LINKS, n_lists, pq_parts
from bridgehead.index.vectors.scoring import widened
from bridgehead.index.vectors.sources import RowSource
from bridgehead.vectors import FloatArray, IntArray, unit_rows

CHECKPOINT_SECONDS = 30.0
BLOCK = 8192
_POINTS_PER_LIST = 16
_LEAST_POINTS = 16_384
_BUILD_DEPTH = 80
_PQ_ROUNDS = 8
_PQ_POINTS = 64
_SEED = 0

Say = Callable[[str], None]


def empty_index(kind: str, n: int, dim: int) -> Any:
    """Return an untrained FAISS index of `kind` for `n` rows of `dim` columns."""
    faiss = faiss_library()
    if kind == "flat":
        return faiss.IndexFlatIP(dim)
    if kind == "hnsw":
        graph = faiss.IndexHNSWSQ(dim, faiss.ScalarQuantizer.QT_8bit, HNSW_LINKS, faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction = _BUILD_DEPTH
        return graph
    codes = "SQ8" if kind == "ivf-sq8" else f"PQ{pq_parts(dim)}x8"
    found = faiss.index_factory(dim, f"IVF{n_lists(n)},{codes}", faiss.METRIC_INNER_PRODUCT)
    # A tenth of the time of FAISS's own 25 rounds over 256 points a list; nprobe is measured and makes up for it.
    found.cp.niter = 4
    found.cp.max_points_per_centroid = _POINTS_PER_LIST
    found.cp.min_points_per_centroid = 1
    if kind == "ivf-pq":
        found.pq.cp.min_points_per_centroid = 1
        found.pq.cp.niter = _PQ_ROUNDS
        found.pq.cp.max_points_per_centroid = _PQ_POINTS
        # An order of codes for a search that is not used here takes ten times as long as the rest.
        found.do_polysemous_training = False
    return found


def trained_index(kind: str, rows: RowSource, say: Say) -> Any:
    """Return a trained FAISS index of `kind` without rows; the sample it is trained with is the same each time."""
    n, dim = rows.shape
    found = empty_index(kind, n, dim)
    if not found.is_trained:
        points = training_rows(rows, min(n, max(_LEAST_POINTS, _POINTS_PER_LIST * n_lists(n))))
        say(f"training {kind} with {len(points):,} of {n:,} rows")
        found.train(points)
    return found


def reused_index(kind: str, n: int, dim: int, path: Path) -> Any:
    """Return the index of an earlier build without its rows, or None where its training does not fit these rows."""
    faiss = faiss_library()
    if not kind.startswith("ivf") or not path.is_file():
        return None
    found = faiss.read_index(str(path))
    fresh = empty_index(kind, n, dim)
    lists = getattr(found, "nlist", 0)
    if type(found) is not type(fresh) or found.d != dim or not n_lists(n) <= 2 * lists <= 4 * n_lists(n):
        return None
    found.reset()
    return found


def training_rows(rows: RowSource, count: int) -> FloatArray:
    """Return `count` unit float32 rows drawn at random (seed 0), in their order."""
    n, dim = rows.shape
    chosen = np.sort(np.random.default_rng(_SEED).choice(n, count, replace=False))
    points = np.empty((count, dim), np.float32)
    start = filled = 0
    for block in rows.blocks(BLOCK):
        inside = chosen[filled : np.searchsorted(chosen, start + len(block))] - start
        points[filled : filled + len(inside)] = unit_rows(widened(block[inside]))
        filled, start = filled + len(inside), start + len(block)
    return points


def add_rows(found: Any, rows: RowSource, partial_path: Path, twins: Twins | None, say: Say) -> None:
    """Add the stored `rows` to `found`, from those on that it holds already, saving it to `partial_path` now and then.

    `twins`: rows that are identical; only the first of each group is added.
    """
    faiss = faiss_library()
    n = rows.shape[0]
    first = first_of(twins, n)
    graph = hasattr(found, "hnsw")
    threads = faiss.omp_get_max_threads()
    # Threads link a graph in the order in which they come: one thread, so that a build can be repeated.
    faiss.omp_set_num_threads(1 if graph else threads)
    try:
        saved, start, held = time.monotonic(), 0, found.ntotal
        for block in rows.blocks(BLOCK):
            own = np.flatnonzero(first[start : start + len(block)])
            end = start + len(block)
            before = int(np.count_nonzero(first[:start]))
            start = end
            if before + len(own) <= held:
                continue
            if graph:
                found.hnsw.rng = faiss.RandomGenerator(_SEED + before)
            found.add(unit_rows(widened(block[own])))
            held = found.ntotal
            if time.monotonic() - saved >= CHECKPOINT_SECONDS and end < n:
                say(f"added {end:,} of {n:,} rows")
                atomic_path(partial_path, partial(faiss.write_index, found))
                saved = time.monotonic()
    finally:
        faiss.omp_set_num_threads(threads)
    if held != int(np.count_nonzero(first)):
        raise RunStateError(f"the index holds {held} rows of {n}; remove {partial_path.parent} and build again")


def first_of(twins: Twins | None, n: int) -> Any:
    """Return a mask (n,) of the positions that go into FAISS."""
    if twins is None:
        return np.ones(n, bool)
    mask = np.zeros(n, bool)
    mask[twins.members[twins.starts[:-1]]] = True
    return mask


def find_twins(rows: RowSource) -> Twins | None:
    """Return the groups of rows that are identical, in the order of their first rows; None where all differ.

    Rows are compared by a 64-bit hash; two that share one by chance are searched together and told apart by scores.
    """
    n, dim = rows.shape
    weights = np.random.default_rng(_SEED).integers(1, 1 << 63, dim, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    hashes = np.concatenate(
        [np.zeros(0, np.uint64), *((block.view(np.uint16).astype(np.uint64) @ weights) for block in rows.blocks(BLOCK))]
    )
    _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    if len(first) == n:
        return None
    place = np.empty(len(first), np.int64)
    place[np.argsort(first)] = np.arange(len(first))
    group = place[group]
    members: IntArray = np.argsort(group, kind="stable").astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(np.bincount(group))]).astype(np.int64)
    return Twins(members, starts)
