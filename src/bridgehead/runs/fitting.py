"""Fitting the model of a run on a part of its pairs: heads alone, or encoders with them where the config has `[live]`.

The stages train and refit and the shuffled-links control come here, so that all three train the same way. This module
is not about which links are trained on or what is measured (`stages`, `evaluation`).
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bridgehead.align.twin import NumpyHeads
from bridgehead.encode import Encoder, load_encoder
from bridgehead.errors import NonFiniteRowsError
from bridgehead.links import Links
from bridgehead.pairs import PairTable
from bridgehead.runs.config import RunConfig
from bridgehead.runs.encoded import PartRows, Rows, shown_name
from bridgehead.runs.prepare import Progress
from bridgehead.train.config import TrainConfig
from bridgehead.vectors import FloatArray

HEADS_FILE = "heads.safetensors"


@dataclass(frozen=True, eq=False)
class Start:
    """Where a training starts: the encoders before it, and the rows of all items of the table under them."""

    encoders: dict[str, Encoder]
    rows: Rows
    table: PairTable


@dataclass(frozen=True, eq=False)
class Fitted:
    """How a training went; the model lies in its folder. `trained` is that of `live.Tuned`, empty for heads alone."""

    history: list[dict[str, Any]]
    best_epoch: int
    notes: list[str]
    trained: list[dict[str, Any]]


def fit_model(
    config: RunConfig,
    start: Start,
    part: PartRows,
    folder: Path,
    *,
    train: TrainConfig | None = None,
    valid: PartRows | None = None,
    classes: tuple[Any, Any] | None = None,
    epochs: int | None = None,
    progress: Any = None,
) -> Fitted:
    """Train on `part` and leave `heads.safetensors` in `folder`, with `[live]` also `encoders/` of both sides.

    `train` are the settings of training where they differ from the config's. All else as `fit_heads`, errors too.
    """
    settings = train or config.train
    held_out = valid if valid is not None and len(valid.links) else None
    options: dict[str, Any] = {"classes": classes, "epochs": epochs, "progress": progress}
    if config.live is None:
        from bridgehead.train.fit import fit_heads

        pairs = None if held_out is None else (held_out.rows_a, held_out.rows_b, held_out.links)
        found = fit_heads(part.rows_a, part.rows_b, part.links, settings, valid=pairs, folder=folder, **options)
        return Fitted(found.history, found.best_epoch, found.notes, [])
    from bridgehead.runs.live import tune

    tuned = tune(
        start.encoders, start.rows, start.table, part, settings, config.live, folder, valid=held_out, **options
    )
    notes = [*tuned.result.notes, *_too_late(tuned.trained, tuned.result.best_epoch)]
    return Fitted(tuned.result.history, tuned.result.best_epoch, notes, tuned.trained)


def same_budget(
    config: RunConfig,
    start: Start,
    part: PartRows,
    folder: Path,
    *,
    test: PartRows,
    classes: tuple[Any, Any] | None,
    epochs: int,
    progress: Progress,
) -> Callable[[Links, int], Any]:
    """Return `fit(links, seed)` for the control: same start, as many epochs as the evaluated model, the last one kept.

    It returns what projects the rows of the test part: the heads, or where encoders are trained too, what these and
    their own heads make of its items.
    """

    def fit(links: Links, seed: int) -> Any:
        true = links == part.links
        place = folder / (f"true-{seed}" if true else str(seed))
        fit_model(
            config,
            start,
            replace(part, links=links),
            place,
            train=config.train.model_copy(update={"seed": seed}),
            classes=classes if true else _shuffled_classes(classes, seed),
            epochs=epochs,
            progress=epoch_lines(progress, "evaluate", f"{'true' if true else 'shuffled'} links, seed {seed}: "),
        )
        found = projecting(config, place, start.table, test)
        # Of a control, and as large as the real ones: kept only as long as they are measured.
        (place / HEADS_FILE).unlink()
        shutil.rmtree(place / "encoders", ignore_errors=True)
        return found

    return fit


def projecting(config: RunConfig, folder: Path, table: PairTable, test: PartRows) -> Any:
    """Return what projects the rows of `test` with the model in `folder` (`project_a`, `project_b`).

    These are its heads, or where encoders were trained too, what these and their heads make of the items of `test`.
    Raises `NonFiniteRowsError` where such an encoder gives an item no row.
    """
    heads = NumpyHeads.load(folder / HEADS_FILE)
    return heads if config.live is None else _Projected.of(folder, heads, table, test)


@dataclass(frozen=True, eq=False)
class _Projected:
    """Rows of the test part under encoders that are gone, where heads are asked to project it."""

    z_a: FloatArray
    z_b: FloatArray

    @classmethod
    def of(cls, folder: Path, heads: NumpyHeads, table: PairTable, test: PartRows) -> "_Projected":
        found = []
        for side, numbers, project in (("a", test.items_a, heads.project_a), ("b", test.items_b, heads.project_b)):
            items = table.side(side)  # type: ignore[arg-type]
            encoded = load_encoder(folder / "encoders" / side).encode(
                [items.items[number] for number in numbers],
                ids=[items.ids[number] for number in numbers],
                records=items.records[numbers].tolist(),
                n_records=table.n_records,
            )
            if encoded.failures:
                raise NonFiniteRowsError(
                    f"trained for a control or a fold, the encoder of {items.name} gives {len(encoded.failures)} items "
                    f"no row ({encoded.failures[0].reason}); lower live.encoder_learning_rate"
                )
            found.append(project(encoded.rows))
        return cls(*found)

    def project_a(self, _rows: Any) -> FloatArray:
        """Return the rows of a's items of the test part."""
        return self.z_a

    def project_b(self, _rows: Any) -> FloatArray:
        """Return the rows of b's items of the test part."""
        return self.z_b


