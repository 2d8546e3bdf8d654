"""One side of a live training: its items in chunks, its rows, and the rows that are kept while its encoder is frozen.

This module is not about the loss or about which weights are trained (`stages`).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from bridgehead.train.augment_config import AugmentConfig
from bridgehead.train.live.cached_gradients import Encode, refuse_batch_statistics
from bridgehead.train.live.items import LiveItems
from bridgehead.train.precision import Precision
from bridgehead.vectors import FloatArray, IntArray, unit_rows

_ITEMS_AT_ONCE = 64
"""Items encoded at once without gradients, where no mini-batch says how many fit."""


class LiveSide:
    """Encoder and head of side `name` ("a" or "b") of `aligner` over `items` and, for validation, `held_out`.

    `mini_batch` is the number of items encoded at once, None for all. Kept rows are what the head is handed: `keep`
    encodes all items once and from then on only the head is run, `drop` ends that. What `augment` varies, drawn from
    `seed`, are the items of batches alone.
    """

    def __init__(
        self,
        aligner: Any,
        name: str,
        items: LiveItems,
        held_out: LiveItems | None,
        precision: Precision,
        mini_batch: int | None,
        augment: AugmentConfig,
        seed: int,
    ) -> None:
        self.name, self.items, self.held_out = name, items, held_out
        self.precision, self.mini_batch = precision, mini_batch
        self.rewrites, self._seed = name in augment.random_smiles, seed
        self.token_dropout = augment.token_dropout if items.tokens else 0.0
        self._varied = items
        self.encoder: nn.Module = getattr(aligner, f"encoder_{name}")
        self.head: nn.Module = getattr(aligner, f"proj_{name}")
        self._rows_of: Callable[..., torch.Tensor] = getattr(aligner, f"encode_{name}")
        self._kept: tuple[torch.Tensor, torch.Tensor | None] | None = None

    @property
    def frozen(self) -> bool:
        """Whether no weight of the encoder is trained."""
        return not any(parameter.requires_grad for parameter in self.encoder.parameters())

    def keep(self) -> None:
        """Encode all items, unless that was done, and keep what the head is handed, (n, width) float32 or better."""
        if self._kept is None:
            held_out = None if self.held_out is None else self._encoded(self._pooled, self.held_out)
            self._kept = self._encoded(self._pooled, self.items), held_out

    def drop(self) -> None:
        """Forget kept rows: the encoder changes."""
        self._kept = None

    def check_chunks(self, largest: int) -> None:
        """Raise `ConfigError` when a batch of up to `largest` items comes in chunks that its modules cannot bear."""
        if self._kept is None and self.mini_batch is not None and self.mini_batch < largest:
            refuse_batch_statistics(self.encoder)
            refuse_batch_statistics(self.head)

    def begin_epoch(self, epoch: int, *, may_keep: bool) -> None:
        """Write the SMILES of the epoch, and keep rows or drop them: kept where nothing of them changes."""
        if self.rewrites:
            self._varied = self.items.rewritten(self._seed, epoch)
        if may_keep and self.frozen and not self.rewrites and not self.token_dropout:
            self.keep()
        else:
            self.drop()

    def chunks(self, rows: IntArray, generator: torch.Generator) -> tuple[Encode, list[Any], torch.Tensor]:
        """Return what encodes a chunk, the chunks of `rows`, and where in their rows each of `rows` is found.

        A row that occurs several times is encoded once. Chunks are cut from long to short; kept rows are one chunk.
        What augmentation draws comes from `generator`.
        """
        once, where = np.unique(rows, return_inverse=True)
        device = self.precision.device
        if self._kept is not None:
            kept = self._kept[0].index_select(0, torch.from_numpy(once).to(device))
            return self._project, [kept], torch.from_numpy(where).to(device)
        items = self._varied.of_rows(once).with_tokens_dropped(self.token_dropout, generator)
        order = items.by_length(np.arange(len(once)))
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        size = self.mini_batch or len(once)
        chunks = [items.take(order[start : start + size], device) for start in range(0, len(once), size)]
        return self._encode, chunks, torch.from_numpy(place[where]).to(device)

    def unit_rows(self, held_out: bool = False) -> FloatArray:
        """Return unit rows (n, d) float32 of all items, or of those held out, under the weights there are now.

        Encoder and head are in evaluation mode afterwards. Raises `NonFiniteRowsError`.
        """
        if self._kept is not None:
            kept = self._kept[1] if held_out else self._kept[0]
            assert kept is not None
            with torch.no_grad():
                self.head.eval()
                rows = self._project(kept).float()
        else:
            items = self.held_out if held_out else self.items
            assert items is not None
            rows = self._encoded(self._encode, items)
        return unit_rows(rows.cpu().numpy(), f"rows of {self.name}", dtype=np.float32)

    def probe(self) -> tuple[int, list[nn.Parameter]]:
        """Return the width of rows and the encoder's weights that no row depends on (a pooler that is passed by).

        Two items are encoded for it, in evaluation mode; all weights of the encoder require gradients afterwards.
        """
        own = list(self.encoder.requires_grad_(True).eval().parameters())
        rows = self._encode(self.items.take(np.arange(min(2, len(self.items))), self.precision.device))
        if not own:
            return rows.shape[1], []
        gradients = torch.autograd.grad(rows.float().sum(), own, allow_unused=True)
        return rows.shape[1], [weight for weight, found in zip(own, gradients, strict=True) if found is None]

    def unit_pooled(self) -> FloatArray:
        """Return unit rows (n, width) float32 of all items as the head is handed them: what the encoder says alone."""
        return unit_rows(self._encoded(self._pooled, self.items).float().cpu().numpy(), f"rows of {self.name}")

    def _encode(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        with self.precision.autocast():
            return self._rows_of(**inputs)

    def _project(self, pooled: torch.Tensor) -> torch.Tensor:
        with self.precision.autocast():
            rows: torch.Tensor = self.head(pooled)
        return rows

    def _pooled(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return what the head is handed for these inputs."""
        caught: list[torch.Tensor] = []
        watch = self.head.register_forward_pre_hook(lambda _module, arguments: caught.append(arguments[0]))
        try:
            self._encode(inputs)
        finally:
            watch.remove()
        return caught[0]

    @torch.no_grad()
    def _encoded(self, encode: Encode, items: LiveItems) -> torch.Tensor:
        """Return rows of all items, (n, d) in float32 or better, without gradient or dropout."""
        self.encoder.eval(), self.head.eval()
        order = items.by_length(np.arange(len(items)))
        size = self.mini_batch or _ITEMS_AT_ONCE
        parts = [
            encode(items.take(order[start : start + size], self.precision.device))
            for start in range(0, len(order), size)
        ]
        rows = torch.cat([part if part.dtype == torch.float64 else part.float() for part in parts])
        return torch.empty_like(rows).index_copy_(0, torch.from_numpy(order).to(rows.device), rows)
