"""Who trains in an ensemble: what each member has of its own, and what it reads and draws in each epoch.

A member's first weights, batches and dropout come from its seed exactly as in `fit_heads`. This module is not about
the arithmetic of many models (`stacked`) or the course of their training (`ensemble`).
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F

from bridgehead.align.model import TwoHeads
from bridgehead.errors import ArgumentError, LinksError
from bridgehead.links import Links
from bridgehead.negatives.ordering import epoch_order, joined, n_pieces
from bridgehead.train.config import TrainConfig
from bridgehead.train.data import PairData, side_shape
from bridgehead.train.seeds import seed_draws, start_seed, step_seed
from bridgehead.vectors import IntArray

Columns = Sequence[int] | Literal["all"] | None

# The settings that an ensemble follows, or that do not matter for dense rows without a folder.
_FOLLOWED = {
    "embed_dim", "hidden", "hidden_a", "hidden_b", "activation", "dropout", "input_dropout", "norm", "residual",
    "input_norm", "init_std", "storage", "epochs", "batch_size", "learning_rate", "weight_decay", "betas",
    "warmup_epochs", "logit_scale_init", "logit_scale_bounds", "learn_scale", "form", "direction", "patience", "seed",
    "checkpoint_seconds",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Member:
    """One model of an ensemble: its seed, and what it has in place of what all share.

    `links` are its training links (shuffled ones, say; as many as the others have), `direction` whose rows are anchors.
    `hide_a` and `hide_b` are columns ("all", or their numbers) that it never sees: the mean over the training rows
    stands in them, and the finished model ignores what they hold, so that it is evaluated on the true rows. `start`
    gives first weights in place of those drawn from the seed. `orders` has for each epoch an order of its links (as
    `Links.expanded().pairs` lists them, by row in a and then in b) in place of the one drawn from (seed, epoch).
    """

    seed: int = 0
    links: Any = None
    direction: Literal["both", "a_to_b", "b_to_a"] | None = None
    hide_a: Columns = None
    hide_b: Columns = None
    start: TwoHeads | None = None
    orders: Sequence[Any] | None = None


@dataclass(frozen=True)
class Course:
    """How the members are trained and chosen, where it is not as in `fit_heads`, whose ways are the defaults.

    `rate` "cosine" is the warm-up and half cosine of `TrainConfig`, "constant" its learning rate at every step. `decay`
    "matrices" spares biases, norms and scale, "all" decays every learned weight. `chosen_by` "mrr" keeps the epoch of
    the highest validation MRR, "loss" that of the lowest InfoNCE over all validation links as one batch, in both
    directions whatever the member's own. `validate_every` is in epochs. Raises `ArgumentError`.
    """

    rate: Literal["cosine", "constant"] = "cosine"
    decay: Literal["matrices", "all"] = "matrices"
    chosen_by: Literal["mrr", "loss"] = "mrr"
    validate_every: int = 1

    def __post_init__(self) -> None:
        allowed = {"rate": ("cosine", "constant"), "decay": ("matrices", "all"), "chosen_by": ("mrr", "loss")}
        for name, values in allowed.items():
            if getattr(self, name) not in values:
                raise ArgumentError(f"{name} = {getattr(self, name)!r}; expected {' or '.join(map(repr, values))}")
        if self.validate_every < 1:
            raise ArgumentError(f"validate_every = {self.validate_every}; expected at least 1 epoch")


@dataclass(frozen=True, eq=False)
class Plan:
    """What one member reads and draws; `links` are its links, `hidden_a` (d,) and `hidden_b` its unseen columns."""

    name: str
    seed: int
    links: Links
    direction: Literal["both", "a_to_b", "b_to_a"]
    batch_size: int
    hidden_a: npt.NDArray[np.bool_]
    hidden_b: npt.NDArray[np.bool_]
    orders: IntArray | None

    @cached_property
    def pairs(self) -> IntArray:
        """All links (n, 2), those shared through groups included."""
        return self.links.expanded().pairs

    @property
    def steps(self) -> int:
        """The planned number of steps an epoch."""
        return n_pieces(len(self.pairs), self.batch_size)

    @cached_property
    def one_to_one(self) -> bool:
        """Whether no row has two links, so that in every batch row i matches row i alone."""
        return is_one_to_one(self.pairs)

    def epoch(self, epoch: int) -> tuple[IntArray, list[int]]:
        """Return the links (n, 2) in the order of an epoch, and the lengths of its batches."""
        n, size = len(self.pairs), self.batch_size
        order = epoch_order(n, self.seed, epoch) if self.orders is None else self.orders[epoch]
        lengths = [min(size, n - start) for start in range(0, n, size)]
        if not self.one_to_one:
            pieces = [order[start : start + size] for start in range(0, n, size)]
            lengths = [len(piece) for piece in joined(pieces, self.pairs)]
        elif len(lengths) > 1 and lengths[-1] == 1:
            # A batch of one link would have nothing to tell apart; `joined` looks for the same among repeated items.
            lengths[-2:] = [size + 1]
        return self.pairs[order], lengths

    def same_lengths(self, epochs: int) -> bool:
        """Say whether every epoch has batches of the planned lengths, or only a last batch of one link joined them."""
        n, last = len(self.pairs), len(self.pairs) % self.batch_size or self.batch_size
        often = max(int(np.bincount(self.pairs[:, side]).max()) for side in (0, 1))
        # A last batch is too small when one item has all of its links: rare, so looked for only where it can be.
        if last == 1 or n <= self.batch_size or often < last:
            return True
        return all(len(self.epoch(epoch)[1]) == self.steps for epoch in range(epochs))

    def masks(
        self, at: tuple[int, int], rows: Sequence[IntArray], widths: Sequence[list[tuple[int, float]]], dtype: Any
    ) -> list[list[torch.Tensor | None]]:
        """Return for each side the dropout masks of its input and hidden layers, (n, width) or None, for one step.

        `at` is (epoch, batch); `rows` are those of each side in the batch and `widths` the (width, share) of its
        masks. As in `fit_heads` rows draw in their order, or where some have several links each distinct row once, in
        ascending order.
        """
        seed_draws(step_seed(self.seed, *at))
        found = []
        for own, layers in zip(rows, widths, strict=True):
            once, where = (own, None) if self.one_to_one else np.unique(own, return_inverse=True)
            masks = [
                F.dropout(torch.ones(len(once), width, dtype=dtype), share, True) if share > 0 else None
                for width, share in layers
            ]
            index = None if where is None else torch.from_numpy(where)
            found.append([mask if mask is None or index is None else mask.index_select(0, index) for mask in masks])
        return found


def is_one_to_one(pairs: IntArray) -> bool:
    """Say whether no row of either side stands in two of the pairs (n, 2)."""
    return all(len(np.unique(pairs[:, side])) == len(pairs) for side in (0, 1))


def check_settings(config: TrainConfig, dtype: torch.dtype) -> None:
    """Raise `ArgumentError` for settings that an ensemble does not follow."""
    if dtype not in (torch.float32, torch.float64):
        raise ArgumentError(f"dtype = {dtype}; expected torch.float32 or torch.float64")
    for name, field in type(config).model_fields.items():
        if name not in _FOLLOWED and getattr(config, name) != field.get_default(call_default_factory=True):
            raise ArgumentError(
                f"{name} = {getattr(config, name)!r:.80} is not followed when several models are trained at once; "
                "leave it at its default, or train each with fit_heads"
            )


def make_plans(members: Sequence[Member], data: PairData, config: TrainConfig) -> list[Plan]:
    """Return the plan of each member after checking that they can be trained together.

    Raises `ArgumentError` (none, another type, columns, orders, numbers of links that differ) and `LinksError`.
    """
    if not isinstance(members, Sequence) or not members or not all(isinstance(member, Member) for member in members):
        raise ArgumentError(f"members are {members!r:.80}; expected at least one Member, such as Member(seed=0)")
    plans = [_plan(number, member, data, config) for number, member in enumerate(members)]
    sizes = {len(plan.pairs) for plan in plans}
    if len(sizes) > 1:
        raise ArgumentError(
            f"the members have {min(sizes)} to {max(sizes)} links; expected equal numbers, as steps are taken together"
        )
    odd = next((plan for plan in plans if not plan.same_lengths(config.epochs)), None)
    if odd is not None and len(plans) > 1:
        last = len(odd.pairs) % odd.batch_size or odd.batch_size
        raise ArgumentError(
            f"in some epoch of {odd.name} the last batch ({last} links) names a single item "
            "and joins the one before it, and steps are taken together; choose another batch_size than "
            f"{odd.batch_size}"
        )
    return plans


def _plan(number: int, member: Member, data: PairData, config: TrainConfig) -> Plan:
    name = f"member {number} (seed {member.seed})"
    own = data if member.links is None else PairData.of(data.rows_a, data.rows_b, member.links)
    try:
        own.check_trainable()
    except LinksError as error:
        raise LinksError(f"{name}: {error}") from error
    direction = member.direction or config.direction
    if direction not in ("both", "a_to_b", "b_to_a"):
        raise ArgumentError(f"{name}: direction = {direction!r}; expected 'both', 'a_to_b' or 'b_to_a'")
    if not isinstance(member.seed, int | np.integer) or not 0 <= member.seed < 2**63:
        raise ArgumentError(f"{name}: seed = {member.seed!r}; expected an integer of at least 0 and under 2**63")
    n_links = len(own.links.expanded())
    hidden_a, hidden_b = (
        _columns(member, side, side_shape(rows)[0], config) for side, rows in (("a", own.rows_a), ("b", own.rows_b))
    )
    orders = None if member.orders is None else _orders(name, member.orders, n_links, config.epochs)
    return Plan(
        name, int(member.seed), own.links, direction, config.links_per_batch(n_links), hidden_a, hidden_b, orders
    )


def _columns(member: Member, side: str, width: int, config: TrainConfig) -> npt.NDArray[np.bool_]:
    named: Columns = member.hide_a if side == "a" else member.hide_b
    hidden = np.zeros(width, dtype=bool)
    if named is None:
        return hidden
    if config.input_norm == "unit":
        raise ArgumentError(
            f"hide_{side} = {named!r:.80} with input_norm = 'unit': a row's norm would still tell of hidden columns; "
            "expected 'standard' or 'none'"
        )
    columns = np.arange(width) if isinstance(named, str) and named == "all" else np.asarray(named)
    if columns.ndim != 1 or columns.dtype.kind not in "iu" or ((columns < 0) | (columns >= width)).any():
        raise ArgumentError(f"hide_{side} = {named!r:.80}; expected 'all' or column numbers from 0 to {width - 1}")
    hidden[columns] = True
    return hidden


def _orders(name: str, orders: Sequence[Any], n_links: int, epochs: int) -> IntArray:
    found = np.array([np.asarray(order) for order in orders[:epochs]])
    if found.shape != (epochs, n_links) or not (np.sort(found, axis=1) == np.arange(n_links)).all():
        raise ArgumentError(
            f"{name}: orders have the shape {found.shape}; expected ({epochs}, {n_links}): for each epoch every link's "
            "number once, from 0"
        )
    return found.astype(np.int64)


def first_models(members: Sequence[Member], data: PairData, config: TrainConfig) -> list[TwoHeads]:
    """Return each member's model before training, its input normalised as the training rows ask for.

    Moves torch's generator. Raises `ArgumentError` when a `start` has another architecture.
    """
    architecture = config.heads(side_shape(data.rows_a), side_shape(data.rows_b))
    models: list[TwoHeads] = []
    for number, member in enumerate(members):
        if member.start is None:
            seed_draws(start_seed(member.seed))
            model = TwoHeads(architecture)
        elif not isinstance(member.start, TwoHeads):
            raise ArgumentError(
                f"the start of member {number} is a {type(member.start).__name__}; expected two heads (TwoHeads), such "
                "as the model of a training"
            )
        elif member.start.config == architecture:
            model = copy.deepcopy(member.start)
        else:
            raise ArgumentError(
                f"the start of member {number} has the architecture {member.start.config}; expected that of the "
                f"settings, {architecture}"
            )
        for side, rows in (("head_a", data.rows_a), ("head_b", data.rows_b)):
            if models:
                getattr(model, side).load_state_dict(dict(getattr(models[0], side).named_buffers()), strict=False)
            else:
                getattr(model, side).fit_input(rows)
        models.append(model)
    return models
