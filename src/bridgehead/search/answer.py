"""What comes back from a search: hits, how they came about, and why each is there.

Records only; they are made in `space` and explained in `explain`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bridgehead.search.reading import Reading


@dataclass(frozen=True)
class NearestPair:
    """The training pair that is most like a query and its hit together.

    `id_a`, `item_a`, `id_b`, `item_b` are its two ends. `to_query` and `to_hit` are the cosines of the query with the
    end on the query's side and of the hit with the end on the hit's side; the pair is the one whose smaller cosine is
    largest, so that both ends are near and not one alone.
    """

    id_a: str
    item_a: str
    id_b: str
    item_b: str
    to_query: float
    to_hit: float


@dataclass(frozen=True)
class Explanation:
    """Why an item was found.

    `similarity`: cosine of the query with the item's row, in [-1, 1]; None where the query has no row. `percentile`:
    the share (0 to 100) of random pairs of items of these two sides whose cosine is below it; None where that was
    never measured. `nearest_pair`: the training pair nearest to query and hit together, None where none is known.
    `matched_words`: words of the query that the item holds, as they are indexed. `ranks`: where the item stands in the
    list by the space ("space") and in that by words ("words"), from 1; a list in whose first part it is not is absent.
    """

    similarity: float | None = None
    percentile: float | None = None
    nearest_pair: NearestPair | None = None
    matched_words: tuple[str, ...] = ()
    ranks: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Hit:
    """An item that was found.

    `rank` starts at 1 and counts from the first page. `score` is the cosine of the query with the item's stored row, in
    [-1, 1]; where `read_as` is "words" the BM25 score of the words they share (above 0), and in mode "hybrid" the sum
    of reciprocal ranks. `payload` holds what was stored with the item, and its `name` and `names` where it has any.
    `read_as` says how the query was read. `percentile` (0 to 100) is the share of random pairs of items of these sides
    whose cosine is below this one's; None where there is no cosine or nothing to compare with. `also` are ids of
    further items that are the same thing and were folded into this hit. `explanation` only where one was asked for.
    """

    rank: int
    id: str
    score: float
    item: str
    payload: Mapping[str, Any]
    read_as: str
    percentile: float | None = None
    also: tuple[str, ...] = ()
    explanation: Explanation | None = None


@dataclass(frozen=True)
class Answer:
    """Hits with how they came about: the `reading`, the shown name of the side searched (`of`), and a `note`.

    `note` is "" or says why the answer is from words alone or empty. `readings` are other ways in which this text could
    be read, to pass as `read_as`. `more`: whether a further page has hits. `n_searched`: how many items pass the
    filters; where a substructure is asked for, at most so many.
    """

    hits: tuple[Hit, ...]
    reading: Reading
    of: str
    note: str = ""
    readings: tuple[str, ...] = ()
    more: bool = False
    n_searched: int = 0

    @property
    def explanation(self) -> str:
        """How the query was read, and the note."""
        return f"{self.reading.explanation}. {self.note}".strip() if self.note else self.reading.explanation
