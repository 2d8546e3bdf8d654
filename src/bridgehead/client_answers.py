"""The records that `bridgehead.client` gives, and how an answer of the service becomes one.

Not about connections (`client`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, TypeVar, get_args, get_origin

from bridgehead.errors import ServiceError

Record = TypeVar("Record")


@dataclass(frozen=True)
class Reading:
    """How a query was read: `kind` ("text", "smiles", ...), the `value`, its `side`, and a sentence."""

    kind: str
    value: str
    side: str | None
    explanation: str


@dataclass(frozen=True)
class Explanation:
    """Why a hit was found: its cosine and its percentile among random pairs, the nearest training pair (`id_a`,
    `item_a`, `id_b`, `item_b`, `to_query`, `to_hit`), the words it shares, its ranks by list."""

    similarity: float | None
    percentile: float | None
    nearest_pair: Mapping[str, Any] | None
    matched_words: tuple[str, ...] = ()
    ranks: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Hit:
    """An item that was found; the fields are those of the service's `/search`."""

    rank: int
    id: str
    side: str
    score: float
    percentile: float | None
    item: str
    name: str | None
    payload: Mapping[str, Any]
    read_as: str
    has_picture: bool
    also: tuple[str, ...]
    explanation: Explanation | None


@dataclass(frozen=True)
class Found:
    """Hits with how they came about; `more` says that a further page has hits."""

    query: str
    reading: Reading
    readings: tuple[str, ...]
    of: str
    kind: str
    note: str
    k: int
    offset: int
    n_searched: int
    more: bool
    took_ms: float
    hits: tuple[Hit, ...]


@dataclass(frozen=True)
class Item:
    """An item as it is stored."""

    id: str
    side: str
    of: str
    kind: str
    item: str
    name: str | None
    names: tuple[str, ...]
    key: str | None
    payload: Mapping[str, Any]
    has_picture: bool


@dataclass(frozen=True)
class LabelScore:
    """A class as an answer: a cosine, and a share among these labels that is no probability."""

    label: str
    score: float
    share_among_candidates: float


@dataclass(frozen=True)
class ClassifiedItem:
    """What an item was put to; `answer` None is none of these."""

    position: int
    item: str
    answer: str | None
    n_tied: int
    labels: tuple[LabelScore, ...]


@dataclass(frozen=True)
class Failure:
    """An item without an answer or a row: its position among those sent, and why."""

    position: int
    reason: str
    item: str = ""


@dataclass(frozen=True)
class Classified:
    """Answers with all that they are conditional on."""

    items: tuple[ClassifiedItem, ...]
    unread: tuple[Failure, ...]
    items_are: str
    labels_are: str
    candidates: Mapping[str, Sequence[str]]
    templates: tuple[str, ...]
    logit_scale: float
    abstain_below: float | None
    sensitivity: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Encoded:
    """Rows of the space, one an item in order (lists of `dim` numbers); zero for the items in `failures`."""

    of: str
    dim: int
    rows: tuple[Sequence[float], ...]
    failures: tuple[Failure, ...]


@dataclass(frozen=True)
class Side:
    """A side of the space; `recall` is that of the index against exact search, by kind of query."""

    side: str
    name: str
    kind: str
    n_items: int
    method: str
    recall: Mapping[str, float]
    fields: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class About:
    """What is being served; `measured` is None where nothing was."""

    name: str
    version: str
    heads: str
    sides: tuple[Side, ...]
    readings: tuple[str, ...]
    modes: tuple[str, ...]
    max_k: int
    examples: tuple[str, ...]
    measured: Mapping[str, Any] | None
    report: str | None
    attribution: str


# Which fields hold records, or lists of them.
_PARTS: dict[tuple[type, str], type] = {
    (Hit, "explanation"): Explanation,
    (Found, "reading"): Reading,
    (Found, "hits"): Hit,
    (ClassifiedItem, "labels"): LabelScore,
    (Classified, "items"): ClassifiedItem,
    (Classified, "unread"): Failure,
    (Encoded, "failures"): Failure,
    (About, "sides"): Side,
}


def made(kind: type[Record], content: Any) -> Record:
    """Return `content` as a record; fields that are not known are left out, so that a newer service can be asked."""
    if not isinstance(content, Mapping):
        raise ServiceError(f"expected an object for {kind.__name__}, and got a {type(content).__name__}")
    values: dict[str, Any] = {}
    for one in fields(kind):  # type: ignore[arg-type]
        if one.name not in content:
            if one.default is MISSING and one.default_factory is MISSING:
                raise ServiceError(f"the answer lacks {one.name!r}: it is not of this service, or of another release")
            continue
        values[one.name] = _value(content[one.name], one, _PARTS.get((kind, one.name)))
    return kind(**values)


def _value(value: Any, one: "Field[Any]", part: type | None) -> Any:
    several = get_origin(one.type) is tuple
    if several and not isinstance(value, list):
        raise ServiceError(f"expected a list for {one.name!r} in the answer, and got a {type(value).__name__}")
    if part is None:
        return tuple(value) if isinstance(value, list) else value
    if several:
        return tuple(made(part, each) for each in value)
    return None if value is None and type(None) in get_args(one.type) else made(part, value)
