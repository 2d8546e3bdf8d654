"""A typed client of the HTTP service: questions in, records out, with retries where they can do no harm.

Needs nothing but the standard library. Each thread has a connection of its own, so one `Client` may be shared. No
redirect is followed and no proxy of the environment is asked. Not about serving (`bridgehead.serve`).
"""

import http.client
import json
import random
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from bridgehead.errors import ArgumentError, ServiceError

Record = TypeVar("Record")
_MOST_BYTES, _AGAIN = 256 * 2**20, frozenset([429, 502, 503])
_LONGEST_WAIT = 30.0
_FIRST_WAIT = 0.1


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


class Client:
    """A client of the service at `url` ("http://127.0.0.1:8000").

    `token`: what the service demands, if it does. `timeout`: seconds for connecting and for each read. `retries`: how
    often a request is sent again after a lost connection or a 429, 502 or 503, with growing waits or as long as the
    service asks (30 s at most): every request only reads, so sending it twice does no harm. All methods raise
    `ServiceError`, and `ArgumentError` for what cannot be sent.
    """

    def __init__(self, url: str, token: str | None = None, timeout: float = 10.0, retries: int = 3) -> None:
        try:
            parts = urlsplit(url)
            port, good = parts.port, parts.scheme in ("http", "https") and parts.hostname
        except (ValueError, TypeError, AttributeError):
            good = None
        if not good:
            raise ArgumentError(f"url = {url!r:.80}; expected one such as http://127.0.0.1:8000")
        if token is not None and (not token.isascii() or not token.isprintable() or not token):
            raise ArgumentError("the token is no line of ASCII characters; expected what the service was started with")
        if timeout <= 0 or retries < 0:
            raise ArgumentError(f"timeout = {timeout!r}, retries = {retries!r}; expected above 0, and 0 or more")
        self._secure, self._host, self._port = parts.scheme == "https", str(parts.hostname), port
        self._path, self._timeout, self._retries = parts.path.rstrip("/"), timeout, retries
        self._headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {token}"} if token else {})
        self._own = threading.local()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close this thread's connection; the next request opens another."""
        if (connection := getattr(self._own, "connection", None)) is not None:
            connection.close()
            self._own.connection = None

    def search(
        self, q: str, k: int = 10, offset: int = 0, filter: str | Mapping[str, Any] | None = None,
        of: str | None = None, read_as: str | None = None, mode: str = "space", distinct: bool = False,
        substructure: str | None = None, similar_to: str | None = None, least_similarity: float = 0.7,
        explain: bool = False,
    ) -> Found:  # fmt: skip
        """Return the hits for `q`; the arguments are those of the service's `/search`."""
        asked = {name: value for name, value in locals().items() if name != "self"}
        return _made(Found, self._json("POST", "/search", asked))

    def similar(self, id: str, k: int = 10, offset: int = 0, of: str | None = None, filter: str | None = None) -> Found:
        """Return items that are like the item `id`, on the side `of` (by default its own)."""
        asked = {"k": k, "offset": offset, "of": of, "filter": filter}
        return _made(Found, self._json("GET", _address("/similar", id, asked)))

    def item(self, id: str, of: str | None = None) -> Item:
        """Return the item `id`; `ServiceError` with status 404 where there is none."""
        return _made(Item, self._json("GET", _address("/items", id, {"of": of})))

    def classify(
        self, items: Sequence[str], labels: Sequence[str], templates: Sequence[str] = ("{}",), k: int | None = None,
        abstain_below: float | None = None, synonyms: Mapping[str, Sequence[str]] | None = None, of: str | None = None,
    ) -> Classified:  # fmt: skip
        """Return the nearest of `labels` for each item; the arguments are those of the service's `/classify`."""
        asked = {name: value for name, value in locals().items() if name != "self"}
        return _made(Classified, self._json("POST", "/classify", asked))

    def encode(self, items: Sequence[str], of: str) -> Encoded:
        """Return rows of the space for items of the side `of`."""
        return _made(Encoded, self._json("POST", "/encode", {"items": list(items), "of": of}))

    def depict(self, id: str, of: str | None = None) -> str:
        """Return the picture of an item as SVG; `ServiceError` with status 404 where it has none."""
        return self._sent("GET", _address("/depict", id, {"of": of}), None)[1].decode("utf-8", "replace")

    def about(self) -> About:
        """Return what is being served."""
        return _made(About, self._json("GET", "/about"))

    def health(self) -> bool:
        """Say whether the service answers at all."""
        return self._says_yes("/health")

    def ready(self) -> bool:
        """Say whether the service takes requests."""
        return self._says_yes("/ready")

    def _says_yes(self, path: str) -> bool:
        try:
            return self._once("GET", path, None)[0] == 200
        except (OSError, http.client.HTTPException):
            self.close()
            return False

    def _json(self, method: str, path: str, content: Mapping[str, Any] | None = None) -> Any:
        try:
            body = None if content is None else json.dumps(content, allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise ArgumentError(f"what is asked cannot be written as JSON: {error}") from error
        status, data, _ = self._sent(method, path, body)
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise ServiceError(f"{path} was answered with no JSON: {_excerpt(data)}", status) from error

    def _sent(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes, Mapping[str, str]]:
        """Return status, body and headers of an answer with status 200, sending again where that may help."""
        for attempt in range(self._retries + 1):
            wait = _FIRST_WAIT * 2**attempt * random.uniform(0.5, 1.0)
            try:
                status, data, headers = self._once(method, path, body)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                failure = ServiceError(f"{path}: no answer from {self._host} ({error or type(error).__name__})")
                if isinstance(error, TimeoutError) or attempt == self._retries:
                    raise failure from error
            else:
                if status == 200:
                    return status, data, headers
                failure = _failure(path, status, data, headers)
                if status not in _AGAIN or attempt == self._retries:
                    raise failure
                wait = max(wait, min(failure.retry_after or 0.0, _LONGEST_WAIT))
            time.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    def _once(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes, Mapping[str, str]]:
        connection = self._connection()
        connection.request(method, self._path + path, body, self._headers)
        response = connection.getresponse()
        data = response.read(_MOST_BYTES)
        if response.length:
            raise http.client.HTTPException(f"an answer that was cut off, or of over {_MOST_BYTES:,} bytes")
        return response.status, data, {name.lower(): value for name, value in response.getheaders()}

    def _connection(self) -> http.client.HTTPConnection:
        found: http.client.HTTPConnection | None = getattr(self._own, "connection", None)
        if found is None:
            kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
            found = self._own.connection = kind(self._host, self._port, timeout=self._timeout)
        return found


def _address(path: str, id: str, asked: Mapping[str, Any]) -> str:
    if not isinstance(id, str) or not id:
        raise ArgumentError(f"id = {id!r:.80}; expected text")
    query = urlencode({name: value for name, value in asked.items() if value is not None})
    return f"{path}/{quote(id, safe='')}" + (f"?{query}" if query else "")


def _failure(path: str, status: int, data: bytes, headers: Mapping[str, str]) -> ServiceError:
    given = headers.get("retry-after", "")
    wait = float(given) if given.isascii() and given.isdigit() else None
    try:
        error = json.loads(data)["error"]
        kind, message = str(error["type"]), str(error["message"])
    except (ValueError, TypeError, KeyError, RecursionError):
        # Not from the service itself: a proxy, or an answer that was cut off.
        kind, message = "", _excerpt(data)
    return ServiceError(f"{path} was answered with {status}: {message}", status, kind, wait)


def _excerpt(data: bytes) -> str:
    return repr(" ".join(data[:400].decode("utf-8", "replace").split())[:200]) if data.strip() else "an empty body"


def _made(kind: type[Record], content: Any) -> Record:
    """Return `content` as a record; fields that are not known are left out, so that a newer service can be asked."""
    if not isinstance(content, Mapping):
        raise ServiceError(f"expected an object for {kind.__name__}, and got a {type(content).__name__}")
    values: dict[str, Any] = {}
    for one in fields(kind):  # type: ignore[arg-type]
        if one.name not in content:
            if one.default is MISSING and one.default_factory is MISSING:
                raise ServiceError(f"the answer lacks {one.name!r}: it is not of this service, or of another release")
            continue
        values[one.name] = _value(content[one.name], _PARTS.get((kind, one.name)))
    return kind(**values)


def _value(value: Any, part: type | None) -> Any:
    if part is None:
        return tuple(value) if isinstance(value, list) else value
    if isinstance(value, list):
        return tuple(_made(part, each) for each in value)
    return None if value is None else _made(part, value)
