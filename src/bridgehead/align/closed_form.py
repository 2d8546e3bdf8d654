"""Linear alignments with a closed form: CCA, ridge regression and orthogonal Procrustes over links.

They are what contrastive training has to beat, on the same rows and links. Each ends as one linear map a side and is
kept as `NumpyHeads`, so whatever reads trained heads reads these. No torch here, but for saving. This module is not
about measuring either of them (`evaluate`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bridgehead.align.architecture import INPUT_NORMS, HeadConfig, HeadsConfig, real_number, whole_width
from bridgehead.align.moments import LinkedMoments, SideView, linked_moments
from bridgehead.align.twin import NumpyHeads
from bridgehead.errors import ArgumentError, ShapeError
from bridgehead.links import Links
from bridgehead.vectors import FloatArray, float32_rows

if TYPE_CHECKING:
    from bridgehead.align.model import TwoHeads

Method = Literal["cca", "ridge", "procrustes"]
METHODS = ("cca", "ridge", "procrustes")
REGULARISATION = 0.1


@dataclass(frozen=True, eq=False)
class ClosedForm:
    """Two linear maps into one space, found without training.

    `heads` holds them; `correlations` (embed_dim,) are the correlations of both sides' coordinates over the links, 0
    for a coordinate that does not vary; `notes` say in sentences what differs from what was asked for.
    """

    method: Method
    heads: NumpyHeads
    correlations: FloatArray
    notes: tuple[str, ...]

    @property
    def embed_dim(self) -> int:
        """Dimensions of the shared space; fewer than were asked for where there are no more."""
        return self.heads.embed_dim

    def transform_a(self, rows: Any) -> FloatArray:
        """Return unit rows (n, embed_dim) float32 for rows of side a; a row that the map takes to zero stays zero.

        Raises `ShapeError` (width, or dense for CSR) and `NonFiniteRowsError`.
        """
        return self.heads.project_a(rows)

    def transform_b(self, rows: Any) -> FloatArray:
        """As `transform_a`, for side b."""
        return self.heads.project_b(rows)

    def to_model(self) -> "TwoHeads":
        """Return the same maps as a torch model in evaluation mode, to be saved or trained further."""
        import torch

        from bridgehead.align.model import TwoHeads

        # The weights that a new model draws are thrown away; the caller's random state is not to notice.
        with torch.random.fork_rng(devices=[]):
            model = TwoHeads(self.heads.config)
        weights = {name: torch.from_numpy(np.array(value)) for name, value in self.heads.weights.items()}
        model.load_state_dict(model.state_dict() | weights)
        return model.eval()

    def save(self, path: str | Path) -> None:
        """Write the maps as trained heads are written; `load_heads` and `NumpyHeads.load` read them."""
        from bridgehead.align.model import save_heads

        save_heads(self.to_model(), path, {"method": self.method})


def fit_closed_form(
    rows_a: Any,
    rows_b: Any,
    links: Any = None,
    method: Method = "cca",
    embed_dim: int = 256,
    *,
    regularisation: float | None = None,
    input_norm: str = "auto",
    rank: int = 1024,
    seed: int = 0,
) -> ClosedForm:
    """Return the alignment of linked rows by one of three closed forms; each link counts once.

    With C_aa, C_bb, C_ab the covariances over the links (side a centred at the mean of its linked rows, a row as often
    as it has links), and r = regularisation, U S V' always a singular value decomposition:

        cca:         z_a = S^(1/2) U' (C_aa + r m_a I)^(-1/2) x and z_b = S^(1/2) V' (C_bb + r m_b I)^(-1/2) y, with
                     U S V' that of (C_aa + r m_a I)^(-1/2) C_ab (C_bb + r m_b I)^(-1/2); m is the mean variance along
                     the axes that vary, and S^(1/2) makes z the mean of what both sides share given one of them
        ridge:       z_b = T' y, T the first principal axes of b; z_a = (T' C_ba (C_aa + r m_a I)^(-1)) x, the ridge
                     regression of z_b on x
        procrustes:  z_a = R' P' x, z_b = T' y with P, T the first principal axes of both sides, and R = U V' that of
                     P' C_ab T, the rotation with the least sum of squares of z_a - z_b over the links

    `rows_a` and `rows_b` are dense (n, d) or CSR, never made dense; `links` as everywhere (None, `Links`, pairs).
    `input_norm` is what the heads do to rows first, as in training: "auto" is "standard" for dense rows (over the
    linked rows, each once) and "unit" for CSR rows; "none" leaves them. A side with more than `rank` columns is first
    taken to the `rank` main dimensions of its linked rows (by a randomised range finder, from `seed`); memory beyond
    the rows is of the order of (columns x `rank`). `regularisation` (cca and ridge alone, 0 or more; None: 0.1) is in
    units of that mean variance. Each map is divided by the root mean square length of its rows over the links, which
    unit rows do not notice.

    The space has as many dimensions as were asked for, or as there are: at most the rank of either side's covariance,
    which is under the number of linked rows. Columns that do not vary get no weight. Cca with more columns than links
    and without regularisation fits any pairing perfectly; a note says so.

    Raises `LinksError` (links out of range), `ArgumentError` (method, regularisation, input_norm, rank; or no variation
    over the links, as with fewer than two), `ConfigError` (embed_dim), `ShapeError` and `NonFiniteRowsError` (rows).

    Source: Hotelling 1936, Vinod 1976 (the ridge in it) and Bach and Jordan 2005 (its weight S^(1/2), theorem 2); Hoerl
    and Kennard 1970; Schoenemann 1966; Halko, Martinsson and Tropp 2011 (arXiv:0909.4061), algorithm 4.4, as in
    scikit-learn.

    >>> rows = np.random.default_rng(0).standard_normal((50, 4))
    >>> turned = rows @ np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))[0]
    >>> found = fit_closed_form(rows, turned, method="procrustes", embed_dim=4, input_norm="none")
    >>> bool(np.abs(found.transform_a(rows) - found.transform_b(turned)).max() < 1e-5)
    True
    """
    if method not in METHODS:
        raise ArgumentError(f"method = {method!r}; expected one of {', '.join(METHODS)}")
    wanted, rank = whole_width("embed_dim", embed_dim), whole_width("rank", rank)
    strength = _regularisation(method, regularisation)
    a, b = float32_rows(rows_a, "rows of a"), float32_rows(rows_b, "rows of b")
    for name, rows in (("a", a), ("b", b)):
        if rows.shape[1] == 0:
            raise ShapeError(f"rows of {name} have shape {rows.shape}; expected at least one column")
    found = Links.of(links, a.shape[0], b.shape[0]).expanded()
    if len(found) < 2:
        raise ArgumentError(f"{len(found)} links; a closed form is a matter of variation, expected at least two")
    side_a, side_b = (
        SideView.of(rows, found.pairs[:, column], _input_norm(input_norm, rows), rank, seed)
        for column, rows in enumerate((a, b))
    )
    moments = linked_moments(side_a, side_b, found.pairs)
    map_a, map_b = _FORMS[method](moments, wanted, strength)
    notes = _notes(method, wanted, map_a.shape[1], strength, moments, len(found))
    config_a, weights_a = _head(side_a, moments.mean_a, moments.aa, map_a)
    config_b, weights_b = _head(side_b, moments.mean_b, moments.bb, map_b)
    weights = {f"head_a.{name}": value for name, value in weights_a.items()}
    weights |= {f"head_b.{name}": value for name, value in weights_b.items()}
    heads = NumpyHeads(HeadsConfig(config_a, config_b), weights)
    return ClosedForm(method, heads, _correlations(moments, map_a, map_b), notes)


def _cca(moments: LinkedMoments, wanted: int, strength: float) -> tuple[FloatArray, FloatArray]:
    white_a, white_b = (axes / np.sqrt(variances) for axes, variances in _both(moments, strength))
    u, strengths, vt = np.linalg.svd(white_a.T @ moments.ab @ white_b, full_matrices=False)
    # What correlates little says little of the other side; unit rows would weigh all coordinates alike.
    weight = np.sqrt(strengths[:wanted])
    return white_a @ u[:, :wanted] * weight, white_b @ vt[:wanted].T * weight


def _ridge(moments: LinkedMoments, wanted: int, strength: float) -> tuple[FloatArray, FloatArray]:
    (axes_a, variances), (axes_b, _) = _both(moments, strength)
    target = axes_b[:, :wanted]
    return axes_a / variances @ (axes_a.T @ moments.ab @ target), target


def _procrustes(moments: LinkedMoments, wanted: int, strength: float) -> tuple[FloatArray, FloatArray]:
    (axes_a, _), (axes_b, _) = _both(moments, strength)
    width = min(wanted, axes_a.shape[1], axes_b.shape[1])
    axes_a, axes_b = axes_a[:, :width], axes_b[:, :width]
    u, _, vt = np.linalg.svd(axes_a.T @ moments.ab @ axes_b)
    return axes_a @ (u @ vt), axes_b


_FORMS: dict[str, Callable[[LinkedMoments, int, float], tuple[FloatArray, FloatArray]]] = {
    "cca": _cca,
    "ridge": _ridge,
    "procrustes": _procrustes,
}


def _both(moments: LinkedMoments, strength: float) -> list[tuple[FloatArray, FloatArray]]:
    """Return for a and b the principal axes (k, r) that vary, the most first, and their regularised variances (r,)."""
    found = []
    for name, covariance in (("a", moments.aa), ("b", moments.bb)):
        variances, axes = np.linalg.eigh(covariance)
        variances, axes = variances[::-1], axes[:, ::-1]
        varies = variances > 1e-12 * max(float(variances[0]), 0.0)
        if not varies.any():
            raise ArgumentError(f"the linked rows of {name} are all equal, so there is nothing to align them by")
        variances, axes = variances[varies], axes[:, varies]
        found.append((axes, variances + strength * variances.mean()))
    return found


def _vary_together(moments: LinkedMoments) -> bool:
    """Say whether the covariance across the sides is more than rounding."""
    whole = float(np.trace(moments.aa) * np.trace(moments.bb))
    return float(np.square(moments.ab).sum()) > 1e-24 * whole


def _head(
    side: SideView, mean: FloatArray, covariance: FloatArray, linear: FloatArray
) -> tuple[HeadConfig, dict[str, FloatArray]]:
    """Return a map (k, embed_dim) as a head without hidden layers: weights over the rows' columns, the mean as bias."""
    length = np.sqrt(max(float(np.einsum("ij,ij->", linear, covariance @ linear)), 0.0))
    linear = linear / (length if length > 0 else 1)
    table = np.asarray(linear if side.basis is None else side.basis @ linear, dtype=np.float32)
    weights: dict[str, FloatArray] = {
        "first.weight": table if side.is_sparse else np.ascontiguousarray(table.T),
        "first_bias" if side.is_sparse else "first.bias": np.asarray(-(mean @ linear), dtype=np.float32),
    }
    if side.shift is not None and side.inverse_std is not None:
        weights |= {"mean": side.shift.astype(np.float32), "inverse_std": side.inverse_std.astype(np.float32)}
    width, dims = side.rows.shape[1], linear.shape[1]
    return HeadConfig(width, dims, hidden=(), sparse=side.is_sparse, input_norm=side.input_norm), weights


