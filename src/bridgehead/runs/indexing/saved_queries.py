"""Saved queries: what their first ten hits were in the index before, and what they are in the one that took its place.

The queries are the examples of the config and those of a file that it names. This module is not about whether hits are
good (`evaluate`), only about what changed for who asks them every day.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridgehead.errors import BridgeheadError, ConfigError
from bridgehead.pairs.read import check_columns, read_records
from bridgehead.runs.config import RunConfig
from bridgehead.search import Space, open_space

FIRST = 10
_SHOWN = 3


@dataclass(frozen=True)
class SavedQuery:
    """A query, and the side to find by its shown name; None is the other one."""

    query: str
    of: str | None = None


@dataclass(frozen=True)
class First:
    """The first hits of a query: (id, shown name) of each, best first; `refused` says why there are none."""

    hits: tuple[tuple[str, str], ...] = ()
    refused: str = ""


def saved_queries(config: RunConfig) -> list[SavedQuery]:
    """Return the queries that are compared, each once: the config's examples, then those of its file.

    The file (any that pairs are read from) has a column `query` and maybe `of`; blank cells do not count. Raises as
    `read_pairs`, and `ConfigError` for a side that there is not.
    """
    found = [SavedQuery(example.query, example.of) for example in config.examples]
    if config.index.saved_queries is not None:
        found += _of_file(config.index.saved_queries, config.pairs.shown)
    return list(dict.fromkeys(found))


def first_hits(space: Space, queries: Sequence[SavedQuery]) -> list[First]:
    """Return the first hits of each query in a space; one that is refused has none."""
    return [_first(space, query) for query in queries]


def hits_before(run: Path, heads: str, queries: Sequence[SavedQuery]) -> list[First] | None:
    """Return the first hits in the index that is there now, None where none can be opened."""
    if not queries:
        return None
    try:
        with open_space(run, heads) as space:
            return first_hits(space, queries)
    except (BridgeheadError, OSError):
        return None


def changes(
    queries: Sequence[SavedQuery], before: Sequence[First] | None, after: Sequence[First]
) -> list[dict[str, Any]]:
    """Return for each query its hits before and after (ids), which are kept, new and gone, and the overlap in [0, 1].

    The overlap is the share of the hits kept among the first ten of whichever list is longer; two empty lists overlap
    wholly. Without hits before, all that compares is None.
    """
    earlier: Sequence[First | None] = before if before is not None else [None] * len(after)
    return [_change(query, old, new) for query, old, new in zip(queries, earlier, after, strict=True)]


def change_lines(heads: str, found: Sequence[dict[str, Any]]) -> list[str]:
    """Return what to print of the changes of one index; nothing where there was none before."""
    compared = [one for one in found if one["overlap"] is not None]
    if not compared:
        return []
    mean = sum(one["overlap"] for one in compared) / len(compared)
    lines = [f"saved queries with the {heads} heads: {mean:.0%} of the first {FIRST} hits kept, over {len(compared)}"]
    return lines + [_line(one) for one in compared if one["overlap"] < 1]


def _of_file(path: str, sides: Sequence[str]) -> list[SavedQuery]:
    records, _ = read_records(path)
    check_columns(records, ["query"], path)
    queries = records.frame["query"].to_list()
    sought = records.frame["of"].to_list() if "of" in records.frame.columns else [None] * len(queries)
    found = [
        SavedQuery(query.strip(), (of or "").strip() or None)
        for query, of in zip(queries, sought, strict=True)
        if query and query.strip()
    ]
    if unknown := sorted({query.of for query in found if query.of not in (None, "a", "b", *sides)}, key=str):
        raise ConfigError(f"{path}: the column `of` holds {unknown[0]!r}; expected one of the sides {', '.join(sides)}")
    return found


def _first(space: Space, query: SavedQuery) -> First:
    try:
        answer = space.answer(query.query, k=FIRST, of=query.of)
    except BridgeheadError as error:
        return First(refused=str(error))
    return First(tuple((hit.id, str(hit.payload.get("name") or hit.id)) for hit in answer.hits))


def _change(query: SavedQuery, old: First | None, new: First) -> dict[str, Any]:
    names = dict(new.hits) | dict(old.hits if old is not None else ())
    ids = [id_ for id_, _ in new.hits]
    content: dict[str, Any] = {"query": query.query, "of": query.of, "after": ids, "refused": new.refused}
    if old is None:
        return {**content, "before": None, "kept": None, "new": None, "gone": None, "overlap": None, "names": names}
    former = [id_ for id_, _ in old.hits]
    kept = [id_ for id_ in ids if id_ in former]
    return {
        **content,
        "before": former,
        "kept": kept,
        "new": [id_ for id_ in ids if id_ not in former],
        "gone": [id_ for id_ in former if id_ not in ids],
        "overlap": len(kept) / max(len(ids), len(former)) if ids or former else 1.0,
        "names": names,
    }


def _line(change: dict[str, Any]) -> str:
    parts = [f"{len(change['kept'])} of {max(len(change['after']), len(change['before']))} kept"]
    for what in ("new", "gone"):
        if ids := change[what]:
            shown = ", ".join(change["names"][id_][:40] for id_ in ids[:_SHOWN])
            parts.append(f"{what}: {shown}" + (f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""))
    return f'  "{change["query"][:60]}": ' + "; ".join(parts)
