"""InfoNCE and the sum of the sigmoid loss, value and gradients, without ever holding the n_a x n_b matrix of scores.

Forward goes over the scores tile by tile and keeps their sums; backward computes each tile again, unless it was kept.
The idea is that of attention in blocks (Dao et al. 2022, arXiv:2205.14135) and of its use for this loss (Cheng et al.
2024, arXiv:2410.17243). This module is not about how tiles are cut and multiplied (`tiles`).
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor

from bridgehead.align.losses.contrast import Contrast, Direction, Form, Positives, first_derivatives_only
from bridgehead.align.losses.tiles import Products, Tile, TilePairs, TileProducts, Tiling, check_tile
from bridgehead.errors import ArgumentError

_LOG2_E = math.log2(math.e)
_RANGE = {torch.float32: 86.0, torch.float64: 400.0}
"""Powers of two up to this, over or times millions of candidates, are far from both ends of the dtype."""

_Pair = tuple[Tensor | None, Tensor | None]
_Sums = tuple[Tensor | None, Tensor | None, Tensor]


def info_nce_tiled(
    given: Contrast, form: Form, direction: Direction, tile: int | Literal["auto"], products: Products = "float32"
) -> tuple[Tensor | None, Tensor | None]:
    """Return InfoNCE from a to b and from b to a, None where `direction` leaves one out; the formula is `info_nce`'s.

    It takes one product of the tiles forward and three backward (two for tiles that were kept), and two tiles of
    memory beside the gradients. Exact for any s: scores beyond the range of the dtype's exponential are summed with
    running maxima, which is slower. Gradients reach the unit rows and s; there is no second derivative.
    """
    n_a, n_b, d = len(given.unit_a), len(given.unit_b), given.unit_a.shape[1]
    tiling = Tiling.of(tile, n_a, n_b, d, given.unit_a.dtype)
    inputs = (given.unit_a, given.unit_b, given.scale)
    plan = _Plan(tiling, given.positives, products, _wants_gradient(*inputs), form, direction)
    losses: _Pair = _InfoNCE.apply(*inputs, plan)  # type: ignore[no-untyped-call]
    return losses


def sigmoid_tiled(
    unit_a: Tensor,
    unit_b: Tensor,
    scale: Tensor,
    bias: Tensor,
    positives: Positives,
    tile: Tile = "auto",
    products: Products = "float32",
) -> Tensor:
    """Return the sum over all pairs of -log sigmoid(y (s u.v + bias)), y = 1 for positives and -1 else, a scalar.

    `unit_a` (n_a, d) and `unit_b` (n_b, d) are unit rows of one dtype, float32 or float64; `scale` and `bias` scalar
    tensors. Gradients reach all four and are taken in the same pass over the tiles, three products in all. `tile` and
    `products` as in `info_nce`; a score of 0 costs log 2. Raises `ArgumentError`.

    Source: Zhai et al. 2023 (arXiv:2303.15343), eq. 1, without its division by the batch.
    """
    check_tile(tile, products)
    if tile is None:
        raise ArgumentError("tile = None; expected 'auto' or a whole number of rows, 1 or more")
    tiling = Tiling.of(tile, len(unit_a), len(unit_b), unit_a.shape[1], unit_a.dtype)
    inputs = (unit_a, unit_b, scale, bias)
    plan = _Plan(tiling, positives, products, _wants_gradient(*inputs))
    total: Tensor = _SigmoidSum.apply(*inputs, plan)  # type: ignore[no-untyped-call]
    return total


@dataclass(frozen=True, eq=False)
class _Plan:
    tiling: Tiling
    positives: Positives
    products: Products
    wants_gradient: bool
    form: Form = "outside"
    direction: Direction = "both"

    @cached_property
    def pairs(self) -> TilePairs:
        return TilePairs(self.positives, self.tiling)


def _wants_gradient(*inputs: Tensor) -> bool:
    return torch.is_grad_enabled() and any(each.requires_grad for each in inputs)


class _InfoNCE(torch.autograd.Function):
    """(unit_a, unit_b, s) -> the loss from a to b and from b to a."""

    @staticmethod
    def forward(ctx: Any, unit_a: Tensor, unit_b: Tensor, scale: Tensor, plan: _Plan) -> tuple[Tensor | None, ...]:
        ctx.set_materialize_grads(False)
        tiles = _Tiles(unit_a, unit_b, float(scale), plan)
        rows, columns, scores = _sums_of_powers(tiles) or _sums_with_running_maxima(tiles)
        p = plan.positives
        ctx.sides = (
            None if rows is None else _Side(tiles.logarithm(rows), rows, p.a, p.counts_a, scores, plan.form),
            None if columns is None else _Side(tiles.logarithm(columns), columns, p.b, p.counts_b, scores, plan.form),
        )
        ctx.plan, ctx.s, ctx.shift, ctx.scale_dtype = plan, tiles.s, tiles.shift, scale.dtype
        # Kept tiles are the first ones; saved like this, they are freed with the graph.
        ctx.save_for_backward(unit_a, unit_b, *tiles.kept.values())
        # An output that the node itself holds would keep the node, and with it the whole graph, for ever.
        return tuple(None if side is None else side.loss.clone() for side in ctx.sides)

    @staticmethod
    @first_derivatives_only
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        if all(each is None for each in gradients):
            return None, None, None, None
        unit_a, unit_b, *kept = ctx.saved_tensors
        tiles = _Tiles(unit_a, unit_b, ctx.s, ctx.plan)
        tiles.shift, tiles.kept = ctx.shift, dict(enumerate(kept))
        wanted = [None if by is None else (side, by) for side, by in zip(ctx.sides, gradients, strict=True)]
        by_rows, by_columns = (None if each is None else each[0].weights * each[1] for each in wanted)
        sum_rows, sum_columns = (None if each is None else each[0].sums for each in wanted)
        by_positives = sum(each[0].shares * each[1] for each in wanted if each is not None)
        collected = _Gradients(tiles, ctx.needs_input_grad)
        # Whoever calls backward may stand in autocast, which this is no part of.
        with torch.autocast(unit_a.device.type, enabled=False):
            for tile, across, down in ctx.plan.tiling.tiles():
                if tiles.shift is None:
                    weights = tiles.weighted_exponentials(
                        tile, across, down, (sum_rows, sum_columns), (by_rows, by_columns)
                    )
                else:
                    weights = tiles.weighted_powers(tile, across, down, by_rows, by_columns)
                found = ctx.plan.pairs.within(tile)
                if found is not None:
                    weights.view(-1).index_add_(0, found[1], by_positives[found[0]], alpha=-1)
                collected.add(weights, across, down)
        return *collected.finished(ctx.scale_dtype), None


class _Side:
    """One direction: its loss, and the derivatives of the loss that do not need the scores again.

    `logs` (n,) are log sum exp; `sums` the sums of powers, or `logs` again. The derivative by a score is `weights` (n,)
    of its anchor times its power, or times its share of the exponentials; for positives, `shares` (P,) is subtracted.
    """

    def __init__(self, logs: Tensor, sums: Tensor, anchor: Tensor, counts: Tensor, scores: Tensor, form: Form) -> None:
        is_anchor = counts > 0
        weights = is_anchor.to(logs.dtype) / is_anchor.sum()
        if form == "outside":
            self.shares = (weights / counts.clamp(min=1))[anchor]
            self.loss = torch.dot(weights, logs) - torch.dot(self.shares, scores)
        else:
            # Over the largest score of each anchor, so that no exponential is out of range.
            largest = scores.new_zeros(len(counts)).scatter_reduce(0, anchor, scores, "amax", include_self=False)
            powers = (scores - largest[anchor]).exp()
            of_anchor = scores.new_zeros(len(counts)).index_add(0, anchor, powers)
            self.shares = weights[anchor] * powers / of_anchor[anchor]
            self.loss = torch.dot(weights, logs - largest - torch.where(is_anchor, of_anchor, 1.0).log())
        self.sums, self.weights = sums, weights if logs is sums else weights / sums


class _SigmoidSum(torch.autograd.Function):
    """(unit_a, unit_b, s, bias) -> the sum over all pairs; its gradient is taken in the same pass."""

    @staticmethod
    def forward(ctx: Any, unit_a: Tensor, unit_b: Tensor, scale: Tensor, bias: Tensor, plan: _Plan) -> Tensor:
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
    @first_derivatives_only
    def backward(ctx: Any, by_total: Tensor) -> tuple[Tensor | None, ...]:
        return *(None if each is None else each * by_total for each in ctx.saved_tensors), None


class _Tiles:
    """What is taken of the scores of one tile after the other, in the same memory, except for tiles that are kept.

    exp S is taken as 2^(S log2 e - shift): the same numbers, and several times as fast on some processors. `shift` is
    None once that has been found out of range.
    """

    def __init__(self, unit_a: Tensor, unit_b: Tensor, s: float, plan: _Plan) -> None:
        self.unit_a, self.unit_b, self.s, self.plan = unit_a, unit_b, s, plan
        self.range = _RANGE[unit_a.dtype]
        self.shift: float | None = max(0.0, s * _LOG2_E - self.range)
        self.kept: dict[int, Tensor] = {}
        self.products = TileProducts(unit_a, unit_b, plan.tiling, plan.products)

    @cached_property
    def _scores(self) -> Tensor:
        return self.plan.tiling.buffer(self.unit_a)

    @cached_property
    def _weights(self) -> Tensor:
        return self.plan.tiling.buffer(self.unit_a)

    def logarithm(self, sums: Tensor) -> Tensor:
        """Return log sum exp S for sums of powers; sums with running maxima are that already."""
        return sums if self.shift is None else (sums.log2() + self.shift) / _LOG2_E

    def scores(self, tile: int, across: slice, down: slice, factor: float, offset: float, keep: bool = False) -> Tensor:
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

    def powers(self, tile: int, across: slice, down: slice, positives: Tensor | None = None) -> Tensor:
        """Return 2^(S log2 e - shift) of a tile, and write the scores of its positives into `positives` if given."""
        if tile in self.kept:
            return self.kept[tile]
        assert self.shift is not None
        keep = positives is not None and self.plan.wants_gradient and tile < self.plan.tiling.kept
        out = self.scores(tile, across, down, self.s * _LOG2_E, -self.shift, keep)
        found = self.plan.pairs.within(tile)
        if found is not None and positives is not None:
            positives[found[0]] = (out.view(-1)[found[1]] + self.shift) / _LOG2_E
        return out.exp2_()

    def weighted_powers(
        self, tile: int, across: slice, down: slice, by_rows: Tensor | None, by_columns: Tensor | None
    ) -> Tensor:
        """Return power_ij x (by_rows_i + by_columns_j)."""
        powers = self.powers(tile, across, down)
        out = self._weights[: powers.numel()].view_as(powers)
        if by_rows is not None and by_columns is not None:
            torch.add(by_rows[across, None], by_columns[down], out=out)
            return out.mul_(powers)
        if by_rows is not None:
            return torch.mul(powers, by_rows[across, None], out=out)
        assert by_columns is not None
        return torch.mul(powers, by_columns[down], out=out)

    def weighted_exponentials(self, tile: int, across: slice, down: slice, sums: _Pair, by: _Pair) -> Tensor:
        """Return by_rows_i x exp(S_ij - rows_i) + by_columns_j x exp(S_ij - columns_j)."""
        scores = self.scores(tile, across, down, self.s, 0.0)
        out = self._weights[: scores.numel()].view_as(scores).zero_()
        if by[0] is not None and sums[0] is not None:
            torch.sub(scores, sums[0][across, None], out=out)
            out.exp_().mul_(by[0][across, None])
        if by[1] is not None and sums[1] is not None:
            out.add_(scores.sub_(sums[1][down]).exp_().mul_(by[1][down]))
        return out


def _sums_of_powers(tiles: _Tiles) -> _Sums | None:
    """Return the sums of powers of rows and of columns, and the positives' scores; None where a sum is out of range."""
    plan, like = tiles.plan, tiles.unit_a
    rows = None if plan.direction == "b_to_a" else like.new_zeros(plan.tiling.n_a)
    columns = None if plan.direction == "a_to_b" else like.new_zeros(plan.tiling.n_b)
    positives = like.new_empty(len(plan.positives))
    for tile, across, down in plan.tiling.tiles():
        powers = tiles.powers(tile, across, down, positives)
        if rows is not None:
            rows[across].add_(powers.sum(1))
        if columns is not None:
            columns[down].add_(powers.sum(0))
    # Without a shift no sum can vanish; with one, that of a row whose every score is far below s would.
    if tiles.shift and not all(float(each.amin()) >= 2.0**-tiles.range for each in (rows, columns) if each is not None):
        tiles.kept.clear()
        tiles.shift = None
        return None
    return rows, columns, positives


