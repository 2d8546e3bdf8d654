"""The two heads with their scale as one model, and the file that holds it.

The file is safetensors with the architecture as JSON in its header; `NumpyHeads` reads the same file without torch.
This module is not about training.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn

from bridgehead.align.architecture import FORMAT, STORAGE, VERSION, HeadsConfig
from bridgehead.align.bags import CsrBatch, csr_batch
from bridgehead.align.heads import Head
from bridgehead.align.heads_file import read_heads_file, sort_header
from bridgehead.align.scale import LogitScale
from bridgehead.errors import ArgumentError, RunStateError
from bridgehead.files import atomic_path
from bridgehead.vectors import FloatArray, float32_rows, unit_rows


class TwoHeads(nn.Module):
    """Heads of both sides and the logit scale; weights are drawn from torch's current generator."""

    def __init__(self, config: HeadsConfig) -> None:
        super().__init__()
        self.config = config
        self.head_a = Head(config.a)
        self.head_b = Head(config.b)
        self.scale = LogitScale(config.logit_scale, config.bounds, config.learn_scale)

    def forward(
        self, x_a: torch.Tensor | CsrBatch, x_b: torch.Tensor | CsrBatch
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return rows of both sides (n, embed_dim), not normalised, and s."""
        return self.head_a(x_a), self.head_b(x_b), self.scale()

    def project_a(self, rows: Any, block: int = 4096) -> FloatArray:
        """Return unit rows (n, embed_dim) float32 for dense or CSR rows of side a; dropout off, no gradient.

        Raises `ShapeError` (width, or the wrong kind), `NonFiniteRowsError`, and `ArgumentError` for a block under 1.
        """
        return _project(self.head_a, rows, block)

    def project_b(self, rows: Any, block: int = 4096) -> FloatArray:
        """As `project_a`, for side b."""
        return _project(self.head_b, rows, block)

    @torch.no_grad()
    def round_tables_(self, storage: str) -> None:
        """Round the embedding bags to what `storage` can hold, in place, so that memory and file are the same model."""
        for head in (self.head_a, self.head_b):
            if head.config.sparse and storage == "float16":
                table: torch.Tensor = head.first.weight  # type: ignore[assignment]
                table.copy_(table.half().float())


def model_input(rows: Any, numbers: Any = None) -> torch.Tensor | CsrBatch:
    """Return dense numpy or CSR rows (all, or those numbered `numbers`) as a head reads them."""
    if hasattr(rows, "indptr"):
        return csr_batch(rows, numbers)
    part = rows if numbers is None else rows[numbers]
    return torch.as_tensor(part, dtype=torch.float32)


@torch.no_grad()
def _project(head: Head, rows: Any, block: int) -> FloatArray:
    rows = float32_rows(rows)
    if block < 1:
        raise ArgumentError(f"block = {block}; expected at least 1 row")
    was_training = head.training
    head.eval()
    device = next(head.parameters()).device
    # At least one part, so that no rows give an array of no rows.
    starts = range(0, max(rows.shape[0], 1), block)
    parts = [head(model_input(rows[start : start + block]).to(device)) for start in starts]
    head.train(was_training)
    return unit_rows(torch.cat(parts).cpu().numpy(), "projected rows")


def save_heads(
    model: TwoHeads, path: str | Path, metadata: Mapping[str, str] | None = None, storage: str = "float32"
) -> None:
    """Write the model to `path` (safetensors), atomically; `metadata` are further texts for its header.

    Equal models give files of equal bytes.

    `storage="float16"` keeps the embedding bags in half precision, which halves the file; the other weights stay
    float32. What a reader gets equals the model after `round_tables_("float16")`. Raises `ArgumentError` for another
    storage, and when a table holds values beyond float16 (65504).
    """
    if storage not in STORAGE:
        raise ArgumentError(f"storage = {storage!r}; expected one of {', '.join(STORAGE)}")
    tensors = {}
    for name, value in model.state_dict().items():
        tensor = value.detach().cpu().contiguous()
        if storage == "float16" and name in _table_names(model.config):
            tensor = tensor.half()
            if not bool(torch.isfinite(tensor).all()):
                raise ArgumentError(f"{name} holds values beyond float16; save with storage='float32'")
        tensors[name] = tensor
    header = {"format": FORMAT, "version": VERSION, "config": json.dumps(model.config.to_dict())}

    def write(name: str) -> None:
        save_file(tensors, name, metadata={**(metadata or {}), **header})
        sort_header(name)

    atomic_path(path, write)


def load_heads(path: str | Path) -> TwoHeads:
    """Read a model that `save_heads` wrote, in float32 and evaluation mode.

    Raises `InputFileNotFoundError`, `FormatVersionError` (another kind or version of file) and `RunStateError` (damaged
    file, or weights that do not fit the architecture it states).
    """
    config, tensors = read_heads_file(path, "pt")
    model = TwoHeads(config)
    try:
        model.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
    except RuntimeError as error:
        raise RunStateError(f"{path}: weights do not fit the architecture it states: {error}") from error
    return model.eval()


def _table_names(config: HeadsConfig) -> list[str]:
    return [f"head_{side}.first.weight" for side in "ab" if getattr(config, side).sparse]
