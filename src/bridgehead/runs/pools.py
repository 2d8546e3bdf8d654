"""Who asks and who may answer in the evaluation: the test part, further candidates, and a list for each query.

Further candidates (`evaluate.pool_a`, `pool_b`) stand behind the items of the test part and are never queries. This
module is not about ranks (`evaluate`) or about items that are only searched (`indexing`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from bridgehead.encode import Encoder
from bridgehead.errors import DataError
from bridgehead.files import hash_file, hash_json, hash_texts
from bridgehead.links import Links
from bridgehead.pairs import PairTable, read_pairs
from bridgehead.pairs.chemicals_data import read_chemicals
from bridgehead.pairs.read import read_items
from bridgehead.pairs.sources import find_files
from bridgehead.runs.config import CHEMICALS, RunConfig
from bridgehead.runs.encoded import PartRows, Rows, encode_items, shown_name
from bridgehead.runs.evidence_config import UNPAIRED
from bridgehead.runs.identities import identities_of
from bridgehead.vectors import IntArray

SideName = Literal["a", "b"]
Lists = tuple[IntArray, IntArray]
"""Candidates of each row of a side as (indptr, rows of the other side)."""
Places = dict[str, list[int]]
"""Id -> the rows of a side that it stands for."""
_STRANGER = -1


@dataclass(frozen=True, eq=False)
class Further:
    """Further candidates of one side: `numbers` (n,) in the table, -1 for those of files; `items` and `ids` of all."""

    numbers: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    items: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, eq=False)
class Asked:
    """The queries and candidates of the evaluation.

    `part` holds the rows and links of the test part followed by the further candidates, whose numbers in `items_a` and
    `items_b` are -1 where they are not in the table. `queries_a`, `queries_b` are masks over its rows, None where all
    of them ask. `ids_a`, `ids_b` are the ids of all rows. `lists_a`, `lists_b` are what each row ranks, None for all.
    `facts` say how the pool came together, for the contract, `notes` what a reader should know of it, and `further` are
    the raw items of the further candidates of a side.
    """

    part: PartRows
    queries_a: npt.NDArray[np.bool_] | None
    queries_b: npt.NDArray[np.bool_] | None
    ids_a: list[str]
    ids_b: list[str]
    lists_a: Lists | None
    lists_b: Lists | None
    facts: dict[str, Any]
    notes: tuple[str, ...]
    further: dict[str, tuple[str, ...]] = field(default_factory=lambda: {"a": (), "b": ()})

    @property
    def candidates(self) -> tuple[Lists | None, Lists | None] | None:
        """The lists as `retrieval_report` takes them, None where there is none."""
        return None if self.lists_a is None and self.lists_b is None else (self.lists_a, self.lists_b)


def further_of(work: Any, side: SideName) -> Further:
    """Return the further candidates of a side as the config names them, without those that are there already.

    An item of a file that is in the test part already (the same value, or the same molecule) is that item, and one
    that a training link joins to an item of the test part would be a right answer that counts as wrong: both are left
    out and counted. Raises as `read_pairs`.
    """
    config, table = work.run.config, work.prepared.table
    places = getattr(config.evaluate, f"pool_{side}")
    if not places:
        return Further()
    own = work.part("test").items_a if side == "a" else work.part("test").items_b
    keys = _keys(work, side, table.side(side).items)
    taken = {keys[number] for number in own.tolist()}
    known = {key: number for number, key in enumerate(keys) if key not in taken}
    right = _right_answers(work, side)
    numbers: list[int] = []
    items: list[str] = []
    ids: list[str] = []
    notes = []
    named = {table.side(side).ids[number] for number in own.tolist()}
    for place in places:
        found = _items_of(work, side, place)
        n_there, n_right = 0, 0
        for id_, item, key in found:
            number = known.get(key, _STRANGER)
            if key in taken:
                n_there += 1
            elif number in right:
                n_right += 1
            else:
                taken.add(key)
                while id_ in named:
                    id_ += "'"
                named.add(id_)
                numbers.append(number)
                items.append(item)
                ids.append(id_)
        notes.append(_said(config, side, place, len(found), n_there, n_right))
    return Further(np.array(numbers, dtype=np.int64), tuple(items), tuple(ids), tuple(notes))


def _said(config: Any, side: SideName, place: str, n: int, n_there: int, n_right: int) -> str:
    shown = place if place in (CHEMICALS, UNPAIRED) else place.rsplit("/", 1)[-1]
    out = [f"{n_there:,} were there already"] if n_there else []
    out += [f"{n_right:,} left out, as training links make them right answers to queries"] if n_right else []
    reasons = f" ({'; '.join(out)})" if out else ""
    return f"{n - n_there - n_right:,} further {shown_name(config, side)} candidates of {shown}{reasons}"


def _items_of(work: Any, side: SideName, place: str) -> list[tuple[str, str, str]]:
    """Return (id, item, key) of the candidates in one place, those that cannot be read left out."""
    config, table = work.run.config, work.prepared.table
    if place == UNPAIRED:
        own = table.side(side)
        numbers = table.unlinked(side).tolist()
        keys = _keys(work, side, own.items)
        return [(own.ids[number], own.items[number], keys[number]) for number in numbers]
    if place == CHEMICALS:
        return [(one.id, one.smiles, one.inchikey) for one in read_chemicals()]
    pairs = config.pairs
    column = pairs.a if side == "a" else pairs.b
    read = read_items(place, column, id=pairs.id, quote=pairs.quote, encoding=pairs.encoding)
    keys = _keys(work, side, read.items, table_items=False)
    # A structure that cannot be read has no key, and is no candidate.
    return [(id_, item, key) for id_, item, key in zip(read.ids, read.items, keys, strict=True) if key]


def _keys(work: Any, side: SideName, items: Sequence[str], *, table_items: bool = True) -> list[str]:
    """Return what makes two items of a side the same: the exact identity of a molecule, else the value itself."""
    config = work.run.config
    if (config.pairs.kind_a if side == "a" else config.pairs.kind_b) != "molecule":
        return list(items)
    if table_items:
        return [one.exact for one in work.prepared.identities[side]]
    found, _ = identities_of(items, work.run.cache)
    return ["" if one is None else one.exact for one in found]


def _right_answers(work: Any, side: SideName) -> set[int]:
    """Return the items of a side that a link of any part joins to a query of the test part on the other side."""
    test = work.part("test")
    pairs = work.prepared.table.links.pairs
    mine, other = (0, 1) if side == "a" else (1, 0)
    asking = test.items_b if side == "a" else test.items_a
    return set(pairs[np.isin(pairs[:, other], asking), mine].tolist())


def asked_of(work: Any, encoders: dict[str, Encoder], rows: Rows) -> Asked:
    """Return the queries and candidates of the evaluation under `encoders`, `rows` being those of the table's items."""
    test = rows.of(work.prepared.part("test"))
    config, table = work.run.config, work.prepared.table
    further = {"a": work.further("a"), "b": work.further("b")}
    added = {side: _encoded(work, encoders[side], one) for side, one in further.items()}
    part = PartRows(
        _stacked(test.rows_a, added["a"][0]),
        _stacked(test.rows_b, added["b"][0]),
        Links(test.links.pairs, test.links.n_a + len(added["a"][1]), test.links.n_b + len(added["b"][1])),
        np.concatenate([test.items_a, further["a"].numbers[added["a"][1]]]),
        np.concatenate([test.items_b, further["b"].numbers[added["b"][1]]]),
    )
    ids = {
        side: [table.side(side).ids[n] for n in own.tolist()] + [further[side].ids[n] for n in added[side][1].tolist()]
        for side, own in (("a", test.items_a), ("b", test.items_b))
    }
    places = {"a": _places(table, "a", ids["a"], part.items_a), "b": _places(table, "b", ids["b"], part.items_b)}
    lists, asking, notes = _lists(
        config, places, (part.links.n_a, part.links.n_b), (len(test.items_a), len(test.items_b))
    )
    unread = [_without_row(config, side, len(further[side]) - len(added[side][1])) for side in ("a", "b")]
    notes = (*further["a"].notes, *further["b"].notes, *filter(None, unread), *notes)
    items = {side: tuple(further[side].items[n] for n in added[side][1].tolist()) for side in ("a", "b")}
    held = {
        "a": [table.a.items[n] for n in test.items_a.tolist()], "b": [table.b.items[n] for n in test.items_b.tolist()]
    }  # fmt: skip
    facts = {
        "n_a": part.links.n_a,
        "n_b": part.links.n_b,
        "n_further_a": len(added["a"][1]),
        "n_further_b": len(added["b"][1]),
        "hash": hash_json([hash_texts(sorted([*held[side], *items[side]])) for side in ("a", "b")]),
        "lists": _hash_lists(lists, {side: [*held[side], *items[side]] for side in ("a", "b")}),
        "how": list(notes),
    }
    return Asked(
        part, asking["a"], asking["b"], ids["a"], ids["b"], lists["a"], lists["b"], facts, notes, items
    )  # fmt: skip


