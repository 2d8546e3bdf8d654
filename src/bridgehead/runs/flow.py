"""Running stages by name, with what comes before them, under the run folder's lock.

This module is not about what the stages do (`stages`, `indexing`, `reporting`).
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bridgehead.errors import ArgumentError, RunStateError
from bridgehead.runs.config import RunConfig
from bridgehead.runs.folder import RunFolder
from bridgehead.runs.prepare import Progress

if TYPE_CHECKING:
    from bridgehead.pairs.sources import PathsLike
    from bridgehead.runs.syncing.report import SyncReport

RunLike = RunConfig | str | Path | RunFolder

STAGES = ("check", "encode", "train", "evaluate", "audit", "refit", "index")
# What each stage stands on; index needs the evaluated heads too, where the config asks for them.
_NEEDS: dict[str, tuple[str, ...]] = {
    "check": (),
    "encode": ("check",),
    "train": ("check", "encode"),
    "evaluate": ("check", "encode", "train"),
    "audit": ("check", "encode", "train", "evaluate"),
    "refit": ("check", "encode", "train"),
    "index": ("check", "encode", "train", "refit"),
}


def check(run: RunLike, progress: Progress | None = None) -> dict[str, Any]:
    """Read, identify and split the pairs: counts, duplicates, identities, split (`pairs.json`). See `through`."""
    return through(run, "check", progress)


def encode(run: RunLike, progress: Progress | None = None) -> dict[str, Any]:
    """Fit the encoders on the training part and encode every item (`encoders/`). See `through`."""
    return through(run, "encode", progress)


def train(run: RunLike, progress: Progress | None = None) -> dict[str, Any]:
    """Train the heads (`heads.safetensors`, `history.jsonl`, `trained.json`). See `through`."""
    return through(run, "train", progress)


def evaluate(run: RunLike, progress: Progress | None = None) -> dict[str, Any]:
    """Measure the evaluated heads on the test part (`metrics.json`, `report.html`). See `through`."""
    return through(run, "evaluate", progress)


def audit(run: RunLike, progress: Progress | None = None, controls: Sequence[str] | None = None) -> dict[str, Any]:
    """Judge the run by all audits that apply to it (`audit.json`, `report.html`). See `through`.

    `controls` are those that train again, by their names in `audit.controls`, where they are not those of the config.
    Raises `ArgumentError` for an unknown one.
    """
    from bridgehead.runs.evidence_config import CONTROLS

    if unknown := [name for name in controls or () if name not in CONTROLS]:
        raise ArgumentError(f"no control {', '.join(map(repr, unknown))}; expected {', '.join(CONTROLS)}")
    return _run(RunFolder.of(run), (*_NEEDS["audit"], "audit"), progress, controls)["audit"]


def refit(run: RunLike, progress: Progress | None = None) -> dict[str, Any]:
    """Train again on all pairs, as long as validation chose (`refit/`). See `through`."""
    return through(run, "refit", progress)


def index(run: RunLike, progress: Progress | None = None) -> dict[str, Any]:
    """Make the run searchable (`index/`, `index-evaluated/`). See `through`."""
    return through(run, "index", progress)


def sync(
    run: RunLike,
    file: "PathsLike",
    side: str = "a",
    delete_missing: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
    id: str | None = None,
) -> "SyncReport":
    """Bring the indexes of a run up to date with the items in `file`, by id and content, and say what was done.

    `file` is any that pairs are read from, with the config's column of items of `side` ("a", "b", or its shown name)
    and one of ids (`id`; default: the config's, else `id`); columns of names are names, all others payload. What is
    new or changed is encoded by the model of each index, what is not is left alone, and items of the run itself stay
    as its pairs say. `delete_missing` removes items that came by an earlier sync and are not in the file. `dry_run`
    reads, encodes and counts, and writes nothing. Where a side has grown by 10 %, a new build is made and its recall
    measured. A sync that is killed has lost nothing that it had written; the next one goes on.

    Raises as `read_pairs` for the file, `ArgumentError` (side), `InputFileNotFoundError` (no index), `MismatchError`
    and `RunStateError` (damaged), and `RunBusyError` when another process writes the run.
    """
    from bridgehead.runs.syncing.stage import sync_run

    opened = RunFolder.of(run)
    with ExitStack() as held:
        if not dry_run:
            held.enter_context(opened.writing())
        return sync_run(opened, file, side, delete_missing, dry_run, progress, id)


def compact(run: RunLike, progress: Progress | None = None) -> dict[str, Any]:
    """Write each index of a run anew with all that was added to it since, and measure its recall again.

    Returns heads -> `lines` on the vectors. An index to which nothing was added is written anew too. Raises as `sync`.
    """
    from bridgehead.runs.syncing.upkeep import compact_run

    opened = RunFolder.of(run)
    with opened.writing():
        return compact_run(opened, progress or _silent)


def snapshot(run: RunLike, target: str | Path, progress: Progress | None = None) -> Path:
    """Write the indexes of a run, as they are now, into the new folder `target`, which searches and serves by itself.

    Each index is whole, the model that it carries included; files are hard links where the file system allows, so a
    snapshot beside the run costs little. Beside them lie the config, report and card. Raises `ArgumentError` where the
    folder is there already, and as `sync`.
    """
    from bridgehead.runs.syncing.upkeep import snapshot_run

    opened = RunFolder.of(run)
    with opened.writing():
        return snapshot_run(opened, Path(target), progress or _silent)


def report(run: RunLike, progress: Progress | None = None) -> dict[str, Any]:
    """Write `report.html`, `card.md` and `contract.json` of a run that is evaluated, and return their record.

    Nothing is trained or measured anew, but for the ranks that the page draws. Raises `RunStateError` where the present
    heads are not evaluated, and as `run`.
    """
    from bridgehead.runs.reporting import report_run
    from bridgehead.runs.work import Work

    opened = RunFolder.of(run)
    with opened.writing():
        opened.record("evaluate")
        if report_run(Work(opened, progress or _silent)) is None:
            raise RunStateError(
                f"the evaluation in {opened.folder} is of other heads or settings than the run now has; run: "
                f"bridgehead evaluate {opened.folder}"
            )
        return opened.record("report")


def run(config: RunLike, folder: str | Path | None = None, progress: Progress | None = None) -> RunFolder:
    """Run every stage of a config, in order, and return the run folder.

    `config` is a config file, a run folder, or a `RunConfig`; `folder` overrides where the run lies. Stages that are
    done, with the same data and settings, are skipped, so a run that was killed goes on where it stopped. `progress`
    is called as `progress(stage, message, done, total)`.

    Raises `ConfigError`, what reading, encoding and training raise for bad input, and `RunBusyError` when another
    process writes the folder.
    """
    opened = RunFolder.of(config, folder)
    _run(opened, STAGES, progress)
    return opened


def through(run: RunLike, stage: str, progress: Progress | None = None) -> dict[str, Any]:
    """Run the stages that `stage` stands on where they are not done, then `stage`; return its record.

    The record is what lies in the folder as JSON; its `lines` are for people. Raises as `run`.
    """
    return _run(RunFolder.of(run), (*_NEEDS[stage], stage), progress)[stage]


def _run(
    folder: RunFolder, stages: tuple[str, ...], progress: Progress | None, controls: Sequence[str] | None = None
) -> dict[str, dict[str, Any]]:
    from bridgehead.runs.costs import counted
    from bridgehead.runs.named_files import check_named
    from bridgehead.runs.work import Work, check_part

    say: Progress = progress or _silent
    records: dict[str, dict[str, Any]] = {}
    with ExitStack() as held:
        held.enter_context(folder.writing())
        work = Work(folder, say, controls)
        for stage in stages:
            say(stage, "begins", None, None)
            with counted(folder, stage):
                records[stage] = _function(stage)(work)
            say(stage, "done", None, None)
            if stage == "check" and "evaluate" in stages:
                # Said now, not after the training.
                check_part(work.prepared.part("test")[2], "test")
                check_named(work)
                if "audit" in stages:
                    _check_audits(work)
        if stages[-1] in ("evaluate", "audit", "index"):
            from bridgehead.runs.reporting import report_run

            say("report", "begins", None, None)
            report_run(work)
            say("report", "done", None, None)
    return records


def _check_audits(work: Any) -> None:
    """Raise `ConfigError` and `ColumnError` where the config names audits or columns that there are not."""
    from bridgehead.runs.auditing.stage import wanted_of

    wanted_of(work)


def _function(stage: str) -> Callable[[Any], dict[str, Any]]:
    # Imported when they run: a stage brings torch, RDKit or FAISS with it.
    if stage == "index":
        from bridgehead.runs.indexing.stage import index as indexed

        return indexed
    if stage == "evaluate":
        from bridgehead.runs import evaluating

        return evaluating.evaluate
    if stage == "audit":
        from bridgehead.runs.auditing.stage import audit as audited

        return audited
    from bridgehead.runs import stages

    found: Callable[[Any], dict[str, Any]] = getattr(stages, stage)
    return found


def _silent(stage: str, message: str, done: int | None, total: int | None) -> None:
    return
