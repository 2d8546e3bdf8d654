"""Sums over all pairs of rows, exact, without the n_a x n_b matrix: for InfoNCE and for the sigmoid loss.

Tile by tile, forward takes what a loss needs of the scores: log sum exp of rows and of columns, and the scores of the
positives. Backward computes the scores again, so that memory does not grow with n_a x n_b (Gao et al. 2021,
arXiv:2101.06983, sec. 3, and Cheng et al. 2024, arXiv:2410.17243, have the idea for batches over devices). This module
is not about how a loss joins the sums, and not about the geometry of tiles (`tiles`).
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import torch
from torch.autograd.function import once_differentiable

from bridgehead.align.losses.contrast import Contrast, Direction, Positives
from bridgehead.align.losses.tiles import Products, TilePairs, TileProducts, Tiling, check_tile

_LOG2_E = math.log2(math.e)
_RANGE = {torch.float32: 86.0, torch.float64: 400.0}
"""2 to plus or minus this, times or over a million candidates, is far from the ends of the dtype."""


@dataclass(frozen=True, eq=False)
class ScoreSums:
    """What InfoNCE needs of the scores S = s u.v, all with gradients.

    `rows` (n_a,) is log sum over j of exp S_ij and `columns` (n_b,) log sum over i, None where the direction leaves
    one out; `positives` (P,) the scores of the positives, in their order.
    """

    rows: torch.Tensor | None
    columns: torch.Tensor | None
    positives: torch.Tensor


def score_sums(
    given: Contrast, direction: Direction, tile: int | Literal["auto"], products: Products = "float32"
) -> ScoreSums:
    """Return log sum exp of the rows and columns of the scores, and the scores of the positives.

    Takes one product of the tiles forward and three backward (two for tiles that were kept), as many exponentials as
    products of scores, and two tiles of memory beside the gradients. Exact for any s: scores beyond the range of the
    dtype's exponential are summed with running maxima, which is slower.
    """
    n_a, n_b, d = len(given.unit_a), len(given.unit_b), given.unit_a.shape[1]
    tiling = Tiling.of(tile, n_a, n_b, d, given.unit_a.dtype)
    inputs = (given.unit_a, given.unit_b, given.scale)
    plan = _Plan(tiling, TilePairs(given.positives, tiling), products, _wants_gradient(*inputs), direction)
    return ScoreSums(*_ScoreSums.apply(*inputs, plan))


def sigmoid_tiled(
    unit_a: torch.Tensor,
    unit_b: torch.Tensor,
    scale: torch.Tensor,
    bias: torch.Tensor,
    positives: Positives,
    tile: int | Literal["auto"] = "auto",
    products: Products = "float32",
) -> torch.Tensor:
    """Return the sum over all pairs of -log sigmoid(y (s u.v + bias)), y = 1 for positives and -1 else, a scalar.

    `unit_a` (n_a, d) and `unit_b` (n_b, d) are unit rows of one dtype, float32 or float64; `scale` and `bias` scalar
    tensors of that dtype. Gradients reach all four. With gradients wanted, value and gradients come of one pass with
    three matrix products. `tile` and `products` as in `info_nce`; a zero score costs log 2. Raises `ArgumentError`.

    Source: Zhai et al. 2023 (arXiv:2303.15343), eq. 1, without its division by the batch.
    """
    check_tile(tile, products)
    tiling = Tiling.of(tile, len(unit_a), len(unit_b), unit_a.shape[1], unit_a.dtype)
    inputs = (unit_a, unit_b, scale, bias)
    plan = _Plan(tiling, TilePairs(positives, tiling), products, _wants_gradient(*inputs))
    total: torch.Tensor = _SigmoidSum.apply(*inputs, plan)
    return total


@dataclass(frozen=True, eq=False)
class _Plan:
    tiling: Tiling
    pairs: TilePairs
    products: Products
    wants_gradient: bool
    direction: Direction = "both"


def _wants_gradient(*inputs: torch.Tensor) -> bool:
    return torch.is_grad_enabled() and any(each.requires_grad for each in inputs)


class _ScoreSums(torch.autograd.Function):
    """(unit_a, unit_b, s) -> rows, columns, positives of `ScoreSums`."""

    @staticmethod
    def forward(
        ctx: Any, unit_a: torch.Tensor, unit_b: torch.Tensor, scale: torch.Tensor, plan: _Plan
    ) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor]:
        ctx.set_materialize_grads(False)
        tiles = _Tiles(unit_a, unit_b, float(scale), plan)
        sums = _sums_of_powers(tiles)
        if sums is not None:
            rows, columns, positives = sums
            results = [None if each is None else (each.log2() + tiles.shift) / _LOG2_E for each in (rows, columns)]
        else:
            tiles.shift = None
            rows, columns, positives = _sums_with_running_maxima(tiles)
            results = [rows, columns]
        ctx.plan, ctx.s, ctx.shift, ctx.kept, ctx.scale_dtype = plan, tiles.s, tiles.shift, tiles.kept, scale.dtype
        ctx.save_for_backward(unit_a, unit_b, rows, columns)
        return results[0], results[1], positives

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        unit_a, unit_b, rows, columns = ctx.saved_tensors
        tiles = _Tiles(unit_a, unit_b, ctx.s, ctx.plan)
        tiles.shift, tiles.kept = ctx.shift, ctx.kept
        by_rows, by_columns, by_positives = gradients
        weigh = _weigh_powers if ctx.shift is not None else _weigh_exponentials
        if ctx.shift is not None:
            # The weight of a score is its power over the sum, so the division happens once a row.
            by_rows = None if by_rows is None else by_rows / rows
            by_columns = None if by_columns is None else by_columns / columns
        collected = _Gradients(tiles, ctx.needs_input_grad)
        for tile, across, down in ctx.plan.tiling.tiles():
            weights = weigh(tiles, tile, across, down, (rows, columns), (by_rows, by_columns))
            found = ctx.plan.pairs.within(tile)
            if found is not None and by_positives is not None:
                weights.view(-1).index_add_(0, found[1], by_positives[found[0]])
            collected.add(weights, across, down)
        return *collected.finished(ctx.scale_dtype), None


class _SigmoidSum(torch.autograd.Function):
    """(unit_a, unit_b, s, bias) -> the sum over all pairs; its gradient is taken in the same pass."""

    @staticmethod
    def forward(
        ctx: Any,
        unit_a: torch.Tensor,
        unit_b: torch.Tensor,
        scale: torch.Tensor,
        bias: torch.Tensor,
        plan: _Plan,
    ) -> torch.Tensor:
        tiles = _Tiles(unit_a, unit_b, float(scale), plan)
        total = unit_a.new_zeros((), dtype=torch.float64)
        by_bias = torch.zeros_like(total)
        collected = _Gradients(tiles, ctx.needs_input_grad) if plan.wants_gradient else None
        for tile, across, down in plan.tiling.tiles():
            logits = tiles.scores(tile, across, down, tiles.s, float(bias))
            found = plan.pairs.within(tile)
            if found is not None:
                # -log sigmoid(x) is softplus(-x): positives change their sign, and so does their derivative.
                logits.view(-1)[found[1]] *= -1
            total += torch.nn.functional.softplus(logits, threshold=40).sum()
            if collected is None:
                continue
            logits.sigmoid_()
            if found is not None:
                logits.view(-1)[found[1]] *= -1
            by_bias += logits.sum()
            collected.add(logits, across, down)
        if collected is not None:
            ctx.save_for_backward(*collected.finished(scale.dtype), by_bias.to(bias.dtype))
        return total.to(unit_a.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_total: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return *(None if each is None else each * by_total for each in ctx.saved_tensors), None


class _Tiles:
    """Scores of one tile after the other in the same memory, except those that are kept."""

    def __init__(self, unit_a: torch.Tensor, unit_b: torch.Tensor, s: float, plan: _Plan) -> None:
        self.unit_a, self.unit_b, self.s, self.plan = unit_a, unit_b, s, plan
        self.range = _RANGE[unit_a.dtype]
        self.shift: float | None = max(0.0, s * _LOG2_E - self.range)
        self.kept: dict[int, torch.Tensor] = {}
        self.products = TileProducts(unit_a, unit_b, plan.tiling, plan.products)

    @cached_property
    def _scores(self) -> torch.Tensor:
        return self.plan.tiling.buffer(self.unit_a)

    @cached_property
    def _weights(self) -> torch.Tensor:
        return self.plan.tiling.buffer(self.unit_a)

    def weights(self, across: slice, down: slice) -> torch.Tensor:
        """Return memory for the weights of a tile."""
        shape = across.stop - across.start, down.stop - down.start
        return self._weights[: shape[0] * shape[1]].view(shape)

    def scores(
        self, tile: int, across: slice, down: slice, factor: float, offset: float, keep: bool = False
    ) -> torch.Tensor:
        """Return factor x cosine + offset of a tile, in memory that the next tile takes unless `keep`."""
        shape = across.stop - across.start, down.stop - down.start
        if keep:
            out = self.kept[tile] = self.unit_a.new_empty(shape)
        else:
            out = self._scores[: shape[0] * shape[1]].view(shape)
        self.products.scores(out, across, down, factor, offset)
        if self.plan.products == "bf16":
            found = self.plan.pairs.within(tile)
            if found is not None:
                # Rounded, a positive could score above the sum that it is part of.
                exact = self.plan.pairs.cosines(self.unit_a, self.unit_b, found[0])
                out.view(-1)[found[1]] = exact * factor + offset
        return out

    def powers(self, tile: int, across: slice, down: slice, positives: torch.Tensor | None = None) -> torch.Tensor:
        """Return exp(S) x 2^-shift of a tile, and write the scores of its positives into `positives` if given.

        exp is taken as a power of two: the same numbers, and several times as fast on some processors.
        """
        if tile in self.kept:
            return self.kept[tile]
        assert self.shift is not None
        keep = positives is not None and self.plan.wants_gradient and tile < self.plan.tiling.kept
        out = self.scores(tile, across, down, self.s * _LOG2_E, -self.shift, keep)
        found = self.plan.pairs.within(tile)
        if found is not None and positives is not None:
            positives[found[0]] = (out.view(-1)[found[1]] + self.shift) / _LOG2_E
        return out.exp2_()


_Sums = tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor]


def _sums_of_powers(tiles: _Tiles) -> _Sums | None:
    """Return the sums of `_Tiles.powers` and the positives' scores; None where a sum is out of range."""
    plan, like = tiles.plan, tiles.unit_a
    rows = None if plan.direction == "b_to_a" else like.new_zeros(plan.tiling.n_a)
    columns = None if plan.direction == "a_to_b" else like.new_zeros(plan.tiling.n_b)
    positives = like.new_empty(plan.pairs.n_pairs)
    for tile, across, down in plan.tiling.tiles():
        powers = tiles.powers(tile, across, down, positives)
        if rows is not None:
            rows[across] += powers.sum(1)
        if columns is not None:
            columns[down] += powers.sum(0)
    # Without a shift no sum can vanish; with one, a row whose every score is far below s would.
    if tiles.shift and not all(float(each.amin()) >= 2.0**-tiles.range for each in (rows, columns) if each is not None):
        tiles.kept.clear()
        return None
    return rows, columns, positives


