"""A typed client of the HTTP service: questions in, records out, with retries where they can do no harm.

Needs nothing but the standard library. Each thread has a connection of its own, so one `Client` may be shared. No
redirect is followed and no proxy of the environment is asked. Not about serving (`bridgehead.serve`).
"""

import http.client
import json
import random
import re
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from bridgehead.client_answers import (
    About,
    Classified,
    ClassifiedItem,
    Encoded,
    Explanation,
    Failure,
    Found,
    Hit,
    Item,
    LabelScore,
    Reading,
    Side,
    made,
)
from bridgehead.errors import ArgumentError, ServiceError

__all__ = [
    "About", "Classified", "ClassifiedItem", "Client", "Encoded", "Explanation", "Failure", "Found", "Hit", "Item",
    "LabelScore", "Reading", "Side",
]  # fmt: skip
_MOST_BYTES, _AGAIN = 256 * 2**20, frozenset([429, 502, 503])
_LONGEST_WAIT = 30.0
_LONGEST_TIMEOUT, _MOST_SECONDS = 86_400, 1e9
_UNSENDABLE = re.compile(r"[^!-~]")
_FIRST_WAIT = 0.1


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
            port, good = parts.port, parts.scheme in ("http", "https") and bool(parts.hostname)
            # Names and paths that no request can hold; the path is taken as it is written, percent-encoded.
            good = good and bool(str(parts.hostname).encode("idna")) and not _UNSENDABLE.search(parts.path)
        except (ValueError, TypeError, AttributeError):
            good = False
        if not good:
            raise ArgumentError(f"url = {url!r:.80}; expected one such as http://127.0.0.1:8000")
        if token is not None and not (isinstance(token, str) and token.isascii() and token.isprintable() and token):
            raise ArgumentError("the token is no line of ASCII characters; expected what the service was started with")
        if not (isinstance(timeout, int | float) and 0 < timeout <= _LONGEST_TIMEOUT):
            raise ArgumentError(f"timeout = {timeout!r:.80}; expected seconds above 0, a day at most")
        if not (isinstance(retries, int) and retries >= 0):
            raise ArgumentError(f"retries = {retries!r:.80}; expected a whole number of at least 0")
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
        return made(Found, self._json("POST", "/search", asked))

    def similar(self, id: str, k: int = 10, offset: int = 0, of: str | None = None, filter: str | None = None) -> Found:
        """Return items that are like the item `id`, on the side `of` (by default its own)."""
        asked = {"k": k, "offset": offset, "of": of, "filter": filter}
        return made(Found, self._json("GET", _address("/similar", id, asked)))

    def item(self, id: str, of: str | None = None) -> Item:
        """Return the item `id`; `ServiceError` with status 404 where there is none."""
        return made(Item, self._json("GET", _address("/items", id, {"of": of})))

    def classify(
        self, items: Sequence[str], labels: Sequence[str], templates: Sequence[str] = ("{}",), k: int | None = None,
        abstain_below: float | None = None, synonyms: Mapping[str, Sequence[str]] | None = None, of: str | None = None,
    ) -> Classified:  # fmt: skip
        """Return the nearest of `labels` for each item; the arguments are those of the service's `/classify`."""
        asked = {name: value for name, value in locals().items() if name != "self"}
        return made(Classified, self._json("POST", "/classify", asked))

    def encode(self, items: Sequence[str], of: str) -> Encoded:
        """Return rows of the space for items of the side `of`."""
        asked = {"items": items if isinstance(items, str) else list(items), "of": of}
        return made(Encoded, self._json("POST", "/encode", asked))

    def depict(self, id: str, of: str | None = None) -> str:
        """Return the picture of an item as SVG; `ServiceError` with status 404 where it has none."""
        return self._sent("GET", _address("/depict", id, {"of": of}), None)[1].decode("utf-8", "replace")

    def about(self) -> About:
        """Return what is being served."""
        return made(About, self._json("GET", "/about"))

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
    try:
        query = urlencode({name: value for name, value in asked.items() if value is not None})
        return f"{path}/{quote(id, safe='')}" + (f"?{query}" if query else "")
    except UnicodeEncodeError as error:
        raise ArgumentError(f"what is asked of {id!r:.80} is no text: half a surrogate pair stands in it") from error


def _failure(path: str, status: int, data: bytes, headers: Mapping[str, str]) -> ServiceError:
    wait = _wait_of(headers.get("retry-after", ""))
    try:
        error = json.loads(data)["error"]
        kind, message = str(error["type"]), str(error["message"])
    except (ValueError, TypeError, KeyError, RecursionError):
        # Not from the service itself: a proxy, or an answer that was cut off.
        kind, message = "", _excerpt(data)
    return ServiceError(f"{path} was answered with {status}: {message}", status, kind, wait)


def _wait_of(given: str) -> float | None:
    """Return the seconds that a Retry-After header asks for, as a number or as a date; None where it says neither."""
    try:
        wait = float(given) if given.isdigit() else _seconds_until(parsedate_to_datetime(given))
    except (ValueError, OverflowError):
        return None
    return min(wait, _MOST_SECONDS)


def _seconds_until(moment: datetime) -> float:
    # A date without a zone is meant as UTC.
    return max(0.0, (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - time.time())


def _excerpt(data: bytes) -> str:
    return repr(" ".join(data[:400].decode("utf-8", "replace").split())[:200]) if data.strip() else "an empty body"
