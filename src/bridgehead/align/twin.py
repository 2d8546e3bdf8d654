"""The numpy twin of trained heads: the same projection without torch, for search and for small machines.

It repeats the arithmetic of `heads.Head` in evaluation mode and agrees with it to 1e-5. No torch is imported. This
module is not about training.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import erf

from bridgehead.align.architecture import NORM_EPSILON, HeadConfig, HeadsConfig
from bridgehead.align.heads_file import read_heads_file
from bridgehead.errors import ArgumentError, RunStateError, ShapeError
from bridgehead.vectors import FloatArray, float32_rows, unit_rows

# OpenBLAS begins to share out a product of m x k by k x n where m k n is above 2**18.
_IN_ONE_THREAD = 1 << 18
_FEW_ROWS = 16
_NORM_WEIGHTS = {
    "layer": ("weight", "bias"),
    "batch": ("weight", "bias", "running_mean", "running_var"),
    "rms": ("weight",),
    "none": (),
}


@dataclass(frozen=True, eq=False)
class NumpyHeads:
    """Trained heads as arrays: `config` and the named weights as the file holds them."""

    config: HeadsConfig
    weights: dict[str, Any]

    @classmethod
    def load(cls, path: str | Path) -> "NumpyHeads":
        """Read a file that `save_heads` wrote. Errors as `load_heads`."""
        config, weights = read_heads_file(path, "numpy")
        missing = [name for name in _expected(config) if name not in weights]
        if missing:
            raise RunStateError(f"{path} lacks the weights {', '.join(missing)}; train again or restore the file")
        return cls(config, weights)

    @property
    def embed_dim(self) -> int:
        """Dimensions of the shared space."""
        return self.config.a.embed_dim

    @property
    def logit_scale(self) -> float | None:
        """The scale s = 1 / temperature that training ended with; None where the file holds none."""
        stored = self.weights.get("scale.log_logit_scale")
        return None if stored is None else float(np.exp(np.float64(stored)))

    def project_a(self, rows: Any, block: int = 4096) -> FloatArray:
        """Return unit rows (n, embed_dim) float32 for dense (n, d) or CSR rows of side a, `block` rows at a time.

        A row that the head maps to zero stays zero. Raises `ShapeError` (width), `NonFiniteRowsError`, and
        `ArgumentError` for a block under 1.
        """
        return self._project("a", self.config.a, rows, block)

    def project_b(self, rows: Any, block: int = 4096) -> FloatArray:
        """As `project_a`, for side b."""
        return self._project("b", self.config.b, rows, block)

    def _project(self, side: str, config: HeadConfig, rows: Any, block: int) -> FloatArray:
        rows = float32_rows(rows, f"rows of {side}")
        if rows.shape[1] != config.input_dim:
            raise ShapeError(f"rows of {side} have {rows.shape[1]} columns; this head reads {config.input_dim}")
        if block < 1:
            raise ArgumentError(f"block = {block}; expected at least 1 row")
        if config.sparse != hasattr(rows, "indptr"):
            kind = "CSR" if config.sparse else "dense"
            raise ShapeError(f"this head of side {side} reads {kind} rows, and the other kind came")

        def weight(name: str) -> FloatArray:
            return np.asarray(self.weights[f"head_{side}.{name}"])

        out = np.empty((rows.shape[0], config.embed_dim), dtype=np.float32)
        for start in range(0, rows.shape[0], block):
            out[start : start + block] = unit_rows(_forward(config, weight, rows[start : start + block]))
        return out


def _forward(config: HeadConfig, weight: Callable[[str], FloatArray], rows: Any) -> FloatArray:
    first = _first_sparse(config, weight, rows) if config.sparse else _first_dense(config, weight, rows)
    hidden, below = first, first
    for number in range(len(config.hidden)):
        units = _gelu(hidden) if config.activation == "gelu" else np.maximum(hidden, 0)
        units = _normed(str(config.norm), units, weight, f"norms.{number}")
        below = below + units if config.skips(number) else units
        hidden = _product(below, weight(f"rest.{number}.weight")) + weight(f"rest.{number}.bias")
    return hidden + first if config.residual == "output" else hidden


def _first_dense(config: HeadConfig, weight: Callable[[str], FloatArray], rows: FloatArray) -> FloatArray:
    if config.input_norm == "unit":
        rows = unit_rows(rows)
    elif config.input_norm == "standard":
        rows = (rows - weight("mean")) * weight("inverse_std")
    return _product(rows, weight("first.weight")) + weight("first.bias")


def _product(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Return rows @ weights.T; that of few rows in parts so small that the library does them in the calling thread.

    Its threads wait for each other by spinning, which costs a single query more than the product itself.
    """
    width = _IN_ONE_THREAD // max(1, rows.size)
    if len(rows) > _FEW_ROWS or not 0 < width < len(weights):
        return np.asarray(rows @ weights.T)
    return np.concatenate([rows @ weights[at : at + width].T for at in range(0, len(weights), width)], axis=1)


def _first_sparse(config: HeadConfig, weight: Callable[[str], FloatArray], rows: Any) -> FloatArray:
    data = rows.data
    if config.input_norm == "unit":
        # In float64 the squares of float32 numbers neither overflow nor vanish.
        wide = rows.astype(np.float64)
        norms = np.sqrt(np.asarray(wide.multiply(wide).sum(axis=1)).reshape(-1))
        data = (wide.data / np.repeat(np.where(norms > 0, norms, 1), np.diff(rows.indptr))).astype(np.float32)
    # Only the columns that occur are raised to float32, so a query touches a few hundred rows of the table.
    occurs = np.zeros(config.input_dim, dtype=bool)
    occurs[rows.indices] = True
    columns = np.flatnonzero(occurs)
    table = weight("first.weight")[columns].astype(np.float32)
    position = np.cumsum(occurs) - 1
    compact = type(rows)((data, position[rows.indices], rows.indptr), shape=(rows.shape[0], len(columns)))
    return np.asarray(compact @ table + weight("first_bias"))


def _gelu(x: FloatArray) -> FloatArray:
    """x Phi(x), exact as torch's default."""
    return np.asarray(0.5 * x * (1 + erf(x * np.float32(0.7071067811865476))), dtype=np.float32)


def _normed(kind: str, x: FloatArray, weight: Callable[[str], FloatArray], place: str) -> FloatArray:
    """Return what the norm of this kind, whose weights are under `place`, makes of (n, width)."""
    if kind == "none":
        return x

    def own(name: str) -> FloatArray:
        return weight(f"{place}.{name}")

    epsilon = np.float32(NORM_EPSILON)
    if kind == "batch":
        gain = own("weight") / np.sqrt(own("running_var") + epsilon)
        return np.asarray((x - own("running_mean")) * gain + own("bias"))
    centred = x - x.mean(axis=1, keepdims=True) if kind == "layer" else x
    squares = (centred * centred).mean(axis=1, keepdims=True)
    scaled = centred / np.sqrt(squares + epsilon) * own("weight")
    return np.asarray(scaled + own("bias") if kind == "layer" else scaled)


def _expected(config: HeadsConfig) -> list[str]:
    names = []
    for side, head in (("a", config.a), ("b", config.b)):
        own = ["first.weight", "first_bias" if head.sparse else "first.bias"]
        own += ["mean", "inverse_std"] if head.input_norm == "standard" else []
        for number in range(len(head.hidden)):
            own += [f"rest.{number}.{kind}" for kind in ("weight", "bias")]
            own += [f"norms.{number}.{kind}" for kind in _NORM_WEIGHTS[str(head.norm)]]
        names += [f"head_{side}.{name}" for name in own]
    return names
