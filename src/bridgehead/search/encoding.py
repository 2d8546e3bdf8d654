"""Raw items of a side as rows of the space, many at once: what queries, labels and items to classify go through.

A row does not depend on which others are in the call. It is not about what is done with rows (`space`, `classify`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from bridgehead.vectors import FloatArray

_BLOCK = 16


class Heads(Protocol):
    """Trained heads as search needs them: encoder rows in, unit rows of the shared space out."""

    def project_a(self, rows: Any) -> FloatArray:
        """Project rows of side a."""

    def project_b(self, rows: Any) -> FloatArray:
        """Project rows of side b."""


class QueryEncoder(Protocol):
    """An encoder as search needs it; `encode` returns an object with `.rows` and `.failures`."""

    def encode(self, items: Any) -> Any:
        """Encode raw items."""


@dataclass(frozen=True)
class NoRow:
    """An item that has no row in the space: its `position` among those that came, and the `reason`.

    `unreadable` says that the encoder could not read it, not only that it knew nothing of it.
    """

    position: int
    reason: str
    unreadable: bool = False


@dataclass(frozen=True, eq=False)
class EncodedItems:
    """Rows (n, d) float32 of the space, one for each item that came, of unit length; zero for those in `failures`."""

    rows: FloatArray
    failures: tuple[NoRow, ...]


def encode_items(encoder: QueryEncoder, project: Callable[[Any], FloatArray], texts: Sequence[str],
                 side_name: str) -> EncodedItems:  # fmt: skip
    """Return the rows of `texts` in the space, and why for those that have none; none shifts another.

    `side_name` is for the reasons. A text that is empty, cannot be read, or of which the encoder knows nothing has no
    row: what heads make of a zero row is their biases.
    """
    blank = {i: NoRow(i, "it is empty", True) for i, text in enumerate(texts) if not text.strip()}
    asked = [i for i in range(len(texts)) if i not in blank]
    # Lone surrogates are no characters: no encoder reads them.
    encoded = encoder.encode([texts[i].encode("utf-8", "replace").decode() for i in asked])
    without = blank | {asked[one.index]: NoRow(asked[one.index], str(one.reason), True) for one in encoded.failures}
    read = np.array([i for i in asked if i not in without], dtype=np.int64)
    known = _says_anything(encoded.rows)
    # Picking rows out of a sparse matrix costs more than projecting one.
    projected = _projected(project, encoded.rows if known.all() else encoded.rows[np.flatnonzero(known)])
    rows = np.zeros((len(texts), projected.shape[1]), dtype=np.float32)
    rows[read[known]] = projected
    for i in read[~known].tolist():
        without[i] = NoRow(i, f"the encoder of {side_name} knows nothing of it")
    for i in read[known][~projected.any(axis=1)].tolist():
        without[i] = NoRow(i, "the heads map it to zero")
    return EncodedItems(rows, tuple(without[i] for i in sorted(without)))


def _says_anything(rows: Any) -> npt.NDArray[np.bool_]:
    """Say for each row whether it has an entry that is not zero."""
    if not hasattr(rows, "indptr"):
        return np.asarray(np.asarray(rows).any(axis=1))
    filled = np.concatenate([[0], np.cumsum(rows.data != 0)])[rows.indptr]
    return np.asarray(np.diff(filled) > 0)


def _projected(project: Callable[[Any], FloatArray], rows: Any) -> FloatArray:
    """Return the projection of rows, always 16 at a time, so that none depends on how many came with it.

    Libraries multiply a single row, a few and many in different ways, which differ in the last bits; the last block is
    filled with zero rows.
    """
    n = rows.shape[0]
    if n == 0:
        return np.asarray(project(rows))
    if n <= _BLOCK:
        return project(_filled(rows))[:n]
    blocks = [project(_filled(rows[start : start + _BLOCK]))[: n - start] for start in range(0, n, _BLOCK)]
    return np.concatenate(blocks)


def _filled(rows: Any) -> Any:
    missing = _BLOCK - rows.shape[0]
    if missing == 0:
        return rows
    if hasattr(rows, "indptr"):
        ends = np.concatenate([rows.indptr, np.full(missing, rows.indptr[-1], dtype=rows.indptr.dtype)])
        return type(rows)((rows.data, rows.indices, ends), shape=(_BLOCK, rows.shape[1]))
    return np.concatenate([rows, np.zeros((missing, rows.shape[1]), dtype=rows.dtype)])