def _encoded(work: Any, encoder: Encoder, further: Further) -> tuple[Any, IntArray]:
    """Return the rows of further candidates and which of them have one."""
    if not len(further):
        return None, np.zeros(0, dtype=np.int64)
    found = encode_items(work.run, encoder, further.items, further.ids, work.progress, stage="evaluate")
    return found.rows, np.asarray(found.index, dtype=np.int64)


def _stacked(own: Any, more: Any) -> Any:
    if more is None:
        return own
    return sparse.vstack([own, more], format="csr") if hasattr(own, "tocsr") else np.concatenate([own, more])


def _without_row(config: Any, side: SideName, n: int) -> str:
    """Return that `n` further candidates cannot be encoded and are none, "" where all can."""
    return f"{n:,} further {shown_name(config, side)} candidates have no row and are left out" if n else ""


def _places(table: PairTable, side: SideName, ids: list[str], numbers: IntArray) -> Places:
    """Return id -> rows of a side of `asked`: an item is known by its own id, and by those of all its records.

    A text that many records share has the id of the first, and who lists the candidates of a record knows that record.
    """
    row_of = {number: row for row, number in enumerate(numbers.tolist()) if number >= 0}
    record_ids = dict(zip(table.records["_row"].to_list(), table.records["_id"].to_list(), strict=True))
    carried: Places = {}
    for item, record in table.side(side).carriers.tolist():
        if item in row_of:
            carried.setdefault(str(record_ids[record]), []).append(row_of[item])
    return carried | {id_: [row] for row, id_ in enumerate(ids)}


