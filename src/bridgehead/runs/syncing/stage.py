"""Sync: all indexes of a run brought up to date with a file, under the run's lock.

This module is not about one index (`applying`) or about what is printed (`report`).
"""

from bridgehead.errors import ArgumentError, InputFileNotFoundError
from bridgehead.pairs.sources import PathsLike
from bridgehead.runs.folder import RunFolder
from bridgehead.runs.indexing.stage import FOLDERS
from bridgehead.runs.prepare import Progress
from bridgehead.runs.syncing.applying import Outcome, Update, apply_to
from bridgehead.runs.syncing.reading import read_file_items
from bridgehead.runs.syncing.report import IndexSync, SyncReport
from bridgehead.runs.syncing.standing import Identities


def sync_run(
    run: RunFolder,
    file: PathsLike,
    side: str = "a",
    delete_missing: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
    id: str | None = None,
) -> SyncReport:
    """See `bridgehead.runs.sync`."""
    letter = _side(run, side)
    heads = [name for name, (folder, _) in FOLDERS.items() if run.path(folder, "index.json").is_file()]
    if not heads:
        raise InputFileNotFoundError(f"{run.folder} has no index to sync into; run: bridgehead index {run.folder}")
    given = read_file_items(run.config, file, letter, id)
    say = progress or _silent
    identities = Identities(lambda done, total: say("sync", "identities of new molecules", done, total))
    update = Update(run, given, letter, delete_missing, dry_run, say, identities)
    outcomes = [apply_to(update, name) for name in heads]
    return _report(run, update, outcomes)


def _report(run: RunFolder, update: Update, outcomes: list[tuple[Outcome, IndexSync]]) -> SyncReport:
    first = outcomes[0][0]
    return SyncReport(
        side=run.config.pairs.shown["ab".index(update.side)],
        dry_run=update.dry_run,
        n_records=update.given.n_records,
        failed=tuple(sorted(first.failed, key=lambda one: one.record)),
        unknown=tuple(first.unknown),
        far=None if first.far is None else tuple(first.far),
        far_below=first.far_below,
        same_as=first.standing.same_as,
        indexes=tuple(counts for _, counts in outcomes),
        notes=tuple(outcome.model_note for outcome, _ in outcomes if outcome.model_note),
    )


def _side(run: RunFolder, side: str) -> str:
    names = dict(zip(run.config.pairs.shown, "ab", strict=True))
    if side not in (*names, "a", "b"):
        raise ArgumentError(f"side = {side!r}; expected one of {', '.join((*names, 'a', 'b'))}")
    return names.get(side, side)


def _silent(stage: str, message: str, done: int | None, total: int | None) -> None:
    return
