"""The rows and links that a training reads, checked once at the door.

This module is not about the order of batches (`batches`) or about splits (`pairs`).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from bridgehead.align.model import model_input
from bridgehead.errors import LinksError
from bridgehead.files import hash_array, hash_texts
from bridgehead.links import Links
from bridgehead.vectors import IntArray, float32_rows


@dataclass(frozen=True, eq=False)
class PairData:
    """Rows of both sides, dense float32 or CSR, and the links between them."""

    rows_a: Any
    rows_b: Any
    links: Links

    @classmethod
    def of(cls, rows_a: Any, rows_b: Any, links: Any = None) -> "PairData":
        """Check and convert; lists, arrays, tensors and CSR matrices are taken.

        Raises `ShapeError`, `NonFiniteRowsError` (naming rows) and `LinksError`.
        """
        side_a, side_b = (float32_rows(rows, name) for rows, name in ((rows_a, "rows_a"), (rows_b, "rows_b")))
        return cls(side_a, side_b, Links.of(links, side_a.shape[0], side_b.shape[0]))

    def check_trainable(self) -> None:
        """Raise `LinksError` unless there is something to learn from: links, and items that do not match.

        A contrastive loss tells a match from the rest, so each side needs two different items and some pair of items
        must not be linked.
        """
        pairs = self.links.expanded().pairs
        if len(pairs) == 0:
            raise LinksError("there is no link among the training rows; expected pairs to train on")
        for side, rows, column in (("a", self.rows_a, 0), ("b", self.rows_b, 1)):
            items = np.unique(pairs[:, column])
            if len(items) < 2 or _all_equal(rows, items):
                raise LinksError(
                    f"side {side} has one distinct item in {len(pairs)} links; expected at least 2 different items on "
                    "each side: with one candidate there is nothing to tell it from, and the loss is 0"
                )
        if len(pairs) == len(np.unique(pairs[:, 0])) * len(np.unique(pairs[:, 1])):
            raise LinksError(
                "every item of a is linked with every item of b; expected some pairs of items that do not match"
            )

    def inputs(self, rows_a: IntArray, rows_b: IntArray) -> tuple[Any, Any]:
        """Return what the two heads read for these rows."""
        return _taken(self.rows_a, rows_a), _taken(self.rows_b, rows_b)

    def fingerprint(self) -> str:
        """Return a hash of all rows and links."""
        groups = (self.links.groups_a, self.links.groups_b)
        parts = [*_hashes(self.rows_a), *_hashes(self.rows_b), hash_array(self.links.pairs)]
        return hash_texts(parts + ["" if group is None else hash_array(group) for group in groups])


def _taken(rows: Any, numbers: IntArray) -> Any:
    if hasattr(rows, "indptr"):
        return model_input(rows, numbers)
    return torch.from_numpy(rows).index_select(0, torch.from_numpy(numbers))


def side_shape(rows: Any) -> tuple[int, bool]:
    """Return (width, is it CSR) of one side's rows."""
    return int(rows.shape[1]), hasattr(rows, "indptr")


def _all_equal(rows: Any, items: IntArray) -> bool:
    first = rows[items[:1]]
    if hasattr(rows, "indptr"):
        sizes = np.diff(rows.indptr)[items]
        if (sizes != sizes[0]).any():
            return False
        part = rows[items]
        shape = (len(items), int(sizes[0]))
        same = (part.indices.reshape(shape) == first.indices) & (part.data.reshape(shape) == first.data)
        return bool(same.all())
    return bool((rows[items] == first).all())


def _hashes(rows: Any) -> list[str]:
    if hasattr(rows, "indptr"):
        return [str(rows.shape), *(hash_array(part) for part in (rows.indptr, rows.indices, rows.data))]
    return [hash_array(rows)]
