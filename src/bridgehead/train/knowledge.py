"""What a loss may know of the items beside their rows and links: coarse classes, and rows of a frozen guide.

This module is not about the losses that use them (`align.losses`).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from bridgehead.errors import ArgumentError, ConfigError, ShapeError
from bridgehead.files import hash_array, hash_texts
from bridgehead.train.data import PairData
from bridgehead.vectors import FloatArray, IntArray, check_rows, to_numpy, unit_rows

_GUIDE_WIDTH = 256
"""Columns that CSR rows are reduced to for a guide: within a batch all are compared with all."""


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Classes (n,) int64 and guide rows (n, g) unit float32 of each side, None where there are none."""

    classes: tuple[IntArray | None, IntArray | None] = (None, None)
    guide: tuple[FloatArray | None, FloatArray | None] = (None, None)

    def of(self, rows_a: IntArray, rows_b: IntArray) -> dict[str, Any]:
        """Return what the objective is told of a batch: `classes` and `guide`, pairs of tensors or None."""
        told: dict[str, Any] = {}
        for name, (a, b) in (("classes", self.classes), ("guide", self.guide)):
            if a is not None or b is not None:
                sides = ((a, rows_a), (b, rows_b))
                told[name] = tuple(None if known is None else torch.from_numpy(known[rows]) for known, rows in sides)
        return told

    def fingerprint(self) -> str:
        """Return a hash of all that is known."""
        return hash_texts(["" if known is None else hash_array(known) for known in (*self.classes, *self.guide)])


def knowledge_of(data: PairData, classes: Any, guide: Any, *, needs_classes: bool, needs_guide: bool) -> Knowledge:
    """Return what the loss needs to know of `data`, checked.

    `classes` = (classes_a, classes_b): integers, -1 for none, one per row, for the hierarchical loss. `guide` =
    (rows_a, rows_b), either may be None: rows of a frozen encoder; None altogether takes the training rows themselves,
    which are what the frozen encoders say. CSR rows are reduced to 256 dimensions (truncated SVD, seed 0). Raises
    `ConfigError` when the loss needs classes and none came, `ShapeError` and `ArgumentError` for what does not fit.
    """
    sizes = data.rows_a.shape[0], data.rows_b.shape[0]
    if classes is not None and not needs_classes:
        raise ConfigError("classes came; only loss = {'name': 'hierarchical'} reads them")
    if guide is not None and not needs_guide:
        raise ConfigError("a guide came; only loss = {'name': 'guided'} reads it")
    if needs_classes and classes is None:
        raise ConfigError(
            "the hierarchical loss needs the coarse class of each item (drug class, family); pass classes=(classes_a, "
            "classes_b), or name columns in pairs.class_a and pairs.class_b"
        )
    found_classes = _both(classes, "classes") if needs_classes else (None, None)
    found_guide: tuple[Any, Any] = (None, None)
    if needs_guide:
        found_guide = (data.rows_a, data.rows_b) if guide is None else _both(guide, "guide")
    return Knowledge(
        (_classes(found_classes[0], sizes[0], "a"), _classes(found_classes[1], sizes[1], "b")),
        (_guide(found_guide[0], sizes[0], "a"), _guide(found_guide[1], sizes[1], "b")),
    )


def _both(given: Any, name: str) -> tuple[Any, Any]:
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise ArgumentError(f"{name} is a {type(given).__name__}; expected a pair, one for each side")
    return given[0], given[1]


def _classes(classes: Any, n: int, side: str) -> IntArray | None:
    if classes is None:
        return None
    array = to_numpy(classes)
    if array.shape != (n,) or array.dtype.kind not in "iu":
        raise ShapeError(
            f"classes of {side} have shape {array.shape} and dtype {array.dtype}; expected ({n},) integers, -1 for none"
        )
    return np.asarray(array, dtype=np.int64)


def _guide(rows: Any, n: int, side: str) -> FloatArray | None:
    if rows is None:
        return None
    rows = check_rows(rows, f"guide of {side}")
    if rows.shape[0] != n:
        raise ShapeError(f"the guide of {side} has {rows.shape[0]} rows; expected {n}, one for each row of {side}")
    if hasattr(rows, "indptr"):
        from sklearn.decomposition import TruncatedSVD

        width = min(_GUIDE_WIDTH, min(rows.shape) - 1)
        if width < 1:
            rows = rows.toarray()
        else:
            # Rows without a non-zero have no variance, and its shares, which nothing here reads, are 0 / 0.
            with np.errstate(invalid="ignore"):
                rows = TruncatedSVD(width, random_state=0).fit_transform(rows.astype(np.float32))
    return unit_rows(rows, dtype=np.float32)