def _sums_with_running_maxima(tiles: _Tiles) -> _Sums:
    """Return log sum exp of rows and columns and the positives' scores, whatever the range of the scores."""
    plan, like = tiles.plan, tiles.unit_a
    rows = None if plan.direction == "b_to_a" else like.new_full((plan.tiling.n_a,), -math.inf)
    columns = None if plan.direction == "a_to_b" else like.new_full((plan.tiling.n_b,), -math.inf)
    positives = like.new_empty(plan.pairs.n_pairs)
    for tile, across, down in plan.tiling.tiles():
        scores = tiles.scores(tile, across, down, tiles.s, 0.0)
        found = plan.pairs.within(tile)
        if found is not None:
            positives[found[0]] = scores.view(-1)[found[1]]
        if rows is not None:
            rows[across] = torch.logaddexp(rows[across], scores.logsumexp(1))
        if columns is not None:
            columns[down] = torch.logaddexp(columns[down], scores.logsumexp(0))
    return rows, columns, positives


_Pair = tuple[torch.Tensor | None, torch.Tensor | None]


def _weigh_powers(tiles: _Tiles, tile: int, across: slice, down: slice, sums: _Pair, by: _Pair) -> torch.Tensor:
    """Return power_ij x (by_rows_i + by_columns_j); `by` is divided by the sums already."""
    powers, out = tiles.powers(tile, across, down), tiles.weights(across, down)
    by_rows, by_columns = by
    if by_rows is not None and by_columns is not None:
        torch.add(by_rows[across, None], by_columns[down], out=out)
        return out.mul_(powers)
    if by_rows is not None:
        return torch.mul(powers, by_rows[across, None], out=out)
    return torch.mul(powers, by_columns[down], out=out) if by_columns is not None else out.zero_()


