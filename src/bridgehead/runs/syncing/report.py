"""What a sync did, as a record and as lines to read.

This module is not about doing it (`stage`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from bridgehead.runs.syncing.far import FarItem
from bridgehead.runs.syncing.reading import FailedRecord

SHOWN = 10


@dataclass(frozen=True)
class IndexSync:
    """What became of one index.

    `heads`: "refit" or "evaluated". `added`, `changed`, `unchanged` (with `own`, those of the run itself) and
    `removed` count items. `growth`: rows added or removed since recall was measured, as a share of those of the side
    that grew most. `compacted`: lines on the vectors, where recall was measured again; `not_compacted`: why it could
    not be.
    """

    heads: str
    added: int
    changed: int
    unchanged: int
    own: int
    removed: int
    growth: float
    compacted: tuple[str, ...] = ()
    not_compacted: str = ""

    @property
    def wrote(self) -> bool:
        """Whether anything was written."""
        return bool(self.added or self.changed or self.removed or self.compacted)


@dataclass(frozen=True)
class SyncReport:
    """What a sync did, or with `dry_run` would do.

    `side`: its shown name. Counts are those of the index with the refit heads (of the evaluated ones where it is the
    only one): `added`, `changed`, `unchanged` (of which `own` are items of the run), `removed`. `failed`: records that
    are not in the index as the file has them. `unknown`: ids of items of which the encoder knows nothing. `far`: new
    items that lie far from the training items, None where that cannot be said; `far_below`: the cosine that is meant.
    `same_as`: id -> id of another item of the same exact key. `indexes`: the same for each index. `notes` say where an
    index carries another model than the run now has.
    """

    side: str
    dry_run: bool
    n_records: int
    failed: tuple[FailedRecord, ...]
    unknown: tuple[str, ...]
    far: tuple[FarItem, ...] | None
    far_below: float | None
    same_as: Mapping[str, str]
    indexes: tuple[IndexSync, ...]
    notes: tuple[str, ...] = ()

    @property
    def added(self) -> int:
        """Items that were not there."""
        return self.indexes[0].added

    @property
    def changed(self) -> int:
        """Items that held something else."""
        return self.indexes[0].changed

    @property
    def unchanged(self) -> int:
        """Items that were there as the file has them."""
        return self.indexes[0].unchanged

    @property
    def own(self) -> int:
        """Unchanged items that belong to the run itself."""
        return self.indexes[0].own

    @property
    def removed(self) -> int:
        """Items that came by an earlier sync and are not in the file."""
        return self.indexes[0].removed

    def lines(self) -> list[str]:
        """Return what to print: counts first, then what deserves a look, the first ten of each list."""
        first = self.indexes[0]
        head = f"{'would be ' if self.dry_run else ''}{_counts(first)}, failed {len(self.failed):,}"
        lines = [f"{self.side}: {head}, of {self.n_records:,} records"]
        if self.own:
            lines.append(f"of the unchanged, {self.own:,} belong to the run, whose pairs say what they are")
        for other in self.indexes[1:]:
            if _numbers(other) != _numbers(first):
                lines.append(f"index with the {other.heads} heads: {_counts(other)}")
        lines += _listed("failed", [f"{one.id or f'record {one.record}'}: {one.reason}" for one in self.failed])
        unknown = "items of which the encoder knows nothing; they are found by id, names and words alone"
        lines += _listed(unknown, list(self.unknown))
        same = [f"{id_} = {other}" for id_, other in self.same_as.items()]
        lines += _listed("items of the same exact identity as another id", same)
        lines += self._far_lines()
        return [*lines, *self.notes, *(line for one in self.indexes for line in _growth_lines(one))]

    def _far_lines(self) -> list[str]:
        if not self.added + self.changed:
            return []
        if self.far is None or self.far_below is None:
            return ["how far new items lie from the training items is not known: the index does not say those"]
        if not self.far:
            return ["no new item lies far from the training items"]
        listed = [f"{one.id}, {one.nearest:.3f}" for one in self.far]
        what = f"new items far from all training items (cosine to the nearest below {self.far_below:.3f})"
        return _listed(what, listed)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON values."""
        return {
            "side": self.side,
            "dry_run": self.dry_run,
            "n_records": self.n_records,
            "added": self.added,
            "changed": self.changed,
            "unchanged": self.unchanged,
            "own": self.own,
            "removed": self.removed,
            "failed": [{"record": one.record, "id": one.id, "reason": one.reason} for one in self.failed],
            "unknown": list(self.unknown),
            "far": None if self.far is None else [{"id": one.id, "nearest": one.nearest} for one in self.far],
            "far_below": self.far_below,
            "same_as": dict(self.same_as),
            "notes": list(self.notes),
            "indexes": [
                {
                    **asdict(one),
                    "growth": one.growth if isfinite(one.growth) else None,
                    "compacted": list(one.compacted),
                }
                for one in self.indexes
            ],
        }


def _numbers(one: IndexSync) -> tuple[int, ...]:
    return one.added, one.changed, one.unchanged, one.own, one.removed


def _counts(one: IndexSync) -> str:
    return f"added {one.added:,}, changed {one.changed:,}, unchanged {one.unchanged:,}, removed {one.removed:,}"


def _listed(what: str, entries: Sequence[str]) -> list[str]:
    if not entries:
        return []
    more = [f"  and {len(entries) - SHOWN:,} more"] if len(entries) > SHOWN else []
    return [f"{len(entries):,} {what}:", *(f"  {entry}" for entry in entries[:SHOWN]), *more]


def _growth_lines(one: IndexSync) -> list[str]:
    name = f"index with the {one.heads} heads"
    if one.compacted:
        return [f"{name}: recall measured again", *(f"  {line}" for line in one.compacted)]
    if one.not_compacted:
        return [f"{name}: grown by {one.growth:.1%}, and recall was not measured again: {one.not_compacted}"]
    if one.growth and one.wrote:
        return [f"{name}: grown by {one.growth:.1%} since recall was measured; it is again at 10 %"]
    return []
