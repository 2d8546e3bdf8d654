"""A searchable space: read the query, encode it, project it, ask the index, return hits.

It holds open parts and no state of its own, so threads may share it. How parts are found on disk and checked against
each other is in `opening`; how a query is understood in `reading`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from bridgehead.errors import ArgumentError, StructureError
from bridgehead.index import Index, Item, check_page
from bridgehead.search.reading import Reading, read_query
from bridgehead.vectors import FloatArray

if TYPE_CHECKING:
    from bridgehead.search.classify import Classified


class Heads(Protocol):
    """Trained heads as search needs them: encoder rows in, unit rows of the shared space out."""

    def project_a(self, rows: Any) -> FloatArray:
        """Project rows of side a."""

    def project_b(self, rows: Any) -> FloatArray:
        """Project rows of side b."""


class QueryEncoder(Protocol):
    """An encoder as search needs it; `encode` returns an object with `.rows` and `.failures`."""

    def encode(self, items: Any) -> Any:
        """Encode raw items."""


@dataclass(frozen=True)
class Hit:
    """An item that was found.

    `rank` starts at 1 and counts from the first page. `score` is the cosine of the query with the item's stored row, in
    [-1, 1], or, where `read_as` is "words", the BM25 score of the words they share (above 0). `payload` holds what was
    stored with the item, and its `name` and `names` where it has any. `read_as` says how the query was read.
    """

    rank: int
    id: str
    score: float
    item: str
    payload: Mapping[str, Any]
    read_as: str


@dataclass(frozen=True)
class Answer:
    """Hits with how they came about: the `reading`, the shown name of the side searched (`of`), and a `note`.

    `note` is "" or says why the answer is from words alone or empty.
    """

    hits: tuple[Hit, ...]
    reading: Reading
    of: str
    note: str = ""

    @property
    def explanation(self) -> str:
        """How the query was read, and the note."""
        return f"{self.reading.explanation}. {self.note}".strip() if self.note else self.reading.explanation


class Space:
    """Two encoders, their heads and an index of both sides.

    `names` and `kinds`: side -> shown name and kind of item ("molecule", "text", ...); by default those of the index.
    """

    def __init__(
        self,
        index: Index,
        encoder_a: QueryEncoder,
        encoder_b: QueryEncoder,
        heads: Heads,
        names: Mapping[str, str] | None = None,
        kinds: Mapping[str, str] | None = None,
    ) -> None:
        self.index = index
        self.heads = heads
        self.encoders = {"a": encoder_a, "b": encoder_b}
        self.names = dict(names or {side: facts.name for side, facts in index.sides.items()})
        self.kinds = dict(kinds or {side: facts.kind for side, facts in index.sides.items()})

    def __enter__(self) -> "Space":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the index; the space cannot be used afterwards."""
        self.index.close()

    def search(
        self, query: str, k: int = 10, offset: int = 0, of: str | None = None, read_as: str | None = None
    ) -> list[Hit]:
        """Return the hits number `offset` + 1 to `offset` + `k` for `query`: the hits of `answer`."""
        return list(self.answer(query, k, offset, of, read_as).hits)

    def answer(
        self, query: str, k: int = 10, offset: int = 0, of: str | None = None, read_as: str | None = None
    ) -> Answer:
        """Return hits for `query` with how it was read.

        `of` is the side to find, by its shown name or "a"/"b"; by default the other side than the query is on, so words
        find molecules, and a name or structure finds texts. `read_as`: see `read_query`. A query of which the encoder
        knows nothing is answered from words, or by no hit and a note that says so. `k` over what there is gives all.

        Raises `ArgumentError` (query empty or too long, `of`, `read_as`, k < 1, offset < 0) and `StructureError`.
        """
        check_page(k, offset)
        wanted = self.side(of) if of is not None else None
        reading = read_query(query, self.index, self.kinds, read_as, wanted)
        target = wanted or self._other(reading.side)
        if reading.kind == "inchikey" and reading.item is None:
            return Answer((), reading, self.names[target])
        row, reason = self._row(reading)
        if row is None:
            return self._from_words(reading, target, k, offset, reason)
        ranked = self.index.search(target, row[None], k, offset)[0]
        items = self.index.items(target, ranked.rows.tolist())
        hits = _hits(items, ranked.scores.tolist(), offset, reading.kind)
        return Answer(hits, reading, self.names[target])

    def classify(
        self,
        items: Sequence[str],
        labels: Sequence[str],
        templates: Sequence[str] = ("{}",),
        k: int | None = None,
        abstain_below: float | None = None,
        synonyms: Mapping[str, Sequence[str]] | None = None,
        of: str | None = None,
    ) -> "Classified":
        """Return the nearest of described classes for each item, without any training on these classes.

        `items` are raw items of one side (SMILES, texts; ids where rows come from a file), `labels` the names of the
        classes, read by the other side's encoder: each name in each of `templates` (texts with `{}` where it goes), the
        rows averaged by class. `synonyms`: label -> further names, averaged in. `of`: the side that labels are on, by
        its shown name or "a"/"b"; by default that of texts (else b), so that molecules are put to words; with
        `of="molecule"` labels are structures and items texts. `k`: how many labels an item gets (None: five at most).
        `abstain_below`: a cosine; an item whose nearest label is below it is answered with None, "none of these".
        Choose it on items whose class is known: `bridgehead.evaluate.zero_shot.calibrate_abstention`.

        Shares are softmax over these labels alone, at the scale that training ended with: another set of labels gives
        others, and `sensitivity` in the result shows how answers move when a class is removed, a template stands alone
        or a synonym is a candidate of its own. Items that cannot be read are listed in `unread` with the reason.

        Raises `ArgumentError` for labels, templates or synonyms that make no prompts, labels that the encoder knows
        nothing of, and options out of range.
        """
        from bridgehead.search.classify import classify_items

        return classify_items(self, items, labels, templates, k, abstain_below, synonyms, of)

    def rank_of(self, query: str, id: str, of: str | None = None, read_as: str | None = None) -> tuple[int, int] | None:
        """Return at which exact rank (from 1) of how many items the item `id` comes for `query`.

        `of` and `read_as` as in `answer`. None where the query has no row in the space. Takes a pass over all rows of
        the side. Raises as `answer`, and `ArgumentError` when no item of that side has this id.
        """
        wanted = self.side(of) if of is not None else None
        reading = read_query(query, self.index, self.kinds, read_as, wanted)
        target = wanted or self._other(reading.side)
        items = [item for item in self.index.by_id(id) if item.side == target]
        if not items:
            raise ArgumentError(f"no {self.names[target]} of this index has the id {id!r}")
        row, _ = self._row(reading)
        if row is None:
            return None
        return self.index.rank_of(target, row, items[0].row), self.index.size(target)

    def side(self, of: str) -> str:
        """Return "a" or "b" for a side's shown name, or for "a" or "b"; raises `ArgumentError` for another name."""
        for side, name in self.names.items():
            if of == name:
                return side
        return self.index.side_named(of)

    def _other(self, side: str | None) -> str:
        others = [other for other in self.index.sides if other != side]
        return others[0] if others else next(iter(self.index.sides))

    def _row(self, reading: Reading) -> tuple[FloatArray | None, str]:
        """Return the query's row in the space, or None and why there is none."""
        if reading.item is not None:
            row = self.index.row(reading.item.side, reading.item.row)
            return (row, "") if row.any() else (None, "the encoder knew nothing of this item when it was indexed")
        if reading.side is None:
            return None, "no side of this space has an encoder for words"
        encoded = self.encoders[reading.side].encode([reading.value])
        if encoded.failures:
            reason = str(encoded.failures[0].reason)
            if reading.kind == "smiles":
                raise StructureError(f"the structure {reading.value[:80]!r} cannot be encoded: {reason}")
            return None, f"the encoder of {self.names[reading.side]} cannot read it ({reason})"
        # A zero row would be projected to whatever the heads' biases say.
        if not np.asarray(abs(encoded.rows).sum()) > 0:
            return None, f"the encoder of {self.names[reading.side]} knows nothing of it"
        project = self.heads.project_a if reading.side == "a" else self.heads.project_b
        row = project(encoded.rows)[0]
        return (row, "") if row.any() else (None, "the heads map it to zero")

    def _from_words(self, reading: Reading, side: str, k: int, offset: int, reason: str) -> Answer:
        found = self.index.words(reading.value, side, k, offset)
        items = self.index.items(side, [hit.row for hit in found])
        hits = _hits(items, [hit.score for hit in found], offset, "words")
        if hits:
            note = f"{reason}: answered from the words alone; scores are BM25, not cosines"
        else:
            note = f"{reason}, and no {self.names[side]} holds its words: nothing to show"
        return Answer(hits, reading, self.names[side], note)


def _hits(items: list[Item], scores: list[float], offset: int, read_as: str) -> tuple[Hit, ...]:
    return tuple(
        Hit(offset + position, item.id, float(score), item.item, _payload(item), read_as)
        for position, (item, score) in enumerate(zip(items, scores, strict=True), start=1)
    )


def _payload(item: Item) -> dict[str, Any]:
    payload = dict(item.payload)
    if item.names:
        payload.setdefault("name", item.names[0])
        payload.setdefault("names", list(item.names))
    return payload
