"""Canary items: encoded again when something stored is opened, to see that the encoder is still the same.

Not about why rows changed: fingerprints say that (`Encoder.fingerprint`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from bridgehead.encode.base import Encoder
from bridgehead.errors import MismatchError, RunStateError
from bridgehead.files import UNREADABLE, atomic_file, read_json, why_unreadable, write_json
from bridgehead.vectors import FloatArray, unit_rows

CANARY_FORMAT = "bridgehead-canary"
_LOWEST_COSINE = 1 - 1e-4


@dataclass(frozen=True, eq=False)
class Canary:
    """A few items and their rows; `rows` is dense or CSR as the encoder gave it."""

    items: list[str]
    rows: Any

    def save(self, folder: str | Path) -> None:
        """Write `canary.npz` and `canary.json` into `folder`."""
        target = Path(folder)
        arrays = (
            {"indptr": self.rows.indptr, "indices": self.rows.indices, "data": self.rows.data}
            if sparse.issparse(self.rows)
            else {"rows": self.rows}
        )
        with atomic_file(target / "canary.npz") as file:
            np.savez(file, **arrays)
        write_json(target / "canary.json", {"items": self.items, "shape": list(self.rows.shape)}, CANARY_FORMAT)

    @classmethod
    def load(cls, folder: str | Path) -> "Canary":
        """Read what `save` wrote; raises `RunStateError` when it is damaged."""
        content = read_json(Path(folder) / "canary.json", CANARY_FORMAT)
        path = Path(folder) / "canary.npz"
        try:
            # np.load would leave the file open when its end is missing.
            with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
                if "rows" in file:
                    return cls(content["items"], file["rows"])
                parts = (file["data"], file["indices"], file["indptr"])
            return cls(content["items"], sparse.csr_matrix(parts, shape=tuple(content["shape"])))
        except (*UNREADABLE, AttributeError, IndexError, TypeError) as error:
            raise RunStateError(f"{path} is damaged ({why_unreadable(error)}); build the index again") from error


def canary_rows(encoder: Encoder, items: Sequence[str], n: int = 32) -> Canary:
    """Return up to `n` of the `items` that have a row, evenly spaced over the list, with their rows."""
    distinct = list(dict.fromkeys(items))
    step = max(1, len(distinct) // n)
    chosen = distinct[::step][:n]
    encoded = encoder.encode(chosen)
    return Canary([chosen[position] for position in encoded.index], encoded.rows)


def check_canary(encoder: Encoder, canary: Canary) -> None:
    """Encode the canary items again and raise `MismatchError` when their rows are not what they were.

    Sparse rows, which fitted encoders give, must be exactly equal; dense ones must have a cosine of at least 1 - 1e-4.
    """
    again = encoder.encode(canary.items)
    if again.rows.shape != canary.rows.shape:
        raise MismatchError(
            f"{encoder.spec}: canary rows are {again.rows.shape}, stored {canary.rows.shape}; this is another encoder: "
            "use the one the run was made with, or run it again"
        )
    if sparse.issparse(canary.rows):
        changed = np.unique((again.rows != canary.rows).nonzero()[0])
    else:
        new, old = unit_rows(again.rows, dtype=np.float64), unit_rows(canary.rows, dtype=np.float64)
        cosines: FloatArray = np.einsum("ij,ij->i", new, old)
        zero = ~again.rows.any(axis=1) & ~canary.rows.any(axis=1)
        changed = np.flatnonzero((cosines < _LOWEST_COSINE) & ~zero)
    if changed.size:
        raise MismatchError(
            f"{encoder.spec}: {changed.size} of {len(canary.items)} canary items have other rows than when the run was "
            f"made (first: {canary.items[changed[0]][:80]!r}); a library or a model changed: run it again"
        )
