"""The run folder: where each stage's results lie, and how a stage knows that they are still its own.

A stage writes its record last, with a key: the hash of everything that shapes its results. A record with the right key
means that the stage is done; any other state means that it runs again. This module is not about what stages do.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridgehead.errors import ConfigError, FormatVersionError, InputFileNotFoundError, RunStateError
from bridgehead.files import LOCK_FILE, folder_lock, hash_json, read_json, write_json, write_text
from bridgehead.runs.config import RunConfig, absolute, config_of, read_config
from bridgehead.runs.toml import to_toml

CONFIG_FILE = "config.toml"
RECORDS = {
    "check": "pairs.json",
    "encode": "encoders/encoded.json",
    "train": "trained.json",
    "evaluate": "metrics.json",
    "audit": "audit.json",
    "refit": "refit/refit.json",
    "index": "indexed.json",
    "report": "reported.json",
}
# What others read in a record; one without it is damaged, or was left by a release that measured less.
_ENTRIES: dict[str, tuple[str, ...]] = {
    "check": ("check", "split", "sources", "lines"),
    "encode": ("a", "b", "lines"),
    "train": ("best_epoch", "epochs", "history", "notes", "heads", "encoders", "lines"),
    "evaluate": (
        "all", "unseen_text", "baseline", "shuffled", "pool", "measurement", "against", "by_pool", "slices", "grouped",
        "among", "geometry", "gap_correction", "queries", "lines",
    ),
    "audit": ("findings", "skipped", "counts", "lines"),
    "refit": ("fingerprint", "lines"),
    "index": ("examples", "lines"),
    "report": ("sha256", "lines"),
}  # fmt: skip
_OWN_FOLDERS = ("encoders", "first", "refit", "shuffled", "index", "index-evaluated", "folds")


@dataclass(frozen=True)
class RunFolder:
    """A run folder with its config. `record(stage)` is what a finished stage left; `path(...)` a file in the folder."""

    folder: Path
    config: RunConfig

    @classmethod
    def of(cls, config: "RunConfig | str | Path | RunFolder", folder: str | Path | None = None) -> "RunFolder":
        """Return the run of a config, a config file, or a run folder that has a `config.toml`.

        Relative paths in a config object are taken from the current folder. Raises `ConfigError` and
        `InputFileNotFoundError`, and `RunStateError` when a config object names no folder.
        """
        if isinstance(config, RunFolder):
            return config
        if isinstance(config, RunConfig):
            config = absolute(config, Path.cwd())
        else:
            given = Path(config)
            config = read_config(given)
            if given.is_dir():
                folder = folder or given
        target = folder or config.folder
        if target is None:
            raise RunStateError("no run folder is named; set `folder` in the config or pass folder=")
        return cls(Path(target), config)

    def path(self, *parts: str) -> Path:
        """Return a path inside the folder."""
        return self.folder.joinpath(*parts)

    @property
    def cache(self) -> Path:
        """The folder of encoded rows, by default shared by all runs beside this one."""
        return Path(self.config.encode.cache) if self.config.encode.cache else self.folder.parent / "cache"

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the writer's lock of the folder and leave the config in it; raises `RunBusyError`.

        A config that is there and says the same stays as it is, comments included. Raises `RunStateError` where there
        is another one and nothing else of a run: it is somebody's own.
        """
        if self.path(CONFIG_FILE).exists() and not self.path(LOCK_FILE).exists() and not self._holds_config():
            raise RunStateError(
                f"{self.folder} holds a {CONFIG_FILE}, which is not that of a run; name another folder for this run"
            )
        with folder_lock(self.folder):
            self._remove_leftovers()
            if not self._holds_config():
                write_text(self.path(CONFIG_FILE), to_toml({**self.config.plain(), "folder": "."}))
            yield

    def _remove_leftovers(self) -> None:
        """Remove what killed writers left: nobody else writes here while the lock is held."""
        found = list(self.folder.glob(".*.part"))
        for name in _OWN_FOLDERS:
            found += self.path(name).rglob(".*.part")
        for part in found:
            if part.is_dir():
                shutil.rmtree(part)
            else:
                part.unlink(missing_ok=True)

    def _holds_config(self) -> bool:
        try:
            found = read_config(self.folder)
        except (ConfigError, InputFileNotFoundError):
            return False
        return {**found.plain(), "folder": None} == {**self.config.plain(), "folder": None}

    def done(self, stage: str, key: str) -> dict[str, Any] | None:
        """Return the record of a stage when it is there with this key, else None (missing, other, half-written).

        Raises `FormatVersionError` for one of another version: what a newer release wrote is not written over.
        """
        path = self.path(RECORDS[stage])
        try:
            record = read_json(path, f"bridgehead-{stage}")
        except (InputFileNotFoundError, RunStateError):
            return None
        except FormatVersionError as error:
            raise FormatVersionError(f"{error} (remove {path} first, or use another folder)") from error
        return record if record.get("key") == key and not _missing(stage, record) else None

    def finish(self, stage: str, key: str, content: dict[str, Any]) -> dict[str, Any]:
        """Write the record of a stage, which makes it done, and return it."""
        record = {"key": key, **content}
        write_json(self.path(RECORDS[stage]), record, f"bridgehead-{stage}")
        return record

    def record(self, stage: str) -> dict[str, Any]:
        """Return the record of a finished stage; raises `RunStateError` naming the stage to run where there is none,
        and for one that lacks entries."""
        again = f"run: bridgehead {stage} {self.folder}"
        try:
            record = read_json(self.path(RECORDS[stage]), f"bridgehead-{stage}")
        except InputFileNotFoundError as error:
            raise RunStateError(f"{self.folder} has no results of the stage {stage} yet; {again}") from error
        if missing := _missing(stage, record):
            raise RunStateError(
                f"{self.path(RECORDS[stage])} lacks {', '.join(missing)}: damaged, or of another release; {again}"
            )
        return record


def _missing(stage: str, record: dict[str, Any]) -> list[str]:
    """Return the entries that the record of a stage lacks."""
    return [name for name in ("key", *_ENTRIES[stage]) if name not in record]


def stage_key(*parts: Any) -> str:
    """Return the key of a stage from the settings, hashes and earlier keys that shape its results."""
    return hash_json(list(parts))


__all__ = ["CONFIG_FILE", "RECORDS", "RunFolder", "config_of", "stage_key"]