def _lists(
    config: Any, places: dict[str, Places], n_all: tuple[int, int], n_own: tuple[int, int]
) -> tuple[dict[str, Lists | None], dict[str, Any], tuple[str, ...]]:
    """Return the candidate lists of each side's queries, the masks of who asks, and notes."""
    lists: dict[str, Lists | None] = {"a": None, "b": None}
    asking: dict[str, Any] = {}
    notes = []
    for side, other, n, shape in (("a", "b", n_own[0], n_all), ("b", "a", n_own[1], n_all[::-1])):
        mask = np.arange(shape[0]) < n
        file = getattr(config.evaluate, f"candidates_{side}")
        if file is not None:
            lists[side], listed, note = _read_lists(file, places[side], places[other], shape, mask)
            mask &= listed
            notes.append(f"{shown_name(config, side)}: {note}")
        asking[side] = None if mask.all() else mask
    return lists, asking, tuple(notes)


def _read_lists(
    file: str, queries: Places, candidates: Places, shape: tuple[int, int], may_ask: Any
) -> tuple[Lists, Any, str]:
    """Read a file of (query, candidate) ids as lists over rows; raises `DataError` where it names no query of ours."""
    table = read_pairs(file, a="query", b="candidate")
    asking, answering = _known(queries, table.a.items, shape[0]), _known(candidates, table.b.items, shape[1])
    starts, ends = table.links.pairs[:, 0], table.links.pairs[:, 1]
    known = (np.diff(asking.indptr)[starts] > 0) & (np.diff(answering.indptr)[ends] > 0)
    listing = sparse.csr_array(
        (np.ones(int(known.sum()), dtype=np.int64), (starts[known], ends[known])), shape=(len(table.a), len(table.b))
    )
    matrix = (asking.T @ listing @ answering).tocsr()
    matrix.sort_indices()
    listed = (np.diff(matrix.indptr) > 0) & may_ask
    if not listed.any():
        raise DataError(
            f"{file} lists no candidate of any query of the test part; expected the columns query and candidate with "
            "ids of the pairs (see the ids that search prints, or queries.parquet)"
        )
    note = f"{int(listed.sum()):,} queries with a list of {np.diff(matrix.indptr)[listed].mean():.1f} candidates each"
    if n := int((may_ask & ~listed).sum()):
        note += f"; {n:,} without one do not ask"
    if not known.all():
        note += f"; {int((~known).sum()):,} listed pairs name ids that are not in the test part and its pool"
    return (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)), listed, note


