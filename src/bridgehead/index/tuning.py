"""Making the FAISS index of a side, and choosing how many lists it looks at.

The choice is measured: exact search of sample queries against the index, doubling `nprobe` until recall@10 reaches the
floor, then halving the step. It is not about searching (`vectors`).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bridgehead.errors import ArgumentError
from bridgehead.index.vectors import FLAT_BELOW, candidate_rows, exact_scores, faiss_library
from bridgehead.vectors import FloatArray, unit_rows

_DEPTH = 10
_CANDIDATES = 1024
_SAMPLE_BYTES = 256 << 20
_ROUNDING = 1e-6


@dataclass(frozen=True)
class VectorFacts:
    """How the rows of a side are indexed and how well that finds what exact search finds.

    `method`: "flat" (exact) or "ivf-sq8". `n_lists`, `nprobe`: of the IVF index, None for a flat one. `recall`:
    measured recall@10 against exact search, in [0, 1]; 1.0 for a flat index. `n_queries`: how many sample queries it
    was measured with. `queries`: "other side", "own rows" (no sample was given) or "none" (flat).
    """

    method: str
    n_rows: int
    dim: int
    n_lists: int | None = None
    nprobe: int | None = None
    recall: float = 1.0
    n_queries: int = 0
    queries: str = "none"

    def line(self, name: str) -> str:
        """Return one line to print, for the side shown as `name`."""
        if self.method == "flat":
            return f"{name}: {self.n_rows:,} rows x {self.dim}, flat (exact)"
        return (
            f"{name}: {self.n_rows:,} rows x {self.dim}, IVF {self.n_lists} lists, nprobe {self.nprobe}, "
            f"recall@10 {self.recall:.4f} over {self.n_queries} queries ({self.queries})"
        )


def make_vectors(
    rows: npt.NDArray[np.float16], sample: FloatArray | None, floor: float, flat_below: int = FLAT_BELOW
) -> tuple[Any, VectorFacts]:
    """Return the FAISS index of stored `rows` (n, d) and its facts.

    `sample`: (m, d) rows of the other modality to measure with; without it rows of the side itself are taken, and the
    facts say so. Raises `ArgumentError` when recall@10 cannot reach `floor` (in [0, 1]) even with every list looked at.
    """
    faiss = faiss_library()
    n, dim = rows.shape
    unit = unit_rows(rows.astype(np.float32))
    if n < flat_below:
        flat = faiss.IndexFlatIP(dim)
        flat.add(unit)
        return flat, VectorFacts("flat", n, dim)
    n_lists = int(4 * np.sqrt(n))
    found = faiss.index_factory(dim, f"IVF{n_lists},SQ8", faiss.METRIC_INNER_PRODUCT)
    # A tenth of the time of FAISS's own 25 rounds over 256 points a list; nprobe is measured and makes up for it.
    found.cp.niter = 4
    found.cp.max_points_per_centroid = 16
    found.cp.min_points_per_centroid = 1
    found.train(unit)
    found.add(unit)
    queries, origin = _sample(sample, unit)
    nprobe, recall = _choose(found, rows, queries, floor)
    return found, VectorFacts("ivf-sq8", n, dim, n_lists, nprobe, recall, len(queries), origin)


def _sample(sample: FloatArray | None, own: FloatArray) -> tuple[FloatArray, str]:
    given = sample is not None and len(sample) > 0
    source = unit_rows(sample, "sample queries", np.float32) if given else own
    source = source[source.any(axis=1)]
    size = int(np.clip(_SAMPLE_BYTES // (4 * len(own)), 32, 256))
    chosen = np.unique(np.linspace(0, len(source) - 1, min(size, len(source))).astype(np.int64))
    return source[chosen], "other side" if given else "own rows"


def _choose(found: Any, rows: npt.NDArray[np.float16], queries: FloatArray, floor: float) -> tuple[int, float]:
    """Return the smallest nprobe (to a quarter of its size) that reaches the floor, and its recall."""
    if not len(queries):
        return found.nlist, 1.0
    scores = np.concatenate(list(exact_scores(rows, queries)), axis=1)
    depth = min(_DEPTH, len(rows))
    last = np.partition(scores, len(rows) - depth, axis=1)[:, len(rows) - depth]

    def recall_at(nprobe: int) -> float:
        numbers = candidate_rows(found, queries, min(_CANDIDATES, len(rows)), nprobe)
        reached = np.take_along_axis(scores, np.maximum(numbers, 0), axis=1) >= last[:, None] - _ROUNDING
        hits = (reached & (numbers >= 0)).sum(axis=1)
        return float(np.minimum(hits, depth).mean() / depth)

    nprobe, recall = 1, recall_at(1)
    while recall < floor and nprobe < found.nlist:
        nprobe = min(2 * nprobe, found.nlist)
        recall = recall_at(nprobe)
    if recall < floor:
        raise ArgumentError(
            f"recall@10 against exact search reaches {recall:.4f} with all {found.nlist} lists looked at, and "
            f"{floor} is asked for: ask for at most {np.floor(recall * 1e4) / 1e4}, or make the index flat (flat_below "
            f"over {len(rows)})"
        )
    for step in (nprobe // 4, nprobe // 8):
        if step and (lower := recall_at(nprobe - step)) >= floor:
            nprobe, recall = nprobe - step, lower
    return nprobe, recall
