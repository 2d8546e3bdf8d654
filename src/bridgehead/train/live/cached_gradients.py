"""Gradients of a loss over a whole batch at the memory of one chunk of it (gradient caching).

The batch is encoded chunk by chunk without a graph, the loss is taken of all rows at once, and each chunk is encoded
again with its graph to carry its rows' gradients on to the weights. This module is not about models, links or devices.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn

from bridgehead.align.heads import BatchNorm
from bridgehead.errors import ArgumentError, ConfigError, ShapeError
from bridgehead.train.precision import accelerator

Encode = Callable[[Any], torch.Tensor]
"""What turns one chunk of inputs into rows (n, d) of a floating dtype."""

LossOf = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""What turns the rows of both sides, (n_a, d) and (n_b, d), into a scalar."""

_SIDE_A, _SIDE_B, _LOSS = 1, 2, 3


def cached_gradients(
    encode_a: Encode,
    encode_b: Encode,
    chunks_a: Sequence[Any],
    chunks_b: Sequence[Any],
    loss_of: LossOf,
    seed: int,
    backward: Callable[[torch.Tensor], None] | None = None,
) -> torch.Tensor:
    """Add the gradients of loss_of(z_a, z_b) to all weights and return the loss, detached.

    z_a are the rows of all `chunks_a` one after the other, z_b those of `chunks_b`; chunks are whatever the encoders
    take, of any sizes and numbers, at least one a side. `loss_of` is any function of all rows; weights that it uses
    itself (scale, bias) get their gradients there. With z_k = f(x_k; w) for chunk k, the gradient of the weights is
    sum over k of (dL/dz_k)(dz_k/dw), so dL/dz is all that has to be kept between the two passes (Gao et al. 2021,
    arXiv:2101.06983, section 3.2). What is alive at once is the graph of one chunk, or that of the loss.

    What an encoder draws (dropout) is drawn from (`seed`, side, number of the chunk), so both passes draw the same and
    the result is that of `whole_gradients` on the same chunks; without dropout it is that of one big chunk, both up to
    rounding. torch's own generators are left as they were found. Unlike the original, whose generator states are
    stored for each chunk, nothing is stored.

    `backward` replaces `loss.backward()`, for a gradient scaler: the loss is scaled there and nowhere else. Autocast is
    the business of the encoders; it may also be on around the call.

    A module whose output for an item depends on the others in its chunk (batch normalisation in training) has no exact
    gradient here and keeps its averages twice: see `refuse_batch_statistics`. Raises `ShapeError` when an encoder
    returns no (n, d) rows and `ArgumentError` for a side without chunks.
    """
    _check_chunks(chunks_a, chunks_b)
    with _own_generators():
        with torch.no_grad():
            parts = [
                [_encoded(encode, chunk, seed, side, number) for number, chunk in enumerate(chunks)]
                for side, encode, chunks in ((_SIDE_A, encode_a, chunks_a), (_SIDE_B, encode_b, chunks_b))
            ]
        # Weights that autocast turned into half precision without a graph would be used again, still without one.
        torch.clear_autocast_cache()
        z_a, z_b = (torch.cat(rows).requires_grad_() for rows in parts)
        loss = _loss(loss_of, z_a, z_b, seed, backward)
        for side, encode, chunks, z, rows in (
            (_SIDE_A, encode_a, chunks_a, z_a, parts[0]),
            (_SIDE_B, encode_b, chunks_b, z_b, parts[1]),
        ):
            if z.grad is None:
                continue
            gradients = torch.split(z.grad, [len(part) for part in rows])
            for number, (chunk, gradient) in enumerate(zip(chunks, gradients, strict=True)):
                again = _encoded(encode, chunk, seed, side, number)
                if again.requires_grad:
                    torch.autograd.backward(again, gradient)
    return loss


def whole_gradients(
    encode_a: Encode,
    encode_b: Encode,
    chunks_a: Sequence[Any],
    chunks_b: Sequence[Any],
    loss_of: LossOf,
    seed: int,
    backward: Callable[[torch.Tensor], None] | None = None,
) -> torch.Tensor:
    """As `cached_gradients`, with the graphs of all chunks kept: one pass, at the memory of the whole batch.

    The faster of the two where the batch is one chunk a side, and what the other one is measured against.
    """
    _check_chunks(chunks_a, chunks_b)
    with _own_generators():
        z_a, z_b = (
            torch.cat([_encoded(encode, chunk, seed, side, number) for number, chunk in enumerate(chunks)])
            for side, encode, chunks in ((_SIDE_A, encode_a, chunks_a), (_SIDE_B, encode_b, chunks_b))
        )
        return _loss(loss_of, z_a, z_b, seed, backward)


def refuse_batch_statistics(model: nn.Module) -> None:
    """Raise `ConfigError` when a module of `model` would normalise by the statistics of its chunk.

    Batch normalisation in training mode makes a row depend on its chunk, so that a batch in chunks is another function
    than the batch whole. In evaluation mode (frozen) it is harmless.
    """
    for name, module in model.named_modules():
        ours = isinstance(module, BatchNorm) and module.training
        theirs = isinstance(module, nn.modules.batchnorm._BatchNorm)
        if ours or (theirs and (module.training or not module.track_running_stats)):
            raise ConfigError(
                f"{name or 'the model'} is a {type(module).__name__} in training, whose output depends on the other "
                "items of a chunk: a batch cannot be encoded in chunks with the same result; use layer normalisation, "
                "freeze it, or set mini_batch to none"
            )


def _loss(
    loss_of: LossOf,
    z_a: torch.Tensor,
    z_b: torch.Tensor,
    seed: int,
    backward: Callable[[torch.Tensor], None] | None,
) -> torch.Tensor:
    _draw_from(seed, _LOSS, 0)
    loss = loss_of(z_a, z_b)
    if backward is None:
        loss.backward()  # type: ignore[no-untyped-call]
    else:
        backward(loss)
    return loss.detach()


def _encoded(encode: Encode, chunk: Any, seed: int, side: int, number: int) -> torch.Tensor:
    _draw_from(seed, side, number)
    rows = encode(chunk)
    if rows.ndim != 2 or not rows.is_floating_point():
        raise ShapeError(
            f"an encoder returned shape {tuple(rows.shape)} and dtype {rows.dtype}; expected floating rows (n, d)"
        )
    return rows


def _draw_from(*words: int) -> None:
    """Seed torch's generators from these words; of accelerators too where there are any."""
    seed = int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0] >> np.uint64(1))
    if accelerator()[1]:
        torch.manual_seed(seed)
    else:
        # The other call asks each kind of device first, which takes most of a millisecond.
        torch.default_generator.manual_seed(seed)


@contextmanager
def _own_generators() -> Iterator[None]:
    """Put torch's generators back at the end, of the processor and of the accelerators that there are."""
    kind, count = accelerator()
    if kind == "mps":
        # It has one generator, which is asked for without a number.
        before = torch.mps.get_rng_state()
        with torch.random.fork_rng(devices=[]):
            try:
                yield
            finally:
                torch.mps.set_rng_state(before)
    else:
        with torch.random.fork_rng(devices=range(count), device_type=kind or "cuda"):
            yield


def _check_chunks(chunks_a: Sequence[Any], chunks_b: Sequence[Any]) -> None:
    if not (len(chunks_a) and len(chunks_b)):
        raise ArgumentError(f"{len(chunks_a)} chunks of a and {len(chunks_b)} of b; expected at least one of each")
