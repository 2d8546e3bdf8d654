"""Which weights of an encoder are trained and at what rate: its layers, freezing, groups for an optimiser.

Layers are found by structure, not by the name of an architecture. This module is not about what encoders compute.
"""

import math
from collections.abc import Iterator
from typing import Any, Literal

import torch
from torch import nn

from bridgehead.align.architecture import real_number
from bridgehead.errors import ArgumentError

Side = Literal["a", "b"]


def sides(side: Any) -> tuple[Side, ...]:
    """Return the sides that are meant: one, or both for None. Raises `ArgumentError`."""
    if side is None:
        return ("a", "b")
    if side not in ("a", "b"):
        raise ArgumentError(f"side = {side!r}; expected 'a', 'b', or None for both")
    return (side,)


def layers_of(encoder: nn.Module) -> tuple[str, nn.ModuleList] | None:
    """Return name and list of the layers of an encoder, None where it has no such list.

    It is the longest `ModuleList` whose entries are of one class, the first of equally long ones; a list inside another
    one (the experts of a layer) does not count.
    """
    found: tuple[str, nn.ModuleList] | None = None
    inside: list[str] = []
    for name, module in encoder.named_modules():
        if not isinstance(module, nn.ModuleList) or any(name.startswith(outer) for outer in inside):
            continue
        inside.append(f"{name}.")
        alike = len({type(entry) for entry in module}) == 1
        if alike and (found is None or len(module) > len(found[1])):
            found = name, module
    return found


def train_last_layers(encoder: nn.Module, last: int | None, name: str) -> None:
    """Let the weights of the `last` n layers and of what comes after them be trained, and no others; None: all.

    Embeddings that come after the layers (relative positions) stay frozen. Raises `ArgumentError`.
    """
    if last is None:
        encoder.requires_grad_(True)
        return
    found = layers_of(encoder)
    if found is None:
        raise ArgumentError(
            f"{name} ({type(encoder).__name__}) has no list of layers; unfreeze all of it with last = None"
        )
    if isinstance(last, bool) or not isinstance(last, int) or not 1 <= last <= len(found[1]):
        raise ArgumentError(
            f"last = {last!r}; {name} has {len(found[1])} layers: expected 1 to {len(found[1])}, or None"
        )
    encoder.requires_grad_(False)
    for _, depth, parameter in _by_depth(encoder, found):
        if depth is not None and depth >= len(found[1]) - last:
            parameter.requires_grad_(True)


def after_freezing(trained: Any) -> dict[Side, int | None]:
    """Return how many last layers of each side are trained, as stored; raises `ValueError` for what cannot be."""
    if not isinstance(trained, dict) or set(trained) != {"a", "b"}:
        raise ValueError(f"'trained' is {trained!r}; expected an entry for a and one for b")
    if any(last is not None and (isinstance(last, bool) or not isinstance(last, int)) for last in trained.values()):
        raise ValueError(f"'trained' is {trained!r}; expected numbers of layers, or null for all")
    return {"a": trained["a"], "b": trained["b"]}


def training_mode(module: nn.Module) -> None:
    """Put every module below (and with) `module` that has weights, all of them frozen, into evaluation mode.

    A module without weights (dropout) goes with the one that holds it.
    """
    own = list(module.parameters())
    if not own:
        return
    if not any(parameter.requires_grad for parameter in own):
        module.eval()
        return
    for child in module.children():
        training_mode(child)


def head_groups(
    heads: dict[str, nn.Module], loss: nn.Module, learning_rate: float, weight_decay: float
) -> list[dict[str, Any]]:
    """Return the groups of heads and of the loss (the temperature, which does not decay). Raises `ArgumentError`."""
    _check_rates(learning_rate, weight_decay)
    parameters = [(name, parameter) for head in heads.values() for name, parameter in head.named_parameters()]
    groups = _split("heads", [parameter for _, parameter in parameters], learning_rate, weight_decay)
    return groups + _split("loss", list(loss.parameters()), learning_rate, 0.0)


def encoder_groups(
    encoder: nn.Module, name: str, learning_rate: float, layer_decay: float | None, weight_decay: float
) -> list[dict[str, Any]]:
    """Return the groups of an encoder: one rate, or one for each depth with `layer_decay`. Raises `ArgumentError`."""
    _check_rates(learning_rate, weight_decay)
    if layer_decay is None:
        return _split(name, list(encoder.parameters()), learning_rate, weight_decay)
    if not 0 < layer_decay <= 1:
        raise ArgumentError(f"layer_decay = {layer_decay}; expected a factor in (0, 1], such as 0.9")
    found = layers_of(encoder)
    if found is None:
        raise ArgumentError(f"{name} ({type(encoder).__name__}) has no list of layers; use layer_decay = None")
    n_layers = len(found[1])
    by_depth: dict[int, list[nn.Parameter]] = {}
    for _, depth, parameter in _by_depth(encoder, found):
        by_depth.setdefault(-1 if depth is None else depth, []).append(parameter)
    groups = []
    for depth in sorted(by_depth):
        label = "embeddings" if depth < 0 else "after" if depth == n_layers else f"layer.{depth}"
        rate = learning_rate * layer_decay ** max(0, n_layers - 1 - depth)
        groups += _split(f"{name}.{label}", by_depth[depth], rate, weight_decay)
    return groups


def _check_rates(learning_rate: Any, weight_decay: Any) -> None:
    for name, value in (("learning_rate", learning_rate), ("weight_decay", weight_decay)):
        if not 0 <= real_number(name, value) < math.inf:
            raise ArgumentError(f"{name} = {value}; expected a finite number of 0 or more")


def _by_depth(encoder: nn.Module, found: tuple[str, nn.ModuleList]) -> Iterator[tuple[str, int | None, nn.Parameter]]:
    """Yield (name, depth, weight): depth is the layer's number, n_layers for what comes after, None for before."""
    prefix, layers = f"{found[0]}.", found[1]
    embeddings = {
        f"{name}.{own}"
        for name, module in encoder.named_modules()
        if isinstance(module, nn.Embedding)
        for own, _ in module.named_parameters(recurse=False)
    }
    after = False
    for name, parameter in encoder.named_parameters():
        if name.startswith(prefix):
            after = True
            yield name, int(name[len(prefix) :].partition(".")[0]), parameter
        else:
            yield name, len(layers) if after and name not in embeddings else None, parameter


def _split(
    name: str, parameters: list[nn.Parameter], learning_rate: float, weight_decay: float
) -> list[dict[str, Any]]:
    """Return the trained weights as one group that decays (matrices) and one that does not; none that is empty."""
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    kinds: list[tuple[str, list[torch.Tensor], float]]
    if weight_decay == 0:
        kinds = [(name, list(trained), 0.0)]
    else:
        kinds = [
            (name, [p for p in trained if p.ndim >= 2], weight_decay),
            (f"{name}.no_decay", [p for p in trained if p.ndim < 2], 0.0),
        ]
    return [
        {"name": label, "params": params, "lr": learning_rate, "weight_decay": decay}
        for label, params, decay in kinds
        if params
    ]
