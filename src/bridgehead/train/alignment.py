"""`train_alignment`: the short way to train a dual encoder, epoch by epoch, over a loader of tokenised pairs.

Checkpoints, stages, early stop and large batches are the business of the live training (`live`); rows that were encoded
once train far faster (`loop`). This module has none of that.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import nn

from bridgehead.errors import ArgumentError, DataError
from bridgehead.evaluate.alignment_metrics import AlignmentMetrics
from bridgehead.links import Links
from bridgehead.train.seeds import step_seed
from bridgehead.vectors import IntArray

_Batch = tuple[Any, Any, Any]


def train_alignment(
    model: Any,
    train_loader: Iterable[Any],
    val_pairs: Any,
    epochs: int = 20,
    lr: float = 1e-4,
    *,
    weight_decay: float = 0.01,
    groups: list[dict[str, Any]] | None = None,
    seed: int = 0,
    trim_padding: bool = True,
    merge_identical: bool = True,
    on_epoch: Callable[[dict[str, float]], None] | None = None,
) -> list[dict[str, float]]:
    """Train `model` and return a dict per epoch: the keys of `AlignmentMetrics.report`, train_loss, epoch, temperature.

    `model` is a `DualEncoderAligner`, or anything with its `forward`, `encode_a`, `encode_b` and `loss_fn`; it is
    changed in place and left in evaluation mode with the weights of the last epoch. `train_loader` gives batches
    (inputs_a, inputs_b), dicts of tensors or tensors, or (inputs_a, inputs_b, links); a `DataLoader`, a list, anything
    that can be gone through once an epoch. The optimiser is AdamW over all weights that are not frozen, or over
    `groups` (`model.parameter_groups`), whose rates fall as half a cosine from `lr` to 0, a step an epoch.
    `train_loss` is the mean loss of the epoch's batches, `epoch` counts from 1, `temperature` is that after the epoch.

    `val_pairs` is a loader of (inputs_a, inputs_b), item i matching item i over all batches, which is encoded anew
    after each epoch. Two arrays or tensors (N, d) of rows that were encoded before are taken too; their metrics cannot
    move, and a `UserWarning` says so.

    `merge_identical`: items of a batch with equal tokens (or equal rows) are one item, so each is a positive of the
    other's matches instead of a negative. `trim_padding`: columns at the end of a batch that its attention mask leaves
    out for all items are cut, which changes a row by rounding only and saves their computation. A batch of one pair has
    nothing to be told from: it is left out, with a `UserWarning`. Dropout, and the order of a shuffling loader without
    a generator of its own, are drawn from (seed, epoch); torch's random state is left as it was. `on_epoch` is called
    with each dict, `print` or `lambda line: print(epoch_line(line))` for example.

    Raises `ArgumentError` (an iterator, which can be gone through once only; settings), `DataError` (a loader that
    gives nothing, or no batch of two) and what the model raises.
    """
    _check(train_loader, val_pairs, epochs, lr)
    batches = _Batches(train_loader, trim_padding, merge_identical, _device(model))
    validation = _Validation(model, val_pairs, trim_padding)
    optimiser = torch.optim.AdamW(groups or _trained(model), lr=lr, weight_decay=weight_decay, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=epochs)
    history: list[dict[str, float]] = []
    device = _device(model)
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        for epoch in range(epochs):
            torch.manual_seed(step_seed(seed, epoch, 0))
            model.train()
            loss = _train_epoch(model, batches, optimiser)
            schedule.step()
            model.eval()
            line = validation.metrics()
            line |= {"train_loss": loss, "epoch": epoch + 1, "temperature": _temperature(model)}
            history.append(line)
            if on_epoch is not None:
                on_epoch(dict(line))
    return history


def epoch_line(line: Mapping[str, float]) -> str:
    """Return one dict of the history as a short text."""
    return (
        f"epoch {line['epoch']:.0f}: loss {line['train_loss']:.4f}, recall@10 {line['recall@10_a2b']:.3f} and back "
        f"{line['recall@10_b2a']:.3f}, alignment {line['alignment']:.3f}, temperature {line['temperature']:.4f}"
    )


def _check(train_loader: Any, val_pairs: Any, epochs: int, lr: float) -> None:
    if isinstance(epochs, bool) or not isinstance(epochs, int) or epochs < 1:
        raise ArgumentError(f"epochs = {epochs!r}; expected a whole number of at least 1")
    if not 0 <= lr < float("inf"):
        raise ArgumentError(f"lr = {lr}; expected a finite learning rate of 0 or more")
    for name, loader in (("train_loader", train_loader), ("val_pairs", val_pairs)):
        if not isinstance(loader, Iterable):
            raise ArgumentError(f"{name} is a {type(loader).__name__}; expected a DataLoader or a list of batches")
        if epochs > 1 and isinstance(loader, Iterator):
            raise ArgumentError(
                f"{name} is an iterator ({type(loader).__name__}): it would be used up after the first of {epochs} "
                "epochs; pass a DataLoader, a list, or an object whose __iter__ starts anew"
            )


def _trained(model: nn.Module) -> list[nn.Parameter]:
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not trained:
        raise ArgumentError("all weights of the model are frozen; expected some to train")
    return trained


def _device(model: nn.Module) -> torch.device:
    return next((parameter.device for parameter in model.parameters()), torch.device("cpu"))


def _temperature(model: Any) -> float:
    return float(model.loss_fn.log_temperature.detach().exp())


def _train_epoch(model: Any, batches: "_Batches", optimiser: torch.optim.Optimizer) -> float:
    """Go through the batches once; return the mean of their losses."""
    # Losses stay where the model is: reading each would wait for the device at every step.
    losses = []
    for inputs_a, inputs_b, links in batches:
        loss = model(inputs_a, inputs_b) if links is None else model(inputs_a, inputs_b, links=links)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.detach())
    return float(torch.stack(losses).cpu().double().mean())


class _Batches:
    """The training batches of an epoch, on the model's device, each with what matches what in it."""

    def __init__(self, loader: Iterable[Any], trim: bool, merge: bool, device: torch.device) -> None:
        self.loader, self.trim, self.merge, self.device = loader, trim, merge, device
        self.warned = False

    def __iter__(self) -> Iterator[_Batch]:
        given = used = 0
        for batch in self.loader:
            given += 1
            inputs_a, inputs_b, links = _taken_apart(batch)
            n_a, n_b = _n_items(inputs_a), _n_items(inputs_b)
            if max(n_a, n_b) < 2:
                self._warn_of_one()
                continue
            used += 1
            if self.merge and not isinstance(links, Links):
                links = _merged(links, (n_a, n_b), _groups(inputs_a), _groups(inputs_b))
            yield _ready(inputs_a, self.trim, self.device), _ready(inputs_b, self.trim, self.device), links
        if not given:
            raise DataError(
                "train_loader gives no batch; expected batches of pairs (is the data set empty, or smaller than a "
                "batch with drop_last=True?)"
            )
        if not used:
            raise DataError("every batch of train_loader holds one pair; expected a batch size of at least 2")

    def _warn_of_one(self) -> None:
        if not self.warned:
            self.warned = True
            warnings.warn(
                "a batch of one pair has no negatives and is left out each epoch; drop_last=True or another batch size "
                "avoids it",
                UserWarning,
                stacklevel=4,
            )