def _weigh_exponentials(tiles: _Tiles, tile: int, across: slice, down: slice, sums: _Pair, by: _Pair) -> torch.Tensor:
    """Return by_rows_i x exp(S_ij - rows_i) + by_columns_j x exp(S_ij - columns_j)."""
    scores, out = tiles.scores(tile, across, down, tiles.s, 0.0), tiles.weights(across, down)
    out.zero_()
    if by[0] is not None and sums[0] is not None:
        torch.sub(scores, sums[0][across, None], out=out)
        out.exp_().mul_(by[0][across, None])
    if by[1] is not None and sums[1] is not None:
        out.add_(scores.sub_(sums[1][down]).exp_().mul_(by[1][down]))
    return out


class _Gradients:
    """What tiles add to the gradients by unit_a, unit_b and s, given the derivatives by their scores."""

    def __init__(self, tiles: _Tiles, wanted: tuple[bool, ...]) -> None:
        self.tiles, self.wanted = tiles, wanted
        self.a = torch.zeros_like(tiles.unit_a) if wanted[0] or wanted[2] else None
        self.b = torch.zeros_like(tiles.unit_b) if wanted[1] else None

    def add(self, weights: torch.Tensor, across: slice, down: slice) -> None:
        """Take in the derivatives by the scores of a tile."""
        self.tiles.products.add_gradient(weights, across, down, self.a, self.b)

    def finished(self, scale_dtype: torch.dtype) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients by unit_a, unit_b and s."""
        by_scale = None
        if self.wanted[2] and self.a is not None:
            # S = s u.v, so the derivative by s is the sum of u . (what was added up for u), taken in panels.
            parts = [
                (u * g).sum(dtype=torch.float64)
                for u, g in zip(self.tiles.unit_a.split(1024), self.a.split(1024), strict=True)
            ]
            by_scale = torch.stack(parts).sum().to(scale_dtype)
        for each in (self.a, self.b):
            if each is not None:
                each *= self.tiles.s
        return self.a if self.wanted[0] else None, self.b, by_scale