def _shuffled_classes(classes: tuple[Any, Any] | None, seed: int) -> tuple[Any, Any] | None:
    """Return the classes with those of b in another order: they would tell the control what belongs together."""
    if classes is None:
        return None
    return classes[0], np.random.default_rng([seed, len(classes[1])]).permutation(classes[1])


def epoch_lines(progress: Progress, stage: str, prefix: str = "") -> Any:
    """Return what tells `progress` of each epoch that is done."""

    def report(epoch: int, epochs: int, line: dict[str, Any]) -> None:
        valid = f", valid MRR {line['valid_mrr']:.3f}" if "valid_mrr" in line else ""
        progress(stage, f"{prefix}loss {line['loss']:.3f}{valid}", epoch, epochs)

    return report


def plan_lines(config: RunConfig) -> list[str]:
    """Return what the config says is trained beside the heads, and when; nothing without `[live]`."""
    if config.live is None:
        return []
    lines = ["encoders are trained too:"]
    for stage in config.live.stages:
        rate = stage.learning_rate or config.live.encoder_learning_rate
        since = f"from epoch {stage.from_epoch + 1} of {config.train.epochs} on"
        lines.append(f"  {_what(config, stage.group)}, {since}, rate {rate:g}")
    return lines


def trained_lines(config: RunConfig, trained: list[dict[str, Any]]) -> list[str]:
    """Return how many weights each stage set free, and when."""
    return [
        f"{_what(config, stage['group'])}: {stage['n_weights']:,} of {stage['n_encoder']:,} weights trained from epoch "
        f"{stage['from_epoch'] + 1} on, rate {stage['learning_rate']:g}"
        for stage in trained
    ]


def _what(config: RunConfig, group: str) -> str:
    side, _, last = group.removeprefix("encoder_").partition(".last_")
    spec = config.encode.a if side == "a" else config.encode.b
    layers = f", its last {last} layer{'s' if last != '1' else ''}" if last else ""
    return f"the encoder of {shown_name(config, side)} ({spec}){layers}"


def _too_late(trained: list[dict[str, Any]], best_epoch: int) -> list[str]:
    late = [stage["group"] for stage in trained if stage["from_epoch"] >= best_epoch]
    if not late:
        return []
    return [
        f"epoch {best_epoch} was kept, and {', '.join(late)} is trained only later: what was kept has it as it was at "
        "the start"
    ]
