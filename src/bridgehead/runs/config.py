"""The config of a run: what `config.toml` may say, each setting checked and explained.

The settings of training are `train.TrainConfig`. This module is not about running anything (`stages`).
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator

from bridgehead.errors import ConfigError, InputFileNotFoundError
from bridgehead.runs.evidence_config import UNPAIRED, AuditConfig, ContractConfig, EvaluateConfig, Section
from bridgehead.settings import config_faults
from bridgehead.train.config import TrainConfig
from bridgehead.train.live.config import StagesConfig

STARTER = "starter"
CHEMICALS = "chemicals"


class PairsConfig(Section):
    """Where the pairs are and which columns are what."""

    path: str | tuple[str, ...] = Field(description="File, glob or list; `starter` is the packaged table.")
    a: str = Field(description="Column of side a, the one that is held out by default.")
    b: str = Field(description="Column of side b.")
    id: str | None = Field(None, description="Column of your ids, unique; none: the number of the record.")
    entity: str | None = Field(None, description="Column that says which items of a are one entity.")
    group: tuple[str, ...] = Field((), description="Columns that a split must not cut through (donor, slide, batch).")
    quote: Literal["auto", "on", "off"] = Field("auto", description="Whether fields of csv and tsv are quoted.")
    encoding: str = Field("utf-8", description="Encoding of the text.")
    name_a: str | None = Field(None, description="What side a is called in all that is shown; none: its kind.")
    name_b: str | None = Field(None, description="What side b is called.")
    kind_a: Literal["molecule", "text", "rows"] = Field("text", description="What items of a are.")
    kind_b: Literal["molecule", "text", "rows"] = Field("text", description="What items of b are.")
    class_a: str | None = Field(
        None, description="Column with the coarse class of a's items (drug class, family), for the hierarchical loss."
    )
    class_b: str | None = Field(None, description="Column with the coarse class of b's items; a label is one class.")
    quality: Literal["keep", "drop"] = Field(
        "keep", description="`drop` leaves generic and too short texts out of training, never out of test or index."
    )
    names: tuple[str, ...] = Field((), description="Columns with names of a's items, for search by name.")
    licence: str | None = Field(None, description="Licence of the data, as an SPDX expression, for report and card.")

    @field_validator("group", "names", mode="before")
    @classmethod
    def _one_or_more(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_validator("name_a", "name_b")
    @classmethod
    def _on_one_line(cls, name: str | None) -> str | None:
        """A name stands within lines and tables: white space is one space, and a name of nothing else is none."""
        return name and " ".join(name.split())

    @property
    def shown(self) -> tuple[str, str]:
        """The names of the two sides as they are shown."""
        kinds = {"molecule": "molecule", "text": "text"}
        a = self.name_a or kinds.get(self.kind_a, self.a)
        b = self.name_b or kinds.get(self.kind_b, self.b)
        return (a, b) if a != b else (f"{a} a", f"{b} b")


class SplitConfig(Section):
    """What is held out."""

    hold_out: Literal["a", "b", "both"] = Field("a", description="Whose entities never cross the split.")
    fractions: tuple[float, float, float] = Field((0.8, 0.1, 0.1), description="Train, valid, test, by entities.")
    seed: int = Field(0, ge=0, description="Seed of the split.")
    identity: Literal["exact", "parent", "skeleton"] = Field(
        "skeleton", description="When two molecules are one entity; skeleton ignores salts, charge and stereo."
    )
    test: tuple[str, ...] = Field((), description="SMILES (or items) whose entities are put into test in any case.")

    @field_validator("fractions")
    @classmethod
    def _shares(cls, fractions: tuple[float, float, float]) -> tuple[float, float, float]:
        if min(fractions) < 0 or fractions[0] == 0:
            raise ValueError("expected three numbers of 0 or more, train above 0")
        if abs(sum(fractions) - 1) > 1e-6:
            raise ValueError(f"the three sum to {sum(fractions):g}; expected 1")
        return fractions


class EncodeConfig(Section):
    """Which encoders, with their settings."""

    a: str = Field(description="Encoder of side a, such as molecule:fingerprints.")
    b: str = Field(description="Encoder of side b, such as text:ngram.")
    settings_a: dict[str, Any] = Field({}, description="Settings of encoder a.")
    settings_b: dict[str, Any] = Field({}, description="Settings of encoder b.")
    licence_a: str | None = Field(None, description="Licence of the weights of encoder a, as an SPDX expression.")
    licence_b: str | None = Field(None, description="Licence of the weights of encoder b.")
    cache: str | None = Field(None, description="Folder of encoded rows; none: `cache` beside the run folder.")


class IndexConfig(Section):
    """What can be searched."""

    extra_a: tuple[str, ...] = Field((), description="Further items of a: `chemicals`, or files with the same columns.")
    kind: Literal["auto", "flat", "ivf-sq8", "ivf-pq", "hnsw"] = Field(
        "auto", description="How rows are searched; `auto` chooses from their number, the memory and the floor."
    )
    memory_gib: float | None = Field(
        None, gt=0, description="Memory in GiB that the vectors of one side may take when it is searched; none: free."
    )
    recall_floor: float = Field(
        0.98, gt=0, le=1, description="Least recall@10 against exact search, for queries of each side."
    )
    evaluated: bool = Field(True, description="Also index with the evaluated heads, which never saw the test items.")
    saved_queries: str | None = Field(
        None,
        description="File with a column `query` and maybe `of`: each index says how their first ten hits changed.",
    )

    @field_validator("extra_a", mode="before")
    @classmethod
    def _one_or_more(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value


class ExampleQuery(Section):
    """A query that the report answers, and the id of the item that a user would expect."""

    query: str = Field(description="What is asked: words, a name, an id, an InChIKey or a SMILES.")
    of: str | None = Field(None, description="The side to find, by its shown name; none: the other one.")
    expect: str | None = Field(None, description="Id of the item that should come; its rank is shown.")


class RunConfig(Section):
    """All settings of a run. `read_config` makes it from a file; relative paths there are taken from the file."""

    config_schema: Literal[1] = Field(1, alias="schema", description="Version of the form of this file.")
    name: str = Field("alignment", description="Title of the report.")
    folder: str | None = Field(None, description="Run folder; none: runs/<name of the config file>.")
    online: bool = Field(False, description="Whether encoders may be fetched from the hub.")
    pairs: PairsConfig
    split: SplitConfig = SplitConfig()
    encode: EncodeConfig
    train: TrainConfig = TrainConfig.of()
    live: StagesConfig | None = None
    evaluate: EvaluateConfig = EvaluateConfig()
    audit: AuditConfig = AuditConfig()
    contract: ContractConfig = ContractConfig()
    index: IndexConfig = IndexConfig()
    examples: tuple[ExampleQuery, ...] = ()

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, populate_by_name=True)

    @model_validator(mode="after")
    def _sides_differ(self) -> Self:
        if self.pairs.a == self.pairs.b:
            raise ValueError(f"pairs.a and pairs.b are both {self.pairs.a!r}; expected two columns")
        return self

    @model_validator(mode="after")
    def _classes_come_with_their_loss(self) -> Self:
        named = self.pairs.class_a is not None and self.pairs.class_b is not None
        if self.train.loss.name == "hierarchical" and not named:
            raise ValueError(
                "train.loss.name = 'hierarchical' needs the coarse class of both sides; name their columns in "
                "pairs.class_a and pairs.class_b"
            )
        return self

    @model_validator(mode="before")
    @classmethod
    def _all_that_can_be_trained(cls, settings: Any) -> Any:
        """Without stages, train the encoders that have weights, each from its second epoch on."""
        live, encode = (settings.get(name) if isinstance(settings, Mapping) else None for name in ("live", "encode"))
        if not isinstance(live, Mapping) or not isinstance(encode, Mapping) or "stages" in live:
            return settings
        stages = [{"group": f"encoder_{side}"} for side in "ab" if _has_weights(encode.get(side))]
        return {**settings, "live": {**live, "stages": stages}}

    @model_validator(mode="after")
    def _live_fits(self) -> Self:
        if self.live is None:
            if self.train.augment.random_smiles:
                raise ValueError(
                    f"train.augment.random_smiles = {list(self.train.augment.random_smiles)}, and no encoder is "
                    "trained: rows that are encoded once do not change with how a SMILES is written; add a section "
                    "[live] with an encoder of SMILES text, or leave it out"
                )
            return self
        if not self.live.stages:
            raise ValueError(
                f"[live] names no encoder to train (encode.a = {self.encode.a!r}, encode.b = {self.encode.b!r}; those "
                "of text:hf can be); leave the section out to train heads on rows as they are"
            )
        for stage in self.live.stages:
            spec = self.encode.a if stage.side == "a" else self.encode.b
            if not _has_weights(spec):
                raise ValueError(
                    f"live.stages names {stage.group}, and encode.{stage.side} = {spec!r} has no weights that can be "
                    "trained; expected text:hf=<name or folder> by itself, or no stage for this side"
                )
            if stage.from_epoch >= self.train.epochs:
                raise ValueError(
                    f"live.stages: {stage.group} is trained from epoch {stage.from_epoch} on, the first being 0, and "
                    f"train.epochs = {self.train.epochs}; it would never be: raise train.epochs or lower from_epoch"
                )
        if self.live.mini_batch is None:
            raise ValueError(
                "live.mini_batch is none, which a config file cannot say; give a number, such as that of a whole batch"
            )
        if self.train.norm == "batch":
            raise ValueError(
                "train.norm = 'batch' normalises over a whole batch, and [live] encodes live.mini_batch items at a "
                "time; take another norm"
            )
        return self

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if self.index.extra_a and self.pairs.kind_a != "molecule":
            raise ValueError(
                f"index.extra_a = {list(self.index.extra_a)}, and pairs.kind_a = {self.pairs.kind_a!r}; further items "
                "are merged by structure: expected kind_a = 'molecule', or no extra_a"
            )
        for side, kind in (("a", self.pairs.kind_a), ("b", self.pairs.kind_b)):
            if CHEMICALS in getattr(self.evaluate, f"pool_{side}") and kind != "molecule":
                raise ValueError(
                    f"evaluate.pool_{side} names {CHEMICALS!r}, and pairs.kind_{side} = {kind!r}; expected "
                    "kind 'molecule', files, or `unpaired`"
                )
        for number, example in enumerate(self.examples):
            if not example.query.strip():
                raise ValueError(f"examples.{number}.query is empty; expected words, a name, an id or a structure")
            if example.of is not None and example.of not in self.pairs.shown:
                raise ValueError(
                    f"examples.{number}.of = {example.of!r}; expected one of the sides {', '.join(self.pairs.shown)}"
                )
        return self

    def plain(self) -> dict[str, Any]:
        """Return the settings as JSON values, defaults included."""
        return self.model_dump(mode="json", by_alias=True)


def _has_weights(spec: Any) -> bool:
    """Whether an encoder can be trained."""
    return isinstance(spec, str) and spec.strip().startswith("text:hf=") and " + " not in spec


def config_of(settings: Any) -> RunConfig:
    """Return the config of a mapping; raises `ConfigError` with a line for each key that is not understood."""
    try:
        return RunConfig.model_validate(settings)
    except ValidationError as error:
        raise ConfigError(f"the config is not understood: {config_faults(error, RunConfig, 'config')}") from error


def read_config(path: str | Path) -> RunConfig:
    """Read a `config.toml`; relative paths in it are relative to its folder, and come back absolute.

    `folder` defaults to `runs/<stem>` beside the file. Raises `InputFileNotFoundError` and `ConfigError` (not TOML,
    unknown keys, values out of range, another schema).
    """
    source = Path(path)
    if source.is_dir():
        source = source / "config.toml"
    if not source.is_file():
        raise InputFileNotFoundError(
            f"{source} does not exist; expected a config (make one with: bridgehead init FILE)"
        )
    try:
        # Some editors of Windows put a byte-order mark before the text.
        settings = tomllib.loads(source.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        hint = "" if source.suffix == ".toml" else f"; expected a config: make one with: bridgehead init {source}"
        raise ConfigError(f"{source} is not TOML in UTF-8: {error}{hint}") from error
    config = config_of(settings)
    base = source.resolve().parent
    folder = config.folder or f"runs/{source.stem}"
    return absolute(config.model_copy(update={"folder": folder}), base)


def absolute(config: RunConfig, base: Path) -> RunConfig:
    """Return the config with all its relative paths taken from the folder `base`."""

    def anchored(path: str) -> str:
        return str(base / Path(path).expanduser())

    def place(path: str) -> str:
        return path if path in (STARTER, CHEMICALS, UNPAIRED) else anchored(path)

    def places(evaluate: EvaluateConfig) -> dict[str, Any]:
        lists = {name: getattr(evaluate, name) for name in ("candidates_a", "candidates_b")}
        pools = {name: tuple(map(place, getattr(evaluate, name))) for name in ("pool_a", "pool_b")}
        return {**pools, **{name: None if file is None else anchored(file) for name, file in lists.items()}}

    def spec(encoder: str) -> str:
        parts = [part.strip() for part in encoder.split(" + ")]
        return " + ".join(f"rows:{anchored(p[5:])}" if p.startswith("rows:") else _hub_folder(p, base) for p in parts)

    path = config.pairs.path
    encode = config.encode
    return config.model_copy(
        update={
            "folder": None if config.folder is None else anchored(config.folder),
            "pairs": config.pairs.model_copy(
                update={"path": place(path) if isinstance(path, str) else tuple(map(place, path))}
            ),
            "encode": encode.model_copy(
                update={
                    "a": spec(encode.a),
                    "b": spec(encode.b),
                    "cache": None if encode.cache is None else anchored(encode.cache),
                }
            ),
            "evaluate": config.evaluate.model_copy(update=places(config.evaluate)),
            "index": config.index.model_copy(
                update={
                    "extra_a": tuple(map(place, config.index.extra_a)),
                    "saved_queries": None
                    if config.index.saved_queries is None
                    else anchored(config.index.saved_queries),
                }
            ),
        }
    )


def _hub_folder(spec: str, base: Path) -> str:
    """Make `text:hf=<folder>` absolute where the folder is there; a hub name stays a name."""
    kind, separator, name = spec.partition("=")
    return f"{kind}={base / name}" if separator and (base / name).is_dir() else spec
