"""Which ids of the run's file stand for which items of its index, where that is not the id itself.

Records that hold the same item, and items of one identity, are one item of an index under the first id. Whoever syncs
the file of the pairs again must not get the others as new items. This module is not about comparing them (`syncing`).
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bridgehead.files import read_json, write_json
from bridgehead.runs.indexing.sides import Entry, index_id
from bridgehead.runs.work import Work

KNOWN_IDS = "known-ids"
_FILE, _FORMAT = "known_ids.json", "bridgehead-known-ids"

KnownIds = Mapping[str, Mapping[str, Sequence[str]]]
"""Side -> id of a record, in the form of an index -> ids of the items of the index that the record holds."""


def known_ids_attachment(
    work: Work, own_a: Sequence[Entry], own_b: Sequence[Entry]
) -> dict[str, Callable[[Path], object]]:
    """Return the attachment of a build that says which record ids stand for which of its items."""
    found = {side: _known(work, side, own) for side, own in (("a", own_a), ("b", own_b))}
    return {KNOWN_IDS: lambda folder: write_json(folder / _FILE, {"sides": found}, _FORMAT)}


def load_known_ids(folder: Path | None) -> KnownIds:
    """Read what the attachment holds; nothing where a build has none."""
    return {} if folder is None else dict(read_json(folder / _FILE, _FORMAT)["sides"])


def _known(work: Work, side: str, own: Sequence[Entry]) -> dict[str, list[str]]:
    table, config = work.prepared.table, work.run.config
    entry_of = {member: entry.id for entry in own for member in entry.members}
    ids = dict(zip(table.records["_row"].to_list(), table.records["_id"].to_list(), strict=True))
    found: dict[str, dict[str, None]] = {}
    for item, record in table.side(side).carriers.tolist():  # type: ignore[arg-type]
        if item in entry_of:
            found.setdefault(index_id(config, side, str(ids[record])), {})[entry_of[item]] = None
    return {id_: list(items) for id_, items in found.items() if list(items) != [id_]}
