"""What the loop trains when encoders learn with their heads: batches of tokenised items, in chunks, stage by stage.

Gradients in chunks are in `cached_gradients`, which weights are trained when in `stages`, device and precision in
`precision`, rows in `side`. This module is not about epochs, checkpoints or rates (`loop`).
"""

from typing import Any

import torch
from torch import nn

from bridgehead.align.losses.objective import Objective
from bridgehead.align.scale import LogitScale
from bridgehead.errors import ConfigError
from bridgehead.files import hash_array, hash_json, hash_texts
from bridgehead.negatives.plan import BatchPlan
from bridgehead.train.augment import batch_generator
from bridgehead.train.augment_config import AugmentConfig
from bridgehead.train.batch_loss import BatchLoss
from bridgehead.train.config import TrainConfig
from bridgehead.train.knowledge import Knowledge
from bridgehead.train.live.cached_gradients import cached_gradients, whole_gradients
from bridgehead.train.live.config import LiveConfig
from bridgehead.train.live.items import LinkedItems
from bridgehead.train.live.side import LiveSide
from bridgehead.train.live.stages import staged_groups, train_epoch
from bridgehead.train.outcome import StepOutcome
from bridgehead.train.precision import Precision
from bridgehead.train.seeds import step_seed
from bridgehead.train.task import ParameterGroup
from bridgehead.train.validation import metrics_of_rows
from bridgehead.vectors import IntArray


class LiveModel(nn.Module):
    """An aligner with the objective and the bounded scale that it is trained with.

    A temperature of the aligner's own is not trained: `keep_scale` gives it what was learned. What has two names, as
    the weights of one encoder for both sides have, is in the state once, under the first of them.
    """

    def __init__(self, aligner: nn.Module, objective: Objective, scale: LogitScale) -> None:
        super().__init__()
        self.aligner, self.objective, self.scale = aligner, objective, scale

    def state_dict(self, *arguments: Any, **options: Any) -> Any:
        """Return all weights and buffers by name, each once: a file of tensors holds nothing twice."""
        content = super().state_dict(*arguments, **options)
        for name in self._second_names():
            content.pop(name, None)
        return content

    def load_state_dict(self, state_dict: Any, *arguments: Any, **options: Any) -> Any:
        """Put back what `state_dict` gave."""
        again = {name: state_dict[first] for name, first in self._second_names().items() if first in state_dict}
        return super().load_state_dict({**state_dict, **again}, *arguments, **options)

    def _second_names(self) -> dict[str, str]:
        """Return the first name of what has another one, by that other one."""
        first: dict[int, str] = {}
        found = {}
        for named in (self.named_parameters, self.named_buffers):
            for name, own in named(remove_duplicate=False):
                if first.setdefault(id(own), name) != name:
                    found[name] = first[id(own)]
        return found

    @property
    def own_temperature(self) -> nn.Parameter | None:
        """The logarithm of the temperature of the aligner's own loss, where it has one."""
        found: nn.Parameter | None = getattr(getattr(self.aligner, "loss_fn", None), "log_temperature", None)
        return found

    @torch.no_grad()
    def keep_scale(self) -> None:
        """Set the aligner's own temperature to the one that was learned beside it."""
        if self.own_temperature is not None:
            self.own_temperature.copy_(-self.scale().log())


