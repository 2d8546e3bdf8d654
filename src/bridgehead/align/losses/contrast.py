"""What every contrastive loss of two sides starts from: unit rows, the scale, and which row matches which.

A loss is a function of two sets of rows, s and links. It makes a `Contrast` of them, looks at each direction as a
`View` (anchors against candidates) and returns `LossParts`. Positives are kept as pairs, never as a matrix. This module
is not about any one loss.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch

from bridgehead.errors import ArgumentError, LinksError, NonFiniteRowsError, ShapeError
from bridgehead.links import Links

Form = Literal["outside", "inside"]
Direction = Literal["both", "a_to_b", "b_to_a"]


@dataclass(frozen=True, eq=False)
class LossParts:
    """A loss taken apart.

    `loss` is the scalar; `a_to_b` and `b_to_a` its directions (None where `direction` leaves one out, or where a loss
    has none); `left_out_a` and `left_out_b` the numbers of rows without a positive, which are no anchors but stay
    candidates; `terms` further named parts, detached, for the log.
    """

    loss: torch.Tensor
    a_to_b: torch.Tensor | None
    b_to_a: torch.Tensor | None
    left_out_a: int
    left_out_b: int
    terms: dict[str, torch.Tensor] | None = None


@dataclass(frozen=True, eq=False)
class Positives:
    """Which row of a batch matches which: pairs (`a[k]`, `b[k]`), each once, among n_a x n_b rows.

    Losses take it wherever they take links, and then check nothing: who trains makes it once a batch.
    """

    a: torch.Tensor
    b: torch.Tensor
    n_a: int
    n_b: int

    @classmethod
    def of(cls, links: Any, n_a: int, n_b: int, device: torch.device | str = "cpu") -> "Positives":
        """Return the matches of None (row i with row i), `Links`, pairs or `Positives`. Raises `LinksError`."""
        if isinstance(links, Positives):
            if (links.n_a, links.n_b) != (n_a, n_b):
                raise LinksError(
                    f"positives are over {links.n_a} x {links.n_b} rows, the batch has {n_a} and {n_b}; expected the "
                    "same numbers"
                )
            return links
        if links is None and n_a == n_b:
            return cls.diagonal(n_a, device)
        pairs = torch.from_numpy(Links.of(links, n_a, n_b).expanded().pairs).to(device)
        return cls(pairs[:, 0].contiguous(), pairs[:, 1].contiguous(), n_a, n_b)

    @classmethod
    def diagonal(cls, n: int, device: torch.device | str = "cpu") -> "Positives":
        """Return row i with row i for i < n."""
        rows = torch.arange(n, device=device)
        found = cls(rows, rows, n, n)
        # What the properties would find out, at every step of a training.
        ones = torch.ones_like(rows)
        vars(found).update(counts_a=ones, counts_b=ones, left_out=(0, 0), single=True)
        return found

    def __len__(self) -> int:
        return len(self.a)

    @cached_property
    def counts_a(self) -> torch.Tensor:
        """How many positives each row of a has, (n_a,) int64."""
        return torch.bincount(self.a, minlength=self.n_a)

    @cached_property
    def counts_b(self) -> torch.Tensor:
        """How many positives each row of b has, (n_b,) int64."""
        return torch.bincount(self.b, minlength=self.n_b)

    @cached_property
    def left_out(self) -> tuple[int, int]:
        """The numbers of rows of a and of b without a positive."""
        return int((self.counts_a == 0).sum()), int((self.counts_b == 0).sum())

    @cached_property
    def flat(self) -> torch.Tensor:
        """Where the positives stand among n_a x n_b scores, row after row, (P,) int64."""
        return self.a * self.n_b + self.b

    @cached_property
    def shares_a(self) -> tuple[torch.Tensor, torch.Tensor]:
        """What each row of a (n_a,) and each positive (P,) counts in the mean over the anchors of a, float64."""
        return _shares(self.counts_a, self.a)

    @cached_property
    def shares_b(self) -> tuple[torch.Tensor, torch.Tensor]:
        """As `shares_a`, for the anchors of b."""
        return _shares(self.counts_b, self.b)

    @cached_property
    def single(self) -> bool:
        """Whether each row that has a positive has exactly one."""
        return int(self.counts_a.amax()) <= 1 and int(self.counts_b.amax()) <= 1


def _shares(counts: torch.Tensor, anchor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    weights = (counts > 0).double()
    weights /= weights.sum()
    return weights, (weights / counts.clamp(min=1))[anchor]


@dataclass(frozen=True, eq=False)
class View:
    """One direction: `scores` (n, m) of n anchors against m candidates, positives (`anchor[k]`, `candidate[k]`).

    `counts` (n,) are the positives of each anchor, 0 for rows that are no anchors.
    """

    scores: torch.Tensor
    anchor: torch.Tensor
    candidate: torch.Tensor
    counts: torch.Tensor

    @cached_property
    def positive_scores(self) -> torch.Tensor:
        """The scores of the positives, (P,)."""
        return self.scores[self.anchor, self.candidate]

    def sum_over_positives(self, values: torch.Tensor) -> torch.Tensor:
        """Return for each anchor the sum of `values` (P,) over its positives, (n,); 0 where there is none."""
        return values.new_zeros(len(self.counts)).index_add(0, self.anchor, values)

    def mean_over_positives(self, values: torch.Tensor) -> torch.Tensor:
        """Return for each anchor the mean of `values` (P,) over its positives, (n,); 0 where there is none."""
        return self.sum_over_positives(values) / self.counts.clamp(min=1)

    def mean_over_anchors(self, costs: torch.Tensor) -> torch.Tensor:
        """Return the mean of `costs` (n,) over the anchors that have a positive."""
        is_anchor = self.counts > 0
        return torch.where(is_anchor, costs, torch.zeros_like(costs)).sum() / is_anchor.sum()

    def mask(self) -> torch.Tensor:
        """Return (n, m) boolean, True for positives: for losses that change single scores."""
        positive = torch.zeros(self.scores.shape, dtype=torch.bool, device=self.scores.device)
        positive[self.anchor, self.candidate] = True
        return positive


@dataclass(frozen=True, eq=False)
class Contrast:
    """The rows as they came, s as a scalar tensor, and the positives.

    `unit_a` and `unit_b` are the unit rows of both sides in one dtype (float32 or float64); a zero row stays zero.
    """

    z_a: torch.Tensor
    z_b: torch.Tensor
    scale: torch.Tensor
    positives: Positives

    @cached_property
    def _units(self) -> tuple[torch.Tensor, torch.Tensor]:
        unit_a, unit_b = unit(self.z_a), unit(self.z_b)
        return (unit_a, unit_b) if unit_a.dtype == unit_b.dtype else (unit_a.double(), unit_b.double())

    @property
    def unit_a(self) -> torch.Tensor:
        """Unit rows of a, (n_a, d)."""
        return self._units[0]

    @property
    def unit_b(self) -> torch.Tensor:
        """Unit rows of b, (n_b, d)."""
        return self._units[1]

    def cosines(self) -> torch.Tensor:
        """Return (n_a, n_b) products of unit rows, without s."""
        return self.unit_a @ self.unit_b.T

    def views(self, scores: torch.Tensor, direction: Direction) -> tuple[View | None, View | None]:
        """Return a to b and b to a over scores (n_a, n_b), None for what `direction` leaves out."""
        p = self.positives
        forth = None if direction == "b_to_a" else View(scores, p.a, p.b, p.counts_a)
        back = None if direction == "a_to_b" else View(scores.T, p.b, p.a, p.counts_b)
        return forth, back

    def parts(self, cost: Callable[[View], torch.Tensor], scores: torch.Tensor, direction: Direction) -> LossParts:
        """Return the mean over the directions of `cost`, a scalar for each `View`. Raises `NonFiniteRowsError`."""
        forth, back = (None if view is None else cost(view) for view in self.views(scores, direction))
        return self.joined(forth, back)

    def joined(self, a_to_b: torch.Tensor | None, b_to_a: torch.Tensor | None) -> LossParts:
        """Return the mean of the directions that there are as `LossParts`. Raises `NonFiniteRowsError`."""
        if a_to_b is not None and b_to_a is not None:
            loss = (a_to_b + b_to_a) / 2
        else:
            found = a_to_b if a_to_b is not None else b_to_a
            assert found is not None
            loss = found
        self.check_finite(loss)
        idle_a, idle_b = self.positives.left_out
        self.check_idle(idle_a > 0 and b_to_a is None, idle_b > 0 and a_to_b is None)
        return LossParts(loss, a_to_b, b_to_a, *self.positives.left_out)

    def check_idle(self, in_a: bool, in_b: bool) -> None:
        """Raise `NonFiniteRowsError` where a side with rows that the loss leaves out altogether is not finite.

        Such a row does not show in the value, but 0 times NaN in the gradient would be NaN.
        """
        for wanted, rows in ((in_a, self.z_a), (in_b, self.z_b)):
            if wanted and not bool(torch.isfinite(rows.detach()).all()):
                raise _not_finite(self.z_a, self.z_b, self.scale)

    def check_finite(self, loss: torch.Tensor) -> None:
        """Raise `NonFiniteRowsError`, naming the rows, unless `loss` is finite."""
        if not math.isfinite(float(loss.detach())):
            raise _not_finite(self.z_a, self.z_b, self.scale)


def contrast(
    z_a: torch.Tensor, z_b: torch.Tensor, logit_scale: torch.Tensor | float, links: Any, direction: str = "both"
) -> Contrast:
    """Check what a loss was given and return it ready for use; call it with autocast switched off.

    Raises `ShapeError` (dimensions, widths), `ArgumentError` (kind of rows, direction, scale) and `LinksError` (no link
    at all, or out of range).
    """
    check_rows(z_a, z_b)
    if direction not in ("both", "a_to_b", "b_to_a"):
        raise ArgumentError(f"direction = {direction!r}; expected 'both', 'a_to_b' or 'b_to_a'")
    positives = Positives.of(links, len(z_a), len(z_b), z_a.device)
    if len(positives) == 0:
        raise LinksError(
            f"none of the {len(z_a)} x {len(z_b)} rows are linked, so no anchor has a positive; "
            "expected at least one link among the rows of a batch"
        )
    return Contrast(z_a, z_b, scalar(logit_scale, z_a), positives)


def unit(rows: torch.Tensor) -> torch.Tensor:
    """Return rows over their norm in float32 or better; zero rows stay zero and have a finite gradient."""
    if rows.dtype != torch.float64:
        # In float64 the squares of float32 numbers neither overflow nor vanish.
        rows = rows.float()
        norms: torch.Tensor = torch.linalg.vector_norm(rows, dim=1, keepdim=True, dtype=torch.float64).float()
        return rows / norms.masked_fill(norms == 0, 1)
    largest = rows.detach().abs().amax(dim=1, keepdim=True)
    # The direction does not depend on this factor, so leaving it out of the gradient is exact.
    rows = rows / torch.where(largest > 0, largest, torch.ones_like(largest))
    squares = (rows * rows).sum(dim=1, keepdim=True)
    return rows / torch.where(squares > 0, squares, torch.ones_like(squares)).sqrt()


def scalar(logit_scale: torch.Tensor | float, like: torch.Tensor) -> torch.Tensor:
    """Return s as a scalar tensor on the device of `like`, in float32 or float64. Raises `ArgumentError`."""
    dtype = torch.float64 if like.dtype == torch.float64 else torch.float32
    if not isinstance(logit_scale, torch.Tensor | int | float | np.number):
        raise ArgumentError(
            f"logit_scale is a {type(logit_scale).__name__}; expected one number or tensor, s = 1 / temperature"
        )
    if isinstance(logit_scale, torch.Tensor) and logit_scale.is_complex():
        raise ArgumentError(f"logit_scale has dtype {logit_scale.dtype}; expected one real number, s = 1 / temperature")
    scale = torch.as_tensor(in_range(logit_scale), dtype=dtype, device=like.device)
    if scale.numel() != 1:
        raise ArgumentError(f"logit_scale has shape {tuple(scale.shape)}; expected one number, s = 1 / temperature")
    value = float(scale.detach())
    if not 0 <= value < math.inf:
        raise ArgumentError(f"logit_scale = {value}; expected a finite number of 0 or more (1 / temperature)")
    return scale.reshape(())


def in_range(number: Any) -> Any:
    """Return `number`, or infinity in place of an int beyond all floats, for a check of its range to find."""
    if not isinstance(number, int):
        return number
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def first_derivatives_only(backward: Callable[..., Any]) -> Any:
    """Return the `backward` of a function whose gradient has none itself, refusing `create_graph=True`.

    Torch would take the gradient for a constant there, and what is differentiated through it would be wrong unseen.
    """

    @functools.wraps(backward)
    def checked(ctx: Any, *gradients: Any) -> Any:
        if torch.is_grad_enabled():
            raise ArgumentError(
                "the gradient was asked for with create_graph=True, and this computation has no second derivatives; "
                "expected create_graph=False, or InfoNCE and sigmoid with tile=None and no uniformity term"
            )
        return backward(ctx, *gradients)

    return checked


def check_rows(z_a: torch.Tensor, z_b: torch.Tensor) -> None:
    """Raise `ArgumentError` or `ShapeError` unless both are floating (n, d) tensors of one width, not empty."""
    for name, rows in (("z_a", z_a), ("z_b", z_b)):
        if not isinstance(rows, torch.Tensor):
            raise ArgumentError(f"{name} is a {type(rows).__name__}; expected a torch tensor (n, d)")
        if rows.ndim != 2:
            raise ShapeError(f"{name} has shape {tuple(rows.shape)}; expected (n, d)")
        if rows.numel() == 0:
            raise ShapeError(f"{name} has shape {tuple(rows.shape)}; expected at least one row and one column")
        if not rows.is_floating_point():
            raise ArgumentError(f"{name} has dtype {rows.dtype}; expected floating point rows")
        if rows.layout != torch.strided:
            raise ArgumentError(f"{name} is a sparse tensor ({rows.layout}); expected dense rows: call to_dense()")
    if z_a.shape[1] != z_b.shape[1]:
        raise ShapeError(f"z_a has {z_a.shape[1]} columns and z_b {z_b.shape[1]}; both must live in one space")


def check_form(form: str) -> None:
    """Raise `ArgumentError` unless `form` is one of the two."""
    if form not in ("outside", "inside"):
        raise ArgumentError(f"form = {form!r}; expected 'outside' or 'inside'")


def _not_finite(z_a: torch.Tensor, z_b: torch.Tensor, scale: torch.Tensor) -> NonFiniteRowsError:
    named = []
    for name, rows in (("z_a", z_a), ("z_b", z_b)):
        bad = torch.nonzero(~torch.isfinite(rows.detach()).all(dim=1)).flatten().tolist()
        if bad:
            more = f" and {len(bad) - 10} more" if len(bad) > 10 else ""
            named.append(f"rows {', '.join(map(str, bad[:10]))}{more} of {name} hold NaN or infinity")
    where = "; ".join(named) or f"all rows are finite, logit_scale is {float(scale.detach()):.6g}"
    return NonFiniteRowsError(f"the loss is not finite: {where}; expected finite rows (check inputs, learning rate)")