def _sums_with_running_maxima(tiles: _Tiles) -> _Sums:
    """Return log sum exp of rows and columns and the positives' scores, whatever the range of the scores."""
    plan, like = tiles.plan, tiles.unit_a
    rows = None if plan.direction == "b_to_a" else like.new_full((plan.tiling.n_a,), -math.inf)
    columns = None if plan.direction == "a_to_b" else like.new_full((plan.tiling.n_b,), -math.inf)
    positives = like.new_empty(len(plan.positives))
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


class _Gradients:
    """What tiles add to the gradients by unit_a, unit_b and s, given the derivatives by their scores."""

    def __init__(self, tiles: _Tiles, wanted: tuple[bool, ...]) -> None:
        self.tiles, self.wanted = tiles, wanted
        self.a = torch.empty_like(tiles.unit_a) if wanted[0] or wanted[2] else None
        self.b = torch.empty_like(tiles.unit_b) if wanted[1] else None

    def add(self, weights: Tensor, across: slice, down: slice) -> None:
        """Take in the derivatives by the scores of a tile."""
        self.tiles.products.add_gradient(weights, across, down, self.a, self.b)

    def finished(self, scale_dtype: torch.dtype) -> tuple[Tensor | None, ...]:
        """Return the gradients by unit_a, unit_b and s."""
        by_scale = None
        if self.wanted[2] and self.a is not None:
            # S = s u.v, so the derivative by s is the sum of u . (what was added up for u), here in panels.
            panels = zip(torch.split(self.tiles.unit_a, 1024), torch.split(self.a, 1024), strict=True)
            parts = [(u * g).sum(dtype=torch.float64) for u, g in panels]
            by_scale = (parts[0] if len(parts) == 1 else torch.stack(parts).sum()).to(scale_dtype)
        for each in (self.a, self.b):
            if each is not None:
                each.mul_(self.tiles.s)
        return self.a if self.wanted[0] else None, self.b, by_scale