class LiveTask:
    """Two encoders with their heads over linked items, as the loop wants it (`Task`).

    `aligner` has `encoder_a`, `encoder_b`, `proj_a`, `proj_b`, `encode_a(**inputs)` and `encode_b(**inputs)`, as
    `DualEncoderAligner` does. `data` and `valid` are linked items. What shapes heads in `config` does not count, since
    the aligner has its heads; all else does. `knowledge` is what the loss is told of the items; a guided loss that is
    given no guide takes the rows of the encoders as they are at the start.

    A batch's links name rows; each row is encoded once and stands in the loss as often as it is named. Rows are sorted
    by length and cut into chunks of `live.mini_batch`. While no weight of an encoder is trained, its items are encoded
    once, without dropout, and what its head is handed is kept in memory (4 bytes x n x width), so that a step costs
    what a head costs; unfreezing drops it. Weights on which no row depends are left as they are, and named in `notes`.

    With augmentation that varies items (`config.augment`) nothing is kept.

    Raises `LinksError` where there is nothing to learn from, `ArgumentError` (device, precision, layers), `ConfigError`
    for augmentation that is not for live encoders and, when an epoch begins, for batch normalisation in chunks.
    """

    model: LiveModel

    def __init__(
        self,
        aligner: Any,
        data: LinkedItems,
        config: TrainConfig | None = None,
        live: LiveConfig | None = None,
        *,
        valid: LinkedItems | None = None,
        knowledge: Knowledge | None = None,
    ) -> None:
        data.check_trainable()
        _check_augment((config or TrainConfig.of()).augment, data)
        self.config, self.live, self.data, self.valid = config or TrainConfig.of(), live or LiveConfig.of(), data, valid
        self.precision, config = Precision(self.config.device, self.config.precision), self.config
        self.scale = LogitScale(config.logit_scale_init, config.logit_scale_bounds, config.learn_scale)
        self.objective = Objective(config.loss, config.form, config.direction)
        self.aligner = aligner
        self.model = LiveModel(aligner, self.objective, self.scale).to(self.precision.device)
        size = config.links_per_batch(len(data.links.expanded().pairs))
        self.plan = BatchPlan(data.links, size, config.seed, config.negatives)
        self.n_batches = self.plan.n_batches
        self._start = hash_weights(self.model)
        held_out = (None, None) if valid is None else (valid.a, valid.b)
        self.sides = tuple(
            LiveSide(aligner, name, items, held, self.precision, self.live.mini_batch, config.augment, config.seed)
            for name, items, held in zip("ab", (data.a, data.b), held_out, strict=True)
        )
        self.knowledge = self._with_guide(knowledge or Knowledge())
        unused, width = self._probe()
        self.loss = BatchLoss.of(self.objective, config, data.links, self.knowledge, width, self.precision.device)
        self._groups = staged_groups(self.model, aligner, config, self.live, unused)
        self._notes = [*data.a.notes, *data.b.notes, *_note_of(unused)]
        train_epoch(self.model, self._groups, 0)

    def _with_guide(self, knowledge: Knowledge) -> Knowledge:
        if not self.objective.needs_guide or any(rows is not None for rows in knowledge.guide):
            return knowledge
        rows_a, rows_b = (side.unit_pooled() for side in self.sides)
        return Knowledge(knowledge.classes, (rows_a, rows_b))

    def _probe(self) -> tuple[set[str], int]:
        """Return the names of weights without influence and the width of rows."""
        names = {id(parameter): name for name, parameter in self.model.named_parameters()}
        found = [side.probe() for side in self.sides]
        if self.model.own_temperature is not None:
            self.model.own_temperature.requires_grad_(False)
        return {names[id(parameter)] for _, unused in found for parameter in unused}, found[0][0]

    @property
    def notes(self) -> list[str]:
        """Sentences for the user: cut texts, weights without influence, batches and mining."""
        return [*self._notes, *self.plan.notes]

    def key(self) -> str:
        """Return a hash of all that shapes the result: settings, first weights, items, links, validation."""
        return hash_texts(
            [
                self.config.fingerprint(),
                hash_json(self.live.model_dump(mode="json")),
                self._start,
                self.data.fingerprint(),
                "" if self.valid is None else self.valid.fingerprint(),
                self.knowledge.fingerprint(),
            ]
        )

    def groups(self) -> list[ParameterGroup]:
        """Return heads, scale and loss from epoch 0, and the weights of each stage from its epoch."""
        return self._groups

    def begin_epoch(self, epoch: int) -> list[tuple[IntArray, IntArray]]:
        """Unfreeze what is due, mine where that is due, and return the batches."""
        self._set_epoch(epoch)
        if self.plan.wants_rows(epoch):
            rows_a, rows_b = (side.unit_rows() for side in self.sides)
            self.plan.mine(rows_a, rows_b, epoch)
            self.model.train()
        return self.plan.batches(epoch)

    def resume_epoch(self, epoch: int) -> list[tuple[IntArray, IntArray]]:
        """Return the batches of an epoch that was begun before."""
        self._set_epoch(epoch)
        return self.plan.batches(epoch)

    def _set_epoch(self, epoch: int) -> None:
        train_epoch(self.model, self._groups, epoch)
        for side in self.sides:
            side.begin_epoch(epoch, may_keep=self.live.cache_frozen)
        self.model.train()
        for side in self.sides:
            # A last batch of one link joins the one before it.
            side.check_chunks(self.plan.batch_size + 1)

    def backward(self, batch: tuple[IntArray, IntArray], epoch: int, number: int) -> StepOutcome:
        """Add the gradients of one batch: of `live.mini_batch` items at a time where that is fewer than there are."""
        generator = batch_generator(self.config.seed, epoch, number)
        (encode_a, chunks_a, at_a), (encode_b, chunks_b, at_b) = (
            side.chunks(rows, generator) for side, rows in zip(self.sides, batch, strict=True)
        )
        found: list[StepOutcome] = []

        def loss_of(z_a: torch.Tensor, z_b: torch.Tensor) -> torch.Tensor:
            parts, outcome = self.loss(z_a.index_select(0, at_a), z_b.index_select(0, at_b), self.scale(), *batch)
            found.append(outcome)
            return parts.loss

        gradients = whole_gradients if len(chunks_a) == len(chunks_b) == 1 else cached_gradients
        seed = step_seed(self.config.seed, epoch, number)
        gradients(encode_a, encode_b, chunks_a, chunks_b, loss_of, seed, self.precision.backward)
        return found[0]

    def validate(self) -> dict[str, float]:
        """Return `valid_mrr`, its directions and `valid_recall@10`; all held-out items of a side are candidates."""
        if self.valid is None:
            return {}
        rows_a, rows_b = (side.unit_rows(held_out=True) for side in self.sides)
        return metrics_of_rows(rows_a, rows_b, self.valid.links)


def hash_weights(model: nn.Module) -> str:
    """Return a hash of all weights and buffers, whatever their dtype and device."""
    return hash_texts(
        f"{name} {value.dtype} {hash_array(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())}"
        for name, value in sorted(model.state_dict().items())
    )


def _check_augment(augment: AugmentConfig, data: LinkedItems) -> None:
    augment.check_live()
    if augment.latent_mixing is not None:
        raise ConfigError(
            f"augment.latent_mixing = {augment.latent_mixing}: it mixes rows that were encoded once; leave it out to "
            "train encoders"
        )
    if augment.token_dropout and not (data.a.tokens or data.b.tokens):
        raise ConfigError(f"augment.token_dropout = {augment.token_dropout}: neither side has tokens; leave it out")
    for side, items in (("a", data.a), ("b", data.b)):
        if side in augment.random_smiles and items.source is None:
            raise ConfigError(f"augment.random_smiles names side {side}, whose items are no texts; pass the SMILES")


def _note_of(unused: set[str]) -> list[str]:
    names = sorted(name.removeprefix("aligner.") for name in unused)
    if not names:
        return []
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return [f"no row depends on {', '.join(names[:3])}{more}: left as they are"]