def _correlations(moments: LinkedMoments, map_a: FloatArray, map_b: FloatArray) -> FloatArray:
    between = np.einsum("ik,ik->k", map_a, moments.ab @ map_b)
    spread_a = np.einsum("ik,ik->k", map_a, moments.aa @ map_a)
    spread_b = np.einsum("ik,ik->k", map_b, moments.bb @ map_b)
    spread = np.sqrt(np.maximum(spread_a * spread_b, 0))
    return np.asarray(np.where(spread > 0, between / np.where(spread > 0, spread, 1), 0))


def _regularisation(method: str, given: float | None) -> float:
    if method == "procrustes":
        if given is not None:
            raise ArgumentError("regularisation has no meaning for a rotation; leave it out with method = 'procrustes'")
        return 0.0
    strength = REGULARISATION if given is None else real_number("regularisation", given)
    if not 0 <= strength < float("inf"):
        raise ArgumentError(f"regularisation = {given}; expected a finite number of 0 or more")
    return strength


def _input_norm(given: str, rows: Any) -> str:
    is_sparse = hasattr(rows, "indptr")
    if given == "auto":
        return "unit" if is_sparse else "standard"
    if given not in INPUT_NORMS:
        raise ArgumentError(f"input_norm = {given!r}; expected one of auto, {', '.join(INPUT_NORMS)}")
    if given == "standard" and is_sparse:
        raise ArgumentError("input_norm = 'standard' would make CSR rows dense; use 'unit' or 'none' for them")
    return given


def _notes(
    method: str, wanted: int, found: int, strength: float, moments: LinkedMoments, n_links: int
) -> tuple[str, ...]:
    notes = []
    if not _vary_together(moments):
        notes.append(
            "the linked rows of a and b do not vary together, as where every row is linked with all of the other side: "
            "the rows in this space are zero or noise"
        )
    if found < wanted:
        notes.append(
            f"the space has {found} dimensions, not {wanted}: the linked rows vary in no more on one of the sides"
        )
    columns = max(len(moments.aa), len(moments.bb))
    if method == "cca" and strength == 0 and columns >= n_links - 1:
        notes.append(
            f"{n_links} links and up to {columns} columns without regularisation: any pairing is fitted perfectly, so "
            "expect nothing on other rows; set regularisation over 0"
        )
    return tuple(notes)
