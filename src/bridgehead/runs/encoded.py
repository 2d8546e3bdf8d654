"""Fitted encoders and the rows of a table's items, on the way into training, evaluation and index.

This module is not about how an encoder works (`encode`).
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bridgehead.encode import Encoded, Encoder, RowCache, load_encoder, make_encoder
from bridgehead.encode.huggingface import MODEL_FOLDER
from bridgehead.errors import EncoderError
from bridgehead.links import Links
from bridgehead.pairs import PairTable
from bridgehead.runs.config import RunConfig
from bridgehead.runs.folder import RunFolder
from bridgehead.runs.prepare import Part, Prepared, Progress
from bridgehead.vectors import IntArray


@dataclass(frozen=True, eq=False)
class SideRows:
    """Encoded items of one side; `position` (n_items,) is the row of each item, -1 for those without one."""

    encoded: Encoded
    position: IntArray

    @classmethod
    def of(cls, encoded: Encoded, n_items: int) -> "SideRows":
        """Return the rows with the position of each of `n_items` items."""
        position = np.full(n_items, -1, dtype=np.int64)
        position[encoded.index] = np.arange(len(encoded.index))
        return cls(encoded, position)


@dataclass(frozen=True, eq=False)
class PartRows:
    """Rows and links of a part: `items_a`, `items_b` are the numbers of the items that have a row."""

    rows_a: Any
    rows_b: Any
    links: Links
    items_a: IntArray
    items_b: IntArray


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of all items of both sides under one pair of encoders."""

    a: SideRows
    b: SideRows

    def of(self, part: Part) -> PartRows:
        """Return a part's rows and links; items without a row are left out with their links, and shift no other."""
        items_a, items_b, links = part
        kept_a, kept_b = self.a.position[items_a] >= 0, self.b.position[items_b] >= 0
        pairs = links.pairs[kept_a[links.pairs[:, 0]] & kept_b[links.pairs[:, 1]]]
        new_a, new_b = np.cumsum(kept_a) - 1, np.cumsum(kept_b) - 1
        items_a, items_b = items_a[kept_a], items_b[kept_b]
        return PartRows(
            self.a.encoded.rows[self.a.position[items_a]],
            self.b.encoded.rows[self.b.position[items_b]],
            Links(np.stack([new_a[pairs[:, 0]], new_b[pairs[:, 1]]], axis=1), len(items_a), len(items_b)),
            items_a,
            items_b,
        )


def fit_encoders(run: RunFolder, prepared: Prepared, part: Part, progress: Progress) -> dict[str, Encoder]:
    """Return both encoders of the config, fitted on the items of `part` alone."""
    encoders = make_encoders(run.config)
    for side, numbers in (("a", part[0]), ("b", part[1])):
        items = prepared.table.side(side).items  # type: ignore[arg-type]
        step = _step(progress, f"fit {shown_name(run.config, side)}")
        encoders[side] = encoders[side].fit([items[number] for number in numbers], RowCache(run.cache), step)
    return encoders


def make_encoders(config: RunConfig) -> dict[str, Encoder]:
    """Return both encoders of the config as they are before any fit. Raises as `encode.make_encoder`."""
    encode, online = config.encode, config.online
    return {
        "a": make_encoder(encode.a, **_online(encode.a, encode.settings_a, online)),
        "b": make_encoder(encode.b, **_online(encode.b, encode.settings_b, online)),
    }


def _online(spec: str, settings: dict[str, Any], online: bool) -> dict[str, Any]:
    """Return the settings with `online` for each encoder from the hub, parts of `x + y` included."""
    if not online:
        return settings
    specs = spec.split(" + ")
    if len(specs) == 1:
        return {**settings, "online": True} if spec.startswith("text:hf=") else settings
    given = settings.get("parts") or [{} for _ in specs]
    if len(given) != len(specs):
        return settings
    return {**settings, "parts": [_online(part.strip(), own, True) for part, own in zip(specs, given, strict=True)]}


def encode_table(
    run: RunFolder, table: PairTable, encoders: dict[str, Encoder], progress: Progress, stage: str = "encode"
) -> Rows:
    """Return the rows of all items of a table. Raises `EncoderError` when a side is left without any row."""
    rows = {}
    for side in ("a", "b"):
        name = shown_name(run.config, side)
        items = table.side(side)
        encoded = encoders[side].encode(
            items.items,
            ids=items.ids,
            cache=RowCache(run.cache),
            progress=_step(progress, f"encode {name}", stage),
            records=items.records.tolist(),
            n_records=table.n_records,
        )
        if not len(encoded.index) and len(items):
            reason = encoded.failures[0].reason if encoded.failures else "no reason given"
            raise EncoderError(f"none of the {len(items)} items of {name} has a row (the first: {reason})")
        rows[side] = SideRows.of(encoded, len(items))
    return Rows(rows["a"], rows["b"])


def encode_items(
    run: RunFolder,
    encoder: Encoder,
    items: Sequence[str],
    ids: Sequence[str],
    progress: Progress,
    stage: str = "index",
) -> Encoded:
    """Return the rows of further items of side a, such as a pool of compounds."""
    return encoder.encode(
        items, ids=ids, cache=RowCache(run.cache), progress=_step(progress, f"encode {len(items):,} further", stage)
    )


def load_encoders(run: RunFolder, *parts: str) -> dict[str, Encoder]:
    """Return the fitted encoders stored in the run folder, or in its subfolder `parts`."""
    return {side: load_encoder(run.path(*parts, "encoders", side)) for side in ("a", "b")}


def save_encoders(run: RunFolder, encoders: dict[str, Encoder], *parts: str) -> None:
    """Store fitted encoders in the run folder, or in its subfolder `parts`."""
    for side, encoder in encoders.items():
        save_encoder(encoder, run.path(*parts, "encoders", side))


def save_encoder(encoder: Encoder, place: Path) -> None:
    """Store an encoder that was not tuned in a folder of a run, where the model of a tuned one may lie."""
    shutil.rmtree(place / MODEL_FOLDER, ignore_errors=True)
    encoder.save(place)


def shown_name(config: RunConfig, side: str) -> str:
    """Return what a side is called in what is shown."""
    return config.pairs.shown[0 if side == "a" else 1]


def _step(progress: Progress, message: str, stage: str = "encode") -> Any:
    return lambda done, total: progress(stage, message, done, total)
