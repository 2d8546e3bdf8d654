"""Canary items: what an encoder made of a few items when the index was built, kept to be compared on opening.

Only stores and compares rows; encoding them again is done by who has the encoder (`search`).
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from bridgehead.errors import MismatchError
from bridgehead.files import atomic_file
from bridgehead.index.side import Canaries
from bridgehead.vectors import FloatArray, unit_rows

_LEAST_COSINE = 1 - 1e-4


def save_canaries(path: Path, canaries: Canaries) -> None:
    """Write canaries as .npz (no pickle), rows as CSR."""
    rows = sparse.csr_array(canaries.rows)
    rows.sort_indices()
    with atomic_file(path) as file:
        np.savez(
            file,
            items=np.frombuffer(json.dumps(canaries.items).encode(), dtype=np.uint8),
            data=rows.data,
            indices=rows.indices,
            indptr=rows.indptr,
            shape=np.array(rows.shape, dtype=np.int64),
            exact=np.bool_(canaries.exact),
        )


def load_canaries(path: Path) -> Canaries:
    """Read what `save_canaries` wrote; rows are CSR."""
    with np.load(path, allow_pickle=False) as stored:
        items = tuple(json.loads(stored["items"].tobytes()))
        rows = sparse.csr_array(
            (stored["data"], stored["indices"], stored["indptr"]), shape=tuple(int(n) for n in stored["shape"])
        )
        return Canaries(items, rows, bool(stored["exact"]))


def check_canaries(stored: Canaries, rows: Any, encoder: str) -> None:
    """Compare freshly encoded `rows` of the canary items with the stored ones; `encoder` is for the message.

    Raises `MismatchError` when they differ at all (`stored.exact`) or by a cosine under 1 - 1e-4.
    """
    now, before = _dense(rows), _dense(stored.rows)
    if now.shape != before.shape:
        raise MismatchError(
            f"{encoder} gives rows of shape {now.shape} for the {len(stored.items)} canary items and gave "
            f"{before.shape} when the index was built: it is not the same encoder; build the index again"
        )
    if stored.exact:
        changed = np.flatnonzero((now != before).any(axis=1))
    else:
        cosine = (unit_rows(now, dtype=np.float64) * unit_rows(before, dtype=np.float64)).sum(axis=1)
        both_zero = ~now.any(axis=1) & ~before.any(axis=1)
        changed = np.flatnonzero((cosine < _LEAST_COSINE) & ~both_zero)
    if changed.size:
        raise MismatchError(
            f"{encoder} encodes {changed.size} of {len(stored.items)} canary items differently than when the index was "
            f"built (first: {stored.items[changed[0]][:80]!r}): another model or library version; build the index again"
        )


def _dense(rows: Any) -> FloatArray:
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)
