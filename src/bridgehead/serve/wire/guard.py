"""Around every request: who may ask, how much may come in, what an error looks like, what goes into the log.

Plain ASGI, so that it sees requests as they stream in and answers as they go out. Not about what is asked.
"""

import asyncio
import contextlib
import hmac
import time
import uuid
from base64 import b64decode
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from bridgehead.serve.wire.page_headers import EVERYWHERE
from bridgehead.serve.wire.refusals import MAX_HEAD, ServiceRefusal, error_response, name_of, refusal_of

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Told = Callable[["Exchange"], None]
_DIGITS = 18
# What is read of a body that is too large, in times of the limit, and for how many seconds.
_FURTHER = 8
_MOMENT = 2.0
OPEN_TO_ALL = frozenset(["/health", "/ready"])
LOOPBACK = frozenset(["127.0.0.1", "localhost", "::1", "[::1]"])


class Exchange:
    """One request and its answer, as the log and the metrics know it."""

    __slots__ = ("began", "bytes_in", "bytes_out", "error", "method", "request_id", "scope", "status")

    def __init__(self, scope: Scope, method: str) -> None:
        self.scope, self.method = scope, method
        self.began = time.perf_counter()
        self.request_id = uuid.uuid4().hex[:16]
        self.status = 0
        self.bytes_in = self.bytes_out = 0
        self.error: BaseException | None = None

    @property
    def seconds(self) -> float:
        """Seconds since the request came."""
        return time.perf_counter() - self.began

    @property
    def route(self) -> str:
        """The template of the route, which holds nothing that a client sent; "unknown" where there is none."""
        return str(getattr(self.scope.get("route"), "path", "unknown"))


class Guard:
    """ASGI middleware. `token`: demanded where given; `hosts`: names that the Host header may have, None for any;
    `most`: bytes of a body; `told`: called with each `Exchange` at its end."""

    def __init__(self, app: App, token: str | None, hosts: Iterable[str] | None, most: int, told: Told) -> None:
        self.app, self.most, self.told = app, most, told
        self.token = None if token is None else token.encode()
        self.hosts = None if hosts is None else frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})
        method = scope["method"]
        without_body = method == "HEAD"
        # The server looks at its own scope for the method: this one is ours.
        scope = {**scope, "method": "GET" if without_body else method}
        exchange = Exchange(scope, method)
        scope["request_id"] = exchange.request_id
        answer = _sender(exchange, send, without_body)
        try:
            self._admit(scope)
            await self.app(scope, _counted(exchange, receive, self.most), answer)
        except Exception as error:
            exchange.error = error
            if exchange.status:
                # The answer has begun: all that is left is to end it short.
                raise
            refusal = refusal_of(error, exchange.request_id)
            if refusal.status == 413:
                await _read_off(scope["headers"], receive, _FURTHER * self.most)
            response = error_response(refusal.status, refusal.kind, str(refusal), refusal.headers)
            await response(scope, receive, answer)
        finally:
            self.told(exchange)

    def _admit(self, scope: Scope) -> None:
        headers = dict(scope["headers"])
        # 32: what each header costs besides, as in RFC 9113.
        if sum(len(name) + len(value) + 32 for name, value in scope["headers"]) > MAX_HEAD:
            raise ServiceRefusal(
                431, name_of(431), f"a head of over {MAX_HEAD:,} bytes; send fewer and shorter headers",
                {"connection": "close"},
            )  # fmt: skip
        given = [value for name, value in scope["headers"] if name == b"host"]
        if self.hosts is not None and (len(given) != 1 or _host(given[0]) not in self.hosts):
            raise ServiceRefusal(
                421, name_of(421), "the Host header names another machine; ask at the address that was printed"
            )
        if self.token is not None and scope["path"] not in OPEN_TO_ALL:
            token = _token(headers.get(b"authorization", b""))
            if token is None or not hmac.compare_digest(token, self.token):
                raise ServiceRefusal(
                    401, name_of(401), "this service demands its token: Authorization: Bearer TOKEN",
                    {"www-authenticate": 'Basic realm="bridgehead", charset="UTF-8"'},
                )  # fmt: skip
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > _DIGITS or int(length) > self.most:
            raise _too_large(self.most)


def _sender(exchange: Exchange, send: Send, without_body: bool) -> Send:
    async def answer(message: Message) -> None:
        if message["type"] == "http.response.start":
            exchange.status = message["status"]
            name = exchange.request_id.encode()
            message["headers"] = [*message.get("headers", ()), *EVERYWHERE, (b"x-request-id", name)]
        else:
            exchange.bytes_out += len(message.get("body", b""))
            if without_body:
                message = {**message, "body": b""}
        await send(message)

    return answer


def _counted(exchange: Exchange, receive: Receive, most: int) -> Receive:
    async def counted() -> Message:
        message = await receive()
        exchange.bytes_in += len(message.get("body", b""))
        if exchange.bytes_in > most:
            raise _too_large(most)
        return message

    return counted


async def _read_off(headers: Iterable[tuple[bytes, bytes]], receive: Receive, most: int) -> None:
    """Take what still comes of a body that is too large, `most` bytes and a moment at the most.

    A connection that is closed while its client sends is reset, and the client never hears why.
    """
    told = dict(headers)
    length = told.get(b"content-length", b"0")
    if b"expect" in told or not length.isdigit() or len(length) > _DIGITS or int(length) > most:
        return
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_MOMENT):
            while most > 0:
                message = await receive()
                most -= len(message.get("body", b""))
                if not message.get("more_body"):
                    return


def _too_large(most: int) -> ServiceRefusal:
    # What was not read of the body cannot be told from a next request.
    return ServiceRefusal(413, name_of(413), f"a body of over {most:,} bytes; send less", {"connection": "close"})


def _host(header: bytes) -> str:
    """Return the name in a Host header, without its port; all of it where that is no port."""
    text = header.decode("latin-1").strip().lower()
    name, colon, port = text.rpartition(":")
    return name if colon and (port.isdigit() or not port) and (":" not in name or name.endswith("]")) else text


def _token(header: bytes) -> bytes | None:
    """Return the token of a Bearer header, or the password of a Basic one: what browsers ask people for."""
    scheme, _, value = header.strip().partition(b" ")
    value = value.strip()
    if scheme.lower() == b"bearer":
        return value
    if scheme.lower() == b"basic":
        try:
            return b64decode(value, validate=True).partition(b":")[2]
        except ValueError:
            return None
    return None