def _known(places: Places, ids: Sequence[str], n_rows: int) -> Any:
    """Return which rows each id stands for, as a CSR matrix (n_ids, n_rows) of ones."""
    found = [places.get(id_, []) for id_ in ids]
    rows = [row for own in found for row in own]
    starts = np.concatenate([[0], np.cumsum([len(own) for own in found])]).astype(np.int64)
    return sparse.csr_array((np.ones(len(rows), dtype=np.int64), rows, starts), shape=(len(ids), n_rows))


def _hash_lists(lists: dict[str, Lists | None], items: dict[str, list[str]]) -> str | None:
    """Return the hash of who ranks what, by the items themselves: the order of records is no part of it."""
    if lists["a"] is None and lists["b"] is None:
        return None
    found = []
    for side, other in (("a", "b"), ("b", "a")):
        own = lists[side]
        asking = [] if own is None else np.repeat(np.arange(len(items[side])), np.diff(own[0])).tolist()
        ranked = [] if own is None else own[1].tolist()
        pairs = (f"{items[side][query]}\0{items[other][one]}" for query, one in zip(asking, ranked, strict=True))
        found.append(hash_texts(sorted(pairs)))
    return hash_json(found)


def plain(asked: Asked, test: PartRows) -> Asked:
    """Return the same queries ranking the test part alone, all of it: for models that only its items are encoded with.

    `test` is the test part whose rows come first in `asked`.
    """
    n_a, n_b = test.links.n_a, test.links.n_b
    if (asked.part.links.n_a, asked.part.links.n_b) == (n_a, n_b) and asked.candidates is None:
        return asked
    return replace(
        asked, part=test, queries_a=None, queries_b=None, ids_a=asked.ids_a[:n_a], ids_b=asked.ids_b[:n_b],
        lists_a=None, lists_b=None,
    )  # fmt: skip


def pools_key(config: RunConfig) -> str:
    """Return the hash of all files that shape the pool and the lists. Raises as `find_files`."""
    evaluate = config.evaluate
    files = [file for file in (evaluate.candidates_a, evaluate.candidates_b) if file is not None]
    places = [place for place in (*evaluate.pool_a, *evaluate.pool_b, *files) if place not in (UNPAIRED, CHEMICALS)]
    return hash_json([hash_file(path) for place in places for path in find_files(place)])
