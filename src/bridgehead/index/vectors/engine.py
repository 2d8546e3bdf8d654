"""FAISS: its import, its search parameters for each kind, and candidates as positions.

All that is particular to FAISS at search time is here. What the candidates are worth is in `scoring`.
"""

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from bridgehead.vectors import FloatArray, IntArray

# From 20 queries on FAISS takes products of matrices, whose rounding is another than that of a query alone.
QUERIES_AT_ONCE = 16
_QUERIES_FOR_THREADS = 4


def faiss_library() -> Any:
    """Return FAISS, imported when it is first needed; untyped, since its stubs lag behind its Python layer."""
    return importlib.import_module("faiss")


def search_parameters(effort: Mapping[str, int], bitmap: npt.NDArray[np.uint8] | None) -> tuple[Any, Any]:
    """Return FAISS's parameters for one call and what must be kept alive with them.

    `effort`: {"nprobe": n} or {"ef": n}, or empty for a flat index. `bitmap`: one bit a position, set for those that
    may be found, or None for all. They travel with the call because an index is shared by threads.
    """
    faiss = faiss_library()
    selector = faiss.IDSelectorBitmap(bitmap) if bitmap is not None else None
    chosen = {"sel": selector} if selector is not None else {}
    if "nprobe" in effort:
        return faiss.SearchParametersIVF(nprobe=effort["nprobe"], **chosen), (selector, bitmap)
    if "ef" in effort:
        return faiss.SearchParametersHNSW(efSearch=effort["ef"], **chosen), (selector, bitmap)
    return (faiss.SearchParameters(**chosen) if chosen else None), (selector, bitmap)


def candidate_rows(
    found: Any,
    queries: FloatArray,
    width: int,
    effort: Mapping[str, int],
    bitmap: npt.NDArray[np.uint8] | None = None,
) -> IntArray:
    """Return (m, width) positions from FAISS for float32 queries (m, d), -1 where it finds no more.

    Queries go in by sixteen, so that a query among many gets the candidates that it gets alone.
    """
    parameters, _kept = search_parameters(effort, bitmap)
    with _threads_for(len(queries)):
        parts = [
            found.search(queries[start : start + QUERIES_AT_ONCE], width, params=parameters)[1]
            for start in range(0, len(queries), QUERIES_AT_ONCE)
        ]
    return np.concatenate(parts) if parts else np.zeros((0, width), np.int64)


@contextmanager
def _threads_for(n_queries: int) -> Iterator[None]:
    """Keep FAISS to the calling thread for few queries: threads that wait for a busy core cost more than they bring.

    The number of threads is the calling thread's own setting, so that others are not touched.
    """
    faiss = faiss_library()
    threads = faiss.omp_get_max_threads()
    if n_queries >= _QUERIES_FOR_THREADS or threads == 1:
        yield
        return
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)


def lists_of(found: Any, n: int) -> npt.NDArray[np.int32]:
    """Return for each of `n` positions the list of the IVF index that it lies in; -1 for one in none."""
    faiss = faiss_library()
    result = np.full(n, -1, np.int32)
    for number in range(found.nlist):
        size = found.invlists.list_size(number)
        if size:
            ids = faiss.rev_swig_ptr(found.invlists.get_ids(number), size)
            result[ids[(ids >= 0) & (ids < n)]] = number
    return result
