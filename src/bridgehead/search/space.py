"""A searchable space: read the query, encode it, project it, ask the index, return hits.

It holds open parts and no state of its own, so threads may share it. How parts are found on disk and checked against
each other is in `opening`; how a query is understood in `reading`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bridgehead.errors import ArgumentError, BridgeheadError, UnknownIdError
from bridgehead.index import Index, IndexState, Item
from bridgehead.search.answer import Answer, Hit
from bridgehead.search.answering import Outcome, answers, answers_to, give_rows, words_of
from bridgehead.search.encoding import EncodedItems, Heads, QueryEncoder, encode_items
from bridgehead.search.query import Query
from bridgehead.search.ranking import Asked
from bridgehead.search.reading import Reading, read_query
from bridgehead.search.references import KnownReferences
from bridgehead.vectors import FloatArray

if TYPE_CHECKING:
    from bridgehead.index.structures import Verify
    from bridgehead.search.batch import BatchReport
    from bridgehead.search.classify import Classified


class Space:
    """Two encoders, their heads and an index of both sides.

    `verify_substructure`, when it is set, matches substructures in the place of RDKit in this process.
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
        self.verify_substructure: Verify | None = None
        self.references = KnownReferences()
        with index.state() as state:
            # Now, while the files of this build are there.
            self.references.of(state)
        self.names = dict(names or {side: facts.name for side, facts in index.sides.items()})
        self.kinds = dict(kinds or {side: facts.kind for side, facts in index.sides.items()})

    def __enter__(self) -> "Space":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the index; the space cannot be used afterwards."""
        self.index.close()

    def search(self, text: str, k: int = 10, offset: int = 0, of: str | None = None, read_as: str | None = None,
               where: Any = None, **further: Any) -> list[Hit]:  # fmt: skip
        """Return the hits number `offset` + 1 to `offset` + `k` for a text: the hits of `answer`."""
        return list(self.answer(text, k, offset, of, read_as, where, **further).hits)

    def answer(self, text: str, k: int = 10, offset: int = 0, of: str | None = None, read_as: str | None = None,
               where: Any = None, **further: Any) -> Answer:  # fmt: skip
        """Return hits for a text with how it was read.

        `of` is the side to find, by its shown name or "a"/"b"; by default the other side than the query is on, so words
        find molecules, and a name or structure finds texts. `read_as`: see `read_query`. `where`: a condition on the
        payload. `further`: `mode`, `distinct`, `substructure`, `similar_to`, `least_similarity` and `explain`, see
        `Query`. A query of which the encoder knows nothing is answered from words, or by no hit and a note that says
        so. `k` over what there is gives all.

        Raises `ArgumentError` (query empty or too long, `of`, `read_as`, k < 1, offset < 0, a filter that cannot be
        read) and `StructureError`.
        """
        return _or_raise(self.answer_all([Query(text, k, offset, of, read_as, where, **further)])[0])

    def answer_all(self, queries: Sequence[Query]) -> list[Outcome]:
        """Return for each query what `answer` would return, or the error that it would raise.

        All are answered from one state of the index. Queries of a side are encoded together, and alike ones looked up
        together; the answers are those that each would get alone, and an error concerns its own query only. Raises
        `ArgumentError` for what is no `Query`.
        """
        for query in queries:
            if not isinstance(query, Query):
                raise ArgumentError(f"a query is a {type(query).__name__} ({query!r:.80}); expected a Query")
        with self.index.state() as state:
            return answers(self, state, queries)

    def similar(self, id: str, k: int = 10, offset: int = 0, of: str | None = None, side: str | None = None,
                where: Any = None, **further: Any) -> Answer:  # fmt: skip
        """Return the neighbours of an item in the space, on its own side unless `of` says another; itself left out.

        `side`: the one that the item is on, where both have an item of this id. The rest as in `answer`. Raises
        `UnknownIdError` where there is no such item, and as `answer`.
        """
        query = Query(id, k, offset, of, None, where, **further)
        with self.index.state() as state:
            item = self._named(state, id, side)
            target = self.side(of) if of is not None else item.side
            said = f"items near the {self.names[item.side]} {item.names[0] if item.names else item.id}"
            reading = Reading("id", query.text, item.side, item, said)
            without = item.number if target == item.side else None
            asked = Asked(query, reading, target, words_of(self, reading), without=without)
            return _or_raise(answers_to(self, state, [asked])[0])

    def search_file(self, queries: str | Path, out: str | Path, k: int = 10, **options: Any) -> "BatchReport":
        """Search with every query of a file and write all hits to the parquet file `out`; see `batch.search_file`."""
        from bridgehead.search.batch import search_file

        return search_file(self, queries, out, k, **options)

    def item(self, id: str, side: str | None = None) -> Item:
        """Return the item of an id, of `side` or of the first that has one; raises `UnknownIdError`."""
        with self.index.state() as state:
            return self._named(state, id, side)

    def encode(self, items: Sequence[str], side: str) -> tuple[FloatArray, dict[int, str]]:
        """Return the rows of raw items of a side in the space, and position -> reason for those that have none.

        There is one row an item, (n, d) float32 of unit length; zero for an item that is empty, cannot be read, or of
        which the encoder knows nothing. Raises `ArgumentError` for `side`.
        """
        encoded = self.encoded(items, self.side(side))
        return encoded.rows, {failure.position: failure.reason for failure in encoded.failures}

    def encoded(self, items: Sequence[str], own: str) -> EncodedItems:
        """As `encode`, for side "a" or "b", with what is known of each failure."""
        project = self.heads.project_a if own == "a" else self.heads.project_b
        return encode_items(self.encoders[own], project, items, self.names[own])

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
        """Return at which exact rank (from 1) of how many items the item `id` comes for a text.

        `of` and `read_as` as in `answer`. None where the query has no row in the space. Takes a pass over all rows of
        the side. Raises as `answer`, and `ArgumentError` when no item of that side has this id.
        """
        asked_for = Query(query, of=of, read_as=read_as)
        with self.index.state() as state:
            wanted = self.side(of) if of is not None else None
            reading = read_query(asked_for.text, state, self.kinds, read_as, wanted)
            target = wanted or self.other_side(reading.side)
            item = self._named(state, id, target)
            asked = Asked(asked_for, reading, target, "")
            give_rows(self, state, [asked])
            if asked.error is not None:
                raise asked.error
            if asked.row is None:
                return None
            return state.rank_of(target, asked.row, item.number), state.size(target)

    def side(self, of: str) -> str:
        """Return "a" or "b" for a side's shown name, or for "a" or "b"; raises `ArgumentError` for another name."""
        for side, name in self.names.items():
            if of == name:
                return side
        return of if of in self.names else self.index.side_named(of)

    def other_side(self, side: str | None) -> str:
        """Return the side that is not `side`, or the first one where there is no other."""
        others = [other for other in self.names if other != side]
        return others[0] if others else next(iter(self.names))

    def _named(self, state: IndexState, id: str, side: str | None) -> Item:
        wanted = self.side(side) if side is not None else None
        for item in state.by_id(id):
            if wanted in (None, item.side):
                return item
        what = "item" if wanted is None else self.names[wanted]
        raise UnknownIdError(f"no {what} of this index has the id {id!r:.200}")


def _or_raise(found: Answer | BridgeheadError) -> Answer:
    if isinstance(found, BridgeheadError):
        raise found
    return found