class _Validation:
    """The metrics after an epoch, of pairs that are encoded anew or of rows that are what they are."""

    def __init__(self, model: Any, pairs: Any, trim: bool) -> None:
        self.model, self.pairs, self.trim = model, pairs, trim
        self.fixed: dict[str, float] | None = None
        if isinstance(pairs, tuple | list) and len(pairs) == 2 and all(getattr(p, "ndim", None) == 2 for p in pairs):
            self.fixed = AlignmentMetrics(*pairs).report()
            warnings.warn(
                "val_pairs are rows that were encoded before the training, so their metrics are the same after every "
                "epoch; pass a loader of (inputs_a, inputs_b) to have them encoded anew",
                UserWarning,
                stacklevel=3,
            )

    def metrics(self) -> dict[str, float]:
        if self.fixed is not None:
            return dict(self.fixed)
        rows: tuple[list[torch.Tensor], list[torch.Tensor]] = ([], [])
        device = _device(self.model)
        with torch.inference_mode():
            for batch in self.pairs:
                encoders = (self.model.encode_a, self.model.encode_b)
                for own, encode, inputs in zip(rows, encoders, _taken_apart(batch)[:2], strict=True):
                    ready = _ready(inputs, self.trim, device)
                    own.append((encode(**ready) if isinstance(ready, Mapping) else encode(ready)).float().cpu())
        if not rows[0]:
            raise DataError("val_pairs gives no batch; expected pairs to validate on")
        return AlignmentMetrics(torch.cat(rows[0]), torch.cat(rows[1])).report()


def _taken_apart(batch: Any) -> _Batch:
    if not isinstance(batch, tuple | list) or len(batch) not in (2, 3):
        raise DataError(f"a batch is a {type(batch).__name__}; expected (inputs_a, inputs_b), or these and links")
    for inputs in batch[:2]:
        first = next(iter(inputs.values()), None) if isinstance(inputs, Mapping) else inputs
        if not isinstance(first, torch.Tensor) or first.ndim == 0:
            raise DataError(f"inputs are a {type(inputs).__name__}; expected a dict of tensors (B, ...), or a tensor")
    return batch[0], batch[1], batch[2] if len(batch) == 3 else None


def _n_items(inputs: Any) -> int:
    return len(next(iter(inputs.values())) if isinstance(inputs, Mapping) else inputs)


def _ready(inputs: Any, trim: bool, device: torch.device) -> Any:
    """Return inputs on the device, without the columns at the end that are padding for all items."""
    if not isinstance(inputs, Mapping):
        return inputs.to(device)
    mask = inputs.get("attention_mask")
    if not trim or mask is None or mask.ndim != 2:
        return {name: value.to(device) for name, value in inputs.items()}
    used = mask.ne(0).any(dim=0).nonzero()
    longest = int(used[-1]) + 1 if len(used) else 1
    return {
        name: (value[:, :longest] if value.shape[:2] == mask.shape else value).to(device)
        for name, value in inputs.items()
    }


def _groups(inputs: Any) -> IntArray | None:
    """Return equal numbers for items with equal tokens or rows; None where all differ or it cannot be told."""
    rows = inputs.get("input_ids") if isinstance(inputs, Mapping) else inputs
    if rows is None or rows.ndim != 2:
        return None
    distinct, number = torch.unique(rows.detach().cpu(), dim=0, return_inverse=True)
    found: IntArray = number.numpy()
    return None if len(distinct) == len(rows) else found


def _merged(links: Any, sizes: tuple[int, int], groups_a: IntArray | None, groups_b: IntArray | None) -> Any:
    """Return the links of a batch with its identical items as groups; as they are where none are identical."""
    if groups_a is None and groups_b is None:
        return links
    return Links(Links.of(links, *sizes).pairs, *sizes, groups_a, groups_b)
